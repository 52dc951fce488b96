"""The store of runs: each under its address, for every command that needs it.

A run is addressed by what decides its result: the hash of its resolved spec (and of the files that it names), and the
version of the results. How many threads work on it (`run.threads`) is no part of that, nor of the spec that is kept.
What one command ran, another finds: `compare`, `sweep` and `reproduce` make their directories of it. A load balancer
that a program in Python made itself is in no spec, so its runs are not kept.

An entry is a result directory with its record, which is written last: it is there as a whole or not at all. Each of its
files has its place by one rename and, under one address, always the same content, so several processes may write to a
store at once. A run counts as long as every file is what its SHA-256 in the record says.
"""

import contextlib
import fcntl
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from weft.decoding import read_json
from weft.durable import damaged, digest, goes_on, sync, write_file
from weft.errors import OutputError
from weft.runs.record import Record, read_record, record_text
from weft.runs.run import Outcome, Run
from weft.schemas import empty_table
from weft.simulation import Result
from weft.summary import Summary

__all__ = ["ENVIRONMENT", "FOLDER", "Entry", "RunStore", "Stored", "is_store", "named_store", "place_of_store"]

FOLDER = ".weft"
"""The store beside an output directory, unless another one is named."""
ENVIRONMENT = "WEFT_STORE"
"""Names the store where no option does."""

_LOG = logging.getLogger(__name__)

_RECORD = "provenance.json"
_SUMMARY = "summary.json"
_SPEC = "spec.toml"
_LOCK = ".lock"
_PARTS = ".part"
"""Where files are until they are whole."""
_TAG = "CACHEDIR.TAG"
"""Says that this is a store, and to programs that make backups that they may pass it over: bford.info/cachedir."""
_TAG_TEXT = b"Signature: 8a477f597d28d172789f06886806bc55\n# Runs of weft: see `weft store --help`.\n"


def place_of_store(out: str | os.PathLike[str], store: str | os.PathLike[str] | None = None) -> Path:
    """Return where runs are kept: as asked for, as the environment says, or beside the output."""
    return named_store(store) or Path(out).absolute().parent / FOLDER


def named_store(store: str | os.PathLike[str] | None = None) -> Path | None:
    """Return where runs are kept as asked for, or as the environment says; None if neither does."""
    named = os.environ.get(ENVIRONMENT) if store is None else os.fspath(store)
    return Path(named) if named else None


def is_store(path: Path) -> bool:
    """Whether there is a store of runs."""
    return (path / _TAG).is_file()


