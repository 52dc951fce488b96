"""The directory of a sweep: files that are whole or not there, one writer at a time, and what is done already.

A run counts as done once its row of provenance is there, which is written last and taken away first.
"""

import contextlib
import fcntl
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from weft.errors import OutputError
from weft.simulation import TABLES
from weft.sweeps.grid import Grid
from weft.sweeps.run import RUNS, Outcome, Run

__all__ = ["DATA", "MANIFEST", "PROVENANCE", "TABLE", "Store", "read_manifest", "read_provenance"]

PROVENANCE = "provenance"
MANIFEST = "sweep.json"
TABLE = "table"
DATA = (RUNS, *TABLES)
"""The Parquet data sets that are partitioned by the swept fields, but for the provenance."""

_FILE = "run.parquet"
_LOCK = ".lock"
_PARTS = ".part"
_OWN = {MANIFEST, PROVENANCE, *DATA, f"{TABLE}.csv", f"{TABLE}.parquet", "report.html", _LOCK, _PARTS}


class Store:
    """An open directory of a sweep. Use it in a `with` block; only one process at a time gets in."""

    def __init__(self, directory: Path, grid: Grid, runs: Sequence[Run], *, force: bool = False) -> None:
        self.path = directory
        self._runs = runs
        self._swept = {axis.key: list(axis.labels) for axis in grid.axes}
        self._force = force
        self._lock = -1
        self._known: set[Path] = set()

    def __enter__(self) -> Self:
        _check_place(self.path)
        with self._explained():
            if self.path.exists():
                _check_contents(self.path)  # before there is a lock in a directory of somebody else
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(self.path / _LOCK, self.path)
        try:
            with self._explained():
                self._prepare()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _prepare(self) -> None:
        shutil.rmtree(self.path / _PARTS, ignore_errors=True)  # of a sweep that was killed
        _check_contents(self.path)
        if self._force:
            # The manifest last: it says that the rest may be removed.
            for name in [*sorted(_OWN - {_LOCK, MANIFEST}), MANIFEST]:
                _remove(self.path / name)
        elif (self.path / MANIFEST).exists():
            self._check_manifest()
        (self.path / _PARTS).mkdir()
        manifest = {"format": 1, "swept": self._swept}
        self._put(self.path / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())

    def _check_manifest(self) -> None:
        swept = read_manifest(self.path)
        if list(swept) != list(self._swept):
            raise OutputError(
                f"{self.path}: holds a sweep of {', '.join(swept) or 'nothing'}, and this is one of "
                f"{', '.join(self._swept) or 'nothing'}; choose another --out, or --force to begin anew"
            )
        here = {run.directory for run in self._runs}
        for place, row in read_provenance(self.path).items():
            if place not in here:
                point = row["point"] or "a run of nothing swept"
                raise OutputError(
                    f"{self.path}: holds {point}, which is not part of this sweep; "
                    "choose another --out, or --force to begin anew"
                )

    def done(self) -> set[int]:
        """Return the indices of the runs that are there, whole, from this spec and this version."""
        found = read_provenance(self.path)
        return {run.index for run in self._runs if self._is_done(run, found.get(run.directory))}

    def _is_done(self, run: Run, row: Mapping[str, Any] | None) -> bool:
        if row is None or row["run"] != run.id or row["status"] != "done":
            return False
        sizes = zip(row["tables"], row["table_bytes"], strict=True)
        return all(_size(self._place(name, run)) == size for name, size in sizes)

    def commit(self, run: Run, outcome: Outcome) -> None:
        """Write what a run left behind; whatever interrupts this, the run is then there as a whole or not at all."""
        with self._explained():
            self._take_away(self._place(PROVENANCE, run))
            for name in DATA:
                if name in outcome.tables:
                    self._put(self._place(name, run), outcome.tables[name])
                else:
                    self._take_away(self._place(name, run))
            self._put(self._place(PROVENANCE, run), _provenance_row(run, outcome))

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files of the whole sweep, such as its table."""
        with self._explained():
            for name, content in files.items():
                self._put(self.path / name, content)

    def _place(self, table: str, run: Run) -> Path:
        return self.path / table / run.directory / _FILE

    def _put(self, target: Path, content: bytes) -> None:
        self._make(target.parent)
        part = self.path / _PARTS / "file"
        with part.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
        _sync(target.parent)

    def _take_away(self, target: Path) -> None:
        if target.exists():
            target.unlink()
            _sync(target.parent)

    def _make(self, directory: Path) -> None:
        if directory in self._known or directory == self.path:
            return
        self._make(directory.parent)
        if not directory.is_dir():
            directory.mkdir()
            _sync(directory.parent)
        self._known.add(directory)

    def _close(self) -> None:
        shutil.rmtree(self.path / _PARTS, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.ftruncate(self._lock, 0)
        os.close(self._lock)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"{self.path}: cannot be written: {error.strerror or error}; runs that are finished are kept, and "
                "the same command goes on from there"
            ) from error


def read_provenance(directory: Path) -> dict[str, dict[str, Any]]:
    """Read the rows of provenance, each by the directories of its point."""
    import polars as pl

    place = directory / PROVENANCE
    if next(place.rglob(_FILE), None) is None:
        return {}
    try:
        frame = pl.scan_parquet(place / f"**/{_FILE}", hive_partitioning=False, include_file_paths="path").collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise OutputError(f"{place}: cannot be read: {error}") from None
    return {str(Path(row["path"]).parent.relative_to(place)).removeprefix("."): row for row in frame.to_dicts()}


def read_manifest(directory: Path) -> dict[str, list[str]]:
    """Read which fields a sweep has, and the labels of their values."""
    try:
        swept: dict[str, list[str]] = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["swept"]
        return {key: list(labels) for key, labels in swept.items()}
    except OSError as error:
        raise OutputError(f"{directory}: not a sweep: {MANIFEST}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{directory}: {MANIFEST} is not one of weft's: {error!r}") from None


def _provenance_row(run: Run, outcome: Outcome) -> bytes:
    import polars as pl

    row = dict(outcome.provenance) | {
        "point": run.name if run.labels else "",
        "seed": _seed(run),
        "status": "done" if outcome.error is None else "failed",
        "error": outcome.error,
        "tables": list(outcome.tables),
        "table_bytes": [len(content) for content in outcome.tables.values()],
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
        "table_bytes": pl.List(pl.Int64),
        "spec": pl.String,
    }
    stream = BytesIO()
    pl.DataFrame([{key: row.get(key) for key in schema}], schema=schema).write_parquet(stream)
    return stream.getvalue()


def _seed(run: Run) -> int:
    import tomllib

    return int(tomllib.loads(run.spec.text)["run"]["seed"])


def _check_place(directory: Path) -> None:
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise OutputError(f"{directory}: exists and is not a directory")


def _check_contents(directory: Path) -> None:
    """Refuse a directory that holds something else: neither going on nor beginning anew may touch it."""
    names = {path.name for path in directory.iterdir()}
    if names <= {_LOCK, _PARTS}:
        return
    if MANIFEST not in names:
        raise OutputError(f"{directory}: is neither empty nor an earlier sweep; choose another --out")
    if strangers := sorted(names - _OWN):
        raise OutputError(f"{directory}: holds {strangers[0]!r}, which weft did not write; choose another --out")


def _locked(file: Path, directory: Path) -> int:
    """Open the lock. The system lets go of it when the process ends, however it ends."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
        os.close(handle)
        raise OutputError(f"{directory}: another sweep is writing to it ({holder})") from None
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()} on {platform.node()}\n".encode())
    return handle


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
