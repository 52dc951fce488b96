"""The directory of a sweep: a view of runs in the store, whole by itself; one writer at a time.

A run counts as there once its row of provenance is, which is written last and taken away first, and as long as every
table is what its SHA-256 in that row says. Its tables are copies of those in the store.
"""

import contextlib
import json
from collections.abc import Collection, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from weft.decoding import read_json
from weft.durable import DurableDirectory, damaged, digest
from weft.errors import OutputError
from weft.metrics import ALL_METRICS
from weft.ranking import MATTERS
from weft.runs.run import Outcome, Run
from weft.runs.store import Stored
from weft.schemas import TABLES
from weft.sweeps.grid import Grid, partitions
from weft.sweeps.provenance import FILE, PROVENANCE, Row, readable_provenance, row_of, row_text

__all__ = [
    "DATA",
    "DIFFERENCES",
    "FIGURES",
    "MANIFEST",
    "OPTIONAL",
    "PHASES",
    "RUNS",
    "TABLE",
    "VERDICT",
    "Store",
    "read_manifest",
]

MANIFEST = "sweep.json"
TABLE = "table"
DIFFERENCES = "differences"
PHASES = "phases"
VERDICT = "verdict.json"
FIGURES = "figures"
RUNS = "runs"
"""The data set with a row per run."""
DATA = (RUNS, *TABLES)
"""The Parquet data sets that are partitioned by the swept fields, but for the provenance."""

_TABLES = {f"{name}.{kind}" for name in (TABLE, DIFFERENCES, PHASES) for kind in ("csv", "parquet")}
OPTIONAL = frozenset({VERDICT, f"{PHASES}.csv", f"{PHASES}.parquet"})
"""Files that not every sweep has."""
_OWN = {MANIFEST, PROVENANCE, *DATA, *_TABLES, VERDICT, FIGURES, "report.html"}


class Store:
    """An open directory of a sweep. Use it in a `with` block; only one process at a time gets in."""

    def __init__(
        self,
        directory: Path,
        grid: Grid,
        runs: Sequence[Run],
        *,
        force: bool = False,
        command: str | None = None,
        notes: Sequence[str] = (),
        matters: float = MATTERS,
    ) -> None:
        self.path = directory
        self._runs = runs
        self._swept = {axis.key: list(axis.labels) for axis in grid.axes}
        self._force = force
        self._command = command
        self._notes = notes
        self._matters = matters
        self._found: dict[str, Row] = {}
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
        manifest: dict[str, Any] = {"format": 1, "swept": self._swept, "matters": self._matters}
        manifest |= {} if self._command is None else {"command": self._command}
        manifest |= {"notes": list(self._notes)} if self._notes else {}
        self._files.put(self.path / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())

    def _check_manifest(self) -> None:
        swept = read_manifest(self.path).swept
        if list(swept) != list(self._swept):
            raise OutputError(
                f"{self.path}: holds a sweep of {', '.join(swept) or 'nothing'}, and this is one of "
                f"{', '.join(self._swept) or 'nothing'}; choose another --out, or --force to begin anew"
            )
        here = {partitions(run.labels) for run in self._runs}
        self._found = readable_provenance(self.path)
        for place, row in self._found.items():
            if place not in here:
                point = row.point or "a run of nothing swept"
                raise OutputError(
                    f"{self.path}: holds {point}, which is not part of this sweep; "
                    "choose another --out, or --force to begin anew"
                )

    def done(self) -> set[int]:
        """Return the indices of the runs that are there, whole, from this spec and this version of the results."""
        return {run.index for run in self._runs if self._is_done(run, self._found.get(partitions(run.labels)))}

    def _is_done(self, run: Run, row: Row | None) -> bool:
        if row is None or row.run != run.id or row.status != "done" or len(row.tables) != len(row.table_sha256):
            return False
        places = [self._place(name, run) for name in row.tables]
        return not damaged(dict(zip(places, row.table_sha256, strict=True)), "the files of its run are written again")

    def commit(self, run: Run, stored: Stored) -> None:
        """Write the files of a run; whatever interrupts this, they are then there as a whole or not at all."""
        record = stored.record
        row = _row(stored)
        tables = {name: record.files[stored.table(name).name] for name in TABLES if record.rows[name]}
        with self._files.explained():
            self._files.take_away(self._place(PROVENANCE, run))
            self._files.put(self._place(RUNS, run), row)
            for name in TABLES:
                if name in tables:
                    self._files.put_copy(self._place(name, run), stored.table(name))
                else:
                    self._files.take_away(self._place(name, run))
            whole = row_of(run, record.provenance, measured=record.measured, tables={RUNS: digest(row)} | tables)
            self._files.put(self._place(PROVENANCE, run), row_text(whole))

    def fail(self, run: Run, outcome: Outcome) -> None:
        """Record that a run failed, and take away what was there of it."""
        with self._files.explained():
            self._files.take_away(self._place(PROVENANCE, run))
            for name in DATA:
                self._files.take_away(self._place(name, run))
            failed = row_of(run, outcome.provenance, error=outcome.error)
            self._files.put(self._place(PROVENANCE, run), row_text(failed))

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files of the whole sweep, such as its table."""
        with self._files.explained():
            for name, content in files.items():
                self._files.put(self.path / name, content)

    def take_away(self, name: str) -> None:
        """Take away a file of the whole sweep, if it is there."""
        with self._files.explained():
            self._files.take_away(self.path / name)

    def keep_only(self, folder: str, names: Collection[str]) -> None:
        """Take away the files of a folder that are not among these, such as figures that were asked for before."""
        with self._files.explained():
            for path in sorted((self.path / folder).glob("*")):
                if f"{folder}/{path.name}" not in names:
                    self._files.take_away(path)

    def _place(self, table: str, run: Run) -> Path:
        return self.path / table / partitions(run.labels) / FILE


class Manifest(msgspec.Struct, frozen=True):
    """Fields of the manifest that are read."""

    swept: dict[str, list[str]]
    """The fields, and the labels of their values."""
    command: str | None = None
    """The last one that ran it, if one did."""
    notes: tuple[str, ...] = ()
    """In what the variants compete under unequal conditions, and which keys of the spec a transport did not take."""
    matters: float = MATTERS
    """The least difference that matters to the verdict, as a share."""


def read_manifest(directory: Path) -> Manifest:
    """Read what a sweep is of."""
    file = directory / MANIFEST
    if not file.is_file():
        raise OutputError(f"{directory}: not a sweep: there is no {MANIFEST}")
    return read_json(file, Manifest)


def _row(stored: Stored) -> bytes:
    """Make the table of runs for one run: a row with every metric, and the summary as JSON."""
    import polars as pl

    summary = stored.result.summary
    names = {"run": stored.run.id, "scheme": summary.scheme, "seed": summary.seed, "flows": summary.flows}
    metrics = {metric.key: metric.read(summary) for metric in ALL_METRICS}
    schema: dict[str, Any] = {"run": pl.String, "scheme": pl.String, "seed": pl.Int64, "flows": pl.Int64}
    schema |= dict.fromkeys(metrics, pl.Float64) | {"summary": pl.String}
    stream = BytesIO()
    frame = pl.DataFrame([names | metrics | {"summary": stored.summary}], schema=schema)
    frame.write_parquet(stream, compression="zstd")
    return stream.getvalue()
