"""The directory of `weft reproduce`: a folder for each paper. Runs are in the store that all commands share."""

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from weft import _core
from weft.durable import DurableDirectory
from weft.runs.run import Outcome, Run
from weft.runs.store import Stored

__all__ = ["INPUTS", "MANIFEST", "REPORT", "Store"]

MANIFEST = "reproduce.json"
REPORT = "report.html"
"""Name of the file that `weft report` writes there by default."""
INPUTS = "inputs"
"""Where files that specs of runs name are kept."""


class Store:
    """An open directory of results, and the runs that they are made from.

    Use it in a `with` block; only one process at a time gets in.
    """

    def __init__(self, path: Path, papers: Iterable[str]) -> None:
        """Take the names of the papers that there are: what else is in the directory is somebody else's."""
        self.path = path
        self._files = DurableDirectory(path, MANIFEST, {INPUTS, REPORT, *papers}, "reproduction")
        self._runs: dict[str, Stored] = {}
        self._failed: set[str] = set()

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

    def found(self, stored: Stored) -> None:
        """Note a run that was done before."""
        self._runs[stored.run.id] = stored

    def note(self, run: Run, outcome: Outcome, stored: Stored | None) -> None:
        """Note how a run ended."""
        if stored is not None:
            self._runs[run.id] = stored
        if outcome.error is not None:
            self._failed.add(run.id)

    def failed(self, run: Run) -> bool:
        """Whether a run has failed."""
        return run.id in self._failed

    def get(self, run: Run) -> Stored | None:
        """Return a run that is done; None if it failed, or was not done yet."""
        return self._runs.get(run.id)
