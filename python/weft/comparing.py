"""Runs every scheme on the same flows: what a comparison is made of."""

import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from weft.comparison import Comparison, load_comparison, run_directory
from weft.conditions import notes_of
from weft.drawing.asked import Fields, read_asked
from weft.errors import SpecError
from weft.output import staged_directory
from weft.progress_bar import ProgressArg, jobs_bar
from weft.ranking import MATTERS, checked_matters
from weft.runs.cluster import Cluster
from weft.runs.execution import Executor
from weft.runs.progress import JobsCallback, RunProgress, RunWatch
from weft.runs.run import Outcome, Run, resolved_run
from weft.runs.store import Stored, named_store, place_of_store
from weft.schemas import TABLES
from weft.seeds import checked_seeds
from weft.simulation import Overrides, Result
from weft.spec import SpecLike, load_spec
from weft.variant import SchemeLike, parse_variants

__all__ = ["compare"]


def compare(
    schemes: Iterable[SchemeLike],
    *,
    spec: SpecLike = "",
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    cluster: Cluster | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    store: str | os.PathLike[str] | None = None,
    progress: ProgressArg[RunProgress] = None,
    command: str | None = None,
    figures: Sequence[str] = (),
    matters: float = MATTERS,
) -> Comparison:
    """Run every scheme on the same flows, once for each seed, several runs at a time.

    A scheme is a name (`"letflow"`), a name with parameters (`"letflow:gap=100us"`) or a class that follows
    `weft.SwitchChooser` or `weft.SwitchFactory`. `seeds` is a number of seeds (5 means 1 to 5) or the seeds
    themselves; without it the spec's own seed is used. With `out`, everything is written to that directory, and runs
    are kept in a store as they end (`store`, by default `.weft` beside the directory): a comparison that was stopped
    goes on where it was, and runs that another command did are not done again. `jobs` is how many cores of this
    machine to use in all, one for each run, or several if there are fewer runs; `cluster` is the address of a Dask
    scheduler, or a `Batch`, to run them elsewhere. `figures` are drawn into that directory beside those that are always
    there, in words as for `Comparison.plot`. `progress` is told how far each run is; without it there is a bar in a
    notebook and on a terminal, unless it is False. A difference below `matters`, as a share, is none to the verdict.

    Raises `SpecError` for a bad spec before anything runs, `OutputError` if the directory exists (without `force`) or
    cannot be written, and `ClusterError`.
    """
    least = checked_matters(matters)
    kept_in = named_store(store) if out is None else place_of_store(out, store)
    if cluster is not None and kept_in is None:
        raise SpecError("runs of a cluster come back as files: say where to with --out or --store")
    if figures and out is None:
        raise SpecError("figures are files: say where to with --out")
    executor = Executor(kept_in, jobs=jobs, cluster=cluster)
    runs = _plan(schemes, spec, set, seeds, tables=() if kept_in is None else TABLES)
    first = {run.labels["scheme"]: run for run in reversed(runs)}
    notes = notes_of((label, run.notes, run.conditions) for label, run in reversed(first.items()))
    asked = read_asked(figures, Fields({"scheme": list(dict.fromkeys(run.labels["scheme"] for run in runs))}))
    if out is None:
        with executor, jobs_bar(progress, len(runs)) as tell:
            work = _Work(runs, executor, tell, None)
            return Comparison(work.do(), kept=work.kept, command=command, notes=notes, matters=least)
    with staged_directory(Path(out), force=force) as staging, executor, jobs_bar(progress, len(runs)) as tell:
        (staging / "runs").mkdir()
        work = _Work(runs, executor, tell, staging)
        Comparison(work.do(), command=command, notes=notes, matters=least).write_rest(staging, asked)
    return replace(load_comparison(out), kept=work.kept)


class _Work:
    """The runs of a comparison: those that were done before, and those to do."""

    def __init__(
        self, runs: Sequence[Run], executor: Executor, progress: JobsCallback | None, directory: Path | None
    ) -> None:
        self._runs, self._executor, self._directory = runs, executor, directory
        self._watch = None if progress is None else RunWatch(progress)
        self._results: dict[int, Result] = {}
        self.kept = 0

    def do(self) -> list[Result]:
        """Do the runs that are not there, and return all; the first error stops them. Each is in the directory."""
        todo: list[Run] = []
        for run in self._runs:
            if (stored := self._executor.find(run)) is not None:
                self._take(run, stored.result, None)
            else:
                todo.append(run)
        self.kept = len(self._runs) - len(todo)
        self._executor.do(todo, self._done, None if self._watch is None else self._watch.running)
        return [self._results[run.index] for run in self._runs]

    def _done(self, run: Run, outcome: Outcome, stored: Stored | None) -> None:
        if outcome.cause is not None:
            raise outcome.cause
        result = stored.result if stored is not None else outcome.result
        if result is None:
            raise SpecError(f"{run.name}: {outcome.error}")
        self._take(run, result, outcome.provenance.took_s)

    def _take(self, run: Run, result: Result, took_s: float | None) -> None:
        # As the comparison names it.
        summary = msgspec.structs.replace(result.summary, label=run.labels["scheme"])
        path = result.path
        if self._directory is not None:
            path = result.write(self._directory / run_directory(summary))
        # What is on disk need not be held in memory.
        core = result.core if path is None else None
        self._results[run.index] = Result(summary, result.spec, core=core, path=path)
        if self._watch is not None:
            self._watch.done(run, summary, took_s)


def _plan(
    schemes: Iterable[SchemeLike],
    spec: SpecLike,
    overrides: Overrides,
    seeds: int | Sequence[int] | None,
    *,
    tables: Sequence[str],
) -> list[Run]:
    """Lay out the runs; the core checks each of them before anything runs."""
    text = load_spec(spec)
    runs: list[Run] = []
    checked: set[Hashable] = set()
    for variant in parse_variants(schemes):
        for seed in [None] if seeds is None else checked_seeds(seeds):
            run = resolved_run(
                text,
                len(runs),
                {"scheme": variant.label},
                overrides=overrides,
                seed=seed,
                variant=variant.text,
                tables=tables,
                checked=checked,
            )
            labels = {**run.labels, "seed": str(run.seed)}
            runs.append(replace(run, labels=labels, factory=variant.factory))
    return runs
