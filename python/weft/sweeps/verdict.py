"""Who leads where in a sweep, by how much, and where the lead changes: the sentences below its table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.catalog import references
from weft.collectives import rank_fairly
from weft.drawing.asked import Fields
from weft.drawing.names import number_of
from weft.metrics import Metric
from weft.ranking import Ranking, difference_json
from weft.summary import Summary
from weft.sweeps.differences import points_by_place
from weft.sweeps.words import sentences

if TYPE_CHECKING:
    from weft.sweeps.result import Sweep

__all__ = ["Change", "SweepVerdict", "judge_sweep"]


@dataclass(frozen=True, slots=True)
class Change:
    """Where the lead passes from one variant to another."""

    labels: Mapping[str, str]
    """The values of the fields but the axis."""
    before: str
    after: str
    left_at: str
    """The last value of the axis at which the first one leads."""
    taken_at: str
    """The first value at which the other one does."""
    between: tuple[str, ...]
    """The values between them, at which nobody leads."""


@dataclass(frozen=True, slots=True)
class SweepVerdict:
    """Verdict of a sweep on its variants' mean FCT, or on the completion time of collectives where there are any."""

    variant: str
    """The field that has the variants."""
    axis: str | None
    """The field along which the lead is followed."""
    rankings: tuple[Ranking, ...]
    """For each combination of the other fields along the axis."""
    changes: tuple[Change, ...]
    sentences: tuple[str, ...]

    @property
    def metric(self) -> Metric | None:
        """Metric of the verdict; None if some points have collectives and others do not."""
        found = {one.metric.key: one.metric for one in self.rankings}
        return next(iter(found.values())) if len(found) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "metric": None if self.metric is None else self.metric.key,
            "variant": self.variant,
            "axis": self.axis,
            "points": [_point(one) for one in self.rankings],
            "changes": [
                {
                    "at": dict(one.labels),
                    "from": one.before,
                    "to": one.after,
                    "left_at": one.left_at,
                    "taken_at": one.taken_at,
                    "nobody_at": list(one.between),
                }
                for one in self.changes
            ],
            "sentences": list(self.sentences),
        }


def judge_sweep(sweep: "Sweep", fields: Fields) -> SweepVerdict | None:
    """Judge; None where there are not two variants that had flows finish at one point.

    Each point is judged as a comparison is: by collectives where there are any.

    A reference, such as the oracle, is no variant.
    """
    variant = fields.variant
    if variant is None:
        return None
    others = [key for key in fields.values if key != variant]
    rankings = []
    everyone: dict[str, list[Summary]] = {}
    for place, points in points_by_place(sweep, variant).items():
        groups = {name: point.runs for name, point in points.items() if point.runs}
        groups = {name: runs for name, runs in groups.items() if runs[0].scheme not in references()}
        for name, runs in groups.items():
            everyone.setdefault(name, []).extend(runs)
        if (found := rank_fairly(dict(zip(others, place, strict=True)), groups, sweep.matters)) is not None:
            rankings.append(found)
    if not any(one.others for one in rankings):
        return None
    axis = fields.axis
    rankings = _along(rankings, fields, axis)
    numeric = axis is not None and fields.is_numeric(axis)
    changes = tuple(_changes(rankings, axis)) if axis is not None and numeric else ()
    said = sentences(rankings, changes, fields, axis, everyone)
    return SweepVerdict(variant, axis, tuple(rankings), changes, said)


def _along(rankings: Sequence[Ranking], fields: Fields, axis: str | None) -> list[Ranking]:
    """Put points side by side that differ along the axis alone, in the order of its numbers if they are such."""
    if axis is None:
        return list(rankings)
    places = {label: float(place) for place, label in enumerate(fields.values[axis])}
    if fields.is_numeric(axis):
        places = {label: found[1] for label in fields.values[axis] if (found := number_of(label)) is not None}
    rest = [key for key in fields.values if key not in (axis, fields.variant)]

    def order(one: Ranking) -> tuple[list[int], float]:
        return [list(fields.values[key]).index(one.labels[key]) for key in rest], places[one.labels[axis]]

    return sorted(rankings, key=order)


def _changes(rankings: Sequence[Ranking], axis: str) -> Iterator[Change]:
    rows: dict[tuple[tuple[str, str], ...], list[Ranking]] = {}
    for one in rankings:
        rows.setdefault(tuple((key, label) for key, label in one.labels.items() if key != axis), []).append(one)
    for at, row in rows.items():
        last: Ranking | None = None
        between: list[str] = []
        for one in row:
            if one.leader is None:
                between.append(one.labels[axis])
                continue
            if last is not None and last.leader is not None and last.leader != one.leader:
                yield Change(
                    dict(at), last.leader, one.leader, last.labels[axis], one.labels[axis], tuple(between)
                )  # fmt: skip
            last, between = one, []


_BOUNDS = {">": "at_least", "≥": "at_least", "≤": "at_most"}


def _point(one: Ranking) -> dict[str, Any]:
    unit = one.metric.unit
    return {
        "at": dict(one.labels),
        "metric": one.metric.key,
        "leader": one.leader,
        "lowest": one.best if one.lowest else None,
        f"mean_{unit}": one.mean_us,
        "others": [
            {
                "name": ranked.name,
                f"mean_{unit}": ranked.mean.value,
                **({f"{_BOUNDS[ranked.mean.sign]}_{unit}": ranked.mean.mean} if ranked.mean.sign else {}),
                "matters": ranked.matters,
                f"difference_{unit}": difference_json(ranked.difference_us),
            }
            for ranked in one.others
        ],
    }
