"""Whether variants that two simulators ran come in the same order in both, as far as their runs can tell.

Two variants of a simulator are **told apart** if the 95 % interval of the difference of their means does not hold
zero: Welch's test, which does not ask that both have as many runs, or runs that spread as much. Else they are tied,
whichever mean is the lower one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

from beside import average

from weft.statistics import CONFIDENCE, student_t_quantile

Runs = Mapping[str, tuple[float, ...]]
"""The figure of each variant's runs."""


def sign(first: tuple[float, ...], second: tuple[float, ...]) -> int:
    """-1 if the first is below the second, 1 if above, 0 if they are tied; a single run is tied with everything."""
    if min(len(first), len(second)) < 2:
        return 0
    difference = average(first) - average(second)
    shares = [variance(runs) / len(runs) for runs in (first, second)]
    if sum(shares) == 0.0:
        return (difference > 0.0) - (difference < 0.0)
    rests = [share**2 / (len(runs) - 1) for share, runs in zip(shares, (first, second), strict=True)]
    # Welch and Satterthwaite's degrees of freedom are no whole number: the next lower one has the wider interval.
    degrees = max(1, math.floor(sum(shares) ** 2 / sum(rests)))
    half_width = student_t_quantile(0.5 + CONFIDENCE / 2.0, degrees) * math.sqrt(sum(shares))
    return (difference > half_width) - (difference < -half_width)


def variance(runs: tuple[float, ...]) -> float:
    """Return the variance of a sample; exactly 0 where all values are equal."""
    if min(runs) == max(runs):
        return 0.0
    middle = average(runs)
    return math.fsum((value - middle) ** 2 for value in runs) / (len(runs) - 1)


def chain(runs: Runs) -> str:
    """The variants by their means, from the least: `<` between neighbours told apart, `~` between tied ones."""
    names = sorted(runs, key=lambda name: average(runs[name]))
    rest = [f"{'<' if sign(runs[lower], runs[upper]) else '~'} {upper}" for lower, upper in pairwise(names)]
    return " ".join([*names[:1], *rest])


@dataclass(frozen=True)
class Order:
    """The pairs of variants that are told apart in both simulators."""

    same: tuple[tuple[str, str], ...]
    """Those in the same order in both, the lower one first."""
    opposite: tuple[tuple[str, str], ...]
    """Those in opposite orders, Weft's lower one first."""
    pairs: int
    """All pairs, with those that either simulator has tied."""

    @property
    def told(self) -> str:
        """How many pairs are told apart in both, and which of them contradict each other, in red."""
        apart = len(self.same) + len(self.opposite)
        text = f"{apart} of {self.pairs} pairs are told apart in both"
        if not self.opposite:
            return f"{text}, none the other way round" if apart else text
        names = ", ".join(f"{lower} < {upper}" for lower, upper in self.opposite)
        return f"{text}, [bold red]here, but the other way round there: {names}[/]"


def order(weft: Runs, other: Runs) -> Order:
    """Compare the order of all pairs; both simulators must have run the same variants."""
    if weft.keys() != other.keys():
        raise ValueError(f"{sorted(weft)} here, {sorted(other)} there")
    same, opposite = [], []
    pairs = list(combinations(weft, 2))
    for first, second in pairs:
        here, there = sign(weft[first], weft[second]), sign(other[first], other[second])
        lower_first = (first, second) if here < 0 else (second, first)
        if here * there > 0:
            same.append(lower_first)
        elif here * there < 0:
            opposite.append(lower_first)
    return Order(tuple(same), tuple(opposite), len(pairs))
