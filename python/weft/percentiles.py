"""Percentiles, by the definition of every table of Weft: linear interpolation between the two nearest ranks.

Of n sorted values, percentile q lies at position (n - 1) q, counted from 0: the default of NumPy and R (type 7), and
that of the statistics that the core works out (`summary.json`). Polars takes a neighbour unless told.
"""

from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    import polars as pl

__all__ = ["percentile"]


@overload
def percentile(values: "pl.Series", share: float) -> float | None: ...


@overload
def percentile(values: "pl.Expr", share: float) -> "pl.Expr": ...


def percentile(values: "pl.Series | pl.Expr", share: float) -> "float | pl.Expr | None":
    """Return the value below which `share` of the values lie, from 0 to 1; None without values. Nulls do not count."""
    return values.drop_nulls().quantile(share, "linear")
