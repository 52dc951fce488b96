"""Verdicts on claims over scenarios: how many hold, which choices decide, and which claims never hold together."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.multiverse.design import Design
from weft.papers.claims import Claim
from weft.papers.exclusions import Exclusion
from weft.papers.open import Choice
from weft.papers.scenarios import Scenario
from weft.papers.verdicts import Judgement, Verdict

__all__ = [
    "ClaimScenarios",
    "Decider",
    "Excluded",
    "Multiverse",
    "Seen",
    "Share",
    "holds",
    "influence",
    "summed",
    "together",
    "wilson",
]

Z95 = 1.959963984540054
"""The quantile of the normal distribution of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A scenario that was judged."""

    scenario: Scenario
    judgements: Mapping[str, Judgement]
    """By the name of the claim."""
    exclusions: Sequence[Exclusion] = ()
    """Claims that cannot both be so here, by what a third variant measures."""

    def holds(self, claim: str) -> bool:
        """Whether a claim is reproduced here."""
        return holds(self.judgements[claim])

    def may_hold(self, claim: str) -> bool:
        """Whether it is reproduced, or undecided."""
        return self.holds(claim) or self.judgements[claim].verdict is Verdict.UNDECIDED


@dataclass(frozen=True, slots=True)
class Excluded:
    """Two claims of which, to the letter, one cannot be so where the other is."""

    claim: str
    other: str
    baseline: str
    """The variant whose own times say so."""
    most: float
    """The largest reduction that the other claim leaves to the first, over the scenarios."""
    scenarios: int
    """In how many scenarios."""


@dataclass(frozen=True, slots=True)
class Share:
    """In how many scenarios a claim holds."""

    holds: int
    """It is reproduced."""
    open: int
    """The interval over seeds is too wide to tell."""
    scenarios: int
    low: float
    high: float
    """Wilson's interval of 95 % where not all combinations were judged; open scenarios may be either."""
    exact: bool
    """Whether all combinations were judged."""

    @property
    def share(self) -> float:
        """The share of scenarios in which it holds, 0 to 1."""
        return self.holds / self.scenarios


@dataclass(frozen=True, slots=True)
class Decider:
    """Effect of an alternative on a claim."""

    choice: str
    alternative: str
    effect: float | None
    """By how much the share of scenarios in which the claim holds differs from that with the default, -1 to 1; None
    where it was tried by itself, and the design does not vary it."""
    alone: bool
    """Whether it turns the verdict by itself, all else being the default, and not from or to undecided."""


@dataclass(frozen=True)
class ClaimScenarios:
    """A claim over all scenarios."""

    claim: Claim
    default: Judgement
    share: Share
    deciders: Sequence[Decider]
    """Those with any effect in the design, the strongest first; then those that were tried by themselves alone."""
    nearest: Scenario | None
    """The scenario in which it holds with the fewest changes, the default if that is one; None: it holds in none. One
    whose changes hold up is nearer than one that may be luck: see `_nearest`."""
    nearest_differs: bool
    """Whether what is measured there is not what the default has, beyond what seeds do. Without that its verdict may be
    another one because an interval is wide."""


def holds(judgement: Judgement) -> bool:
    """Whether a claim is reproduced: direction and size."""
    return judgement.verdict is Verdict.REPRODUCED


def summed(
    claims: Sequence[Claim], default: Seen, single: Sequence[Seen], design: Design | None, crossed: Sequence[Seen]
) -> list[ClaimScenarios]:
    """Sum up what scenarios say of each claim: the default, those with one change, and those of a design.

    Shares are those of the design, if there is one: in it, every alternative of a choice has the same weight.
    """
    weighed = list(crossed) or [default, *single]
    every = _once([default, *single, *crossed])
    found = []
    for claim in claims:
        share = _share(claim.id, weighed, design)
        deciders = _deciders(claim.id, default, single, design, crossed)
        nearest = _nearest(claim.id, default, every)
        scenario, differs = (
            (None, False) if nearest is None else (nearest.scenario, _differs(claim.id, default, nearest))
        )
        found.append(ClaimScenarios(claim, default.judgements[claim.id], share, deciders, scenario, differs))
    return found


