"""Who wins, by how much, how sure that is, and where the time went: the sentences below a table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from weft.catalog import references
from weft.collectives import (
    COMPLETION,
    CRITICAL_PARTS,
    critical_parts,
    has_collectives,
    stand_fairly,
    unfinished_collectives,
)
from weft.metrics import Metric
from weft.quantity import number, percent, plain, time_scale, time_us
from weft.reason import FlowsOf, Reason, flow_reason
from weft.standing import MEAN_FCT, Standing, difference_words, listed, mean_of
from weft.statistics import Estimate
from weft.summary import Summary

__all__ = ["Verdict", "caveats", "is_unsteady", "judge"]

Groups = Mapping[str, Sequence[Summary]]

_UNSTEADY = "in no steady state"
"""Part of the warning of a run whose slowdowns rise or fall all the way."""
_DEADLOCK = "deadlock"
"""What the warning of a run that ended by one begins with."""
_NUMBER = re.compile(r"\d[\d.,]*")
_MOST_NAMED = 4
"""Contenders that one sentence names."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome on mean FCT or on the completion time of collectives.

    `difference_us` is winner minus other, paired by seed.
    """

    winner: str
    """Who has the lowest mean, be it by luck or not."""
    leader: str | None
    """The same if every other one is behind by an interval that excludes zero; None otherwise: nobody leads."""
    other: str | None
    winner_mean_us: float
    other_mean_us: float | None
    difference_us: Estimate | None
    sentences: tuple[str, ...]
    metric: Metric = MEAN_FCT
    """What it was judged by."""
    reason: Reason | None = None
    """Where the time went under the winner and under the other one."""

    @property
    def relative(self) -> float | None:
        """Difference over the other's mean: -0.3 is 30 % less."""
        if self.other_mean_us is None or self.other_mean_us == 0.0:
            return None
        return self.winner_mean_us / self.other_mean_us - 1.0


def judge(groups: Groups, flows_of: "FlowsOf | None" = None) -> Verdict | None:
    """Compare the lowest mean FCT with ECMP (or the first scheme; or, if that one wins, with the next best).

    Where flows wait for each other, nobody waits for a flow by itself: then it is the completion time of collectives,
    and of jobs that of steps. A reference, such as the oracle, is no scheme: it neither wins nor loses, and comes
    last. `flows_of` is asked for the flows of runs that left some unfinished: the reason compares those that
    finished under both. None when no flow of a scheme finished anywhere.
    """
    everything, groups = groups, {label: runs for label, runs in groups.items() if runs[0].scheme not in references()}
    standing = stand_fairly({}, groups)
    if standing is None:
        return None
    metric = standing.metric
    winner = standing.best
    other = _opponent(groups, standing)
    if other is None:
        alone = f"{winner}: {metric.title} {time_us(standing.mean_us)}."
        said = (alone, *_overhead(groups), *_references(everything, metric), *caveats(everything))
        return Verdict(winner, None, None, standing.mean_us, None, None, said, metric)
    rival = next(one for one in standing.rivals if one.name == other)
    reason = _reason((winner, other), groups, metric, flows_of)
    sure = not standing.sure or rival.behind
    sentences = [
        *_who(standing, other, rival.mean_us),
        _how_sure(rival.difference_us),
        *(reason.sentences(sure=sure) if reason is not None else ()),
        _packets(winner, other, groups),
    ]
    said = (*sentences, *_overhead(groups), *_references(everything, metric), *caveats(everything))
    means = standing.mean_us, rival.mean_us
    return Verdict(winner, standing.leader, other, *means, rival.difference_us, said, metric, reason)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _opponent(groups: Groups, standing: Standing) -> str | None:
    """Name the reference, ECMP or else the first scheme; if that has the lowest mean itself, the next one."""
    means = {standing.best, *(rival.name for rival in standing.rivals)}
    by_scheme = [label for label, runs in groups.items() if runs[0].scheme == "ecmp" and label in means]
    reference = by_scheme[0] if by_scheme else next(label for label in groups if label in means)
    if reference != standing.best:
        return reference
    return standing.rivals[0].name if standing.rivals else None


