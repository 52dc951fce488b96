"""Chart data of one variant at one point of a sweep; a comparison has one point."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weft.curves import cumulative
from weft.flows import bounded, counted
from weft.metrics import Metric
from weft.percentiles import percentile
from weft.report.sizes import Sizes
from weft.statistics import estimate
from weft.summary import FCT_PARTS, TIERS, Distribution, Summary

__all__ = ["STATISTICS", "cell", "flow_columns", "short", "size_steps", "waited"]

STATISTICS: Mapping[str, str] = {"mean": "mean", "p50": "median", "p99": "99th percentile"}
"""Statistics of a distribution that can be chosen."""
_FLOW_COLUMNS = ("size_bytes", "background", "fct_us", "slowdown", "least_slowdown")
"""The columns of the flows that the charts need."""
_QUANTITIES: Mapping[str, str] = {"fct": "fct_us", "slowdown": "slowdown"}
_STEPS = 14


def cell(
    summaries: Sequence[Summary], flows: pl.DataFrame, sizes: Sequence[Sizes], steps: Sequence[float], points: int
) -> dict[str, Any]:
    """Return one variant's runs at one point, ready for JSON. A curve has `points` points at most."""
    return {
        **{key: _statistics(summaries, sizes, column) for key, column in _QUANTITIES.items()},
        "curves": {key: [_curve(flows, one, column, points) for one in sizes] for key, column in _QUANTITIES.items()},
        "bySize": _by_size(flows, steps),
        "breakdown": [_breakdown(summaries, one) for one in sizes],
        "waits": [_mean([getattr(summary.wait_us, tier) for summary in summaries]) for tier in TIERS],
        "overhead": {
            "share": _interval([summary.overhead_share for summary in summaries], 100.0),
            "switch": _interval([summary.state_bytes_per_switch for summary in summaries]),
            "host": _interval([summary.state_bytes_per_host for summary in summaries]),
        },
        "outOfOrder": _interval([summary.out_of_order_share for summary in summaries], 100.0),
    }


def flow_columns(flows: pl.DataFrame, simulated_us: "float | pl.Expr") -> pl.DataFrame:
    """Return what the charts need of flows, of a run or of several, that averages are over."""
    own = counted(flows)
    least = bounded(own, "slowdown", simulated_us)[0].get_column("slowdown").alias("least_slowdown")
    return own.with_columns(least).select(_FLOW_COLUMNS)


def waited(summaries: Sequence[Summary], metrics: Iterable[Metric]) -> dict[str, list[float] | None]:
    """Return what came out by these metrics, by key: mean and interval, or none where no run has it."""
    return {metric.key: _interval([metric.known(summary) for summary in summaries]) for metric in metrics}


def size_steps(flows: Iterable[pl.DataFrame]) -> list[float]:
    """Return the edges of ranges of sizes with about as many flows in each; empty without flows."""
    wanted = [frame.filter(~pl.col("background")).get_column("size_bytes") for frame in flows]
    sizes = np.concatenate([column.to_numpy() for column in wanted]) if wanted else np.empty(0)
    if sizes.size == 0:
        return []
    edges = np.unique(np.quantile(sizes, np.linspace(0.0, 1.0, _STEPS + 1), method="lower"))
    return [float(edge) for edge in edges]


def short(value: float) -> float:
    """Five significant digits: more than a screen can show."""
    return float(f"{value:.5g}")


def _statistics(summaries: Sequence[Summary], sizes: Sequence[Sizes], column: str) -> dict[str, Any]:
    def read(summary: Summary, one: Sizes, statistic: str) -> float | None:
        found = one.of(summary)
        distribution: Distribution | None = getattr(found, column) if found else None
        value: float | None = getattr(distribution, statistic) if distribution else None
        is_open = value is None and distribution is not None and distribution.at_least is not None
        return math.nan if is_open else value

    return {
        statistic: [_interval([read(summary, one, statistic) for summary in summaries]) for one in sizes]
        for statistic in STATISTICS
    }


def _interval(values: Iterable[float | None], scale: float = 1.0) -> list[float] | None:
    """Mean and the ends of its interval; None where unfinished flows leave it open with any seed."""
    present = [scale * value for value in values if value is not None]
    if not present or any(map(math.isnan, present)):
        return None
    value = estimate(present)
    return [short(value.mean), short(value.low), short(value.high)]


def _mean(values: Iterable[float | None]) -> float | None:
    found = _interval(values)
    return found[0] if found else None


def _breakdown(summaries: Sequence[Summary], sizes: Sizes) -> list[float | None]:
    found = [size.fct_breakdown_us for summary in summaries if (size := sizes.of(summary)) is not None]
    return [_mean([getattr(breakdown, part) for breakdown in found]) for part in FCT_PARTS]


def _curve(flows: pl.DataFrame, sizes: Sizes, column: str, points: int) -> list[list[float]]:
    # Unfinished flows count as flows without ever being reached, so their curve ends below 1.
    chosen = flows.filter(sizes.chosen()).get_column(column)
    values: NDArray[np.float64] = chosen.drop_nulls().to_numpy().astype(np.float64)
    xs, shares = cumulative(values, total=chosen.len(), points=points)
    return [[short(x) for x in xs], [round(share, 5) for share in shares]]


def _by_size(flows: pl.DataFrame, steps: Sequence[float]) -> list[list[float | None]]:
    """Rows of middle size, mean, median and 99th percentile of slowdown; None where unfinished flows leave it open."""
    ended = pl.col("fct_us").is_not_null()
    mine = flows.filter(~pl.col("background") & pl.col("least_slowdown").is_not_null())
    low = mine.get_column("least_slowdown")
    high = mine.select(pl.when(ended).then("slowdown").otherwise(float("inf")).alias("slowdown")).get_column("slowdown")
    sizes = mine.get_column("size_bytes")
    rows: list[list[float | None]] = []
    for least, most in zip(steps, [*steps[1:], np.inf], strict=False):
        inside = (sizes >= least) & (sizes < most)
        if not inside.any():
            continue
        middle = least if most == np.inf else float(np.sqrt(max(least, 1.0) * max(most, 1.0)))
        of_low, of_high = (_marks(bounds.filter(inside)) for bounds in (low, high))
        marks = [short(one) if one == other else None for one, other in zip(of_low, of_high, strict=True)]
        if any(mark is not None for mark in marks):
            rows.append([short(middle), *marks])
    return rows


def _marks(values: pl.Series) -> tuple[float, float, float]:
    mean, p50, p99 = values.mean(), percentile(values, 0.5), percentile(values, 0.99)
    assert isinstance(mean, float) and p50 is not None and p99 is not None
    return mean, p50, p99
