"""What came of collectives: how long they took, on what bandwidth, and what made the last flow late.

A flow of a collective waits for others, so its own completion time says little. What a training cluster waits for is
the collective, and of a job the step: these are its outermost collectives.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from weft.metrics import COMPLETION, Metric, Unit
from weft.outermost import completion_of, finished, outermost, unfinished_collectives, weighted
from weft.quantity import percent, time_us
from weft.standing import Standing, stand
from weft.summary import CollectiveFacts, CriticalFacts, LosslessFacts, Summary

__all__ = [
    "COMPLETION",
    "CRITICAL_PARTS",
    "Named",
    "collective_metrics",
    "collective_sentences",
    "collectives_of",
    "completion_of",
    "critical_parts",
    "fabric_metrics",
    "has_collectives",
    "ideal_us",
    "outermost",
    "stand_fairly",
    "unfinished_collectives",
]

Groups = Mapping[str, Sequence[Summary]]

CRITICAL_PARTS: Mapping[str, str] = {
    "compute": "computation",
    "waiting": "waiting for its time",
    "transmission": "transmission and propagation",
    "host": "queues of hosts",
    "leaf": "queues of leaves",
    "spine": "queues of spines",
    "last": "queues of last links",
    "reordering": "reordering",
    "timeouts": "timeouts",
    "window": "window and recovery",
    "pause": "pauses",
    "acknowledgement": "acknowledgements",
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

    @property
    def title(self) -> str:
        """What it is called in tables: `gradients (all-reduce, ring)`."""
        return f"{self.label} ({self.kind if self.algorithm is None else f'{self.kind}, {self.algorithm}'})"

    def of(self, run: Summary) -> CollectiveFacts | None:
        """What came of them in a run."""
        return run.collective(self.label, self.kind)


def has_collectives(groups: Groups) -> bool:
    """Whether every run has collectives: then their completion is what contenders are judged by."""
    return bool(groups) and all(run.collectives for runs in groups.values() for run in runs)


def stand_fairly(labels: Mapping[str, str], groups: Groups) -> Standing | None:
    """Say how contenders stand by what is waited for: collectives, and of jobs steps, or else flows.

    Where flows wait for each other, nobody waits for a flow by itself. Where of some collective none finished, flows
    have to do. None if no flow of any contender finished.
    """
    found = stand(labels, groups, COMPLETION) if has_collectives(groups) else None
    return found or stand(labels, groups)


def collectives_of(groups: Groups) -> list[Named]:
    """Return the collectives of all runs, in the order of the spec."""
    found = (
        Named(one.label, one.kind, one.algorithm) for runs in groups.values() for run in runs for one in run.collectives
    )
    return list(dict.fromkeys(found))


def collective_metrics(named: Named, line_rate_mbps: float | None = None) -> list[Metric]:
    """Return the columns of one kind of collective; bus bandwidth is held against the rate of a host's cable."""

    def metric(
        key: str, title: str, unit: Unit, read: Callable[[CollectiveFacts], float | None], *, more: bool = False
    ) -> Metric:
        def reading(run: Summary) -> float | None:
            one = named.of(run)
            return None if one is None else read(one)

        return Metric(key, title, unit, reading, more)

    def of_line(one: CollectiveFacts) -> float | None:
        if one.bus_bandwidth_mbps is None or not line_rate_mbps:
            return None
        return one.bus_bandwidth_mbps / line_rate_mbps

    return [
        metric("completion_us", "completion time", "us", lambda one: one.completion_us.mean),
        metric("longest_us", "longest", "us", lambda one: one.longest_us),
        metric("bus_bandwidth", "bus bandwidth", "GB/s", lambda one: _gigabytes(one.bus_bandwidth_mbps), more=True),
        metric("bus_share", "of line rate", "share", of_line, more=True),
        metric("straggler_us", "stragglers", "us", lambda one: one.straggler_us),
        metric("unfinished", "unfinished", "count", lambda one: float(one.unfinished)),
    ]


