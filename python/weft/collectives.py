"""What came of collectives: how long they took, on what bandwidth, and what made the last flow late."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum

from weft.quantity import plain, time_us
from weft.summary import CollectiveFacts, CriticalFacts, Summary

__all__ = ["COLLECTIVE_TITLES", "collective_rows", "collective_sentences"]

COLLECTIVE_TITLES = (
    "collective",
    "scheme",
    "count",
    "unfinished",
    "mean (us)",
    "p99 (us)",
    "longest (us)",
    "bus bandwidth (Gbit/s)",
    "stragglers (us)",
)
"""Columns of the table of collectives."""

_PARTS: Mapping[str, str] = {
    "compute_us": "computation",
    "waiting_us": "waiting for its time",
    "transmission_us": "transmission",
    "host_us": "queues of hosts",
    "leaf_us": "queues of leaves",
    "spine_us": "queues of spines",
    "last_us": "queues of the last links",
    "reordering_us": "reordering",
    "timeouts_us": "timeouts",
    "window_us": "windows",
    "acknowledgement_us": "acknowledgements",
}
_NAMED = 3
"""Parts of a critical path that get a word."""

Groups = Mapping[str, Sequence[Summary]]


def collective_rows(groups: Groups) -> Iterator[tuple[str, ...]]:
    """Yield a row for each collective and scheme, the collectives in the order of the spec; means over the seeds."""
    names = dict.fromkeys((one.label, one.kind) for runs in groups.values() for run in runs for one in run.collectives)
    for label, kind in names:
        for scheme, runs in groups.items():
            found = [one for run in runs if (one := run.collective(label, kind)) is not None]
            if not found:
                continue
            title = kind if found[0].algorithm is None else f"{kind}, {found[0].algorithm}"
            bus = _mean([one.bus_bandwidth_mbps for one in found])
            yield (
                f"{label} ({title})",
                scheme,
                f"{sum(one.count for one in found):,}",
                f"{sum(one.unfinished for one in found):,}",
                _cell(_mean([one.completion_us.mean for one in found])),
                _cell(_mean([one.completion_us.p99 for one in found])),
                _cell(_mean([one.longest_us for one in found])),
                _cell(None if bus is None else bus / 1000.0),
                _cell(_mean([one.straggler_us for one in found])),
            )


def collective_sentences(groups: Groups) -> Iterator[str]:
    """Yield, for each scheme, where the time on the critical path of its slowest kind of collective went."""
    several = len(groups) > 1
    for scheme, runs in groups.items():
        found = [one for run in runs for one in run.collectives if one.critical_path is not None]
        slowest = max(found, key=lambda one: one.completion_us.mean or 0.0, default=None)
        if slowest is None or slowest.critical_path is None:
            continue
        whose = f"{scheme}: " if several else ""
        yield f"{whose}critical path of {slowest.label}: {_where(slowest, slowest.critical_path)}"


def _where(one: CollectiveFacts, path: CriticalFacts) -> str:
    """Say where the time went, and which flow lost the most."""
    parts = {name: getattr(path, key) for key, name in _PARTS.items()}
    total = fsum(parts.values())
    largest = sorted((item for item in parts.items() if item[1] > 0.0), key=lambda item: -item[1])[:_NAMED]
    shares = ", ".join(f"{100.0 * value / total:.0f} % {name}" for name, value in largest)
    flows = f"{path.flows:.4g} flows {'one after the other' if one.count == 1 else 'on average'}"
    if path.worst_flow is None or path.worst_hosts is None:
        return f"{flows}; {shares}; no flow lost time."
    source, destination = path.worst_hosts
    where = "" if path.worst_late_at is None else f" at {path.worst_late_at}"
    return (
        f"{flows}; {shares}. Flow {path.worst_flow} from host {source} to {destination} lost the most, "
        f"{time_us(path.worst_us)}, by {path.worst_late_by}{where}."
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


def _cell(value: float | None) -> str:
    return "-" if value is None else plain(value)
