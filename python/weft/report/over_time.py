"""The part of the report about links, queues and receivers over time, of runs that were sampled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.metrics import Unit
from weft.over_time import PAUSES, leaf_to_show, measures, shown, uplink_curves
from weft.report.cells import short
from weft.report.tables import Head, Row, Table, estimate_cell
from weft.statistics import estimate

if TYPE_CHECKING:
    from weft.comparison import Comparison
    from weft.over_time import Curve, Shown

__all__ = ["OverTime", "curves", "view"]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table of uplinks."""

    key: str
    """Key in `Series.statistics`."""
    title: str
    unit: str
    kind: Unit
    divisor: float = 1.0


_COLUMNS = (
    _Column("uplink_utilisation", "uplink utilisation", "%", "share"),
    _Column("uplink_std", "std. deviation over uplinks", "%", "share"),
    _Column("uplink_imbalance", "imbalance of uplinks", "max / mean − 1", "ratio"),
    _Column("uplink_backlog_bytes", "mean uplink backlog", "KB", "ratio", 1e3),
    _Column("uplink_occupancy_variance", "variance of uplink occupancy", "", "ratio"),
)


def curves(comparison: "Comparison") -> dict[str, Any] | None:
    """Everything over time that the page's script draws; None when no run was sampled."""
    runs = shown(comparison.groups)
    if not runs:
        return None
    leaf = leaf_to_show(runs.values())
    labels = list(comparison.groups)
    found = measures(runs.values())
    return {
        "measures": {key: {"title": one.title, "axis": one.axis} for key, one in found.items()},
        "curves": {
            key: [_points(measure.read(runs[label])) if label in runs else None for label in labels]
            for key, measure in found.items()
        },
        "leaf": leaf,
        "uplinks": [_uplinks(runs.get(label), leaf) for label in labels],
    }


@dataclass(frozen=True, slots=True)
class OverTime:
    """Page part of the report on links, queues and receivers over time."""

    measures: Mapping[str, str]
    """Title of each curve that can be chosen."""
    schemes: Mapping[str, str]
    """The variants by number: a label is a user's."""
    leaf: str | None
    """The leaf whose uplinks are drawn."""
    table: Table
    traced: bool
    """Whether the replay has paths of flows to show."""
    paused: bool
    """Whether there are curves of pauses."""


def view(comparison: "Comparison") -> OverTime | None:
    """Return what the template shows; None when no run was sampled."""
    runs = shown(comparison.groups)
    if not runs:
        return None
    titles = {key: measure.title for key, measure in measures(runs.values()).items()}
    return OverTime(
        titles,
        {str(place): label for place, label in enumerate(comparison.groups)},
        leaf_to_show(runs.values()),
        _table(comparison),
        any(found[0].traces.height for found in comparison.groups.values()),
        any(key in titles for key in PAUSES),
    )


def _table(comparison: "Comparison") -> Table:
    rows = []
    for label, runs in comparison.groups.items():
        found = [run.series.statistics() for run in runs if run.summary.sample_interval_us is not None]
        cells = []
        for column in _COLUMNS:
            values = [value / column.divisor for one in found if (value := one[column.key]) is not None]
            cells.append(estimate_cell(estimate(values) if values else None, column.kind))
        rows.append(Row((), label, cells))
    return Table([Head("scheme"), *(Head(column.title, column.unit) for column in _COLUMNS)], rows)


def _points(curve: "Curve") -> list[list[float]]:
    return [[short(time) for time in curve.time_us], [short(value) for value in curve.values]]


def _uplinks(one: "Shown | None", leaf: str | None) -> dict[str, Any] | None:
    if one is None or leaf is None:
        return None
    return {name: _points(curve) for name, curve in uplink_curves(one, leaf).items()}
