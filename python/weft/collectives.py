"""Results of collectives: completion time, bandwidth, and the delay of the last flow.

A flow of a collective waits for others, so its own completion time says little. What a training cluster waits for is
the collective, and of a job the step. Unlike collectives are never averaged: each kind has a row of its own, and
variants are judged by the job's step or else by the kind that takes longest.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

from weft.metrics import COMPLETION, OF_LONG_LIVED, Metric, Unit, has_only_long_lived, times
from weft.quantity import bytes_text, in_unit, percent, plain, plural, time_scale, time_us
from weft.ranking import MATTERS, MEAN_FCT, Ranking, rank
from weft.summary import PART_WORDS, CollectiveFacts, Distribution, LosslessFacts, Summary
from weft.top_level_collectives import awaited, completion_of, top_level_collectives, unfinished_collectives

__all__ = [
    "COMPLETION",
    "CRITICAL_PARTS",
    "Named",
    "collective_metrics",
    "collective_sentences",
    "collective_tables",
    "collectives_of",
    "completion_metric",
    "completion_of",
    "critical_parts",
    "fabric_metrics",
    "has_collectives",
    "ideal_us",
    "other_kinds",
    "rank_fairly",
    "schedule_sentences",
    "top_level_collectives",
    "unfinished_collectives",
]

Groups = Mapping[str, Sequence[Summary]]

CRITICAL_PARTS: Mapping[str, str] = {
    "compute": "computation",
    "waiting": "waiting for its time",
    **PART_WORDS,
}
"""Where the time on a critical path goes, by the keys of `CriticalFacts`; together they are the completion time."""
_NAMED = 3
"""Parts of a critical path that get a word."""


@dataclass(frozen=True, slots=True)
class Named:
    """The collectives of one label and kind."""

    label: str
    kind: str
    algorithm: str | None
    shape: tuple[int | None, int | None]
    """Their size and number of ranks, where those do not differ."""
    more: str = ""
    """Text that distinguishes the collective from another one of the same name."""

    @property
    def title(self) -> str:
        """Name of the collective in tables: `gradients (all-reduce, ring)`."""
        return f"{self.label} ({', '.join(filter(None, (self.kind, self.algorithm, self.more)))})"

    @staticmethod
    def like(one: CollectiveFacts) -> "Named":
        """Name these."""
        return Named(one.label, one.kind, one.algorithm, (one.size_bytes, one.ranks))

    def of(self, run: Summary) -> CollectiveFacts | None:
        """Return the results of these collectives in a run."""
        return next((one for one in run.collectives if Named.like(one) == replace(self, more="")), None)


def has_collectives(groups: Groups) -> bool:
    """Whether every run has collectives: then their completion is what variants are judged by."""
    return bool(groups) and all(run.collectives for runs in groups.values() for run in runs)


def rank_fairly(labels: Mapping[str, str], groups: Groups, matters: float = MATTERS) -> Ranking | None:
    """Order variants by completion times of collectives (of jobs, of their steps), or else of flows.

    Where flows wait for each other, nobody waits for a flow by itself. Where of some collective none finished, flows
    have to do; where no flow ever ends, its goodput. None without any of these.
    """
    if has_only_long_lived(run for runs in groups.values() for run in runs):
        return rank(labels, groups, OF_LONG_LIVED[0], matters)
    found = rank(labels, groups, completion_metric(groups), matters) if has_collectives(groups) else None
    return found or rank(labels, groups, MEAN_FCT, matters)


def completion_metric(groups: Groups) -> Metric:
    """Return what variants are judged by: `COMPLETION`, whose title names a kind if there are several."""
    if not any(len(top_level_collectives(run)) > 1 for runs in groups.values() for run in runs):
        return COMPLETION
    found = {Named.like(one) for runs in groups.values() for run in runs if (one := awaited(run)) is not None}
    titles = [named.title for named in collectives_of(groups) if replace(named, more="") in found]
    title = titles[0] if len(titles) == 1 else "the collectives that take longest"
    return replace(COMPLETION, title=f"completion time of {title}")


def collectives_of(groups: Groups) -> list[Named]:
    """Return the collectives of all runs, in the order of the spec."""
    found = list(dict.fromkeys(Named.like(one) for runs in groups.values() for run in runs for one in run.collectives))
    counts = Counter(named.title for named in found)
    return [replace(named, more=_shape(named)) if counts[named.title] > 1 else named for named in found]


def _shape(named: Named) -> str:
    """Write size and ranks: `64 MB, 8 ranks`."""
    size, ranks = named.shape
    return ", ".join([*([] if size is None else [bytes_text(size)]), *([] if ranks is None else [f"{ranks:,} ranks"])])


def schedule_sentences(groups: Groups) -> Iterator[str]:
    """Yield what was read of each schedule's file: its ranks, messages, bytes, and the times of its messages."""
    found = {one.label: one.read for runs in groups.values() for run in runs for one in run.collectives if one.read}
    for label, read in found.items():
        unit, scale = time_scale([read.first_start_us, read.last_start_us])
        times = [f"{plain(time / scale)} {unit}" for time in (read.first_start_us, read.last_start_us)]
        yield (
            f"{label}: {plural(read.ranks, 'rank')}, {plural(read.messages, 'message')}, {bytes_text(read.bytes)} in "
            f"all, which start from {times[0]} to {times[1]} if the network takes no time."
        )


