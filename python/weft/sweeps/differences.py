"""Paired differences of a sweep: variant by variant on the same flows, seed by seed."""

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from weft.metrics import ALL_METRICS, Metric
from weft.ranking import by_seed, paired
from weft.samples import distinct
from weft.statistics import Estimate

if TYPE_CHECKING:
    import polars as pl

    from weft.sweeps.result import Point, Sweep

__all__ = ["differences_table", "points_by_place"]


def points_by_place(sweep: "Sweep", variant: str) -> dict[tuple[str, ...], dict[str, "Point"]]:
    """Return the points that differ in their variant alone, by variant, for each place of the other fields."""
    found: dict[tuple[str, ...], dict[str, Point]] = {}
    for point in sweep.points:
        place = tuple(label for key, label in point.labels.items() if key != variant)
        found.setdefault(place, {})[point.labels[variant]] = point
    return found


def differences_table(sweep: "Sweep", variant: str | None, fields: Mapping[str, type]) -> "pl.DataFrame":
    """Make `Sweep.differences`; `fields` says what the values of each swept field can be read as."""
    import polars as pl

    own = {key: kind for key, kind in fields.items() if key != variant}
    kinds: Mapping[type, Any] = {int: pl.Int64, float: pl.Float64, str: pl.String}
    schema: dict[str, Any] = {key: kinds[kind] for key, kind in own.items()}
    schema |= {"variant": pl.String, "against": pl.String, "seeds": pl.Int64}
    schema |= dict.fromkeys((f"{metric.key}{end}" for metric in ALL_METRICS for end in _ends(metric)), pl.Float64)
    rows = []
    for place, points in points_by_place(sweep, variant).items() if variant is not None else ():
        at = {key: kind(label) for (key, kind), label in zip(own.items(), place, strict=True)}
        pairs = _pairs(points)
        rows += [{**at, **pairs[mine, yours]} for mine in points for yours in points if mine != yours]
    return pl.DataFrame(rows, schema=schema)


def _ends(metric: Metric) -> tuple[str, ...]:
    """Return the ends of the names of a metric's columns: a difference that is open has a bound on either side."""
    return ("", "_ci95") if metric.bound is None else ("", "_ci95", "_at_least", "_at_most")


def _pairs(points: Mapping[str, "Point"]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return a row for each two variants at a place, both ways."""
    seeds = {name: {run.seed for run in point.runs} for name, point in points.items()}
    alike = {name: len(distinct(point.runs)) == 1 for name, point in points.items()}
    values = {
        name: {metric.key: by_seed(metric, point.runs) for metric in ALL_METRICS} for name, point in points.items()
    }
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for mine, yours in combinations(points, 2):
        both = len(seeds[mine] & seeds[yours])
        there: dict[str, Any] = {"variant": mine, "against": yours, "seeds": both}
        back: dict[str, Any] = {"variant": yours, "against": mine, "seeds": both}
        for metric in ALL_METRICS:
            own = paired(values[mine][metric.key], values[yours][metric.key], one=alike[mine] and alike[yours])
            there |= _cells(metric, own, 1.0)
            back |= _cells(metric, own, -1.0)
        found[mine, yours], found[yours, mine] = there, back
    return found


def _cells(metric: Metric, own: Estimate | None, sign: float) -> dict[str, float | None]:
    """Return the cells of a difference, or of its opposite."""
    row: dict[str, float | None] = dict.fromkeys(f"{metric.key}{end}" for end in _ends(metric))
    if own is not None and not own.sign:
        row[metric.key] = 0.0 + sign * own.mean  # never -0.0
        row[f"{metric.key}_ci95"] = own.half_width
    elif own is not None:
        # A bound at 95 % confidence: of the opposite it is one on the other side.
        end = own.mean + (own.half_width or 0.0) * (1.0 if own.sign == "≤" else -1.0)
        row[f"{metric.key}{'_at_most' if (own.sign == '≤') == (sign > 0.0) else '_at_least'}"] = 0.0 + sign * end
    return row
