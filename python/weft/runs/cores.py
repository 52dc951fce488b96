"""Sharing the cores of this machine among runs that are done at one time."""

import contextlib
import threading
from collections.abc import Iterator

from weft.errors import Stopped
from weft.runs.run import Run

__all__ = ["CoreShares"]


class CoreShares:
    """Gives each run that begins its share of the cores that are free: what falls to each run that has not begun.

    Many runs have a core each; few have several; the last one has all that are free.
    """

    def __init__(self, cores: int, runs: int) -> None:
        """Share so many cores among so many runs."""
        self._cores = cores
        self._free = cores
        self._left = runs
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def share(self, run: Run, stop: threading.Event | None = None) -> Iterator[int]:
        """Wait until there are cores for a run, and hold them for the block. Raises `Stopped` once `stop` is set."""
        with self._changed:
            while (mine := self._fitting(run)) == 0:
                self._changed.wait(timeout=0.2)
                if stop is not None and stop.is_set():
                    raise Stopped
            self._free -= mine
            self._left -= 1
        try:
            yield mine
        finally:
            with self._changed:
                self._free += mine
                self._changed.notify_all()

    def _fitting(self, run: Run) -> int:
        """How many cores a run gets now; 0 if it has to wait."""
        if run.threads is None:
            return max(min(self._free, 1), self._free // max(self._left, 1))
        wanted = min(run.threads, self._cores)
        return wanted if wanted <= self._free else 0
