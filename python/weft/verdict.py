"""Who wins, by how much, how sure that is, and where the time went: the sentences below a table."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from weft.catalog import references
from weft.collectives import (
    COMPLETION,
    CRITICAL_PARTS,
    critical_parts,
    has_collectives,
    other_kinds,
    rank_fairly,
)
from weft.lead import first_sentences, sample_words
from weft.metrics import OF_LONG_LIVED, Metric
from weft.quantity import in_unit, number, percent
from weft.ranking import MATTERS, MEAN_FCT, RankedVariant, Ranking, listed, mean_of
from weft.reason import FlowsOf, Reason, flow_reason
from weft.statistics import Estimate
from weft.summary import Summary

__all__ = ["Verdict", "caveats", "is_unsteady", "judge"]

Groups = Mapping[str, Sequence[Summary]]

_UNSTEADY = "in no steady state"
"""Part of the warning of a run whose slowdowns rise or fall all the way."""
_DEADLOCK = "deadlock"
"""Start of the warning of a run that a deadlock ended."""
_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome on mean FCT or on the completion time of collectives.

    `difference_us` is winner minus other, paired by seed.
    """

    winner: str | None
    """Who has the best mean, be it by luck or not; None if it differs from another one's by too little to matter, or
    if flows that did not finish leave that open."""
    leader: str | None
    """Winner, if every other one is behind by a difference that matters and whose interval excludes zero; else None."""
    other: str | None
    winner_mean_us: float | None
    other_mean_us: float | None
    difference_us: Estimate | None
    sentences: tuple[str, ...]
    metric: Metric = MEAN_FCT
    """Metric of the verdict."""
    ranking: Ranking | None = None
    """All variants in order of it."""
    reason: Reason | None = None
    """Where the time went under the winner and under the other one."""

    @property
    def relative(self) -> float | None:
        """Difference over the other's mean: -0.3 is 30 % less."""
        if self.winner_mean_us is None or not self.other_mean_us:
            return None
        return self.winner_mean_us / self.other_mean_us - 1.0


def judge(groups: Groups, flows_of: "FlowsOf | None" = None, *, matters: float = MATTERS) -> Verdict | None:
    """Compare the lowest mean FCT with ECMP (or the first scheme; or, if that one wins, with the next best).

    Where flows wait for each other, nobody waits for a flow by itself: then it is the completion time of collectives,
    and of jobs that of steps. A reference, such as the oracle, is no scheme: it neither wins nor loses, and comes
    last. `flows_of` is asked for the flows of runs that left some unfinished: the reason compares those that
    finished under both. A difference below `matters`, as a share, is none. None without flows that end.
    """
    everything, groups = groups, {label: runs for label, runs in groups.items() if runs[0].scheme not in references()}
    ranking = rank_fairly({}, groups, matters)
    if ranking is None:
        return None
    metric, best = ranking.metric, ranking.best
    opponent = _opponent(groups, ranking)
    said = [*first_sentences(ranking, opponent, groups), *other_kinds(ranking, groups)]
    reason = None
    if best is not None and opponent is not None and ranking.lowest:
        reason = _reason((best, opponent.name), groups, metric, flows_of)
        if reason is not None and opponent.matters:
            said += reason.sentences(sure=not ranking.sure or opponent.behind)
        if metric not in OF_LONG_LIVED and opponent.matters and not ranking.alike:
            said += _price(best, opponent.name, groups)
    said += [*_overhead(groups), *_references(everything, metric), *_caveats(everything, ranking)]
    return Verdict(
        winner=ranking.winner,
        leader=ranking.leader,
        other=None if opponent is None else opponent.name,
        winner_mean_us=ranking.mean_us,
        # A bound is no mean.
        other_mean_us=None if opponent is None else opponent.mean.value,
        difference_us=None if opponent is None else opponent.difference_us,
        sentences=tuple(said),
        metric=metric,
        ranking=ranking,
        reason=reason,
    )


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _opponent(groups: Groups, ranking: Ranking) -> RankedVariant | None:
    """Return the reference, ECMP or else the first scheme; if that has the best mean itself, the next one."""
    ranked = {other.name: other for other in ranking.others}
    there = [label for label in groups if label in ranked or label == ranking.best]
    by_scheme = [label for label in there if groups[label][0].scheme == "ecmp"]
    reference = (by_scheme or there)[0]
    return ranked.get(reference) or next(iter(ranking.others), None)