def collective_metrics(named: Named, line_rate_mbps: float | None = None) -> list[Metric]:
    """Return the columns of one kind of collective; bus bandwidth is held against the rate of a host's cable."""

    def metric(
        key: str, title: str, unit: Unit, read: Callable[[CollectiveFacts], float | None], *, more: bool = False
    ) -> Metric:
        def reading(run: Summary) -> float | None:
            one = named.of(run)
            return None if one is None else read(one)

        return Metric(key, title, unit, reading, more)

    def completion(run: Summary) -> Distribution | None:
        one = named.of(run)
        return None if one is None else one.completion_us

    def of_line(one: CollectiveFacts) -> float | None:
        if one.bus_bandwidth_mbps is None or not line_rate_mbps:
            return None
        return one.bus_bandwidth_mbps / line_rate_mbps

    return [
        times("completion_us", "completion time", completion),
        replace(
            metric("longest_us", "longest", "us", lambda one: one.longest_us),
            bound=lambda run: None if (one := named.of(run)) is None else one.longest_at_least_us,
            sign=">",
        ),
        metric("bus_bandwidth", "bus bandwidth", "GB/s", lambda one: _gigabytes(one.bus_bandwidth_mbps), more=True),
        metric("bus_share", "of line rate", "share", of_line, more=True),
        metric("straggler_us", "stragglers", "us", lambda one: one.straggler_us),
        metric("unfinished", "unfinished", "count", lambda one: float(one.unfinished)),
    ]


def collective_tables(groups: Groups, line_rate_mbps: float | None = None) -> list[tuple[str, list[Metric]]]:
    """Return the title and the columns of a table for each kind of collective, and of the packets of whole runs.

    With one kind of collective these columns are part of its table.
    """
    found = []
    for named in collectives_of(groups):
        count = max(one.count for runs in groups.values() for run in runs if (one := named.of(run)) is not None)
        found.append((f"{named.title}: {count:,} in each run", collective_metrics(named, line_rate_mbps)))
    if len(found) == 1:
        found[0][1].extend(fabric_metrics())
    else:
        found.append(("packets of the whole run", fabric_metrics()))
    return found


def other_kinds(ranking: Ranking, groups: Groups) -> Iterator[str]:
    """Yield a sentence on the kinds of collective at which somebody beats the best one by a difference that matters."""
    if ranking.metric.key != COMPLETION.key or ranking.best is None:
        return
    found = []
    for named in collectives_of(groups):
        if not any(named.of(run) in top_level_collectives(run) for runs in groups.values() for run in runs):
            continue
        other = rank(ranking.labels, groups, collective_metrics(named)[0], ranking.matters)
        beaten = None if other is None else next((one for one in other.others if one.name == ranking.best), None)
        if other is None or other.mean is None or beaten is None or not beaten.matters:
            continue
        less = f"{'at least ' if beaten.mean.sign else ''}{percent(abs(beaten.share))} less than {beaten.name}"
        interval = f" ({beaten.apart_by('us')})" if other.sure else ""
        found.append(f"{named.title} under {other.best}: {in_unit(other.mean.mean, 'us')}, {less}{interval}")
    if found:
        yield f"Other collectives are faster under other schemes: {'; '.join(found)}."


