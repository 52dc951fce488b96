"""From the runs of a declared figure to its tidy table."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import polars as pl

from weft.papers.declared import AxisValue, Experiment, FigureSpec, Measure, PanelSpec, Paper, Scale
from weft.papers.measured import POOLED, FigureData, RunsUsed
from weft.papers.reading_papers import MEASURES
from weft.papers.runs import Case
from weft.papers.values import ideal_of, ideals_of, over_time, value_of, values_of
from weft.percentiles import percentile
from weft.simulation import Result

__all__ = ["DISTRIBUTION", "Results", "measure_figure", "measure_name", "measured_rows"]

Results: TypeAlias = Callable[[Case], Result | None]
"""Finds the run of a place; None if it failed."""

_MOST_POINTS = 400
"""Most points that a distribution keeps: more than a plot can show."""

DISTRIBUTION: Mapping[str, float | None] = {
    "mean": None, "std": None, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99,
}  # fmt: skip
"""Names of the rows of a distribution's panel, and the share of values below where the row is a quantile."""

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class _Place:
    """A variant at an x of a panel."""

    variant: str
    x: str
    number: float | None
    labels: tuple[tuple[str, str], ...]


def measure_figure(figure: FigureSpec, paper: Paper, scale: Scale, results: Results, runs: RunsUsed) -> FigureData:
    """Measure the runs of all panels; `runs` goes into the data as it is."""
    rows: list[tuple[Any, ...]] = []
    ideal: list[tuple[Any, ...]] = []
    curves: list[tuple[Any, ...]] = []
    for number, panel in enumerate(figure.panels):
        own = _Panel(number, panel, paper.experiments[panel.experiment].at(scale), results)
        rows += own.rows()
        ideal += own.rows(ideal=True)
        curves += own.curves()
    return FigureData(
        _frame(rows),
        pl.DataFrame(curves, schema=FigureData.curve_schema(), orient="row"),
        runs,
        _frame(ideal),
    )


def measured_rows(
    figure: FigureSpec, variant: str, paper: Paper, scale: Scale, results: Results, *, ideal: bool = False
) -> list[pl.DataFrame]:
    """Measure the runs of one variant: for each panel the rows of `FigureData`, none where it leaves it out."""
    return [
        _frame(
            list(_Panel(number, replace(panel, variants=(variant,)), experiment, results).rows(ideal=ideal))
            if variant in (panel.variants or experiment.variants)
            else []
        )
        for number, panel in enumerate(figure.panels)
        for experiment in [paper.experiments[panel.experiment].at(scale)]
    ]


def _frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=FigureData.row_schema(), orient="row")


def measure_name(measure: Measure) -> str:
    """Return what a measure is called in the data: its label, or what it reads."""
    if measure.label:
        return measure.label
    if measure.metric is not None:
        return measure.metric if measure.bin is None else f"{measure.metric} of bin {measure.bin}"
    return " ".join(part for part in (measure.statistic, measure.column) if part)


