"""Putting the numbers of a special figure into the tidy form of every figure."""

from collections.abc import Iterable
from typing import Any

from weft.papers.measured import FigureData, RunsUsed

__all__ = ["figure_data"]


def figure_data(rows: Iterable[tuple[Any, ...]], runs: RunsUsed, curves: Iterable[tuple[Any, ...]] = ()) -> FigureData:
    """Make the data of a figure from rows and points in the order of the columns of `FigureData`."""
    import polars as pl

    return FigureData(
        pl.DataFrame(list(rows), schema=FigureData.row_schema(), orient="row"),
        pl.DataFrame(list(curves), schema=FigureData.curve_schema(), orient="row"),
        runs,
    )