def fabric_metrics() -> list[Metric]:
    """Return what became of packets meanwhile: columns of a whole run, not of one collective."""

    def lossless(read: Callable[[LosslessFacts], float]) -> Callable[[Summary], float | None]:
        return lambda run: None if run.lossless is None else read(run.lossless)

    return [
        Metric("pauses", "pauses", "count", lossless(lambda one: float(one.pauses))),
        Metric("dropped_packets", "dropped", "count", lambda run: float(run.dropped_packets)),
        Metric("trimmed_packets", "trimmed", "count", lossless(lambda one: float(one.trimmed_packets))),
        Metric("retransmissions", "resent", "count", lambda run: float(run.retransmissions)),
        Metric("out_of_order_share", "out of order", "share", lambda run: run.out_of_order_share),
    ]


def critical_parts(runs: Sequence[Summary]) -> dict[str, float]:
    """Return the time on critical paths by the keys of `CRITICAL_PARTS`, in microseconds.

    Means over the outermost collectives that finished, of all runs; empty if none did.
    """
    found = [
        (one, path)
        for run in runs
        for one in outermost(run)
        if (path := one.critical_path) is not None and finished(one)
    ]
    if not found:
        return {}
    weights = [one for one, _ in found]
    return {key: weighted(weights, [getattr(path, f"{key}_us") or 0.0 for _, path in found]) for key in CRITICAL_PARTS}


def ideal_us(runs: Sequence[Summary], line_rate_mbps: float | None) -> float | None:
    """Return how long the outermost collectives would take if bus bandwidth were the rate of a host's cable.

    Completion time times bus bandwidth is the same for every scheme. None if any of them has no such bandwidth.
    """
    for run in runs:
        found = [one for one in outermost(run) if one.completion_us.mean is not None]
        times = [
            one.completion_us.mean * one.bus_bandwidth_mbps / line_rate_mbps
            for one in found
            if one.completion_us.mean is not None and one.bus_bandwidth_mbps is not None and line_rate_mbps
        ]
        if found and len(times) == len(found):
            return weighted(found, times)
    return None


def collective_sentences(groups: Groups) -> Iterator[str]:
    """Yield, for each contender, where the time on its critical paths went, and the flow that lost the most."""
    several = len(groups) > 1
    for label, runs in groups.items():
        parts = critical_parts(runs)
        paths = [path for run in runs for one in outermost(run) if (path := one.critical_path) is not None]
        if parts and paths:
            yield f"{f'{label}: ' if several else ''}critical path of {_where(parts, paths, runs)}"


def _where(parts: Mapping[str, float], paths: Sequence[CriticalFacts], runs: Sequence[Summary]) -> str:
    """Say where the time went, and which flow lost the most."""
    total = fsum(parts.values())
    largest = sorted((item for item in parts.items() if item[1] > 0.0), key=lambda item: -item[1])[:_NAMED]
    shares = ", ".join(f"{percent(value / total)} {CRITICAL_PARTS[key]}" for key, value in largest)
    worst = max(paths, key=lambda path: path.worst_us)
    mean = fsum(path.flows for path in paths) / len(paths)
    flows = f"{mean:.3g} flow{'' if mean == 1.0 else 's'}: {shares}."
    if worst.worst_flow is None or worst.worst_hosts is None:
        return flows
    source, destination = worst.worst_hosts
    where = "" if worst.worst_late_at is None else f" at {worst.worst_late_at}"
    seed = next(run.seed for run in runs for one in outermost(run) if one.critical_path is worst)
    when = f" (seed {seed})" if len(runs) > 1 else ""
    return (
        f"{flows} Flow {worst.worst_flow}{when} from host {source} to {destination} lost the most, "
        f"{time_us(worst.worst_us)}, by {worst.worst_late_by}{where}."
    )


def _gigabytes(mbps: float | None) -> float | None:
    return None if mbps is None else mbps / 8_000.0
