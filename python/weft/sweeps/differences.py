"""Paired differences of a sweep: contender by contender on the same flows, seed by seed."""

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from weft.metrics import ALL_METRICS
from weft.standing import by_seed, paired

if TYPE_CHECKING:
    import polars as pl

    from weft.sweeps.result import Point, Sweep

__all__ = ["differences_table", "points_by_place"]


def points_by_place(sweep: "Sweep", contender: str) -> dict[tuple[str, ...], dict[str, "Point"]]:
    """Return the points that differ in their contender alone, by contender, for each place of the other fields."""
    found: dict[tuple[str, ...], dict[str, Point]] = {}
    for point in sweep.points:
        place = tuple(label for key, label in point.labels.items() if key != contender)
        found.setdefault(place, {})[point.labels[contender]] = point
    return found


def differences_table(sweep: "Sweep", contender: str | None, fields: Mapping[str, type]) -> "pl.DataFrame":
    """Make `Sweep.differences`; `fields` says what the values of each swept field can be read as."""
    import polars as pl

    own = {key: kind for key, kind in fields.items() if key != contender}
    kinds: Mapping[type, Any] = {int: pl.Int64, float: pl.Float64, str: pl.String}
    schema: dict[str, Any] = {key: kinds[kind] for key, kind in own.items()}
    schema |= {"contender": pl.String, "against": pl.String, "seeds": pl.Int64}
    schema |= dict.fromkeys((f"{metric.key}{end}" for metric in ALL_METRICS for end in ("", "_ci95")), pl.Float64)
    rows = []
    for place, points in points_by_place(sweep, contender).items() if contender is not None else ():
        at = {key: kind(label) for (key, kind), label in zip(own.items(), place, strict=True)}
        pairs = _pairs(points)
        rows += [{**at, **pairs[mine, yours]} for mine in points for yours in points if mine != yours]
    return pl.DataFrame(rows, schema=schema)


def _pairs(points: Mapping[str, "Point"]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return a row for each two contenders at a place, both ways."""
    seeds = {name: {run.seed for run in point.runs} for name, point in points.items()}
    values = {
        name: {metric.key: by_seed(metric, point.runs) for metric in ALL_METRICS} for name, point in points.items()
    }
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for mine, yours in combinations(points, 2):
        both = len(seeds[mine] & seeds[yours])
        there: dict[str, Any] = {"contender": mine, "against": yours, "seeds": both}
        back: dict[str, Any] = {"contender": yours, "against": mine, "seeds": both}
        for metric in ALL_METRICS:
            own = paired(values[mine][metric.key], values[yours][metric.key])
            there[metric.key] = None if own is None else own.mean
            back[metric.key] = None if own is None else 0.0 - own.mean  # never -0.0
            there[f"{metric.key}_ci95"] = back[f"{metric.key}_ci95"] = None if own is None else own.half_width
        found[mine, yours], found[yours, mine] = there, back
    return found
