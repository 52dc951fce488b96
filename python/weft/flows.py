"""Which rows of the table of flows averages are over."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["counted", "measured"]


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