@dataclass(frozen=True, slots=True)
class Stored:
    """A run that is in a store."""

    run: Run
    record: Record
    place: Path

    @property
    def summary(self) -> str:
        """As JSON, without what was measured."""
        file = self.place / _SUMMARY
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise OutputError(f"{file}: cannot be read: {error}") from None

    @property
    def result(self) -> Result:
        """The run, with the tables that were asked for."""
        file = self.place / _SUMMARY
        summary = read_json(file, dict[str, Any]) | msgspec.structs.asdict(self.record.measured)
        return _StoredResult(Summary.read(summary, str(file)), self.run.spec.text, path=self.place)

    def table(self, name: str) -> Path:
        """Return the file of a table that was asked for."""
        return self.place / f"{name}.parquet"


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of the run store: the content of one address."""

    place: Path
    size_bytes: int
    results_version: str | None
    """None if its record is missing or damaged."""


class RunStore:
    """An open store of runs. Use it in a `with` block; several processes may."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: dict[str, Record | None] = {}
        self._lock = -1

    def __enter__(self) -> Self:
        if self.path.is_symlink():
            raise OutputError(f"{self.path}: is a symbolic link; name the directory itself with --store")
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"{self.path}: exists and is not a directory; choose another --store")
        with self._unusable():
            self._begin()
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                if self._is_alone():
                    shutil.rmtree(self.path / _PARTS, ignore_errors=True)  # of processes that were killed
                fcntl.flock(self._lock, fcntl.LOCK_SH)
                (self.path / _PARTS).mkdir(exist_ok=True)
            except BaseException:
                os.close(self._lock)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def get(self, run: Run) -> Stored | None:
        """Return a run that is there, whole, with all the tables that are wanted of it; None if it is not."""
        record = None if run.factory is not None else self._record(run.id)
        if record is None or not set(run.tables) <= set(record.rows):
            return None
        place = self._place(run.id)
        wanted = [_SUMMARY, _SPEC, *(f"{name}.parquet" for name in run.tables)]
        if damaged({place / name: record.files.get(name, "") for name in wanted}):
            self._records[run.id] = None
            return None
        return Stored(run, record, place)

    def keep(self, run: Run, outcome: Outcome) -> Stored | None:
        """Keep a run, and return it; one that failed, or whose load balancer a program made, is not kept."""
        if outcome.measured is None or run.factory is not None:
            return None
        files = {f"{name}.parquet": content for name, content in outcome.tables.items()}
        files |= {_SUMMARY: outcome.summary.encode(), _SPEC: run.spec.text.encode()}
        place = self._place(run.id)
        # Tables that others asked for stay: under one address, they are of the same run.
        before = self._record(run.id, again=True)
        record = Record(
            outcome.provenance,
            outcome.measured,
            (before.rows if before else {}) | dict(outcome.rows),
            (before.files if before else {}) | {name: digest(content) for name, content in files.items()},
        )
        with goes_on(self.path):
            place.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                self._put(place / name, content)
            sync(place)
            self._put(place / _RECORD, record_text(record))
            for directory in (place, place.parent, self.path):
                sync(directory)
        self._records[run.id] = record
        return Stored(run, record, place)

    def entries(self) -> Iterator[Entry]:
        """List what is there, whole or not."""
        for place in sorted(self.path.glob("[0-9a-f][0-9a-f]/*")):
            record = self._record(place.name)
            size = sum(file.stat().st_size for file in place.iterdir() if file.is_file())
            yield Entry(place, size, None if record is None else record.provenance.results_version)

    def clear(self, which: Callable[[Entry], bool]) -> int:
        """Remove entries; returns how many. Raises `OutputError` while another command uses the store."""
        if not self._is_alone():
            fcntl.flock(self._lock, fcntl.LOCK_SH)  # the attempt has let go of it
            raise OutputError(f"{self.path}: another command is using it; nothing was removed")
        gone = [entry.place for entry in self.entries() if which(entry)]
        with goes_on(self.path):
            for place in gone:
                (place / _RECORD).unlink(missing_ok=True)  # first: without it, the rest counts as not there
                shutil.rmtree(place)
                with contextlib.suppress(OSError):
                    place.parent.rmdir()
        self._records.clear()
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        return len(gone)

    @contextlib.contextmanager
    def _unusable(self) -> Iterator[None]:
        """Say what to do about a store in which nothing can be kept, not even its lock."""
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"{self.path}: cannot be written: {error.strerror or error}; choose another --store"
            ) from error

    def _begin(self) -> None:
        """Make the directory; refuse one that holds something else."""
        self.path.mkdir(parents=True, exist_ok=True)
        if is_store(self.path):
            return
        names = {path.name for path in self.path.iterdir()}
        if strangers := sorted(name for name in names if name not in (_TAG, _LOCK) and not name.startswith(_PARTS)):
            raise OutputError(f"{self.path}: holds {strangers[0]!r} and is no store of runs; choose another --store")
        self._enter(self.path / f"{_PARTS}-{secrets.token_hex(8)}", self.path / _TAG, _TAG_TEXT)

    def _is_alone(self) -> bool:
        """Take the lock alone, if no other process has it. The system lets go of it when a process ends."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _place(self, run_id: str) -> Path:
        return self.path / run_id[:2] / run_id

    def _put(self, target: Path, content: bytes) -> None:
        self._enter(self.path / _PARTS / secrets.token_hex(8), target, content)

    @staticmethod
    def _enter(part: Path, target: Path, content: bytes) -> None:
        try:
            write_file(part, content)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def _record(self, run_id: str, *, again: bool = False) -> Record | None:
        if again or run_id not in self._records:
            self._records[run_id] = self._read_record(run_id)
        return self._records[run_id]

    def _read_record(self, run_id: str) -> Record | None:
        file = self._place(run_id) / _RECORD
        try:
            found = read_record(file.read_bytes(), str(file))
        except (FileNotFoundError, NotADirectoryError):  # never done
            return None
        except OSError as error:
            raise OutputError(f"{file}: cannot be read: {error.strerror or error}") from None
        except OutputError:
            _LOG.warning("%s: is damaged; its run is done again", file)
            return None
        return found if found.provenance.run == run_id else None


class _StoredResult(Result):
    """A run of a store: a table that was not asked for has no file, and is read as one without rows."""

    def _frame(self, name: str) -> Any:
        assert self.path is not None
        if name not in self._frames and not (self.path / f"{name}.parquet").exists():
            self._frames[name] = empty_table(name)
        return super()._frame(name)
