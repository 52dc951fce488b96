"""The numbers of a figure, as one tidy table: what is drawn, and what claims are judged by."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft.drawing.view import POOLED, curve_schema, row_schema
from weft.papers.declared import Scale

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CORES", "POOLED", "FigureData", "RunsUsed"]


CORES = 2
"""Number of cores for which the time of a figure is stated."""


@dataclass(frozen=True, slots=True)
class RunsUsed:
    """The runs that a figure was made of."""

    scale: Scale
    runs: int
    reused: int = 0
    """Those that were there before."""
    failed: int = 0
    unfinished: int = 0
    """Flows that its runs left unfinished: they are in no mean."""
    unsteady: int = 0
    """Runs that were in no steady state: their means depend on how many flows there are."""
    cpu_s: float = 0.0
    """CPU time of all runs in seconds, whenever they were done."""
    seeds: int = 1
    """The most seeds of any of its experiments."""
    declared_seeds: int = 1
    """As many as the scale has; more than were run if only some were asked for."""
    flows: tuple[int, ...] = ()
    """Numbers of flows of its runs, each once, in order."""
    declared_flows: int = 0
    """As many as the scale has at most; more than any run had if fewer were asked for. 0: it has no number of flows."""
    points: Mapping[str, int] = field(default_factory=dict)
    """For each varied field, how many values of it there are."""
    oracle: bool = False
    """Whether a perfect per-packet choice (reference) is beside the others."""


def _no_rows() -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame(schema=FigureData.row_schema())


@dataclass(frozen=True, slots=True)
class FigureData:
    """The data of a figure."""

    rows: "pl.DataFrame"
    """A row per value: panel (from 0), variant, x (label), x_number (or null), seed, measure (label), value.

    In the order of panels, variants, x, measures and seeds. Values have the unit of their measure; `relative_to` is
    applied. A run that failed has null. Of a curve over time the value is the mean over its points; a distribution has
    several measures, among them its mean and its quantiles.
    """
    curves: "pl.DataFrame"
    """Rows of plots of kind cdf, box and over-time: panel, variant, x, seed (-1: pooled), position, value, share.

    cdf: value, and the share of values up to it. box: quantiles, with 0.05, 0.25, 0.5, 0.75 and 0.95 as share, and the
    mean, with null. over-time: value is the time in microseconds, share what is measured, by seed.
    """
    runs: RunsUsed
    ideal: "pl.DataFrame" = field(default_factory=_no_rows)
    """As `rows`, if every flow had taken its ideal time: of completion times, and of the rates that follow from them.

    Empty for a figure that has none.
    """

    @staticmethod
    def row_schema() -> dict[str, Any]:
        """Return the columns of `rows`."""
        return row_schema()

    @staticmethod
    def curve_schema() -> dict[str, Any]:
        """Return the columns of `curves`."""
        return curve_schema()
