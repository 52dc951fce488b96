"""What a fault did to each scheme: before, during and after it, and when each had moved away."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from weft.faults import Fault, first_of
from weft.metrics import Metric, Unit
from weft.quantity import number, percent, time_us
from weft.summary import FaultFacts, PhaseFacts, PhaseName, SlowedFacts, Summary

__all__ = ["Reaction", "fault_metrics", "phase_metrics", "phases_of", "reaction_sentences", "reactions"]

_TO_THE_END = 0.99
"""Whoever loses packets into a fault later than this share of its time had not moved away."""

Groups = Mapping[str, Sequence[Summary]]

_QUANTITIES: Sequence[tuple[str, str, Unit, Callable[[PhaseFacts], float | None]]] = (
    ("mean_fct_us", "mean FCT", "us", lambda one: one.fct_us.mean),
    ("p99_fct_us", "p99 FCT", "us", lambda one: one.fct_us.p99),
    ("mean_slowdown", "slowdown", "ratio", lambda one: one.slowdown.mean),
    ("lost_packets", "lost packets", "count", lambda one: float(one.lost.total)),
)


def phases_of(groups: Groups) -> Sequence[PhaseName]:
    """Name the phases that have flows, if there are several: what began with the run and lasts divides nothing."""
    runs = [run for runs in groups.values() for run in runs]
    found = [one.phase for run in runs for one in run.phases if one.flows]
    names: tuple[PhaseName, ...] = ("before", "during", "after")
    there = [name for name in names if name in found]
    return there if len(there) > 1 else []


def phase_metrics(phases: Sequence[PhaseName]) -> Sequence[Metric]:
    """Give the columns of the table of phases: each quantity before, during and after."""
    return [
        Metric(f"{phase}_{key}", f"{title} {phase}", unit, _read(phase, read))
        for key, title, unit, read in _QUANTITIES
        for phase in phases
    ]


def _read(phase: PhaseName, read: Callable[[PhaseFacts], float | None]) -> Callable[[Summary], float | None]:
    def of(summary: Summary) -> float | None:
        found = summary.phase(phase)
        return None if found is None else read(found)

    return of


def fault_metrics(phases: Sequence[PhaseName]) -> Sequence[Metric]:
    """Give the same and, last, when the scheme had moved away from its faults: from all of them."""
    return [*phase_metrics(phases), Metric("moved_away_us", "moved away after", "us", _moved_away)]


def _moved_away(summary: Summary) -> float | None:
    faults = [fault for fault in summary.faults if _loses(fault) or fault.slowed is not None]
    took = [_reaction([(fault, summary.simulated_us)]).moved_away_us for fault in faults]
    return max((one for one in took if one is not None), default=None)


@dataclass(frozen=True, slots=True)
class Share:
    """Of the bytes that slowed links and those in their place were given, the part of the slowed ones."""

    before: float
    during: float


@dataclass(frozen=True, slots=True)
class Reaction:
    """What one scheme lost into a fault, and when it had moved away.

    Of a fault that loses nothing, when its queue was no longer the longest of those that packets could choose from.
    """

    lost_packets: float
    """Lost at its links, or on the way to nowhere, while it lasted: the mean over the seeds."""
    moved_away_us: float | None
    """From its begin until the last of these was lost, or the queue was last the longest; the longest over the seeds.
    None if none was lost, or it never was."""
    to_the_end: bool
    """Whether that went on until it ended: then nothing had moved away."""
    share: Share | None = None
    """Of links that are slowed: the mean over the seeds."""


def reactions(groups: Groups) -> list[dict[str, Reaction]]:
    """Return, for each fault of the spec, what became of it under each scheme; nothing of one that takes nothing."""
    first = next(iter(groups.values()))[0]
    return [
        {label: _reaction([(run.faults[place], run.simulated_us) for run in runs]) for label, runs in groups.items()}
        if _loses(fault) or fault.slowed is not None
        else {}
        for place, fault in enumerate(first.faults)
    ]


def _loses(fault: FaultFacts) -> bool:
    return bool(fault.down or fault.loss or fault.blackhole)


def _reaction(found: Sequence[tuple[FaultFacts, float]]) -> Reaction:
    lost = [float(one.lost_packets + one.unroutable_packets) for one, _ in found]
    took, late = [], False
    for one, end_us in found:
        told = (one.last_lost_us, one.last_unroutable_us) if one.slowed is None else (one.slowed.crowded_until_us,)
        lasts = [last for last in told if last is not None]
        if lasts:
            until = end_us if one.until_us is None else min(one.until_us, end_us)
            took.append(max(lasts) - one.from_us)
            late |= took[-1] >= _TO_THE_END * (until - one.from_us)
    return Reaction(fsum(lost) / len(lost), max(took, default=None), late, _share([one.slowed for one, _ in found]))


def _share(found: Sequence[SlowedFacts | None]) -> Share | None:
    """Return the mean over the seeds in which the links were given anything, before and during."""
    before = [one.share_before for one in found if one is not None and one.share_before is not None]
    during = [one.share_during for one in found if one is not None and one.share_during is not None]
    if not before or not during:
        return None
    return Share(fsum(before) / len(before), fsum(during) / len(during))


def reaction_sentences(faults: Sequence[Fault], groups: Groups) -> list[str]:
    """Say of each fault that loses packets or slows links when each scheme had moved away; `faults` are the spec's."""
    told = [
        f"Moved away from {fault.where} ({fault.effect}): {_schemes(found)}."
        for fault, found in zip(faults, reactions(groups), strict=False)
        # Of a fault that hits all cables there is nothing to move to.
        if fault.share != 1.0 and any(one.lost_packets or one.share is not None for one in found.values())
    ]
    return first_of(told, "And likewise for {} more faults, in compare.json.")


def _schemes(found: Mapping[str, Reaction]) -> str:
    return "; ".join(f"{label} {_words(one)}" for label, one in found.items())


def _words(one: Reaction) -> str:
    if one.share is not None:
        given = f"{percent(one.share.before)} of the bytes before, {percent(one.share.during)} during it"
        if one.moved_away_us is None:
            return f"at once ({given})"
        return f"{'not before it ended' if one.to_the_end else f'after {time_us(one.moved_away_us)}'} ({given})"
    if one.moved_away_us is None:
        return "with nothing lost"
    lost = f"{number(one.lost_packets)} packet{'s' * (one.lost_packets != 1)} lost"
    if one.to_the_end:
        return f"not before it ended, with {lost}"
    return f"after {time_us(one.moved_away_us)}, with {lost}"