class _Panel:
    """One panel with its runs."""

    def __init__(self, number: int, panel: PanelSpec, experiment: Experiment, results: Results) -> None:
        self._number, self._panel, self._experiment, self._results = number, panel, experiment, results
        self._seeds = experiment.seeds_run

    def rows(self, *, ideal: bool = False) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, in the order of the declaration; with `ideal`, as if flows had taken their ideal times."""
        pooled = self._panel.plot in ("cdf", "box")
        tell = self._distribution if pooled else self._value
        for place in self._places():
            for measure in self._panel.measures:
                for seed in self._seeds:
                    found = tell(place, measure, seed, ideal=ideal)
                    for name, value in found.items():
                        yield (self._number, place.variant, place.x, place.number, seed, name, value)

    def curves(self) -> Iterator[tuple[Any, ...]]:
        """Yield the points of curves."""
        if self._panel.plot not in ("cdf", "box", "over-time"):
            return
        for place in self._places():
            for measure in self._panel.measures:
                for seed, points in self._points(place, measure):
                    for position, (value, share) in enumerate(points):
                        yield (self._number, place.variant, place.x, seed, position, value, share)

    def _places(self) -> Iterator[_Place]:
        panel = self._panel
        where = dict(panel.where)
        axis: Sequence[AxisValue | None] = [None]
        if panel.x is not None and panel.x not in MEASURES:
            kept = where.pop(panel.x, None)
            axis = [value for value in self._experiment.vary[panel.x] if kept is None or value.label in kept]
        # Of every other varied field one value is left: the reading of the declaration sees to it.
        fixed = {key: where.get(key, (values[0].label,))[0] for key, values in self._experiment.vary.items()}
        for variant in panel.variants or self._experiment.variants:
            for value in axis:
                labels = fixed if value is None or panel.x is None else {**fixed, panel.x: value.label}
                x, number = ("", None) if value is None else (value.label, value.number)
                yield _Place(variant, x, number, tuple(labels.items()))

    def _run(self, place: _Place, seed: int) -> Result | None:
        return self._results(Case(self._experiment.name, place.variant, place.labels, seed))

    def _value(self, place: _Place, measure: Measure, seed: int, *, ideal: bool) -> Mapping[str, float | None]:
        name = measure_name(measure)
        value = self._ideal(place, measure, seed) if ideal else self._plain(place, measure, seed)
        if self._panel.relative_to is None:
            return {name: value}
        base = self._plain(self._base(place), measure, seed)
        return {name: value / base if value is not None and base else None}

    def _base(self, place: _Place) -> _Place:
        """Return the place that another one is divided by."""
        relative = self._panel.relative_to
        if isinstance(relative, str):
            return _Place(relative, place.x, place.number, place.labels)
        assert relative is not None
        return _Place(place.variant, place.x, place.number, tuple((dict(place.labels) | dict(relative)).items()))

    def _plain(self, place: _Place, measure: Measure, seed: int) -> float | None:
        result = self._run(place, seed)
        if result is None:
            return None
        if self._panel.plot != "over-time":
            return value_of(result, measure)
        values = [value for _, value in over_time(result, measure) if value is not None]
        return math.fsum(values) / len(values) if values else None

    def _ideal(self, place: _Place, measure: Measure, seed: int) -> float | None:
        result = self._run(place, seed)
        return None if result is None or self._panel.plot == "over-time" else ideal_of(result, measure)

    def _distribution(self, place: _Place, measure: Measure, seed: int, *, ideal: bool) -> Mapping[str, float | None]:
        """Return what claims may ask of a distribution."""
        result = self._run(place, seed)
        bounds = (pl.Series([], dtype=pl.Float64),) * 2
        if result is not None:
            bounds = (ideals_of(result, measure),) * 2 if ideal else values_of(result, measure)
        low, high = map(_numbers, bounds)
        numbers = {name: value if value == high[name] else math.nan for name, value in low.items()}
        prefix = f"{measure.label} " if measure.label else ""
        return {f"{prefix}{name}": value for name, value in numbers.items()}

    def _points(self, place: _Place, measure: Measure) -> Iterator[tuple[int, Sequence[tuple[float, float | None]]]]:
        if self._panel.plot == "over-time":
            for seed in self._seeds:
                result = self._run(place, seed)
                yield seed, [] if result is None else over_time(result, measure)
            return
        found = [values_of(result, measure) for seed in self._seeds if (result := self._run(place, seed)) is not None]
        if found and sum(map(len, next(zip(*found, strict=True)))):
            low, high = (pl.concat(bounds).sort() for bounds in zip(*found, strict=True))
            yield POOLED, _steps(high) if self._panel.plot == "cdf" else _box(low, high)


def _steps(values: pl.Series) -> list[tuple[float, float]]:
    """Return points of the cumulative distribution of sorted values: the first, the last, and even ranks between."""
    count = len(values)
    kept = (
        range(count)
        if count <= _MOST_POINTS
        else sorted({round(i * (count - 1) / (_MOST_POINTS - 1)) for i in range(_MOST_POINTS)})
    )
    # The curve of flows that did not finish ends below 1.
    return [(float(values[rank]), (rank + 1) / count) for rank in kept if math.isfinite(values[rank])]


def _box(low: pl.Series, high: pl.Series) -> list[tuple[float, float | None]]:
    """Return quantiles and mean; what unfinished flows leave open is left out."""
    names = {f"p{round(100 * share)}": share for share in _QUANTILES} | {"mean": None}
    of_low, of_high = _numbers(low), _numbers(high)
    found = ((of_low[name], of_high[name], share) for name, share in names.items())
    return [(value, share) for value, most, share in found if value is not None and value == most]


def _numbers(values: pl.Series) -> dict[str, float | None]:
    numbers = {name: percentile(values, share) if share is not None else None for name, share in DISTRIBUTION.items()}
    return numbers | {"mean": _float(values.mean()), "std": _float(values.std(ddof=0))}


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
