"""Making one figure from runs that are done: its data, its drawing, its verdicts, and the files of all three."""

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import OutputError, SpecError, Stopped
from weft.papers.ceilings import ORACLE
from weft.papers.declared import FigureSpec, Paper, Scale
from weft.papers.drawing import draw, note_below
from weft.papers.measured import CORES, FigureData, RunsUsed
from weft.papers.measuring import measure_figure
from weft.papers.runs import Case, Plan
from weft.papers.scorecard import figure_verdicts
from weft.papers.special import find_special, make_special
from weft.papers.special.own_runs import OwnRuns
from weft.papers.store import INPUTS, Store
from weft.papers.verdict_files import OtherInterpretations
from weft.runs.execution import Executor
from weft.runs.run import Run
from weft.simulation import Result
from weft.verdict import is_unsteady

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["Made", "Maker"]

_RUNS_HELD = 16
"""Runs whose tables stay in memory while a figure is measured."""


@dataclass(frozen=True, slots=True)
class Made:
    """Outcome of the making of a figure."""

    figure: FigureSpec
    files: tuple[Path, ...] = ()
    data: FigureData | None = None
    verdicts: Sequence[Mapping[str, Any]] = ()
    """On the claims that it tests, as in `verdicts.json`."""
    seconds: float = 0.0
    """Time to make it alone on two idle cores: CPU time of its runs over two, and of the making."""
    error: str | None = None
    """Why it was not made."""
    paper: Paper | None = field(default=None, repr=False)
    """The paper as it was read: with its scenario, and what was added to it."""

    def plot(self) -> "Figure":
        """Draw it; raises `SpecError` if it was not made."""
        if self.paper is None or self.data is None:
            raise SpecError(f"{self.figure.key} was not made: {self.error}")
        return _drawn(self.figure, self.paper, self.data)


@dataclass(slots=True)
class Maker:
    """Makes figures from what is in a store."""

    store: Store
    scale: Scale
    executor: Executor
    kept: frozenset[str] = frozenset()
    """Runs that were there before."""
    others: OtherInterpretations = field(default_factory=dict)
    """Where claims of papers are reproduced that are not by default."""
    _cpu_s: float = 0.0
    _simulating_s: float = 0.0

    def make(self, figure: FigureSpec, paper: Paper, plan: Plan, cases: Sequence[Case]) -> Made:
        """Make a figure whose runs are done, well or not; what goes wrong in the making is in what is returned."""
        # Threads that simulate for other figures do not count; a special figure is made when there are none.
        clock = time.thread_time if figure.special is None else time.process_time
        began = clock()
        self._cpu_s, self._simulating_s = 0.0, 0.0
        result = lru_cache(_RUNS_HELD)(lambda case: self._result(plan.run(case)))
        runs = self._runs_used(paper, plan, cases)
        place = f"{paper.name}/{figure.name}"
        self.store.remove(f"{place}/verdicts.json")  # written last: until then, the figure is not there
        try:
            data = self._data(figure, plan, runs, result)
            files = self._write(figure, paper, data)
            verdicts = figure_verdicts(paper, figure, data, self.others.get(paper.name, {}))
        except (OutputError, OSError, Stopped):  # about the place, not the figure: the next one would fare no better
            raise
        except Exception as error:
            message = str(error) if isinstance(error, SpecError) else f"{type(error).__name__}: {error}"
            return Made(figure, error=message)
        self.store.put(f"{place}/verdicts.json", (json.dumps(verdicts, indent=1, ensure_ascii=False) + "\n").encode())
        files = (*files, self.store.path / place / "verdicts.json")
        own = clock() - began - self._simulating_s
        seconds = (runs.cpu_s + self._cpu_s) / CORES + own
        return Made(figure, files, data, verdicts["claims"], seconds, paper=paper)

    def _data(self, figure: FigureSpec, plan: Plan, runs: RunsUsed, result: Any) -> FigureData:
        if figure.special is None:
            return measure_figure(figure, plan.paper, self.scale, result, runs)
        own = OwnRuns(self.executor, self.store.found, self.store.note)
        try:
            return make_special(
                figure, plan, jobs=self.executor.cores, result=result, runs=runs, own=own, keep=self._keep
            )
        finally:
            self._cpu_s, self._simulating_s = own.cpu_s, own.simulating_s

    def _runs_used(self, paper: Paper, plan: Plan, cases: Sequence[Case]) -> RunsUsed:
        own = {run.id: run for run in map(plan.run, cases)}
        stored = [found for run in own.values() if (found := self.store.get(run)) is not None]
        summaries = [found.result.summary for found in stored]
        points: dict[str, set[str]] = {}
        for case in cases:
            for key, label in case.labels:
                points.setdefault(key, set()).add(label)
        experiments = {case.experiment: paper.experiments[case.experiment].at(self.scale) for case in cases}
        return RunsUsed(
            scale=self.scale,
            runs=len(own),
            reused=sum(run_id in self.kept for run_id in own),
            failed=sum(map(self.store.failed, own.values())),
            unfinished=sum(summary.without_completion for summary in summaries),
            unsteady=sum(map(is_unsteady, summaries)),
            cpu_s=sum(found.record.measured.cpu_s for found in stored),
            seeds=max((len(experiment.seeds_run) for experiment in experiments.values()), default=1),
            declared_seeds=max((experiment.seeds for experiment in experiments.values()), default=1),
            flows=tuple(sorted({summary.flows for summary in summaries})),
            declared_flows=max((plan.declared_flows(case) or 0 for case in cases), default=0),
            points={key: len(labels) for key, labels in points.items()},
            oracle=any(ORACLE in experiment.variants for experiment in experiments.values()),
        )

    def _result(self, run: Run) -> Result | None:
        stored = self.store.get(run)
        return None if stored is None else stored.result

    def _keep(self, name: str, text: str) -> Path:
        """Keep a file that a spec of a special figure names; returns its place."""
        self.store.put(f"{INPUTS}/{name}", text.encode())
        return self.store.path.absolute() / INPUTS / name

    def _write(self, figure: FigureSpec, paper: Paper, data: FigureData) -> tuple[Path, ...]:
        """Write the data and the drawing; returns their places."""
        from weft.drawing.figure import write

        contents = {"data.parquet": _parquet(data.rows), "data.csv": data.rows.write_csv().encode()}
        if not data.curves.is_empty():
            contents |= {"curves.parquet": _parquet(data.curves), "curves.csv": data.curves.write_csv().encode()}
        with tempfile.TemporaryDirectory() as folder:
            for path in write(_drawn(figure, paper, data), Path(folder)):
                contents[path.name] = path.read_bytes()
        place = f"{paper.name}/{figure.name}"
        for name, content in contents.items():
            self.store.put(f"{place}/{name}", content)
        return tuple(self.store.path / place / name for name in contents)


def _drawn(figure: FigureSpec, paper: Paper, data: FigureData) -> "Figure":
    if figure.special is None:
        return draw(paper, figure, data)
    return find_special(figure.special).draw(paper, figure, data, note_below(paper, figure, data.runs))


def _parquet(frame: "pl.DataFrame") -> bytes:
    stream = BytesIO()
    frame.write_parquet(stream)
    return stream.getvalue()
