"""The columns of a comparison: what is read from each run's summary, and how it is shown."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from weft.errors import SpecError
from weft.samples import distinct
from weft.statistics import Estimate, Sign, estimate
from weft.summary import FCT_PARTS, BinName, Distribution, SizeBin, Summary
from weft.top_level_collectives import (
    completion_of,
    least_completion_of,
    least_longest_of,
    longest_of,
    unfinished_collectives,
)

__all__ = [
    "ALL_METRICS",
    "COMPLETION",
    "FCT_PART_METRICS",
    "METRICS",
    "MORE_METRICS",
    "OF_COLLECTIVES",
    "OF_LONG_LIVED",
    "Metric",
    "Unit",
    "best_labels",
    "bin_metrics",
    "cells",
    "chosen",
    "columns",
    "estimates",
    "has_only_long_lived",
    "over_runs",
    "shown_metrics",
    "times",
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
    """The value of a run; None if it has none, or if flows that did not finish leave it open."""
    more_is_better: bool = False
    bound: Reading | None = None
    """The bound of a run's value that is open: what it is at least, or at most where more is better."""
    sign: Sign = "≥"
    """Sign before a bound."""

    def interval(self, run: Summary) -> tuple[float, float] | None:
        """Return the bounds of a run's value, which are equal where it is known; None if it has none."""
        value = self.read(run)
        if value is not None:
            return value, value
        bound = None if self.bound is None else self.bound(run)
        if bound is None:
            return None
        return (-math.inf, bound) if self.sign == "≤" else (bound, math.inf)

    def known(self, run: Summary) -> float | None:
        """Return the value of a run; not a number if it is open, and None if there is none."""
        found = self.interval(run)
        return None if found is None else found[0] if found[0] == found[1] else math.nan


def times(
    key: str,
    title: str,
    of: Callable[[Summary], Distribution | None],
    field: Literal["mean", "p50", "p99"] = "mean",
    unit: Unit = "us",
) -> Metric:
    """Return a column of a mean or a percentile of completion times, which unfinished flows may leave open."""

    def read(summary: Summary) -> float | None:
        found = of(summary)
        return None if found is None else getattr(found, field)

    def bound(summary: Summary) -> float | None:
        found = of(summary)
        return None if found is None or found.at_least is None else getattr(found.at_least, field)

    return Metric(key, title, unit, read, bound=bound, sign="≥" if field == "mean" else ">")


def _goodput(key: str, title: str, of: Callable[[Summary], SizeBin], field: Literal["mean", "sum"] = "mean") -> Metric:
    def read(summary: Summary) -> float | None:
        return getattr(of(summary).goodput_mbps, field)  # type: ignore[no-any-return]

    def bound(summary: Summary) -> float | None:
        found = of(summary).goodput_mbps.at_most
        return None if found is None else getattr(found, field)

    return Metric(key, title, "mbps", read, more_is_better=True, bound=bound, sign="≤")


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
    times("mean_fct_us", "mean FCT", lambda summary: summary.fct_us),
    times("p50_fct_us", "p50 FCT", lambda summary: summary.fct_us, "p50"),
    times("p99_fct_us", "p99 FCT", lambda summary: summary.fct_us, "p99"),
    times("mean_slowdown", "mean slowdown", lambda summary: summary.slowdown, unit="ratio"),
    times("small_mean_fct_us", "small mean FCT", lambda summary: summary.small.fct_us),
    times("medium_mean_fct_us", "medium mean FCT", lambda summary: summary.medium.fct_us),
    times("large_mean_fct_us", "large mean FCT", lambda summary: summary.large.fct_us),
    Metric("retransmissions", "resent packets", "count", lambda summary: _number(summary.retransmissions)),
    Metric("out_of_order_share", "out of order", "share", lambda summary: summary.out_of_order_share),
    Metric("unfinished", "unfinished flows", "count", lambda summary: float(summary.unfinished)),
)
"""The columns that are shown unasked. Small, medium and large are the groups `BINS`."""

COMPLETION = Metric("collective_us", "completion time of collectives", "us", completion_of, bound=least_completion_of)
"""Metric that ranks variants where flows wait for each other: of unlike collectives, the one that takes longest."""

OF_COLLECTIVES: Sequence[Metric] = (
    COMPLETION,
    Metric("longest_collective_us", "longest collective", "us", longest_of, bound=least_longest_of, sign=">"),
    Metric(
        "unfinished_collectives",
        "unfinished collectives",
        "count",
        lambda summary: float(unfinished_collectives(summary)) if summary.collectives else None,
    ),
)
"""Columns of runs whose flows wait for each other; none of them is told of others."""

OF_LONG_LIVED: Sequence[Metric] = (
    Metric(
        "background_goodput_mbps",
        "background goodput",
        "mbps",
        lambda summary: summary.background.goodput_mbps if summary.background else None,
        more_is_better=True,
    ),
    Metric(
        "background_fairness",
        "background fairness",
        "ratio",
        lambda summary: summary.background.fairness if summary.background else None,
        more_is_better=True,
    ),
)
"""Columns of flows that never end: what each carries, and Jain's index of how evenly they share."""

