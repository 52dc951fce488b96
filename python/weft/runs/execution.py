"""Doing runs, for every command: on this machine or on a Dask cluster, each kept in the store as it ends."""

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from weft.errors import SpecError
from weft.runs.cluster import Cluster, check_cluster, connected, run_on_cluster
from weft.runs.run import Outcome, Run, Watch
from weft.runs.store import RunStore, Stored
from weft.runs.threads import run_in_threads
from weft.simulation import checked_jobs

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Done", "Executor", "own_cores"]

Done: TypeAlias = Callable[[Run, Outcome, Stored | None], None]
"""Takes each run as it ends, one at a time, in the thread that asked for them; and the run in the store, if it is."""


class Executor:
    """Finds runs that were done before, and does the others. Use it in a `with` block."""

    def __init__(self, store: Path | None, *, jobs: int | None = None, cluster: Cluster | None = None) -> None:
        """Take where runs are kept, how many cores they may use, and a cluster if they are to be done there.

        `jobs` is for this machine: all its cores unless told. Raises `SpecError` for less than one, and `ClusterError`
        for what can be no cluster.
        """
        if cluster is not None:
            check_cluster(cluster)
        self.cores = checked_jobs(jobs) or own_cores()
        self._store = None if store is None else RunStore(store)
        self._cluster = cluster
        self._client: Client | None = None
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        if self._store is not None:
            self._open.enter_context(self._store)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def find(self, run: Run) -> Stored | None:
        """Return a run that was done before, with all the tables that are wanted of it; None if it is to be done."""
        return None if self._store is None else self._store.get(run)

    def connect(self, runs: Sequence[Run]) -> None:
        """Connect to the cluster, if there is one and any of these runs is to be done there."""
        if self._cluster is not None and any(self.find(run) is None for run in runs):
            self._client_of(self._cluster)

    def _client_of(self, cluster: Cluster) -> "Client":
        if self._client is None:
            self._client = self._open.enter_context(connected(cluster))
        return self._client

    def do(self, runs: Sequence[Run], done: Done, watch: Watch | None = None) -> None:
        """Do all runs, those with one address once. Each is kept in the store before `done` takes it.

        `watch` is told how far runs are, of those on this machine. An error of `done`, or Ctrl-C, stops the rest.
        """
        alike: dict[tuple[str, int | None], list[Run]] = {}
        for run in runs:
            alike.setdefault((run.id, None if run.factory is None else run.index), []).append(run)
        once = [same[0] for same in alike.values()]
        groups = {same[0].index: same for same in alike.values()}

        def keep(run: Run, outcome: Outcome) -> None:
            stored = None if self._store is None else self._store.keep(run, outcome)
            for one in groups[run.index]:
                done(one, outcome, None if stored is None else replace(stored, run=one))

        if not once:
            return
        if self._cluster is None:
            run_in_threads(once, cores=self.cores, done=keep, watch=watch)
            return
        if any(run.factory is not None for run in runs):
            raise SpecError(
                "a load balancer that this program made runs on this machine only, not on a cluster; one in a file, as "
                "in my.py:Least, runs there, too"
            )
        run_on_cluster(self._client_of(self._cluster), once, done=keep)


def own_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
