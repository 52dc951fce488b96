"""The directory of a sweep: files that are whole or not there, one writer at a time, and what is done already.

A run counts as done once its row of provenance is there, which is written last and taken away first, and as long as
every table is what its SHA-256 in that row says.
"""

import contextlib
import json
import logging
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from weft.decoding import read_json
from weft.durable import DurableDirectory, damaged, digest
from weft.errors import OutputError, unreadable
from weft.schemas import TABLES
from weft.sweeps.grid import Grid
from weft.sweeps.run import RUNS, Outcome, Run

__all__ = ["DATA", "MANIFEST", "PROVENANCE", "TABLE", "Store", "read_manifest", "read_provenance"]

PROVENANCE = "provenance"
MANIFEST = "sweep.json"
TABLE = "table"
DATA = (RUNS, *TABLES)
"""The Parquet data sets that are partitioned by the swept fields, but for the provenance."""

_LOG = logging.getLogger(__name__)

_FILE = "run.parquet"
_OWN = {MANIFEST, PROVENANCE, *DATA, f"{TABLE}.csv", f"{TABLE}.parquet", "report.html"}


class Store:
    """An open directory of a sweep. Use it in a `with` block; only one process at a time gets in."""

    def __init__(self, directory: Path, grid: Grid, runs: Sequence[Run], *, force: bool = False) -> None:
        self.path = directory
        self._runs = runs
        self._swept = {axis.key: list(axis.labels) for axis in grid.axes}
        self._force = force
        self._found: dict[str, dict[str, Any]] = {}
        self._files = DurableDirectory(directory, MANIFEST, _OWN, "sweep")

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._files)
            with self._files.explained():
                self._prepare()
            stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def _prepare(self) -> None:
        if self._force:
            self._files.clear()
        elif (self.path / MANIFEST).exists():
            self._check_manifest()
        manifest = {"format": 1, "swept": self._swept}
        self._files.put(self.path / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())

    def _check_manifest(self) -> None:
        swept = read_manifest(self.path)
        if list(swept) != list(self._swept):
            raise OutputError(
                f"{self.path}: holds a sweep of {', '.join(swept) or 'nothing'}, and this is one of "
                f"{', '.join(self._swept) or 'nothing'}; choose another --out, or --force to begin anew"
            )
        here = {run.directory for run in self._runs}
        self._found = self._rows()
        for place, row in self._found.items():
            if place not in here:
                point = row["point"] or "a run of nothing swept"
                raise OutputError(
                    f"{self.path}: holds {point}, which is not part of this sweep; "
                    "choose another --out, or --force to begin anew"
                )

    def done(self) -> set[int]:
        """Return the indices of the runs that are there, whole, from this spec and this version."""
        found = self._found
        return {run.index for run in self._runs if self._is_done(run, found.get(run.directory))}

    def _rows(self) -> dict[str, dict[str, Any]]:
        """Read the provenance; a row that is damaged is said, and passed over: its run is to be done again."""
        try:
            return read_provenance(self.path)
        except OutputError:
            return _readable_rows(self.path / PROVENANCE)

    def _is_done(self, run: Run, row: Mapping[str, Any] | None) -> bool:
        if row is None or row["run"] != run.id or row["status"] != "done":
            return False
        tables, digests = row["tables"], row.get("table_sha256") or ()  # none were written by earlier versions
        if len(tables) != len(digests):
            return False
        places = [self._place(name, run) for name in tables]
        return not damaged(dict(zip(places, digests, strict=True)))

    def commit(self, run: Run, outcome: Outcome) -> None:
        """Write what a run left behind; whatever interrupts this, the run is then there as a whole or not at all."""
        with self._files.explained():
            self._files.take_away(self._place(PROVENANCE, run))
            for name in DATA:
                if name in outcome.tables:
                    self._files.put(self._place(name, run), outcome.tables[name])
                else:
                    self._files.take_away(self._place(name, run))
            self._files.put(self._place(PROVENANCE, run), _provenance_row(run, outcome))

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files of the whole sweep, such as its table."""
        with self._files.explained():
            for name, content in files.items():
                self._files.put(self.path / name, content)

    def _place(self, table: str, run: Run) -> Path:
        return self.path / table / run.directory / _FILE


def read_provenance(directory: Path) -> dict[str, dict[str, Any]]:
    """Read the rows of provenance, each by the directories of its point."""
    import polars as pl

    place = directory / PROVENANCE
    if next(place.rglob(_FILE), None) is None:
        return {}
    try:
        frame = pl.scan_parquet(place / f"**/{_FILE}", hive_partitioning=False, include_file_paths="path").collect()
    except unreadable() as error:
        raise OutputError(f"{place}: cannot be read: {error}") from None
    return {_point(Path(row["path"]), place): row for row in frame.to_dicts()}


def _readable_rows(place: Path) -> dict[str, dict[str, Any]]:
    import polars as pl

    damage: tuple[type[BaseException], ...] = (ValueError, *unreadable())
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(place.rglob(_FILE)):
        try:
            (row,) = pl.read_parquet(file).to_dicts()
            found[_point(file, place)] = row
        except damage:
            _LOG.warning("%s: is damaged; its run is done again", file)
    return found


def _point(file: Path, place: Path) -> str:
    """Return the directories of the point that a file is of."""
    return str(file.parent.relative_to(place)).removeprefix(".")


def read_manifest(directory: Path) -> dict[str, list[str]]:
    """Read which fields a sweep has, and the labels of their values."""
    file = directory / MANIFEST
    if not file.is_file():
        raise OutputError(f"{directory}: not a sweep: there is no {MANIFEST}")
    return read_json(file, _Manifest).swept


class _Manifest(msgspec.Struct, frozen=True):
    """What is read of the manifest."""

    swept: dict[str, list[str]]


def _provenance_row(run: Run, outcome: Outcome) -> bytes:
    import polars as pl

    row = dict(outcome.provenance) | {
        "point": run.name if run.labels else "",
        "seed": _seed(run),
        "status": "done" if outcome.error is None else "failed",
        "error": outcome.error,
        "tables": list(outcome.tables),
        "table_sha256": [digest(content) for content in outcome.tables.values()],
    }
    schema: dict[str, Any] = {
        **dict.fromkeys(("run", "status", "error", "point", "version", "spec_hash"), pl.String),
        "seed": pl.Int64,
        "host": pl.String,
        "process": pl.Int64,
        "started": pl.Datetime("us", "UTC"),
        **dict.fromkeys(("took_s", "cpu_s", "wall_s", "packet_hops_per_cpu_s"), pl.Float64),
        "memory_bytes": pl.Int64,
        "tables": pl.List(pl.String),
        "table_sha256": pl.List(pl.String),
        "spec": pl.String,
    }
    stream = BytesIO()
    pl.DataFrame([{key: row.get(key) for key in schema}], schema=schema).write_parquet(stream)
    return stream.getvalue()


def _seed(run: Run) -> int:
    import tomllib

    return int(tomllib.loads(run.spec.text)["run"]["seed"])