MORE_METRICS: Sequence[Metric] = (
    times("small_p99_fct_us", "small p99 FCT", lambda summary: summary.small.fct_us, "p99"),
    Metric("small_queueing_us", "small queueing", "us", _named("small", lambda one: one.queueing_us)),
    Metric("queueing_us", "queueing per packet", "us", _named("all", lambda one: one.queueing_us)),
    _goodput("goodput_mbps", "mean goodput", lambda summary: summary),
    _goodput("medium_goodput_mbps", "medium goodput", lambda summary: summary.medium),
    _goodput("large_goodput_mbps", "large goodput", lambda summary: summary.large),
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
    *OF_LONG_LIVED,
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


def _breakdown(part: str) -> Reading:
    # Means over the flows that finished are none over all.
    return lambda summary: None if summary.without_completion else _number(getattr(summary.fct_breakdown_us, part))


FCT_PART_METRICS: Sequence[Metric] = tuple(
    Metric(f"fct_{part}_us", f"time: {title}", "us", _breakdown(part)) for part, title in FCT_PARTS.items()
)
"""The parts of the mean completion time, which add up to it; shown and kept as `MORE_METRICS` are."""

ALL_METRICS: Sequence[Metric] = (*METRICS, *MORE_METRICS, *FCT_PART_METRICS)


def has_only_long_lived(runs: Iterable[Summary]) -> bool:
    """Whether no run has a flow that ends: then goodput is what is compared."""
    own = list(runs)
    return bool(own) and all(run.background is not None and not run.flows for run in own)


def shown_metrics(runs: Iterable[Summary]) -> Sequence[Metric]:
    """Give the columns that are shown unasked of runs whose flows do not wait for each other."""
    if not has_only_long_lived(runs):
        return METRICS
    # What is counted by flow leaves those out that never end.
    return (*OF_LONG_LIVED, *(metric for metric in ALL_METRICS if metric.key == "dropped_packets"))


def waiting_metrics() -> Sequence[Metric]:
    """Give the columns that are shown unasked of runs whose flows wait for each other."""
    packets = ("retransmissions", "out_of_order_share", "dropped_packets")
    return (*OF_COLLECTIVES, *(metric for metric in ALL_METRICS if metric.key in packets))


def bin_metrics(place: int) -> Sequence[Metric]:
    """Give the columns of a range of sizes that the spec asked for: the one at this place, from 0."""
    return (
        Metric("flows", "flows", "count", _asked(place, lambda one: one.flows), more_is_better=True),
        times("mean_fct_us", "mean FCT", lambda summary: summary.size_bins[place].fct_us),
        times("p99_fct_us", "p99 FCT", lambda summary: summary.size_bins[place].fct_us, "p99"),
        _goodput("goodput_mbps", "mean goodput", lambda summary: summary.size_bins[place]),
        _goodput("goodput_sum_mbps", "goodput sum", lambda summary: summary.size_bins[place], "sum"),
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
    """Every metric over the runs of one variant; None where no run has a value."""
    own = distinct(runs)
    return {metric.key: over_runs(metric, own) for metric in metrics}


def over_runs(metric: Metric, runs: Sequence[Summary]) -> Estimate | None:
    """Estimate a metric over runs that differ; a bound without interval if it is open in any of them."""
    found = [own for run in runs if (own := metric.interval(run)) is not None]
    if not found:
        return None
    if all(low == high for low, high in found):
        return estimate([low for low, _ in found])
    bounds = [high if metric.sign == "≤" else low for low, high in found]
    return Estimate(math.fsum(bounds) / len(bounds), None, len(bounds), metric.sign)


def cells(values: Mapping[str, Estimate | None], metrics: Sequence[Metric]) -> dict[str, float | None]:
    """Return the cells of a row of a table on disk, whose columns are those of `columns`: each is a value, or none."""
    found: dict[str, float | None] = {}
    for metric in metrics:
        value = values[metric.key]
        mean, ci95, *bound = columns([metric])
        found |= {mean: value.value, ci95: value.spread} if value else {mean: None, ci95: None}
        found |= dict.fromkeys(bound, value.mean if value and value.sign else None)
    return found


def columns(metrics: Sequence[Metric]) -> list[str]:
    """Name the columns of tables on disk: a value, its interval and, where there may be one, its bound."""
    return [
        f"{metric.key}{end}"
        for metric in metrics
        for end in (
            "",
            "_ci95",
            *(() if metric.bound is None else ("_at_most" if metric.sign == "≤" else "_at_least",)),
        )
    ]


def best_labels(
    table: Mapping[str, Mapping[str, Estimate | None]], metric: Metric, apart: Collection[str] = ()
) -> set[str]:
    """Labels with the best mean of a metric; none where more than half of the variants share it.

    Those that are `apart`, as references are, are not among the variants. A value that is open is not the best, and
    where it may be better than all that are known, none is.
    """
    means = {label: row[metric.key] for label, row in table.items() if label not in apart}
    values = {label: value for label, value in means.items() if value is not None}
    winner = (max if metric.more_is_better else min)((one.mean for one in values.values()), default=0.0)
    best = {label for label, value in values.items() if value.mean == winner}
    known = all(not values[label].sign for label in best)
    return best if known and 2 * len(best) <= len(values) else set()
