"""The columns of a comparison: what is read from each run's summary, and how it is shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.statistics import Estimate, estimate
from weft.summary import BinName, Summary

__all__ = ["METRICS", "Metric", "Unit", "best_labels", "estimates"]

Unit: TypeAlias = Literal["us", "ratio", "count", "share"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One column. Lower is better in every one of them."""

    key: str
    title: str
    unit: Unit
    read: Callable[[Summary], float | None]


def _mean_fct(bin_name: BinName) -> Callable[[Summary], float | None]:
    return lambda summary: summary.bins[bin_name].fct_us.mean


METRICS: Sequence[Metric] = (
    Metric("mean_fct_us", "mean FCT", "us", lambda summary: summary.fct_us.mean),
    Metric("p50_fct_us", "p50 FCT", "us", lambda summary: summary.fct_us.p50),
    Metric("p99_fct_us", "p99 FCT", "us", lambda summary: summary.fct_us.p99),
    Metric("mean_slowdown", "mean slowdown", "ratio", lambda summary: summary.slowdown.mean),
    Metric("small_mean_fct_us", "small mean FCT", "us", _mean_fct("small")),
    Metric("medium_mean_fct_us", "medium mean FCT", "us", _mean_fct("medium")),
    Metric("large_mean_fct_us", "large mean FCT", "us", _mean_fct("large")),
    Metric("retransmissions", "resent packets", "count", lambda summary: float(summary.retransmissions)),
    Metric("out_of_order_share", "out of order", "share", lambda summary: summary.out_of_order_share),
    Metric("unfinished", "unfinished flows", "count", lambda summary: float(summary.unfinished)),
)
"""Small: < 100 KB, medium: 100 KB to 10 MB, large: > 10 MB."""


def estimates(runs: Sequence[Summary]) -> dict[str, Estimate | None]:
    """Every metric over the runs of one contender; None where no run has a value."""
    found: dict[str, Estimate | None] = {}
    for metric in METRICS:
        values = [value for value in map(metric.read, runs) if value is not None]
        found[metric.key] = estimate(values) if values else None
    return found


def best_labels(table: Mapping[str, Mapping[str, Estimate | None]], metric: Metric) -> set[str]:
    """Labels with the lowest mean of a metric; none where more than half of the contenders share it."""
    means = {label: row[metric.key] for label, row in table.items()}
    values = {label: value.mean for label, value in means.items() if value is not None}
    lowest = min(values.values(), default=0.0)
    best = {label for label, value in values.items() if value == lowest}
    return best if 2 * len(best) <= len(values) else set()
