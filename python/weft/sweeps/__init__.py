"""Sweeps: one spec whose fields may be lists, all combinations of them, in one directory that can be gone on with."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from weft.errors import SpecError
from weft.jobs import default_jobs
from weft.simulation import Overrides
from weft.spec import SpecLike, load_spec
from weft.sweeps.cluster import Batch, Cluster, connected, run_on_cluster
from weft.sweeps.grid import Vary, read_grid
from weft.sweeps.progress import SweepCallback, SweepProgress, Tracker
from weft.sweeps.result import Point, Sweep, SweepRun, load_sweep, table_files
from weft.sweeps.run import Outcome, Run, plan
from weft.sweeps.store import Store
from weft.sweeps.threads import run_in_threads

__all__ = ["Batch", "Point", "Sweep", "SweepCallback", "SweepProgress", "SweepRun", "load_sweep", "sweep"]


def sweep(
    spec: SpecLike,
    out: str | os.PathLike[str],
    *,
    vary: Vary | None = None,
    schemes: Iterable[str] | None = None,
    seeds: int | Sequence[int] | None = None,
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    jobs: int | None = None,
    cluster: Cluster | None = None,
    force: bool = False,
    progress: SweepCallback | None = None,
) -> Sweep:
    """Run all combinations of the fields of a spec that are lists; write one directory, or go on with it.

    `vary` sweeps fields beside those of the spec, `schemes` its load balancer (as for `compare`), `seeds` its seed
    (5 means 1 to 5). Runs that are in the directory already, from the same resolved spec and version, are not run
    again. A run that fails is recorded and does not stop the rest: see `Sweep.failed`. `jobs` is how many run at a
    time on this machine; `cluster` is the address of a Dask scheduler, or a `Batch`, to run them elsewhere.

    Raises `SpecError` for a mistake at any point before anything is run, `OutputError` if the directory is no
    earlier sweep of the same fields (`force` begins anew), is in use, or cannot be written, and `ClusterError`.
    """
    workers = default_jobs() if jobs is None else jobs
    if workers < 1:
        raise SpecError(f"jobs: at least one run at a time is needed, not {workers}")
    names = None if schemes is None else list(schemes)
    grid = read_grid(load_spec(spec), set, vary or {}, _seeds(seeds), names)
    runs = plan(grid, workers)
    with Store(Path(out), grid, runs, force=force) as store:
        done = store.done()
        todo = [run for run in runs if run.index not in done]
        tracker = Tracker(len(runs), len(done), progress)

        def keep(run: Run, outcome: Outcome) -> None:
            store.commit(run, outcome)
            tracker.done(run, outcome)

        if todo and cluster is not None:
            with connected(cluster) as client:
                run_on_cluster(client, todo, done=keep)
        elif todo:
            run_in_threads(todo, workers=workers, done=keep, share=tracker.running if progress else None)
        found = load_sweep(store.path)
        store.write(table_files(found))
    return Sweep(found.path, found.swept, found.runs, kept=len(done))


def _seeds(seeds: int | Sequence[int] | None) -> Sequence[int] | None:
    if seeds is None:
        return None
    return list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
