"""Input of a plot: a panel of a figure with its own rows, its axes and the looks of its variants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from weft.palette import Look
from weft.quantity import rate_scale, time_scale
from weft.statistics import Estimate, estimate

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "POOLED",
    "Axis",
    "DrawnUnit",
    "PanelView",
    "Place",
    "curve_schema",
    "estimates",
    "places",
    "row_schema",
    "scaled_label",
    "unit_scale",
]

DrawnUnit: TypeAlias = Literal["us", "mbps", "bytes", "ratio", "count", "share", "GB/s"]
"""The units that values come in; what is drawn is scaled from them."""

POOLED = -1
"""The seed of a curve that pools all seeds."""

_BYTES = (("GB", 1e9), ("MB", 1e6), ("KB", 1e3), ("bytes", 1.0))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: what is on it, whether it is logarithmic, and the unit of the values that belong on it."""

    label: str
    log: bool = False
    unit: DrawnUnit = "ratio"
    up_to: float = 0.0
    """The largest value of the panels beside this one that have the same axis: all of them get one unit."""

    def scale(self, largest: float) -> tuple[str, float]:
        """Label with the unit that suits values up to `largest`, and what to divide them by."""
        unit, divisor = unit_scale(self.unit, max(largest, self.up_to))
        return (f"{self.label} ({unit})" if unit else self.label), divisor


@dataclass(frozen=True, slots=True)
class PanelView:
    """A panel, ready to be drawn. `x` and `y` are the axes as drawn, also of a distribution, whose values are on x."""

    title: str
    plot: str
    x: Axis
    y: Axis
    variants: Sequence[str]
    """In the order in which they are drawn."""
    names: Mapping[str, str]
    """Name of each variant in the legend."""
    looks: Mapping[str, Look]
    measures: Sequence[str]
    """Labels, in the order in which they are drawn."""
    rows: "pl.DataFrame"
    """With the columns of `row_schema`."""
    curves: "pl.DataFrame"
    """With the columns of `curve_schema`."""
    relative: bool = False
    """Whether values are shares of those of one variant: a line at 1 is drawn."""
    units: Sequence[DrawnUnit] = ()
    """Unit of each measure, where units may differ: in a table."""

    def name(self, variant: str) -> str:
        """Return the name of a variant in the legend."""
        return self.names.get(variant, variant)


def row_schema() -> dict[str, Any]:
    """Return the columns of rows: a row per value; `x_number` is null where x is a name.

    A value is null where a run failed, and not a number where flows that did not finish leave it open.
    """
    import polars as pl

    return {
        "panel": pl.Int64,
        "variant": pl.String,
        "x": pl.String,
        "x_number": pl.Float64,
        "seed": pl.Int64,
        "measure": pl.String,
        "value": pl.Float64,
    }


def curve_schema() -> dict[str, Any]:
    """Return the columns of curves: a row per point, by its `position`; the seed is -1 where all are pooled."""
    import polars as pl

    return {
        "panel": pl.Int64,
        "variant": pl.String,
        "x": pl.String,
        "seed": pl.Int64,
        "position": pl.Int64,
        "value": pl.Float64,
        "share": pl.Float64,
    }


@dataclass(frozen=True, slots=True)
class Place:
    """A point of the axis: what it is called, and where it is if it is a number."""

    label: str
    number: float | None


def places(view: PanelView) -> list[Place]:
    """List the points of x: by number where all have one, in the order of the rows otherwise."""
    found = {
        label: Place(label, number)
        for label, number in view.rows.select("x", "x_number").unique(maintain_order=True).rows()
    }
    numbers = [place.number for place in found.values()]
    if all(number is not None for number in numbers):
        return sorted(found.values(), key=lambda place: place.number or 0.0)
    return list(found.values())


def estimates(view: PanelView) -> dict[tuple[str, str, str], Estimate]:
    """Estimate over seeds for each variant, measure and x (labels) that has a value at all, and none that is open."""
    found: dict[tuple[str, str, str], list[float]] = {}
    columns = view.rows.select("variant", "measure", "x", "value").drop_nulls("value")
    for variant, measure, x, value in columns.rows():
        found.setdefault((variant, measure, x), []).append(value)
    return {key: estimate(values) for key, values in found.items() if not any(map(isnan, values))}


def scaled_label(axis: Axis, values: Sequence[float]) -> tuple[str, float]:
    """Label of an axis for these values, and what to divide them by."""
    return axis.scale(max((abs(value) for value in values), default=0.0))


def unit_scale(unit: DrawnUnit, largest: float) -> tuple[str, float]:
    """Unit to write for values up to `largest`, and what to divide them by."""
    if unit == "us":
        return time_scale([largest])
    if unit == "mbps":
        return rate_scale([largest])
    if unit == "bytes":
        return next(((name, scale) for name, scale in _BYTES if largest >= scale), _BYTES[-1])
    return {"share": ("%", 0.01), "GB/s": ("GB/s", 1.0)}.get(unit, ("", 1.0))
