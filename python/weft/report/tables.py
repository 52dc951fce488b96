"""Tables of metrics, a row a variant, as a template draws them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from weft.metrics import Metric, Unit, best_labels
from weft.quantity import estimate_text, unit_and_scale
from weft.statistics import Estimate

__all__ = ["Cell", "Head", "Row", "Table", "estimate_cell", "metric_table"]


@dataclass(frozen=True, slots=True)
class Head:
    """The heading of a column."""

    title: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a variant."""

    value: str
    """Sort key of the cell; empty where there is none."""
    mean: str
    spread: str
    """Half the width of its interval; empty where there is none."""
    best: bool = False
    """Whether it is the best of its column."""


@dataclass(frozen=True, slots=True)
class Row:
    """A variant at one point."""

    fields: Sequence[str]
    """The first cells: the values of swept fields."""
    label: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be sorted by each column."""

    heads: Sequence[Head]
    rows: Sequence[Row]


def metric_table(
    rows: Mapping[tuple[str, ...], Mapping[str, Estimate | None]],
    metrics: Sequence[Metric],
    heads: Sequence[str] = ("scheme",),
    *,
    best: bool = True,
    apart: Collection[str] = (),
) -> Table:
    """Return a table of estimates.

    The keys of `rows` are their first cells, under `heads`; the last of these is a variant. With `best`, the best
    value of each column is marked; variants that are `apart` are references.
    """
    # What no row has, such as deadlines where there are none, takes no room.
    metrics = [metric for metric in metrics if any(row[metric.key] is not None for row in rows.values())]
    units = {metric.key: _unit(metric, [row[metric.key] for row in rows.values()]) for metric in metrics}
    named = {str(place): row for place, row in enumerate(rows.values())}
    bounds = {str(place) for place, (*_, label) in enumerate(rows) if label in apart}
    top = {metric.key: best_labels(named, metric, bounds) if best else () for metric in metrics}
    found = []
    for place, ((*fields, label), row) in enumerate(rows.items()):
        cells = [
            estimate_cell(row[one.key], one.unit, units[one.key][1], best=str(place) in top[one.key]) for one in metrics
        ]
        found.append(Row(fields, label, cells))
    return Table([*map(Head, heads), *(Head(one.title, units[one.key][0]) for one in metrics)], found)


def estimate_cell(value: Estimate | None, unit: Unit, scale: float = 1.0, *, best: bool = False) -> Cell:
    """Return the cell of one estimate, with what it is sorted by."""
    mean, _, spread = estimate_text(value, unit, scale).partition(" ± ")
    return Cell("" if value is None else repr(value.mean), mean, spread, best)


def _unit(metric: Metric, values: list[Estimate | None]) -> tuple[str, float]:
    return unit_and_scale(metric.unit, [value.mean for value in values if value])
