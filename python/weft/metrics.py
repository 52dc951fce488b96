"""The columns of a comparison: what is read from each run's summary, and how it is shown."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from weft.errors import SpecError
from weft.outermost import completion_of, longest_of, unfinished_collectives
from weft.statistics import Estimate, estimate
from weft.summary import SPENT, BinName, SizeBin, Summary

__all__ = [
    "ALL_METRICS",
    "COMPLETION",
    "METRICS",
    "MORE_METRICS",
    "OF_COLLECTIVES",
    "SPENT_METRICS",
    "Metric",
    "Unit",
    "best_labels",
    "bin_metrics",
    "chosen",
    "estimates",
    "waiting_metrics",
]

Unit: TypeAlias = Literal["us", "mbps", "ratio", "count", "share", "GB/s"]

Reading: TypeAlias = Callable[[Summary], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """One column."""

    key: str
    title: str
    unit: Unit
    read: Reading
    more_is_better: bool = False


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _missed(one: SizeBin) -> float | None:
    return one.missed_deadlines_share


def _path_deviation_share(summary: Summary) -> float | None:
    """Deviation over mean: runs of different length can be compared by it."""
    paths = summary.paths
    return paths.sd_mbps / paths.mean_mbps if paths and paths.mean_mbps else None


def _named(name: BinName, read: Callable[[SizeBin], float | None]) -> Reading:
    return lambda summary: _number(read(summary.bins[name]))


def _asked(place: int, read: Callable[[SizeBin], float | None]) -> Reading:
    return lambda summary: _number(read(summary.size_bins[place]))


METRICS: Sequence[Metric] = (
    Metric("mean_fct_us", "mean FCT", "us", lambda summary: summary.fct_us.mean),
    Metric("p50_fct_us", "p50 FCT", "us", lambda summary: summary.fct_us.p50),
    Metric("p99_fct_us", "p99 FCT", "us", lambda summary: summary.fct_us.p99),
    Metric("mean_slowdown", "mean slowdown", "ratio", lambda summary: summary.slowdown.mean),
    Metric("small_mean_fct_us", "small mean FCT", "us", _named("small", lambda one: one.fct_us.mean)),
    Metric("medium_mean_fct_us", "medium mean FCT", "us", _named("medium", lambda one: one.fct_us.mean)),
    Metric("large_mean_fct_us", "large mean FCT", "us", _named("large", lambda one: one.fct_us.mean)),
    Metric("retransmissions", "resent packets", "count", lambda summary: _number(summary.retransmissions)),
    Metric("out_of_order_share", "out of order", "share", lambda summary: summary.out_of_order_share),
    Metric("unfinished", "unfinished flows", "count", lambda summary: float(summary.unfinished)),
)
"""The columns that are shown unasked. Small, medium and large are the groups `BINS`."""

COMPLETION = Metric("collective_us", "completion time of collectives", "us", completion_of)
"""What contenders are judged by where flows wait for each other: of unlike collectives the one that takes longest."""

OF_COLLECTIVES: Sequence[Metric] = (
    COMPLETION,
    Metric("longest_collective_us", "longest collective", "us", longest_of),
    Metric(
        "unfinished_collectives",
        "unfinished collectives",
        "count",
        lambda summary: float(unfinished_collectives(summary)) if summary.collectives else None,
    ),
)
"""Columns of runs whose flows wait for each other; none of them is told of others."""

MORE_METRICS: Sequence[Metric] = (
    Metric("small_p99_fct_us", "small p99 FCT", "us", _named("small", lambda one: one.fct_us.p99)),
    Metric("small_queueing_us", "small queueing", "us", _named("small", lambda one: one.queueing_us)),
    Metric("queueing_us", "queueing per packet", "us", _named("all", lambda one: one.queueing_us)),
    Metric("goodput_mbps", "mean goodput", "mbps", _named("all", lambda one: one.goodput_mbps.mean), True),
    Metric("medium_goodput_mbps", "medium goodput", "mbps", _named("medium", lambda one: one.goodput_mbps.mean), True),
    Metric("large_goodput_mbps", "large goodput", "mbps", _named("large", lambda one: one.goodput_mbps.mean), True),
    Metric("resent_after_loss", "resent after loss", "count", _named("all", lambda one: one.resent.after_loss)),
    Metric(
        "resent_after_reordering",
        "resent after reordering",
        "count",
        _named("all", lambda one: one.resent.after_reordering),
    ),
    Metric(
        "resent_after_timeout",
        "resent in vain after timeout",
        "count",
        _named("all", lambda one: one.resent.after_timeout),
    ),
    Metric(
        "reordering_resent_share",
        "resent for reordering",
        "share",
        _named("all", lambda one: one.resent.reordering_share),
    ),
    Metric("duplicate_acks", "duplicate ACKs", "count", _named("all", lambda one: one.duplicate_acks.total)),
    Metric(
        "flows_with_duplicate_ack_share",
        "flows with duplicate ACKs",
        "share",
        _named("all", lambda one: one.duplicate_acks.one_or_more),
    ),
    Metric(
        "flows_with_three_duplicate_acks_share",
        "flows with 3+ duplicates",
        "share",
        _named("all", lambda one: one.duplicate_acks.three_or_more),
    ),
    Metric("missed_deadlines_share", "missed deadlines", "share", _named("all", _missed)),
    Metric("never_started", "flows that never began", "count", lambda summary: float(summary.never_started)),
    Metric("timeouts", "timeouts", "count", lambda summary: _number(summary.timeouts)),
    Metric("dropped_packets", "dropped packets", "count", lambda summary: float(summary.dropped_packets)),
    Metric(
        "background_goodput_mbps",
        "background goodput",
        "mbps",
        lambda summary: summary.background.goodput_mbps if summary.background else None,
        True,
    ),
    Metric(
        "path_throughput_sd_mbps",
        "deviation by path",
        "mbps",
        lambda summary: summary.paths.sd_mbps if summary.paths else None,
    ),
    Metric("path_throughput_sd_share", "deviation by path", "share", _path_deviation_share),
    Metric("overhead_share", "scheme's own share of bytes", "share", lambda summary: summary.overhead_share),
    Metric("overhead_bytes", "scheme's own bytes", "count", lambda summary: _number(summary.overhead_bytes)),
    Metric(
        "state_bytes_per_switch",
        "state bytes per switch",
        "count",
        lambda summary: _number(summary.state_bytes_per_switch),
    ),
    Metric(
        "state_bytes_per_host", "state bytes per host", "count", lambda summary: _number(summary.state_bytes_per_host)
    ),
    *OF_COLLECTIVES,
)
"""The columns that are shown if `--columns` names them, and that every table on disk has."""


def _spent(part: str) -> Reading:
    return lambda summary: _number(getattr(summary.spent_us, part))


SPENT_METRICS: Sequence[Metric] = tuple(
    Metric(f"spent_{part}_us", f"time: {title}", "us", _spent(part)) for part, title in SPENT.items()
)
"""The parts of the mean completion time, which add up to it; shown and kept as `MORE_METRICS` are."""

ALL_METRICS: Sequence[Metric] = (*METRICS, *MORE_METRICS, *SPENT_METRICS)


def waiting_metrics() -> Sequence[Metric]:
    """Give the columns that are shown unasked of runs whose flows wait for each other."""
    packets = ("retransmissions", "out_of_order_share", "dropped_packets")
    return (*OF_COLLECTIVES, *(metric for metric in ALL_METRICS if metric.key in packets))


def bin_metrics(place: int) -> Sequence[Metric]:
    """Give the columns of a range of sizes that the spec asked for: the one at this place, from 0."""
    return (
        Metric("flows", "flows", "count", _asked(place, lambda one: one.flows), more_is_better=True),
        Metric("mean_fct_us", "mean FCT", "us", _asked(place, lambda one: one.fct_us.mean)),
        Metric("p99_fct_us", "p99 FCT", "us", _asked(place, lambda one: one.fct_us.p99)),
        Metric("goodput_mbps", "mean goodput", "mbps", _asked(place, lambda one: one.goodput_mbps.mean), True),
        Metric("goodput_sum_mbps", "goodput sum", "mbps", _asked(place, lambda one: one.goodput_mbps.sum), True),
        Metric("queueing_us", "queueing per packet", "us", _asked(place, lambda one: one.queueing_us)),
        Metric("resent_share", "resent", "share", _asked(place, lambda one: one.resent.share)),
        Metric(
            "reordering_resent_share",
            "resent for reordering",
            "share",
            _asked(place, lambda one: one.resent.reordering_share),
        ),
        Metric("missed_deadlines_share", "missed deadlines", "share", _asked(place, _missed)),
        Metric("unfinished", "unfinished flows", "count", _asked(place, lambda one: one.unfinished)),
    )


def chosen(keys: Sequence[str]) -> Sequence[Metric]:
    """Find metrics by key; `SpecError` names the nearest one if there is none."""
    known = {metric.key: metric for metric in ALL_METRICS}
    for key in keys:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise SpecError(f"--columns: there is no column {key!r}{hint} (known: {', '.join(known)})")
    return [known[key] for key in keys]


def estimates(runs: Sequence[Summary], metrics: Sequence[Metric] = ALL_METRICS) -> dict[str, Estimate | None]:
    """Every metric over the runs of one contender; None where no run has a value."""
    found: dict[str, Estimate | None] = {}
    for metric in metrics:
        values = [value for value in map(metric.read, runs) if value is not None]
        found[metric.key] = estimate(values) if values else None
    return found


def best_labels(
    table: Mapping[str, Mapping[str, Estimate | None]], metric: Metric, apart: Collection[str] = ()
) -> set[str]:
    """Labels with the best mean of a metric; none where more than half of the contenders share it.

    Those that are `apart`, as references are, are not among the contenders.
    """
    means = {label: row[metric.key] for label, row in table.items() if label not in apart}
    values = {label: value.mean for label, value in means.items() if value is not None}
    winner = (max if metric.more_is_better else min)(values.values(), default=0.0)
    best = {label for label, value in values.items() if value == winner}
    return best if 2 * len(best) <= len(values) else set()
