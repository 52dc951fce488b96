"""Claims that cannot both be so, by what a third variant measures.

If a paper says that its scheme is no faster than some baseline, and the baseline itself is only 20 % faster than
others, then the scheme cannot be 25 to 50 % faster than those, whatever it does: one claim bounds the other.

`exclusions` takes both to the letter, at every point, without the quarter that counts as the same size. A verdict does
not: `baseline_bound` leaves to the other claim all that would still be called the paper's, and counts only where what
was measured keeps the bound, and where the other claim is one about the same places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from weft.papers.ceilings import wants_less, without_oracle
from weft.papers.claims import Claim, Rule, Where, widened
from weft.papers.effects import Effect, Words, measure
from weft.papers.measured import FigureData

__all__ = ["BaselineBound", "Exclusion", "baseline_bound", "exclusions"]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A claim that cannot be so where another one is."""

    claim: str
    other: str
    baseline: str
    """The variant that the other claim puts no behind."""
    most: float
    """The largest reduction that is left, with the interval over seeds on its side."""


@dataclass(frozen=True, slots=True)
class BaselineBound:
    """The most that a claim can be where another one of its paper holds, too."""

    effect: Effect
    other: str
    """The other claim."""
    baseline: str
    """The variant that the other claim puts no behind."""
    times: float
    """How many times what that one takes the claim's variant takes, at least."""


@dataclass(frozen=True, slots=True)
class _AtLeast:
    """A variant takes at least so many times what a baseline takes."""

    baseline: str
    times: float


def exclusions(claims: Sequence[Claim], data: FigureData) -> list[Exclusion]:
    """List the claims about a figure that exclude each other there, each pair once for each baseline."""
    own = without_oracle(data)
    found: list[Exclusion] = []
    for claim in claims:
        rule = claim.rule
        if rule is None or not _says_faster(rule) or not wants_less(rule, own):
            continue
        for other in claims:
            for limit in _limits(other, claim):
                best = _at_the_limit(claim, rule, limit, own, Words())
                if best is not None and best.value.high < _least(rule):
                    found.append(Exclusion(claim.id, other.id, limit.baseline, best.value.high))
    return found


def baseline_bound(
    claim: Claim, beside: Sequence[Claim], data: FigureData, words: Words, measured: Effect
) -> BaselineBound | None:
    """Find the tightest bound that other claims about a figure set to one; None if there is none, or it is not kept."""
    rule = claim.rule
    if rule is None or not _says_faster(rule) or not wants_less(rule, data):
        return None
    found = [
        BaselineBound(best, other.id, limit.baseline, limit.times)
        for other in beside
        if other.rule is not None and other.rule.over in ("worst", rule.over)
        for limit in _limits(other, claim, same_size=True)
        if (best := _at_the_limit(claim, rule, limit, data, words)) is not None
        and measured.value.mean <= best.value.mean
    ]
    return min(found, key=lambda one: one.effect.value.high, default=None)


def _says_faster(rule: Rule) -> bool:
    """Whether a rule says by how much one variant takes less than others."""
    return rule.kind == "reduction" and len(rule.of) == 1 and rule.against_x is None and _least(rule) > 0.0


def _least(rule: Rule) -> float:
    return 0.0 if rule.expected is None else rule.expected[0]


def _limits(other: Claim, claim: Claim, *, same_size: bool = False) -> Iterator[_AtLeast]:
    """Yield what another claim says of a claim's variant at all points of that claim.

    With `same_size` it is what would still be reproduced: a size may be a quarter off, and of an order not all holds.
    """
    rule = other.rule
    if rule is None or claim.rule is None or other.id == claim.id or rule.against_x is not None or rule.over == "best":
        return
    everywhere = not other.panels or (bool(claim.panels) and set(claim.panels) <= set(other.panels))
    if not everywhere or other.where not in (Where(), claim.where):
        return
    who = claim.rule.of[0]
    if rule.of == (who,):
        times = _slower(rule, _size(rule, same_size))
        yield from (_AtLeast(baseline, times) for baseline in rule.against if times > 0.0)
    elif rule.against == (who,):
        times = _faster(rule, _size(rule, same_size))
        yield from (_AtLeast(baseline, times) for baseline in rule.of if times > 0.0)
    elif rule.kind == "order" and not same_size and who in rule.of and not rule.more_is_better:
        yield from (_AtLeast(baseline, 1.0) for baseline in rule.of[: rule.of.index(who)])


def _size(rule: Rule, same_size: bool) -> tuple[float, float] | None:
    """Return the size that a rule expects, as printed or with all that counts as the same."""
    return widened(rule.expected) if same_size and rule.expected is not None else rule.expected


def _slower(rule: Rule, size: tuple[float, float] | None) -> float:
    """Return how many times its opponents' the variant of a rule takes at least; 0 if the rule does not say."""
    match rule.kind:
        case "ratio" if size is not None:
            return size[0]
        case "at-least" if rule.bound is not None:
            return rule.bound
    return 0.0


def _faster(rule: Rule, size: tuple[float, float] | None) -> float:
    """Return how many times a variant's the opponent of its rule takes at least; 0 if the rule does not say."""
    match rule.kind:
        case "reduction" if size is not None and 0.0 <= size[0] < 1.0:
            return 1.0 / (1.0 - size[0])
        case "reduction" if rule.bound is not None:
            return 1.0
        case "ratio" if size is not None and size[1] > 0.0:
            return 1.0 / size[1]
        case "at-most" if rule.bound is not None and rule.bound > 0.0:
            return 1.0 / rule.bound
    return 0.0


def _at_the_limit(claim: Claim, rule: Rule, limit: _AtLeast, data: FigureData, words: Words) -> Effect | None:
    """Measure a claim as if its variant were as fast as a limit allows."""
    best = data.rows.filter(pl.col("variant") == limit.baseline).with_columns(
        pl.col("value") * limit.times, variant=pl.lit(rule.of[0])
    )
    rows = pl.concat([best, data.rows.filter(pl.col("variant") != rule.of[0])])
    return measure(claim, rule, replace(data, rows=rows), words)