def _reason(names: tuple[str, str], groups: Groups, metric: Metric, flows_of: "FlowsOf | None") -> Reason | None:
    """Compare the parts of flows' completion times, or of the critical paths of collectives."""
    mine, yours = (groups[name] for name in names)
    if metric.key != COMPLETION.key:
        return flow_reason(names, mine, yours, flows_of)
    parts = critical_parts(mine), critical_parts(yours)
    return Reason.of(names, parts, CRITICAL_PARTS) if all(parts) else None


def _price(winner: str, other: str, groups: Groups) -> list[str]:
    """Say what the winner pays: retransmissions and packets out of order, where it has more of them."""

    def means(value_of: Callable[[Summary], float | None]) -> tuple[float, float] | None:
        mine, yours = ([value for run in groups[label] if (value := value_of(run)) is not None] for label in names)
        return (_mean(mine), _mean(yours)) if mine and yours else None

    def texts(found: tuple[float, float] | None, text: Callable[[float], str]) -> tuple[str, str] | None:
        if found is None or found[0] <= found[1]:
            return None
        mine, yours = map(text, found)
        # A difference that the numbers do not show is no price.
        return (mine, yours) if mine != yours else None

    names = (winner, other)
    quantities = (
        texts(means(lambda run: run.retransmissions), lambda value: f"{number(value)} retransmissions"),
        texts(means(lambda run: run.out_of_order_share), lambda value: f"{percent(value)} of packets out of order"),
    )
    paid = [one for one in quantities if one is not None]
    if not paid:
        return []
    both = (f"{' and '.join(own)} under {label}" for label, own in zip(names, zip(*paid, strict=True), strict=True))
    return [f"Price: {'; '.join(both)}."]


def _overhead(groups: Groups) -> list[str]:
    shares = {
        label: _mean([run.overhead_share or 0.0 for run in runs])
        for label, runs in groups.items()
        if any(run.overhead_bytes for run in runs)
    }
    named = ", ".join(f"{label} {percent(share)}" for label, share in shares.items())
    return (
        [f"Overhead, as a share of all bytes on links, of the packets that schemes send themselves: {named}."]
        if named
        else []
    )


def _references(groups: Groups, metric: Metric) -> list[str]:
    """Say what came of each reference. Schemes may be ahead of it, so nothing is taken off it."""
    means = {label: mean_of(metric, runs) for label, runs in groups.items() if runs[0].scheme in references()}
    return [
        f"{label} is a reference (perfect per-packet choice), no scheme and no bound: its {metric.title} is "
        f"{in_unit(mean, metric.unit)}."
        for label, mean in means.items()
        if mean is not None
    ]


def _caveats(groups: Groups, ranking: Ranking) -> list[str]:
    return [*([] if ranking.one_sample else sample_words(groups)), *caveats(groups)]


def caveats(groups: Groups) -> list[str]:
    """Say what to keep in mind: no steady state, and what all runs of a variant warn of."""
    unsteady = [label for label, runs in groups.items() if any(map(is_unsteady, runs))]
    found = []
    # Collectives begin and end: they are in no steady state, and their means do not need one.
    if unsteady and not has_collectives(groups):
        one = sum(len(groups[label]) for label in unsteady) == 1
        whose, their = ("run of {} is", "its") if one else ("runs of {} are", "their")
        found.append(
            f"The {whose.format(listed(unsteady))} not in a steady state: {their} means depend on the number of flows. "
            "More flows and a warm-up (run.warmup) help; summary.json says more."
        )
    warned: dict[str, list[str]] = {}
    for label, runs in groups.items():
        for warning in _common_warnings(runs):
            warned.setdefault(warning, []).append(label)
    for warning, labels in warned.items():
        # A warning that names its scheme, or is about all of them, needs no name before it.
        is_plain = len(labels) == len(groups) or [warning.split(" ", 1)[0]] == labels
        found.append(f"{'' if is_plain else ', '.join(labels) + ': '}{warning}.")
    return found


def is_unsteady(run: Summary) -> bool:
    """Whether a run was in no steady state, so that its means depend on how many flows there are."""
    return any(_UNSTEADY in warning for warning in run.warnings)


def _common_warnings(runs: Sequence[Summary]) -> list[str]:
    """Return what every one of these runs warns of, but for what is said in other words.

    Warnings that differ in their numbers alone are one, with those of the first run.
    """
    everywhere = [{_NUMBER.sub("", warning) for warning in run.warnings} for run in runs]
    common = [one for one in runs[0].warnings if all(_NUMBER.sub("", one) in found for found in everywhere)]
    told = [one for one in common if _UNSTEADY not in one and not one.startswith(_DEADLOCK)]
    return [one if all(one in run.warnings for run in runs) else f"{one} (seed {runs[0].seed})" for one in told]
