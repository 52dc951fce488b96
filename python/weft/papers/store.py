"""The directory of `weft reproduce`: runs by their address, and beside them a folder for each paper.

A run is a result directory as `weft run` writes one, with the tables that a figure has asked for, and its provenance.
It counts as done once its provenance is there, which is written last and taken away first, and as long as every file is
what its SHA-256 in the provenance says.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from weft import _core
from weft.decoding import read_json
from weft.durable import DurableDirectory, damaged, digest
from weft.errors import OutputError
from weft.schemas import empty_table
from weft.simulation import Result
from weft.summary import Summary
from weft.sweeps.run import RUNS, Outcome, Run

__all__ = ["INPUTS", "MANIFEST", "REPORT", "RUNS_FOLDER", "Store"]

MANIFEST = "reproduce.json"
RUNS_FOLDER = "runs"
REPORT = "report.html"
"""What `weft report` writes there unless told otherwise."""
INPUTS = "inputs"
"""Where files that specs of runs name are kept."""

_LOG = logging.getLogger(__name__)

_PROVENANCE = "provenance.json"
_DIGEST = "sha256"
"""The key of a provenance that tells whether the rest of it is whole."""


class Store:
    """An open directory of results. Use it in a `with` block; only one process at a time gets in."""

    def __init__(self, path: Path, papers: Iterable[str]) -> None:
        """Take the names of the papers that there are: what else is in the directory is somebody else's."""
        self.path = path
        self._files = DurableDirectory(path, MANIFEST, {RUNS_FOLDER, INPUTS, REPORT, *papers}, "reproduction")
        self._records: dict[str, dict[str, Any] | None] = {}

    def __enter__(self) -> Self:
        self._files.__enter__()
        if not (self.path / MANIFEST).exists():
            self.put(MANIFEST, json.dumps({"format": 1, "version": _core.version()}).encode() + b"\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def put(self, name: str, content: bytes) -> None:
        """Write a file below the directory, whole or not at all."""
        with self._files.explained():
            self._files.put(self.path / name, content)

    def remove(self, name: str) -> None:
        """Remove a file below the directory, if it is there."""
        with self._files.explained():
            self._files.take_away(self.path / name)

    def is_done(self, run: Run) -> bool:
        """Whether a run is there, whole, with all the tables that are wanted of it."""
        record = self.record(run.id)
        if record is None or record["status"] != "done" or not set(run.tables) <= set(record["asked"]):
            return False
        place = self._place(run.id)
        return not damaged({place / name: str(expected) for name, expected in record["files"].items()})

    def with_known_tables(self, run: Run) -> Run:
        """Add the tables that were asked of a run before: doing it again must not lose them."""
        record = self.record(run.id)
        before = set() if record is None else set(record["asked"])
        return replace(run, tables=tuple(sorted({*run.tables, *before})))

    def record(self, run_id: str) -> dict[str, Any] | None:
        """Return the provenance of a run; None if it was never done."""
        if run_id not in self._records:
            self._records[run_id] = self._read_record(run_id)
        return self._records[run_id]

    def result(self, run_id: str) -> Result | None:
        """Return a run that is done; None if it failed, or was never done."""
        record = self.record(run_id)
        if record is None or record["status"] != "done":
            return None
        place = self._place(run_id)
        try:
            spec = (place / "spec.toml").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise OutputError(f"{place}: cannot be read: {error}") from None
        summary = read_json(place / "summary.json", dict[str, Any]) | record["measured"]
        return _Stored(Summary.read(summary, str(place / "summary.json")), spec, path=place)

    def unfinished(self, run_id: str) -> int:
        """Return how many flows a run left unfinished; none if it failed, or was never done."""
        result = self.result(run_id)
        return 0 if result is None else result.summary.unfinished

    def commit(self, run: Run, outcome: Outcome) -> None:
        """Write what a run left behind; whatever interrupts this, the run is then there as a whole or not at all."""
        place = self._place(run.id)
        files = {f"{name}.parquet": content for name, content in outcome.tables.items() if name != RUNS}
        if outcome.summary is not None:
            files["summary.json"] = outcome.summary.encode()
        files["spec.toml"] = run.spec.text.encode()
        record = _record(run, outcome, {name: digest(content) for name, content in files.items()})
        with self._files.explained():
            self._files.take_away(place / _PROVENANCE)
            for name, content in files.items():
                self._files.put(place / name, content)
            signed = record | {_DIGEST: _digest_of(record)}
            self._files.put(place / _PROVENANCE, json.dumps(signed, indent=1, ensure_ascii=False).encode())
        self._records[run.id] = record

    def _place(self, run_id: str) -> Path:
        return self.path / RUNS_FOLDER / run_id

    def _read_record(self, run_id: str) -> dict[str, Any] | None:
        file = self._place(run_id) / _PROVENANCE
        try:
            found: Any = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:  # never done
            return None
        except ValueError:
            found = None
        except OSError as error:
            raise OutputError(f"{file}: cannot be read: {error.strerror or error}") from None
        if not isinstance(found, dict) or found.pop(_DIGEST, None) != _digest_of(found):
            _LOG.warning("%s: is damaged; its run is done again", file)
            return None
        return found


class _Stored(Result):
    """A run of the store: a table without rows has no file."""

    def _frame(self, name: str) -> Any:
        assert self.path is not None
        if name not in self._frames and not (self.path / f"{name}.parquet").exists():
            self._frames[name] = empty_table(name)
        return super()._frame(name)


def _digest_of(record: Mapping[str, Any]) -> str:
    return digest(json.dumps(record, sort_keys=True).encode())


def _record(run: Run, outcome: Outcome, files: Mapping[str, str]) -> dict[str, Any]:
    """Say what was done, when and where."""
    known = dict(outcome.provenance)
    started = known.get("started")
    return {
        "run": run.id,
        "version": run.version,
        "spec_hash": run.spec_hash,
        "status": "done" if outcome.error is None else "failed",
        "error": outcome.error,
        "asked": list(run.tables),
        "files": dict(files),
        "host": known.get("host"),
        "process": known.get("process"),
        "started": started.isoformat() if isinstance(started, datetime) else None,
        "took_s": known.get("took_s"),
        "flows": None if outcome.summary is None else json.loads(outcome.summary)["flows"],
        "measured": {
            key: known[key] for key in ("cpu_s", "wall_s", "packet_hops_per_cpu_s", "memory_bytes") if key in known
        },
    }