def fabric_metrics() -> list[Metric]:
    """Return what became of packets meanwhile: columns of a whole run, not of one collective."""

    def lossless(read: Callable[[LosslessFacts], float]) -> Callable[[Summary], float | None]:
        return lambda run: None if run.lossless is None else read(run.lossless)

    return [
        Metric("pauses", "pauses", "count", lossless(lambda one: float(one.pauses))),
        Metric("dropped_packets", "dropped", "count", lambda run: float(run.dropped_packets)),
        Metric("trimmed_packets", "trimmed", "count", lossless(lambda one: float(one.trimmed_packets))),
        Metric(
            "retransmissions",
            "resent",
            "count",
            lambda run: None if run.retransmissions is None else float(run.retransmissions),
        ),
        Metric("out_of_order_share", "out of order", "share", lambda run: run.out_of_order_share),
    ]


def critical_parts(runs: Sequence[Summary]) -> dict[str, float]:
    """Return the time on critical paths by the keys of `CRITICAL_PARTS`, in microseconds.

    Means over all runs, of the collectives that these are judged by; empty if none finished.
    """
    found = [path for run in runs if (one := awaited(run)) is not None and (path := one.critical_path) is not None]
    return {
        key: fsum(getattr(path, f"{key}_us") or 0.0 for path in found) / len(found) for key in CRITICAL_PARTS if found
    }


def ideal_us(runs: Sequence[Summary], line_rate_mbps: float | None) -> float | None:
    """Return how long the collectives that runs are judged by would take if their bus bandwidth were a cable's rate.

    Completion time times bus bandwidth is the same for every scheme. None if they have no such bandwidth.
    """
    for one in filter(None, map(awaited, runs)):
        if one.completion_us.mean is None or one.bus_bandwidth_mbps is None or not line_rate_mbps:
            return None
        return one.completion_us.mean * one.bus_bandwidth_mbps / line_rate_mbps
    return None


def collective_sentences(groups: Groups) -> Iterator[str]:
    """Yield, for each variant, where the time on its critical paths went, and the flow that lost the most."""
    names = {replace(named, more=""): named.title for named in collectives_of(groups)}
    for label, runs in groups.items():
        judged = [one for one in map(awaited, runs) if one is not None and one.critical_path is not None]
        if parts := critical_parts(runs):
            kinds = dict.fromkeys(names[Named.like(one)] for one in judged)
            of = f"{' or '.join(kinds)}, " if any(len(top_level_collectives(run)) > 1 for run in runs) else ""
            yield f"{f'{label}: ' if len(groups) > 1 else ''}critical path of {of}{_where(parts, judged, runs)}"


def _where(parts: Mapping[str, float], judged: Sequence[CollectiveFacts], runs: Sequence[Summary]) -> str:
    """Say where the time went, and which flow lost the most."""
    paths = [one.critical_path for one in judged if one.critical_path is not None]
    total = fsum(parts.values())
    largest = sorted((item for item in parts.items() if item[1] > 0.0), key=lambda item: -item[1])[:_NAMED]
    shares = ", ".join(f"{percent(value / total)} {CRITICAL_PARTS[key]}" for key, value in largest)
    worst = max(paths, key=lambda path: path.worst_us)
    mean = fsum(path.flows for path in paths) / len(paths)
    flows = f"{mean:.3g} flow{'' if mean == 1.0 else 's'}: {shares}."
    if worst.worst_flow is None or worst.worst_hosts is None or worst.worst_late_us is None:
        return flows
    source, destination = worst.worst_hosts
    where = "" if worst.worst_late_at is None else f" at {worst.worst_late_at}"
    seed = next(run.seed for run in runs for one in run.collectives if one.critical_path is worst)
    when = f" (seed {seed})" if len(runs) > 1 else ""
    return (
        f"{flows} Flow {worst.worst_flow}{when} from host {source} to {destination} lost the most, "
        f"{time_us(worst.worst_us)}, {time_us(worst.worst_late_us)} of it by {worst.worst_late_by}{where}."
    )


def _gigabytes(mbps: float | None) -> float | None:
    return None if mbps is None else mbps / 8_000.0
