"""A sweep that was done: its runs, its data sets, and a table over the seeds."""

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import _core
from weft.decoding import decode
from weft.errors import OutputError, unreadable
from weft.metrics import ALL_METRICS, estimates
from weft.statistics import Estimate
from weft.summary import Summary
from weft.sweeps.grid import SEED
from weft.sweeps.provenance import PROVENANCE, Row, read_provenance
from weft.sweeps.store import DATA, RUNS, TABLE, read_manifest

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Point", "Sweep", "SweepRun", "load_sweep"]


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

    def __repr__(self) -> str:
        return f"Sweep({' x '.join(self.swept) or 'nothing swept'}; {len(self.runs)} runs, {len(self.failed)} failed)"

    @property
    def failed(self) -> Sequence[SweepRun]:
        """The runs that failed."""
        return [run for run in self.runs if run.error is not None]

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
        """A row per point: the swept fields, each metric and, as `<metric>_ci95`, half its 95 % interval over seeds."""
        import polars as pl

        fields = {key: _typed(labels) for key, labels in self.swept.items() if key != SEED}
        rows = [self._row(point, fields) for point in self.points]
        schema: dict[str, Any] = {key: _dtype(kind) for key, kind in fields.items()} | {"seeds": pl.Int64}
        names = [f"{metric.key}{end}" for metric in ALL_METRICS for end in ("", "_ci95")]
        return pl.DataFrame(rows, schema=schema | dict.fromkeys(names, pl.Float64))

    @staticmethod
    def _row(point: Point, fields: Mapping[str, type]) -> dict[str, Any]:
        row: dict[str, Any] = {key: kind(point.labels[key]) for key, kind in fields.items()}
        row["seeds"] = len(point.runs)
        for key, value in point.estimates.items():
            row[key] = value.mean if value else None
            row[f"{key}_ci95"] = value.half_width if value else None
        return row

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
            found = pl.scan_parquet(place / "**/*.parquet", hive_partitioning=bool(schema), hive_schema=schema or None)
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
            "points": self.table.to_dicts(),
            "failed": [{**run.labels, "error": run.error} for run in self.failed],
        }


def load_sweep(directory: str | os.PathLike[str]) -> Sweep:
    """Load the directory of a sweep, finished or not."""
    path = Path(directory)
    swept = read_manifest(path)
    provenance = read_provenance(path)
    rows = {row.point: row for row in provenance.values()}
    runs = []
    for values in itertools.product(*swept.values()):
        labels = dict(zip(swept, values, strict=True))
        row = rows.get(", ".join(f"{key} = {label}" for key, label in labels.items()))
        if row is not None:
            runs.append((labels, row))
    summaries = _summaries(path)
    return Sweep(path, swept, [_run(labels, row, summaries) for labels, row in runs])


def _summaries(path: Path) -> dict[str, str]:
    """Read the summaries, as text, by run."""
    import polars as pl

    if next((path / RUNS).rglob("*.parquet"), None) is None:
        return {}
    try:
        frame = pl.scan_parquet(path / RUNS / "**/*.parquet", hive_partitioning=False)
        return dict(frame.select("run", "summary").collect().iter_rows())
    except unreadable() as error:
        raise OutputError(f"{path / RUNS}: cannot be read: {error}") from None


def _run(labels: Mapping[str, str], row: Row, summaries: Mapping[str, str]) -> SweepRun:
    if row.status != "done" or row.run not in summaries:
        return SweepRun(labels, None, row.error or "its row in the table of runs is missing")
    name = f"{RUNS}: summary of {row.run}"
    return SweepRun(labels, Summary.read(decode(summaries[row.run], dict[str, Any], name) | row.measured, name), None)


def table_files(sweep: Sweep) -> dict[str, bytes]:
    """Write the table as CSV and as Parquet: names and contents."""
    parquet = BytesIO()
    sweep.table.write_parquet(parquet)
    return {f"{TABLE}.csv": sweep.table.write_csv().encode(), f"{TABLE}.parquet": parquet.getvalue()}


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
