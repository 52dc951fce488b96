"""Claims that cannot both be so, by what a third contender measures.

If a paper says that its scheme is no faster than some baseline, and the baseline itself is only 20 % faster than
others, then the scheme cannot be 25 to 50 % faster than those, whatever it does: one claim bounds the other. Both are
taken to the letter here, at every point, without the quarter that counts as the same size.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from weft.papers.ceilings import wants_less, without_oracle
from weft.papers.claims import Claim, Rule, Where
from weft.papers.effects import Words, measure
from weft.papers.measured import FigureData

__all__ = ["Exclusion", "exclusions"]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A claim that cannot be so where another one is."""

    claim: str
    other: str
    baseline: str
    """The contender that the other claim puts no behind."""
    most: float
    """The largest reduction that is left, with the interval over seeds on its side."""


@dataclass(frozen=True, slots=True)
class _AtLeast:
    """A contender takes at least so many times what a baseline takes."""

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
                most = _most(claim, rule, limit, own)
                if most is not None and most < _least(rule):
                    found.append(Exclusion(claim.id, other.id, limit.baseline, most))
    return found


def _says_faster(rule: Rule) -> bool:
    """Whether a rule says by how much one contender takes less than others."""
    return rule.kind == "reduction" and len(rule.of) == 1 and rule.against_x is None and _least(rule) > 0.0


def _least(rule: Rule) -> float:
    return 0.0 if rule.expected is None else rule.expected[0]


def _limits(other: Claim, claim: Claim) -> Iterator[_AtLeast]:
    """Yield what another claim says of a claim's contender at all points of that claim."""
    rule = other.rule
    if rule is None or claim.rule is None or other.id == claim.id or rule.against_x is not None:
        return
    everywhere = not other.panels or (bool(claim.panels) and set(claim.panels) <= set(other.panels))
    if not everywhere or other.where not in (Where(), claim.where):
        return
    who = claim.rule.of[0]
    if rule.of == (who,):
        times = _slower(rule)
        yield from (_AtLeast(baseline, times) for baseline in rule.against if times > 0.0)
    elif rule.against == (who,):
        times = _faster(rule)
        yield from (_AtLeast(baseline, times) for baseline in rule.of if times > 0.0)
    elif rule.kind == "order" and who in rule.of and not rule.more_is_better:
        yield from (_AtLeast(baseline, 1.0) for baseline in rule.of[: rule.of.index(who)])


def _slower(rule: Rule) -> float:
    """Return how many times its opponents' the contender of a rule takes at least; 0 if the rule does not say."""
    match rule.kind:
        case "ratio" if rule.expected is not None:
            return rule.expected[0]
        case "at-least" if rule.bound is not None:
            return rule.bound
    return 0.0


def _faster(rule: Rule) -> float:
    """Return how many times a contender's the opponent of its rule takes at least; 0 if the rule does not say."""
    match rule.kind:
        case "reduction" if rule.expected is not None and 0.0 <= rule.expected[0] < 1.0:
            return 1.0 / (1.0 - rule.expected[0])
        case "reduction" if rule.bound is not None:
            return 1.0
        case "ratio" if rule.expected is not None and rule.expected[1] > 0.0:
            return 1.0 / rule.expected[1]
        case "at-most" if rule.bound is not None and rule.bound > 0.0:
            return 1.0 / rule.bound
    return 0.0


def _most(claim: Claim, rule: Rule, limit: _AtLeast, data: FigureData) -> float | None:
    """Measure a claim as if its contender were as fast as a limit allows."""
    best = data.rows.filter(pl.col("contender") == limit.baseline).with_columns(
        pl.col("value") * limit.times, contender=pl.lit(rule.of[0])
    )
    rows = pl.concat([best, data.rows.filter(pl.col("contender") != rule.of[0])])
    found = measure(claim, rule, replace(data, rows=rows), Words())
    return None if found is None else found.value.high
