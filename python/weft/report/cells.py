"""What the charts draw of one contender at one point of a sweep; a comparison has one point."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weft.curves import cumulative
from weft.metrics import Metric
from weft.percentiles import percentile
from weft.report.sizes import Sizes
from weft.statistics import estimate
from weft.summary import SPENT, TIERS, Distribution, Summary

__all__ = ["FLOW_COLUMNS", "STATISTICS", "cell", "short", "size_steps", "waited"]

STATISTICS: Mapping[str, str] = {"mean": "mean", "p50": "median", "p99": "99th percentile"}
"""What of a distribution can be chosen."""
FLOW_COLUMNS = ("size_bytes", "background", "fct_us", "slowdown")
"""The columns of the flows that the charts need."""
_QUANTITIES: Mapping[str, str] = {"fct": "fct_us", "slowdown": "slowdown"}
_STEPS = 14


def cell(
    summaries: Sequence[Summary], flows: pl.DataFrame, sizes: Sequence[Sizes], steps: Sequence[float], points: int
) -> dict[str, Any]:
    """Return one contender's runs at one point, ready for JSON. A curve has `points` points at most."""
    return {
        **{key: _statistics(summaries, sizes, column) for key, column in _QUANTITIES.items()},
        "curves": {key: [_curve(flows, one, column, points) for one in sizes] for key, column in _QUANTITIES.items()},
        "bySize": _by_size(flows, steps),
        "spent": [_spent(summaries, one) for one in sizes],
        "waits": [_mean([getattr(summary.wait_us, tier) for summary in summaries]) for tier in TIERS],
        "overhead": {
            "share": _interval([summary.overhead_share for summary in summaries], 100.0),
            "switch": _interval([summary.state_bytes_per_switch for summary in summaries]),
            "host": _interval([summary.state_bytes_per_host for summary in summaries]),
        },
        "outOfOrder": _interval([summary.out_of_order_share for summary in summaries], 100.0),
    }


def waited(summaries: Sequence[Summary], metrics: Iterable[Metric]) -> dict[str, list[float] | None]:
    """Return what came out by these metrics, by key: mean and interval, or none where no run has it."""
    return {metric.key: _interval([metric.read(summary) for summary in summaries]) for metric in metrics}


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
        return getattr(distribution, statistic) if distribution else None

    return {
        statistic: [_interval([read(summary, one, statistic) for summary in summaries]) for one in sizes]
        for statistic in STATISTICS
    }


def _interval(values: Iterable[float | None], scale: float = 1.0) -> list[float] | None:
    """Mean and the ends of its interval."""
    present = [scale * value for value in values if value is not None]
    if not present:
        return None
    value = estimate(present)
    return [short(value.mean), short(value.low), short(value.high)]


def _mean(values: Iterable[float | None]) -> float | None:
    found = _interval(values)
    return found[0] if found else None


def _spent(summaries: Sequence[Summary], sizes: Sizes) -> list[float | None]:
    found = [size.spent_us for summary in summaries if (size := sizes.of(summary)) is not None]
    return [_mean([getattr(spent, part) for spent in found]) for part in SPENT]


def _curve(flows: pl.DataFrame, sizes: Sizes, column: str, points: int) -> list[list[float]]:
    # Unfinished flows count as flows without ever being reached, so their curve ends below 1.
    chosen = flows.filter(sizes.chosen()).get_column(column)
    values: NDArray[np.float64] = chosen.drop_nulls().to_numpy().astype(np.float64)
    xs, shares = cumulative(values, total=chosen.len(), points=points)
    return [[short(x) for x in xs], [round(share, 5) for share in shares]]


def _by_size(flows: pl.DataFrame, steps: Sequence[float]) -> list[list[float | None]]:
    """Rows of middle size, mean, median and 99th percentile of slowdown; none where no flow finished."""
    done = flows.filter(~pl.col("background") & pl.col("slowdown").is_not_null())
    sizes = done.get_column("size_bytes").to_numpy()
    slowdowns = done.get_column("slowdown").to_numpy()
    rows: list[list[float | None]] = []
    for low, high in zip(steps, [*steps[1:], np.inf], strict=True):
        mine = slowdowns[(sizes >= low) & (sizes < high)]
        if mine.size:
            middle = low if high == np.inf else float(np.sqrt(max(low, 1.0) * max(high, 1.0)))
            marks = (percentile(pl.Series(mine), share) for share in (0.5, 0.99))
            rows.append([short(float(value)) for value in (middle, mine.mean(), *marks) if value is not None])
    return rows