def together(claims: Sequence[Claim], seen: Sequence[Seen]) -> list[tuple[str, str]]:
    """List the pairs of claims of which each holds in some scenario, while in every scenario one of the two does not.

    What the seeds leave undecided may hold.
    """
    able = [claim.id for claim in claims if any(one.holds(claim.id) for one in seen)]
    may = {name: {one.scenario for one in seen if one.may_hold(name)} for name in able}
    return [(one, other) for one, other in itertools.combinations(able, 2) if not may[one] & may[other]]


def influence(choice: Choice, default: Seen, single: Sequence[Seen]) -> tuple[bool, float]:
    """Tell how much a choice matters by itself: whether it turns a verdict, and the largest shift of what was measured.

    A verdict that becomes undecided, or was, is not turned: the luck of the seeds does that by itself.
    The shift is in half-widths of the wider interval, so that what seeds do by themselves is about 1.
    """
    turns, shift = False, 0.0
    for one in single:
        if one.scenario.changed[0][0] != choice.name:
            continue
        for claim, judgement in one.judgements.items():
            before = default.judgements[claim]
            verdicts = {before.verdict, judgement.verdict}
            turns |= len(verdicts) == 2 and Verdict.UNDECIDED not in verdicts
            shift = max(shift, _shift(before, judgement))
    return turns, shift


def _shift(before: Judgement, after: Judgement) -> float:
    if before.measured is None or after.measured is None:
        return 0.0
    width = max(before.measured.half_width or 0.0, after.measured.half_width or 0.0)
    difference = abs(after.measured.mean - before.measured.mean)
    return difference / width if width > 0.0 else math.inf if difference > 0.0 else 0.0


def _once(seen: Sequence[Seen]) -> list[Seen]:
    return list({one.scenario: one for one in seen}.values())


def _share(claim: str, seen: Sequence[Seen], design: Design | None) -> Share:
    held = sum(one.holds(claim) for one in seen)
    unsure = sum(one.judgements[claim].verdict is Verdict.UNDECIDED for one in seen)
    if design is not None and design.whole:
        return Share(held, unsure, len(seen), held / len(seen), (held + unsure) / len(seen), exact=True)
    # Scenarios of a fraction that share their runs are not independent: there are no more of those than combinations of
    # what is shared. Of all combinations those that were judged are a fair draw, whatever they share.
    count = len(design.rows) if design is not None and design.fraction else len(seen)
    low, _ = wilson(held / len(seen), count)
    _, high = wilson((held + unsure) / len(seen), count)
    return Share(held, unsure, len(seen), low, high, exact=False)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Interval of 95 % for a share that was found in so many trials (Wilson, JASA 1927)."""
    square = Z95 * Z95
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = Z95 / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _deciders(
    claim: str, default: Seen, single: Sequence[Seen], design: Design | None, crossed: Sequence[Seen]
) -> list[Decider]:
    alone = {one.scenario.changed[0]: _turned(claim, default, one) for one in single}
    effects: dict[tuple[str, str], float | None] = dict.fromkeys(alone)
    for factor in design.factors if design is not None and crossed else ():
        shares = {
            name: _mean([one.holds(claim) for one in crossed if one.scenario.alternative(factor.choice) == name])
            for name in factor.alternatives
        }
        for name in factor.alternatives[1:]:
            effects[factor.choice.name, name] = shares[name] - shares[factor.choice.default]
    found = [Decider(*pair, effect, alone.get(pair, False)) for pair, effect in effects.items()]
    kept = [one for one in found if one.effect or one.alone]
    return sorted(kept, key=lambda one: (one.effect is None, -abs(one.effect or 0.0), not one.alone))


def _turned(claim: str, default: Seen, one: Seen) -> bool:
    """Whether a scenario turns a verdict between holding and not; what seeds leave undecided, their luck turns."""
    undecided = Verdict.UNDECIDED in (default.judgements[claim].verdict, one.judgements[claim].verdict)
    return one.holds(claim) != default.holds(claim) and not undecided


def _mean(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0


def _nearest(claim: str, default: Seen, seen: Sequence[Seen]) -> Seen | None:
    """Find the scenario with the fewest changes in which a claim holds.

    Among thousands of scenarios it holds in some by luck. So scenarios that measure something else than the default
    come first, and of these the ones whose changes make it hold in most scenarios that have them, whatever else these
    change.
    """
    able = sorted((one for one in seen if one.holds(claim)), key=lambda one: len(one.scenario.changed))
    if not able or not able[0].scenario.changed:
        return able[0] if able else None
    other = [one for one in able if _differs(claim, default, one)]
    changes = [(frozenset(one.scenario.changed), one.holds(claim)) for one in seen]
    return next((one for one in other if _holds_up(one.scenario, changes)), (other or able)[0])


def _holds_up(scenario: Scenario, changes: Sequence[tuple[frozenset[tuple[str, str]], bool]]) -> bool:
    """Whether a claim holds in more than half of the scenarios with these changes, by Wilson's interval of 95 %."""
    own = frozenset(scenario.changed)
    alike = [held for changed, held in changes if own <= changed]
    return wilson(sum(alike) / len(alike), len(alike))[0] > 0.5


