"""A sweep that was done: its runs, its data sets, and a table over the seeds."""

import itertools
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from glob import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import _core
from weft.collectives import has_collectives
from weft.decoding import decode
from weft.description import description_words
from weft.drawing.asked import Asked, Fields
from weft.errors import OutputError, unreadable
from weft.metrics import ALL_METRICS, Metric, cells, columns, estimates, shown_metrics, waiting_metrics
from weft.phases import fault_metrics, phases_of
from weft.quantity import plural
from weft.ranking import MATTERS
from weft.statistics import Estimate
from weft.summary import PhaseName, Summary
from weft.sweeps.differences import differences_table
from weft.sweeps.grid import SEED
from weft.sweeps.provenance import PROVENANCE, Row, read_provenance
from weft.sweeps.store import DATA, DIFFERENCES, FIGURES, PHASES, RUNS, TABLE, VERDICT, read_manifest
from weft.sweeps.verdict import SweepVerdict, judge_sweep
from weft.untrusted import one_line

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from weft.drawing.runs import RunsToDraw

__all__ = ["Point", "Sweep", "SweepRun", "fields_of", "figure_files", "load_sweep", "table_files"]


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of a sweep."""

    labels: Mapping[str, str]
    """The value of each swept field, as text."""
    summary: Summary | None
    """None if it failed."""
    error: str | None
    """Why it failed; None if it did not."""


@dataclass(frozen=True, slots=True)
class Point:
    """The runs that differ in their seeds alone."""

    labels: Mapping[str, str]
    """The value of each swept field but the seed, as text."""
    runs: Sequence[Summary]
    """Those that did not fail."""
    estimates: Mapping[str, Estimate | None]
    """Every metric of `weft.metrics.ALL_METRICS`, with its interval over the seeds."""


@dataclass(frozen=True)
class Sweep:
    """A sweep on disk."""

    path: Path
    swept: Mapping[str, Sequence[str]]
    """The swept fields, and the values of each, as text."""
    runs: Sequence[SweepRun]
    """In the order of the grid."""
    kept: int = 0
    """How many runs were there before the command that returned this."""
    command: str | None = None
    """The command that ran it last, if one did."""
    notes: Sequence[str] = ()
    """In what the variants compete under unequal conditions, and which keys of the spec a transport did not take."""
    matters: float = MATTERS
    """The least difference that matters to the verdict, as a share."""

    def __repr__(self) -> str:
        runs = plural(len(self.runs), "run")
        return f"Sweep({one_line(' x '.join(self.swept)) or 'nothing swept'}; {runs}, {len(self.failed)} failed)"

    def _repr_html_(self) -> str:
        from weft.report.in_notebook import sweep_html

        return sweep_html(self)

    @property
    def failed(self) -> Sequence[SweepRun]:
        """The runs that failed."""
        return [run for run in self.runs if run.error is not None]

    @cached_property
    def has_collectives(self) -> bool:
        """Whether every run has flows that wait for each other: then it is collectives that are compared."""
        found = [run.summary for run in self.runs if run.summary is not None]
        return bool(found) and has_collectives({"": found})

    @cached_property
    def shown_metrics(self) -> Sequence[Metric]:
        """The columns that are shown unasked."""
        if self.has_collectives:
            return waiting_metrics()
        return shown_metrics(run.summary for run in self.runs if run.summary is not None)

    @cached_property
    def points(self) -> Sequence[Point]:
        """The points of the grid without the seed."""
        groups: dict[tuple[str, ...], list[SweepRun]] = {}
        for run in self.runs:
            groups.setdefault(tuple(run.labels[key] for key in self._fields), []).append(run)
        return [self._point(values, runs) for values, runs in groups.items()]

    def _point(self, values: Sequence[str], runs: Sequence[SweepRun]) -> Point:
        summaries = [run.summary for run in runs if run.summary is not None]
        return Point(dict(zip(self._fields, values, strict=True)), summaries, estimates(summaries))

    @property
    def _fields(self) -> Sequence[str]:
        return [key for key in self.swept if key != SEED]

    @cached_property
    def table(self) -> "pl.DataFrame":
        """A row per point: the swept fields, each metric and, as `<metric>_ci95`, half its 95 % interval over seeds.

        A value that unfinished flows leave open is null; its bound is in `<metric>_at_least` or `<metric>_at_most`.
        """
        return self._table(self.points, ALL_METRICS)

    def _table(self, points: Sequence[Point], metrics: Sequence[Metric]) -> "pl.DataFrame":
        import polars as pl

        fields = {key: _typed(labels) for key, labels in self.swept.items() if key != SEED}
        rows = [self._row(point, fields, metrics) for point in points]
        schema: dict[str, Any] = {key: _dtype(kind) for key, kind in fields.items()} | {"seeds": pl.Int64}
        return pl.DataFrame(rows, schema=schema | dict.fromkeys(columns(metrics), pl.Float64))

    @staticmethod
    def _row(point: Point, fields: Mapping[str, type], metrics: Sequence[Metric]) -> dict[str, Any]:
        own: dict[str, Any] = {key: kind(point.labels[key]) for key, kind in fields.items()}
        return own | {"seeds": len(point.runs), **cells(point.estimates, metrics)}

    @cached_property
    def phases(self) -> Sequence[PhaseName]:
        """Which of before, during and after their faults the runs have; none if the whole run is one of them."""
        return phases_of({"": [run.summary for run in self.runs if run.summary is not None]})

    @cached_property
    def phases_table(self) -> "pl.DataFrame":
        """A row per point: FCT, slowdown and losses before, during and after faults, and when it had moved away.

        As in `table`, `<metric>_ci95` is half the 95 % interval over seeds. No rows without such phases.
        """
        metrics = fault_metrics(self.phases)
        points = [replace(point, estimates=estimates(point.runs, metrics)) for point in self.points]
        return self._table(points if self.phases else (), metrics)

    @cached_property
    def differences(self) -> "pl.DataFrame":
        """A row for each two variants at each point: of each metric, `variant` minus `against`, paired by seed.

        As in `table`, `<metric>_ci95` is half the 95 % interval over seeds. No rows if no variants were swept.
        """
        fields = {key: _typed(labels) for key, labels in self.swept.items() if key != SEED}
        return differences_table(self, self.to_draw().fields.variant, fields)

    @cached_property
    def verdict(self) -> SweepVerdict | None:
        """Who leads at which point, on mean FCT or on completion of collectives if there are any.

        None where there are not two variants with finished flows.
        """
        return judge_sweep(self, self.to_draw().fields)

    def plot(self, figure: str) -> "Figure":
        """Draw a figure that is asked for in words, such as `mean FCT over load by scheme` or `CDF of fct_us`.

        Raises `SpecError`, with the nearest right name, for what there is not.
        """
        from weft.drawing.runs import draw_in_words

        return draw_in_words(self.to_draw(), figure)

    def to_draw(self) -> "RunsToDraw":
        """Return what figures may show."""
        from weft.drawing.runs import Group, RunsToDraw

        points = {tuple(point.labels.values()): point for point in self.points}

        def flows(group: Group) -> "pl.DataFrame":
            return self.table_at("flows", points[tuple(group.labels.values())])

        groups = [Group(point.labels, point.runs) for point in self.points]
        return RunsToDraw(fields_of(self.swept), groups, flows)

    @cached_property
    def specs(self) -> Sequence[Mapping[str, Any]]:
        """The resolved spec of each point, of its first seed, in the order of the values."""
        provenance = self.provenance
        if provenance.is_empty():
            return ()
        of_one_seed = provenance.filter(provenance.get_column("seed") == provenance.get_column("seed").min())
        ordered = of_one_seed.sort([key for key in self._fields if key in provenance.columns] or "run")
        return [tomllib.loads(text) for text in ordered.get_column("spec")]

    @property
    def description(self) -> str:
        """Description of the sweep in one sentence: fabric, faults, traffic, transport, seeds, and the swept fields."""
        if not self.specs:
            return ""
        seeds = sorted({run.summary.seed for run in self.runs if run.summary is not None})
        swept = {key: values for key, values in self.swept.items() if key not in (SEED, fields_of(self.swept).variant)}
        return description_words(self.specs, seeds or [self.specs[0]["run"]["seed"]], swept)

    @property
    def provenance(self) -> "pl.DataFrame":
        """A row per run: version, spec hash, seed, host, when, how long, whether and why it failed, the spec."""
        return self.frame(PROVENANCE)

    def frame(self, name: str) -> "pl.DataFrame":
        """Read a data set whole: "runs", "provenance", or a table of the runs, such as "flows".

        Every row has the swept fields in its last columns. The frame is empty if no run has rows of that kind.
        """
        import polars as pl

        if name not in (*DATA, PROVENANCE):
            raise OutputError(f"there is no table {name!r}; the tables are {', '.join((*DATA, PROVENANCE))}")
        place = self.path / name
        if next(place.rglob("*.parquet"), None) is None:
            return pl.DataFrame()
        return self._read(place)

    def table_at(self, name: str, point: Point) -> "pl.DataFrame":
        """Read a table of the runs at one point, all seeds, as `frame` does; no other run's rows are read."""
        import polars as pl

        kinds = {key: _typed(self.swept[key]) for key in point.labels}
        wanted = [pl.col(key) == kinds[key](label) for key, label in point.labels.items()]
        return self._read(self.path / name, wanted)

    def _read(self, place: Path, wanted: "Sequence[pl.Expr]" = ()) -> "pl.DataFrame":
        import polars as pl

        schema = {key: _dtype(_typed(labels)) for key, labels in self.swept.items()}
        try:
            found = pl.scan_parquet(
                f"{escape(str(place))}/**/*.parquet", hive_partitioning=bool(schema), hive_schema=schema or None
            )
            return (found.filter(*wanted) if wanted else found).collect()
        except unreadable() as error:
            raise OutputError(f"{place}: cannot be read: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Everything but the data sets, ready for JSON."""
        return {
            "version": _core.version(),
            "directory": str(self.path),
            "swept": {key: list(labels) for key, labels in self.swept.items()},
            "runs": len(self.runs),
            "kept": self.kept,
            "matters": self.matters,
            "description": self.description,
            "notes": list(self.notes),
            "points": self.table.to_dicts(),
            "phases": self.phases_table.to_dicts(),
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
            "failed": [{**run.labels, "error": run.error} for run in self.failed],
        }


def load_sweep(directory: str | os.PathLike[str]) -> Sweep:
    """Load the directory of a sweep, finished or not."""
    path = Path(directory)
    manifest = read_manifest(path)
    swept = manifest.swept
    provenance = read_provenance(path)
    rows = {row.point: row for row in provenance.values()}
    runs = []
    for values in itertools.product(*swept.values()):
        labels = dict(zip(swept, values, strict=True))
        row = rows.get(", ".join(f"{key} = {label}" for key, label in labels.items()))
        if row is not None:
            runs.append((labels, row))
    summaries = _summaries(path)
    done = [_run(labels, row, summaries) for labels, row in runs]
    return Sweep(path, swept, done, command=manifest.command, notes=manifest.notes, matters=manifest.matters)


def _summaries(path: Path) -> dict[str, str]:
    """Read the summaries, as text, by run."""
    import polars as pl

    if next((path / RUNS).rglob("*.parquet"), None) is None:
        return {}
    try:
        frame = pl.scan_parquet(f"{escape(str(path / RUNS))}/**/*.parquet", hive_partitioning=False)
        return dict(frame.select("run", "summary").collect().iter_rows())
    except unreadable() as error:
        raise OutputError(f"{path / RUNS}: cannot be read: {error}") from None


def _run(labels: Mapping[str, str], row: Row, summaries: Mapping[str, str]) -> SweepRun:
    if row.status != "done" or row.run not in summaries:
        return SweepRun(labels, None, row.error or "its row in the table of runs is missing")
    name = f"{RUNS}: summary of {row.run}"
    return SweepRun(labels, Summary.read(decode(summaries[row.run], dict[str, Any], name) | row.measured, name), None)


def fields_of(swept: Mapping[str, Sequence[str]]) -> Fields:
    """Return what figures of a sweep may be drawn over."""
    return Fields({key: labels for key, labels in swept.items() if key != SEED})


def table_files(sweep: Sweep) -> dict[str, bytes]:
    """Write the tables as CSV and as Parquet, and the verdict as JSON: names and contents."""
    found = _table_files(TABLE, sweep.table)
    if fields_of(sweep.swept).variant is not None:
        found |= _table_files(DIFFERENCES, sweep.differences)
    if sweep.phases:
        found |= _table_files(PHASES, sweep.phases_table)
    if sweep.verdict is not None:
        text = json.dumps(sweep.verdict.to_dict(), indent=2, ensure_ascii=False)
        found[VERDICT] = f"{text}\n".encode()
    return found


def figure_files(sweep: Sweep, asked: Sequence[Asked]) -> Iterator[tuple[str, bytes]]:
    """Draw figures: yields names and contents."""
    from weft.drawing.runs import draw_runs
    from weft.figures import rendered_all

    source = sweep.to_draw()
    for one in asked:
        for kind, content in rendered_all(draw_runs(source, one)).items():
            yield f"{FIGURES}/{one.name}.{kind}", content


def _table_files(name: str, table: "pl.DataFrame") -> dict[str, bytes]:
    parquet = BytesIO()
    table.write_parquet(parquet)
    return {f"{name}.csv": table.write_csv().encode(), f"{name}.parquet": parquet.getvalue()}


def _typed(labels: Sequence[str]) -> type:
    """Find what all values of a field can be read as."""
    for kind in (int, float):
        try:
            for label in labels:
                kind(label)
        except ValueError:
            continue
        return kind
    return str


def _dtype(kind: type) -> Any:
    import polars as pl

    return {int: pl.Int64, float: pl.Float64, str: pl.String}[kind]
