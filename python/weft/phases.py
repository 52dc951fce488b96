"""Effect of a fault on each scheme: before, during and after it, and when each had moved away and came back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from weft.faults import MOST_NAMED, Fault, first_of
from weft.metrics import Metric, Unit, times
from weft.quantity import percent, plural, time_us
from weft.summary import Distribution, FaultFacts, PhaseName, SlowedFacts, Summary

__all__ = [
    "Reaction",
    "fault_lines",
    "fault_metrics",
    "phase_metrics",
    "phases_of",
    "reaction_sentences",
    "reactions",
]

_TO_THE_END = 0.99
"""Who loses packets into a fault later than this share of its time had not moved away."""

Groups = Mapping[str, Sequence[Summary]]

_TIMES: Sequence[tuple[str, str, Literal["fct_us", "slowdown"], Literal["mean", "p99"], Unit]] = (
    ("mean_fct_us", "mean FCT", "fct_us", "mean", "us"),
    ("p99_fct_us", "p99 FCT", "fct_us", "p99", "us"),
    ("mean_slowdown", "slowdown", "slowdown", "mean", "ratio"),
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
    found = [
        times(f"{phase}_{key}", f"{title} {phase}", _distribution(phase, column), field, unit)
        for key, title, column, field, unit in _TIMES
        for phase in phases
    ]
    return [
        *found,
        *(Metric(f"{phase}_lost_packets", f"lost packets {phase}", "count", _lost(phase)) for phase in phases),
    ]


def _distribution(phase: PhaseName, column: Literal["fct_us", "slowdown"]) -> Callable[[Summary], Distribution | None]:
    def of(summary: Summary) -> Distribution | None:
        found = summary.phase(phase)
        return None if found is None else getattr(found, column)

    return of


def _lost(phase: PhaseName) -> Callable[[Summary], float | None]:
    def of(summary: Summary) -> float | None:
        found = summary.phase(phase)
        return None if found is None else float(found.lost.total)

    return of


def fault_metrics(phases: Sequence[PhaseName]) -> Sequence[Metric]:
    """Give the same and, last, when the scheme had moved away from its faults: from all of them."""
    return [*phase_metrics(phases), Metric("moved_away_us", "moved away after", "us", _moved_away)]


def _moved_away(summary: Summary) -> float | None:
    faults = [fault for fault in summary.faults if _is_told(fault)]
    took = [_reaction([(fault, summary.simulated_us)]).moved_away_us for fault in faults]
    return max((one for one in took if one is not None), default=None)


@dataclass(frozen=True, slots=True)
class Share:
    """Share of degraded links in the bytes offered to them and to the links in their place."""

    before: float
    during: float
    after: float | None = None
    """None if the fault did not end."""


@dataclass(frozen=True, slots=True)
class SlowedRuns:
    """How often traffic moved away from slowed links, of so many runs; each is counted once."""

    runs: int = 0
    never_crowded: int = 0
    """Their queue was never the longest."""
    to_the_end: int = 0
    """Their queue was the longest until the fault ended."""
    ceased: int = 0
    """Nothing was sent by other links once their queue was no longer the longest."""
    ceased_us: float | None = None
    """When that was, from the begin of the fault; the longest of these runs."""
    moved: int = 0
    """Other links were used on."""
    moved_us: float | None = None
    """When their queue was last the longest, from the begin of the fault; the longest of these runs."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """Reaction of one scheme to a fault: lost packets, when it had moved away, and when it came back, over all seeds.

    Moved away from a fault that takes packets: every flow that it hit sent nothing more into it, but a packet by
    another path, which arrived.
    From one that only slows: its queue was no longer the longest of those that packets could choose from, and the
    other links went on to be used.
    """

    lost_packets: float
    """Charged to it: the mean over the seeds."""
    moved_away_us: float | None
    """From its begin until the last flow had moved, or the queue was last the longest; the longest over the seeds.
    None if none had, or it never was."""
    to_the_end: bool
    """Whether it took packets, or its queue was the longest, until it ended, and not all flows had moved."""
    share: Share | None = None
    """Share of degraded links in the offered bytes: the mean over the seeds."""
    hit_flows: int = 0
    """Flows of which it took packets, together."""
    moved_flows: int = 0
    """Number of the hit flows that moved."""
    spread_flows: int = 0
    """Flows among the hit ones that used other paths and the fault by turns, together."""
    spread_lost_packets: int = 0
    """Packets of these flows that it took, together."""
    spread_arrived_packets: int = 0
    """Packets of these flows that were sent and arrived while it lasted, together."""
    slowed: SlowedRuns = SlowedRuns()
    """Number of runs by how the congestion of degraded links ended."""
    late_runs: int = 0
    """Runs of which `to_the_end` holds."""
    ended: bool = False
    """Whether it ended before the runs did."""
    used_again_us: float | None = None
    """From its end until one of its links was used again; the longest over the seeds. None if none was."""


def reactions(groups: Groups) -> list[dict[str, Reaction]]:
    """Return, for each fault of the spec, what became of it under each scheme; nothing of one that takes nothing."""
    first = next(iter(groups.values()))[0]
    return [
        {label: _reaction([(run.faults[place], run.simulated_us) for run in runs]) for label, runs in groups.items()}
        if _is_told(fault)
        else {}
        for place, fault in enumerate(first.faults)
    ]


def _is_told(fault: FaultFacts) -> bool:
    return bool(fault.down or fault.loss or fault.blackhole) or fault.slowed is not None


def _reaction(found: Sequence[tuple[FaultFacts, float]]) -> Reaction:
    """Sum up what became of a fault, or of several alike, in runs that ended then."""
    lost = [float(one.lost_packets + one.unroutable_packets) for one, _ in found]
    took, back, late, ended = [], [], 0, bool(found)
    for one, end_us in found:
        until = _until(one, end_us)
        ended &= one.until_us is not None and one.until_us < end_us
        late |= _is_late(one, end_us)
        moved = one.reaction.moved_away_us if one.slowed is None and one.reaction else _last(one)
        if moved is not None:
            took.append(moved - one.from_us)
        if one.reaction is not None and one.until_us is not None and one.reaction.used_again_us is not None:
            back.append(one.reaction.used_again_us - until)
    flows = [one.reaction for one, _ in found if one.reaction is not None]
    return Reaction(
        fsum(lost) / len(lost),
        max(took, default=None),
        late > 0,
        _share([one.slowed for one, _ in found if one.slowed is not None]),
        hit_flows=sum(one.hit_flows for one in flows),
        moved_flows=sum(one.moved_flows for one in flows),
        spread_flows=sum(one.spread_flows for one in flows),
        spread_lost_packets=sum(one.spread_lost_packets for one in flows),
        spread_arrived_packets=sum(one.spread_arrived_packets for one in flows),
        slowed=_slowed_runs(found),
        late_runs=late,
        ended=ended,
        used_again_us=max(back, default=None),
    )


def _until(one: FaultFacts, end_us: float) -> float:
    return end_us if one.until_us is None else min(one.until_us, end_us)


def _is_late(one: FaultFacts, end_us: float) -> bool:
    """Tell whether it took packets, or its queue was the longest, until it ended, and not all flows had moved."""
    # Late losses may be acknowledgements or probes: a scheme has left once every flow that was hit has moved.
    if one.slowed is None and one.reaction and 0 < one.reaction.hit_flows == one.reaction.moved_flows:
        return False
    last = _last(one)
    return last is not None and last - one.from_us >= _TO_THE_END * (_until(one, end_us) - one.from_us)


def _last(one: FaultFacts) -> float | None:
    """Return when the fault last took a packet, or its queue was last the longest."""
    lasts = (one.last_lost_us, one.last_unroutable_us) if one.slowed is None else (one.slowed.crowded_until_us,)
    return max((last for last in lasts if last is not None), default=None)


def _slowed_runs(found: Sequence[tuple[FaultFacts, float]]) -> SlowedRuns:
    never = late = 0
    ceased: list[float] = []
    moved: list[float] = []
    for one, end_us in found:
        if one.slowed is None:
            continue
        last = one.slowed.crowded_until_us
        if last is None:
            never += 1
        elif _is_late(one, end_us):
            late += 1
        else:
            (moved if one.slowed.others_since_bytes else ceased).append(last - one.from_us)
    runs = never + late + len(ceased) + len(moved)
    return SlowedRuns(runs, never, late, len(ceased), max(ceased, default=None), len(moved), max(moved, default=None))


def _share(found: Sequence[SlowedFacts]) -> Share | None:
    """Return the mean over the runs in which the links were given anything both before and during the fault.

    That of after it is given if it is known of all of these.
    """
    both = [(one.share_before, one.share_during, one.share_after) for one in found]
    known = [(before, during, after) for before, during, after in both if before is not None and during is not None]
    if not known:
        return None
    after = [after for *_, after in known if after is not None]
    return Share(
        fsum(before for before, *_ in known) / len(known),
        fsum(during for _, during, _ in known) / len(known),
        fsum(after) / len(after) if len(after) == len(known) else None,
    )


def reaction_sentences(faults: Sequence[Fault], groups: Groups) -> list[str]:
    """Say of each fault that takes packets or slows links when each scheme had moved away; `faults` are the spec's.

    Of many, faults that do the same are told together.
    """
    first = next(iter(groups.values()))[0]
    # Of a fault that hits all cables there is nothing to move to.
    places = [
        place
        for place, (fault, facts) in enumerate(zip(faults, first.faults, strict=False))
        if fault.share != 1.0 and _is_told(facts)
    ]

    def sentence(of: str, own: Sequence[int]) -> str | None:
        found = {
            label: _reaction([(run.faults[place], run.simulated_us) for run in runs for place in own])
            for label, runs in groups.items()
        }
        if not any(one.lost_packets or one.share is not None for one in found.values()):
            return None
        words = [f"{label} {_words(one, seeds=len(groups[label]))}" for label, one in found.items()]
        return f"Moved away from {of}: {'; '.join(words)}."

    if len(places) <= MOST_NAMED:
        told = [sentence(f"{faults[place].where} ({faults[place].effect})", [place]) for place in places]
    else:
        kinds = _by_kind(first.faults, places)
        told = [sentence(f"{plural(len(own), 'fault')} ({kind})", own) for kind, own in kinds.items()]
    return first_of([one for one in told if one], "And likewise for {} more kinds of faults, in compare.json.")


def fault_lines(summary: Summary) -> list[str]:
    """Say of each fault of a run what it cost and how traffic reacted, if it cost anything.

    Of many, faults that do the same are told together.
    """
    places = [
        place for place, one in enumerate(summary.faults) if one.lost_packets or one.unroutable_packets or one.slowed
    ]

    def line(of: str, own: Sequence[int]) -> str:
        found = _reaction([(summary.faults[place], summary.simulated_us) for place in own])
        # The mean over the faults is of no interest here.
        lost = sum(summary.faults[place].lost_packets + summary.faults[place].unroutable_packets for place in own)
        cost = f"{plural(lost, 'packet')} lost into {'it' if len(own) == 1 else 'them'}"
        return f"{of}: {cost}; moved away: {_words(found, lost=False)}"

    if len(places) <= MOST_NAMED:
        return [line(f"fault {place} ({_some(summary.faults[place].links)})", [place]) for place in places]
    kinds = _by_kind(summary.faults, places)
    told = [line(f"{plural(len(own), 'fault')} ({kind})", own) for kind, own in kinds.items()]
    return first_of(told, "and {} more kinds of faults, in faults.parquet")


def _some(links: Sequence[str]) -> str:
    return ", ".join(links[:2]) + (f" and {len(links) - 2} more" if len(links) > 2 else "")


def _by_kind(faults: Sequence[FaultFacts], places: Sequence[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place in places:
        found.setdefault(_kind(faults[place]), []).append(place)
    return found


def _kind(fault: FaultFacts) -> str:
    does = {
        "links down": fault.down,
        "packets lost": fault.loss,
        "flows swallowed": fault.blackhole,
        "lower rate": fault.rate_bps is not None,
        "more delay": fault.delay_us is not None,
    }
    return ", ".join(words for words, is_so in does.items() if is_so) or "links up"


def _words(one: Reaction, *, lost: bool = True, seeds: int = 1) -> str:
    if one.share is not None:
        return _slowed_words(one.slowed, one.share, one.ended)
    mean = " in the mean" if seeds > 1 else ""
    cost = f", with {plural(one.lost_packets, 'packet')} lost{mean}" if lost and one.lost_packets else ""
    if not one.hit_flows:
        return ("with no flow hit" if one.lost_packets else "with nothing lost") + cost
    flows = plural(one.hit_flows, "flow") + (f" of {seeds} seeds" if seeds > 1 else "")
    after = f"after {time_us(one.moved_away_us or 0.0)}"
    if one.spread_flows:
        said = f"{_spread_words(one, flows, after)}{cost}"
    elif not one.moved_flows:
        said = f"never (none of {flows} that it hit left it for another path){cost}"
    elif one.to_the_end:
        some = f" (in {one.late_runs} of {seeds} seeds)" if seeds > 1 else ""
        said = f"not before {'it' if one.ended else 'the run'} ended{some}{cost}"
    elif one.moved_flows < one.hit_flows:
        said = f"only {one.moved_flows:,} of {flows} that it hit, the last {after}{cost}"
    else:
        said = f"{after}{f' (the latest of {seeds} seeds)' if seeds > 1 else ''}{cost}"
    return said + _back(one)


def _back(one: Reaction) -> str:
    if not one.ended:
        return ""
    if one.used_again_us is None:
        return ", and not back after it ended"
    return f", and back {time_us(one.used_again_us)} after it ended"


def _spread_words(one: Reaction, flows: str, after: str) -> str:
    sent = one.spread_lost_packets + one.spread_arrived_packets
    spread = f"spread over it and lose {percent(one.spread_lost_packets / sent)} of their packets while it lasts"
    stuck = one.hit_flows - one.moved_flows - one.spread_flows
    stay = f", {stuck:,} stuck on it" if stuck else ""
    if not one.moved_flows:
        return f"never: {one.spread_flows:,} of {flows} that it hit {spread}{stay}"
    return f"only {one.moved_flows:,} of {flows} that it hit, the last {after}, {one.spread_flows:,} {spread}{stay}"


def _slowed_words(found: SlowedRuns, share: Share, ended: bool) -> str:
    """Say how often traffic moved away; of several runs, how many of them did so, and the latest of these."""
    runs = found.runs
    parts = [
        (found.to_the_end, f"not before {'it' if ended else 'the run'} ended"),
        (found.ceased, f"never: nothing was sent by other links {_after(found.ceased_us, found.ceased)}"),
        (found.moved, _after(found.moved_us, found.moved)),
        (found.never_crowded, "at no time: its queue was never the longest"),
    ]
    there = [(count, words) for count, words in parts if count]
    said = there[0][1] if len(there) == 1 else ", ".join(f"{count} of {runs} runs {words}" for count, words in there)
    after = "" if share.after is None else f", {percent(share.after)} after"
    mean = ", in the mean" if runs > 1 else ""
    return f"{said} ({percent(share.before)} of the bytes before, {percent(share.during)} during it{after}{mean})"


def _after(last_us: float | None, count: int) -> str:
    return f"after {time_us(last_us or 0.0)}{' at the latest' if count > 1 else ''}"
