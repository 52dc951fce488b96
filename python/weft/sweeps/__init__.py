"""Sweeps: one spec whose fields may be lists, all combinations of them, in one directory that can be gone on with."""

import contextlib
import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from weft.drawing.asked import Asked, read_asked, usual
from weft.output import check_place
from weft.progress_bar import ProgressArg, sweep_bar
from weft.ranking import MATTERS, checked_matters
from weft.runs.cluster import Batch, Cluster
from weft.runs.execution import Executor
from weft.runs.progress import SweepCallback, SweepProgress, Tracker
from weft.runs.run import Outcome, Run
from weft.runs.store import Stored, place_of_store
from weft.seeds import checked_seeds
from weft.simulation import Overrides
from weft.spec import SpecLike, load_spec
from weft.sweeps.grid import Vary, read_grid
from weft.sweeps.planning import notes_of_grid, plan
from weft.sweeps.result import Point, Sweep, SweepRun, fields_of, figure_files, load_sweep, table_files
from weft.sweeps.store import FIGURES, OPTIONAL, Store
from weft.variant import listed_schemes

__all__ = ["Batch", "Point", "Sweep", "SweepCallback", "SweepProgress", "SweepRun", "load_sweep", "sweep"]

_LOG = logging.getLogger(__name__)


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
    store: str | os.PathLike[str] | None = None,
    progress: ProgressArg[SweepProgress] = None,
    figures: Sequence[str] | Literal["usual"] = (),
    command: str | None = None,
    matters: float = MATTERS,
) -> Sweep:
    """Run all combinations of the fields of a spec that are lists; write one directory, or go on with it.

    `vary` sweeps fields beside those of the spec, `schemes` its load balancer, its transport, or both (as for
    `compare`), `seeds` its seed (5 means 1 to 5). Runs that are in the directory or the store already, from the same
    resolved spec and version of the results, are not run again; `store` is where runs are kept (default: `.weft` beside
    the directory). A run that fails is recorded and does not stop the rest: see `Sweep.failed`. `jobs` is how many
    cores of this machine to use in all, as for `compare`; `cluster` is the address of a Dask scheduler, or a `Batch`,
    to run them elsewhere. `figures` are drawn into the directory at the end, in words as for `Sweep.plot`; "usual"
    stands for mean FCT, 99th percentile and slowdown over what is swept, or the completion time of collectives if all
    runs have some, as `weft sweep` draws them. `progress` is told how far the sweep is; without it there is a bar in a
    notebook and on a terminal, unless it is False. `command` is what the report says made it. A difference
    below `matters`, as a share, is none to the verdict.

    Raises `SpecError` for a mistake at any point before anything is run, `OutputError` if the directory is no
    earlier sweep of the same fields (`force` begins anew), is in use, or cannot be written, and `ClusterError`.
    """
    executor = Executor(place_of_store(out, store), jobs=jobs, cluster=cluster)
    names = None if schemes is None else listed_schemes(schemes)
    grid = read_grid(load_spec(spec), set, vary or {}, None if seeds is None else checked_seeds(seeds), names)
    fields = fields_of({axis.key: axis.labels for axis in grid.axes})
    asked: list[Asked] = usual(fields) if figures == "usual" else read_asked(figures, fields)
    if figures == "usual" and not asked:
        _LOG.warning("too many fields are swept for small multiples: no figures are drawn but those that are asked for")
    least = checked_matters(matters)
    with contextlib.ExitStack() as stack:
        tell = stack.enter_context(sweep_bar(progress, "sweep"))
        runs = plan(grid, executor.cores, tell)
        notes = notes_of_grid(grid, runs, fields.variant)
        view = Store(Path(out), grid, runs, force=force, command=command, notes=notes, matters=least)
        if Path(out).exists():
            stack.enter_context(view)
            stack.enter_context(executor)
        else:
            # A cluster that cannot be had leaves no directory behind.
            check_place(Path(out))
            stack.enter_context(executor)
            executor.connect(runs)
            stack.enter_context(view)
        there = view.done()
        for run in () if force else [run for run in runs if run.index not in there]:
            if (stored := executor.find(run)) is not None:
                view.commit(run, stored)
                there.add(run.index)
        tracker = Tracker(len(runs), len(there), tell)

        def keep(run: Run, outcome: Outcome, stored: Stored | None) -> None:
            if stored is not None:
                view.commit(run, stored)
            else:
                view.fail(run, outcome)
            tracker.done(run, outcome)

        todo = [run for run in runs if run.index not in there]
        executor.do(todo, keep, watch=tracker.running if tell else None)
        found = load_sweep(view.path)
        files = table_files(found)
        view.write(files)
        for name in OPTIONAL - files.keys():
            view.take_away(name)
        if figures == "usual":
            # Whether there are collectives is known from the runs.
            asked = usual(fields, collectives=found.has_collectives)
        if asked:
            drawn = dict(figure_files(found, asked))
            view.write(drawn)
            view.keep_only(FIGURES, drawn)
    return replace(found, kept=len(there))
