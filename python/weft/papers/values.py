"""A measure of one run: a number, all values of a column, or a curve over time."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from weft.errors import SpecError
from weft.flows import bounded
from weft.metrics import ALL_METRICS, bin_metrics
from weft.papers.declared import Measure
from weft.papers.reading import nearest
from weft.papers.views import VIEWS, view
from weft.percentiles import percentile
from weft.simulation import Result

__all__ = ["ideal_of", "ideals_of", "over_time", "value_of", "values_of"]

_IDEAL: Mapping[str, pl.Expr] = {
    "fct_us": pl.col("ideal_fct_us").alias("fct_us"),
    "slowdown": pl.when(pl.col("ideal_fct_us").is_not_null()).then(1.0).alias("slowdown"),
    "goodput_mbps": (8.0 * pl.col("size_bytes") / pl.col("ideal_fct_us")).alias("goodput_mbps"),
}
"""Columns of flows in an empty fabric."""

_FROM, _BELOW = "_from", "_below"
_TIME = "time_us"

_PERCENTILES = {"p1": 0.01, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_STATISTICS: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    "mean": lambda column: column.mean(),
    "min": lambda column: column.min(),
    "max": lambda column: column.max(),
    "sum": lambda column: column.sum(),
    "std": lambda column: column.std(ddof=0),  # of all that there is, not of a sample
}


def value_of(result: Result, measure: Measure) -> float | None:
    """Return the number that a measure makes of a run; None where there is nothing to measure.

    Not a number where flows that did not finish leave it open: their bounds give different numbers.
    """
    if measure.metric is not None:
        metrics = ALL_METRICS if measure.bin is None else bin_metrics(measure.bin)
        if measure.bin is not None and measure.bin >= len(result.summary.size_bins):
            many = len(result.summary.size_bins)
            raise SpecError(f"bin = {measure.bin}: the run has {many} ranges of sizes (run.bins)")
        found = next(metric for metric in metrics if metric.key == measure.metric).interval(result.summary)
        return None if found is None else _agreed(*found) * measure.factor
    frame = _rows(result, measure)
    if measure.statistic == "count" and measure.column is None:
        return float(frame.height) * measure.factor
    if frame.is_empty():
        return None
    if measure.table != "flows" or measure.column is None:
        return _number(frame.select(_statistic(measure)).item(), measure)
    low, high = (
        _number(one.select(_statistic(measure)).item(), measure)
        for one in bounded(frame, measure.column, result.summary.simulated_us)
    )
    return None if low is None or high is None else _agreed(low, high)


def _agreed(low: float, high: float) -> float:
    return low if low == high else math.nan


def ideal_of(result: Result, measure: Measure) -> float | None:
    """Return the same number if every flow had taken its ideal time; None where that says nothing of the measure."""
    if measure.metric is not None:
        if not _is_time(measure.metric):
            return None
        return value_of(Result(result.summary.idle, result.spec), measure)
    if measure.table != "flows" or measure.column is None or measure.column not in _IDEAL:
        return None
    frame = _rows(result, measure)
    if frame.is_empty() or measure.statistic is None:
        return None
    return _number(frame.with_columns(_IDEAL[measure.column]).select(_statistic(measure)).item(), measure)


def ideals_of(result: Result, measure: Measure) -> pl.Series:
    """Return all values of a measure's column if every flow had taken its ideal time; none where it has no such."""
    if measure.table != "flows" or measure.column is None or measure.column not in _IDEAL:
        return pl.Series(measure.column, [], dtype=pl.Float64)
    frame = _rows(result, measure)
    if frame.is_empty():
        return pl.Series(measure.column, [], dtype=pl.Float64)
    own = frame.select(_IDEAL[measure.column]).get_column(measure.column)
    return own.cast(pl.Float64).drop_nulls() * measure.factor


def _is_time(metric: str) -> bool:
    """Whether a metric of the summary is one of completion times."""
    return metric.endswith("fct_us")


def values_of(result: Result, measure: Measure) -> tuple[pl.Series, pl.Series]:
    """Return lower and upper bounds of all values of a measure's column, which differ for flows that did not finish."""
    frame = _rows(result, measure)
    if frame.is_empty():
        return (pl.Series(measure.column, [], dtype=pl.Float64),) * 2
    assert measure.column is not None
    frames = bounded(frame, measure.column, result.summary.simulated_us) if measure.table == "flows" else (frame,) * 2
    low, high = (one.get_column(measure.column).cast(pl.Float64).drop_nulls() * measure.factor for one in frames)
    return low, high


def over_time(result: Result, measure: Measure) -> list[tuple[float, float | None]]:
    """Return a measure's statistic at each time of a run that was sampled: time in microseconds, value."""
    frame = _rows(result, measure)
    if frame.is_empty():
        return []
    found = frame.group_by(_TIME, maintain_order=True).agg(_statistic(measure).alias("value")).sort(_TIME)
    return [(time, _number(value, measure)) for time, value in found.iter_rows()]


def _rows(result: Result, measure: Measure) -> pl.DataFrame:
    """Return the rows that a measure is about."""
    assert measure.table is not None
    if any(_table(result, name).is_empty() for name in VIEWS.get(measure.table, (measure.table,))):
        return pl.DataFrame()
    frame = view(result, measure.table)
    for key, wanted in measure.where.items():
        frame = frame.filter(_condition(frame, key, wanted))
    if measure.column is not None:
        _check_column(frame, measure.column)
    return frame


def _table(result: Result, name: str) -> pl.DataFrame:
    """Return a table as it is on disk: the view of the same name may not be one."""
    found: pl.DataFrame = getattr(result, name)
    return found


def _condition(frame: pl.DataFrame, key: str, wanted: Any) -> pl.Expr:
    for end, compare in ((_FROM, pl.Expr.ge), (_BELOW, pl.Expr.lt)):
        name = key.removesuffix(end)
        if key.endswith(end) and name in frame.columns:
            return compare(pl.col(name), wanted)
    _check_column(frame, key)
    return pl.col(key).is_in(wanted if isinstance(wanted, list) else [wanted])


def _check_column(frame: pl.DataFrame, name: str) -> None:
    if name not in frame.columns:
        raise nearest("column", name, frame.columns)


def _statistic(measure: Measure) -> pl.Expr:
    name = measure.statistic
    if measure.column is None:
        return pl.len()
    column = pl.col(measure.column)
    if name == "count":
        return column.count()
    if name == "share":
        return (column.drop_nulls().cast(pl.Float64) > 0.0).mean()
    if name in _PERCENTILES:
        return percentile(column, _PERCENTILES[name])
    assert name is not None
    return _STATISTICS[name](column)


def _number(value: Any, measure: Measure) -> float | None:
    return None if value is None else float(value) * measure.factor
