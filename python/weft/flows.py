"""Which rows of the table of flows averages are over."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["COMPLETIONS", "bounded", "counted", "measured"]

COMPLETIONS = ("fct_us", "slowdown", "goodput_mbps")
"""Columns without a value of flows that did not finish, of which bounds are known."""


def measured(flows: "pl.DataFrame") -> "pl.DataFrame":
    """Return the flows of the window of measurement, and those that never end: all, if the run has no window."""
    import polars as pl

    if "measured" not in flows.columns:
        return flows
    # A table of several runs has no value in the rows of those without a window.
    return flows.filter(pl.col("measured").fill_null(value=True) | pl.col("background"))


def counted(flows: "pl.DataFrame") -> "pl.DataFrame":
    """Return the flows that the summary's averages are over: those of the window, without those that never end."""
    import polars as pl

    return measured(flows).filter(~pl.col("background"))


def bounded(flows: "pl.DataFrame", column: str, simulated_us: "float | pl.Expr") -> "tuple[pl.DataFrame, pl.DataFrame]":
    """Return the flows with lower, and with upper bounds of a column where they did not finish; or the same twice.

    An unfinished flow has a completion time between the time that has passed and infinity; and no flow takes
    less than in an empty fabric. The time of a flow that never began counts as zero.
    """
    import polars as pl

    unfinished = pl.col("fct_us").is_null() & ~pl.col("background")
    if column not in COMPLETIONS or flows.filter(unfinished).is_empty():
        return flows, flows
    # As `FlowRow::least_fct_us` in Rust, of which the summary's bounds are.
    passed = (simulated_us - pl.col("start_us")).clip(0.0).fill_null(0.0)
    least = pl.max_horizontal(passed, "ideal_fct_us")
    low, high = {
        "fct_us": (least, pl.lit(float("inf"))),
        "slowdown": (least / pl.col("ideal_fct_us"), pl.lit(float("inf"))),
        "goodput_mbps": (pl.lit(0.0), pl.col("size_bytes") * 8.0 / least),
    }[column]
    known = pl.when(unfinished)
    return tuple(flows.with_columns(known.then(bound).otherwise(pl.col(column)).alias(column)) for bound in (low, high))  # type: ignore[return-value]