def _who(standing: Standing, other: str, yours: float) -> list[str]:
    winner, mine = standing.best, standing.mean_us
    if mine == yours:
        return [f"{winner} and {other} have the same {standing.metric.title}: {time_us(mine)}."]
    less = percent(1.0 - mine / yours) if yours else "0 %"
    by_how_much = f"{time_us(mine)}, {less} less than {other} ({time_us(yours)})."
    if standing.leader is None and standing.sure:
        return [_nobody(standing), f"The lowest {standing.metric.title} is that of {winner}: {by_how_much}"]
    return [f"{winner} has the lowest {standing.metric.title}: {by_how_much}"]


def _nobody(standing: Standing) -> str:
    """Say who cannot be told from the one with the lowest mean, and show the nearest difference."""
    names = [standing.best, *(rival.name for rival in standing.not_apart)]
    if (more := len(names) - _MOST_NAMED) > 0:
        names = [*names[: _MOST_NAMED - 1], f"{more + 1} others"]
    nearest = standing.not_apart[0]
    rest = "; all others are behind" if len(standing.not_apart) < len(standing.rivals) else ""
    apart = f"{standing.best} and {nearest.name}: {difference_words(nearest.difference_us)}"
    return f"Nobody leads: {listed(names)} cannot be told apart by {standing.metric.title} ({apart}){rest}."


def _how_sure(difference: Estimate | None) -> str:
    if difference is None or difference.half_width is None:
        return "One seed gives no confidence interval: with --seeds 5 you learn whether the difference is luck."
    unit, scale = time_scale([difference.mean, difference.half_width])
    verb = "excludes" if difference.excludes_zero else "includes"
    return (
        f"Paired over {difference.runs} seeds the difference is {plain(difference.mean / scale)} "
        f"± {plain(difference.half_width / scale)} {unit} (95 % confidence): the interval {verb} zero."
    )


def _reason(names: tuple[str, str], groups: Groups, metric: Metric, flows_of: "FlowsOf | None") -> Reason | None:
    """Compare the parts of flows' completion times, or of the critical paths of collectives."""
    mine, yours = (groups[name] for name in names)
    if metric.key != COMPLETION.key:
        return flow_reason(names, mine, yours, flows_of)
    parts = critical_parts(mine), critical_parts(yours)
    return Reason.of(names, parts, CRITICAL_PARTS) if all(parts) else None


def _packets(winner: str, other: str, groups: Groups) -> str:
    def text(label: str) -> str:
        runs = groups[label]
        resent = [float(run.retransmissions) for run in runs if run.retransmissions is not None]
        shares = [run.out_of_order_share for run in runs if run.out_of_order_share is not None]
        again = number(_mean(resent)) if resent else "unknown"
        early = percent(_mean(shares)) if shares else "an unknown share"
        return f"{again} retransmissions and {early} of packets out of order under {label}"

    return f"Price: {text(winner)}; {text(other)}."


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
        f"{time_us(mean)}."
        for label, mean in means.items()
        if mean is not None
    ]


def caveats(groups: Groups) -> list[str]:
    """Say what to keep in mind: unfinished flows, no steady state, and what all runs of a contender warn of."""
    missing = {label: sum(run.without_completion for run in runs) for label, runs in groups.items()}
    named = ", ".join(f"{label} {number}" for label, number in missing.items() if number)
    unsteady = [label for label, runs in groups.items() if any(map(is_unsteady, runs))]
    found = []
    late = {label: sum(unfinished_collectives(run) for run in runs) for label, runs in groups.items()}
    if any(late.values()):
        listed_late = ", ".join(f"{label} {number}" for label, number in late.items() if number)
        found.append(f"Collectives that had not finished are in no mean: {listed_late}.")
    if named:
        found.append(f"Flows that had not finished are in no mean, which flatters the schemes that left some: {named}.")
    # Collectives begin and end: they are in no steady state, and their means do not need one.
    if unsteady and not has_collectives(groups):
        found.append(
            f"Not in a steady state, so that means depend on how many flows there are: {', '.join(unsteady)}. More "
            "flows and a warm-up (run.warmup) help; summary.json says more."
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
