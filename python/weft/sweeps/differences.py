"""Paired differences of a sweep: contender by contender on the same flows, seed by seed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.metrics import ALL_METRICS, Metric
from weft.statistics import Estimate, paired_difference
from weft.summary import Summary

if TYPE_CHECKING:
    import polars as pl

    from weft.sweeps.result import Point, Sweep

__all__ = ["difference", "differences_table", "points_by_place"]


def difference(metric: Metric, mine: Sequence[Summary], yours: Sequence[Summary]) -> Estimate | None:
    """Mean of `mine - yours` over the seeds that both have a value for; None without one."""
    theirs = {run.seed: metric.read(run) for run in yours}
    pairs = [
        (own, other)
        for run in mine
        if (own := metric.read(run)) is not None and (other := theirs.get(run.seed)) is not None
    ]
    return paired_difference([own for own, _ in pairs], [other for _, other in pairs]) if pairs else None


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
        for mine in points:
            for yours in points:
                if mine != yours:
                    rows.append({**at, **_row(mine, yours, points)})
    return pl.DataFrame(rows, schema=schema)


def _row(mine: str, yours: str, points: Mapping[str, "Point"]) -> dict[str, Any]:
    runs, others = points[mine].runs, points[yours].runs
    seeds = {run.seed for run in runs} & {run.seed for run in others}
    row: dict[str, Any] = {"contender": mine, "against": yours, "seeds": len(seeds)}
    for metric in ALL_METRICS:
        found = difference(metric, runs, others)
        row[metric.key] = None if found is None else found.mean
        row[f"{metric.key}_ci95"] = None if found is None else found.half_width
    return row