def _differs(claim: str, one: Seen, other: Seen) -> bool:
    """Whether two scenarios measure what is not the same: by more than both intervals together."""
    before, after = one.judgements[claim].measured, other.judgements[claim].measured
    if before is None or after is None:
        return before is not after
    return abs(after.mean - before.mean) > math.hypot(before.half_width or 0.0, after.half_width or 0.0)


@dataclass(frozen=True)
class Multiverse:
    """Result of a multiverse analysis: claims, choices, judged scenarios and cost."""

    claims: Sequence[ClaimScenarios]
    choices: Mapping[str, Choice]
    untried: Sequence[Scenario]
    """Scenarios with one change that the budget left no time for."""
    design: Design | None
    """None: there was no time for one."""
    default: Seen
    single: Sequence[Seen]
    crossed: Sequence[Seen]
    runs: int
    kept: int
    """How many of the runs had been done before."""
    cpu_s: float
    """CPU time of the other runs, in seconds."""
    all_cpu_s: float
    """CPU time of all runs when they were done, in seconds."""
    failed: Mapping[str, str]
    impossible: Mapping[Scenario, str]
    """Scenarios that there are not, and why: as where links cannot carry the load."""

    @cached_property
    def seen(self) -> Sequence[Seen]:
        """All scenarios that were judged, each once, the default first."""
        return _once([self.default, *self.single, *self.crossed])

    @cached_property
    def apart(self) -> Sequence[tuple[str, str]]:
        """Pairs of claims of which each holds in some scenario, while in every scenario one of the two does not."""
        return together([one.claim for one in self.claims], self.seen)

    @cached_property
    def excluded(self) -> Sequence[Excluded]:
        """Claims that exclude each other, to the letter, in some scenario: those that do in most scenarios first."""
        pairs: dict[tuple[str, str, str], list[float]] = {}
        for seen in self.seen:
            for one in seen.exclusions:
                pairs.setdefault((one.claim, one.other, one.baseline), []).append(one.most)
        found = [Excluded(*names, max(most), len(most)) for names, most in pairs.items()]
        return sorted(found, key=lambda one: -one.scenarios)

    @property
    def best(self) -> Seen:
        """The scenario in which most claims hold; of several, the one with the fewest changes."""
        return max(
            self.seen,
            key=lambda one: (sum(map(holds, one.judgements.values())), -len(one.scenario.changed)),
        )
