"""The runs and the verdicts of worlds.

What a contender does in a world depends only on the choices that concern it: its runs are done once for all worlds that
agree in these, and measured once. So a few hundred runs judge thousands of worlds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import polars as pl

from weft.errors import SpecError
from weft.multiverse.result import Seen
from weft.papers.claims import Claim
from weft.papers.declared import FigureSpec, Paper, Scale
from weft.papers.exclusions import Exclusion, exclusions
from weft.papers.measured import FigureData, RunsUsed
from weft.papers.measuring import measured_rows
from weft.papers.open import Choice
from weft.papers.runs import Case, Plan, cases_of_figure, needed_tables
from weft.papers.scorecard import judged
from weft.papers.verdicts import Judgement
from weft.papers.worlds import DEFAULT, World, in_world, relevant
from weft.runs.execution import Executor
from weft.runs.progress import SweepProgress, Tracker
from weft.runs.run import Outcome, Run
from weft.runs.store import Stored
from weft.simulation import Result

__all__ = ["Explorer", "Part"]

_RUNS_HELD = 64


@dataclass(frozen=True, slots=True)
class Part:
    """A contender of a figure in the worlds that agree in the choices that concern it."""

    figure: str
    contender: str
    world: World


@dataclass
class Explorer:
    """Does the runs of worlds, and judges claims in them."""

    paper: Paper
    figures: Sequence[FigureSpec]
    scale: Scale
    claims: Sequence[Claim]
    choices: Mapping[str, Choice]
    executor: Executor
    watch: Callable[[SweepProgress], None] | None = None
    cpu_s: float = 0.0
    """What runs took that were done now."""
    failed: dict[str, str] = field(default_factory=dict)
    """Runs that failed, by name, and why: where they would count, there is no value."""
    runs: set[str] = field(default_factory=set)
    """The addresses of all runs that were asked for."""
    kept: set[str] = field(default_factory=set)
    """Those that had been done before."""
    impossible: dict[Part, str] = field(default_factory=dict)
    """What no run can be made of, and why: as where links cannot carry the load."""
    _cpu_of: dict[Part, float] = field(default_factory=dict)
    _plans: dict[World, Plan] = field(default_factory=dict)
    _rows: dict[Part, tuple[list[pl.DataFrame], list[pl.DataFrame]]] = field(default_factory=dict)
    """What was measured, and what it would be if flows took their ideal times, by panel."""

    @cached_property
    def concern(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """The choices that concern each contender of each figure, and those that it is divided by."""
        found: dict[tuple[str, str], frozenset[str]] = {}
        for figure in self.figures:
            for contender in self._contenders(figure):
                bases = {
                    panel.relative_to
                    for panel in figure.panels
                    if isinstance(panel.relative_to, str)
                    and contender in self._shown(panel.experiment, panel.contenders)
                }
                found[figure.name, contender] = frozenset[str]().union(
                    *(
                        relevant(one, figure, self.paper, self.scale, self.choices.values())
                        for one in {contender, *bases}
                    )
                )
        return found

    def parts(self, worlds: Iterable[World]) -> list[Part]:
        """List the parts that some worlds are made of, each once."""
        return list(
            dict.fromkeys(
                Part(figure, contender, world.only(concern))
                for world in worlds
                for (figure, contender), concern in self.concern.items()
            )
        )

    def do(self, worlds: Iterable[World]) -> None:
        """Do the runs that worlds need and that are not there."""
        wanted: dict[str, Run] = {}
        parts_of: dict[str, list[Part]] = {}
        for part in self.parts(worlds):
            if part not in self._cpu_of:
                self._cpu_of[part] = 0.0
                for run in self._possible(part):
                    known = wanted.get(run.id, run)
                    wanted[run.id] = replace(known, tables=tuple(sorted({*known.tables, *run.tables})))
                    parts_of.setdefault(run.id, []).append(part)
        there = {run_id: stored for run_id, run in wanted.items() if (stored := self.executor.find(run)) is not None}
        self.kept |= {run_id for run_id in there if run_id not in self.runs}
        self.runs |= wanted.keys()
        for run_id, stored in there.items():
            self._note(parts_of[run_id], stored.record.measured.cpu_s)
        todo = [replace(run, index=number) for number, run in enumerate(wanted.values()) if run.id not in there]
        tracker = Tracker(len(todo), 0, self.watch)

        def done(run: Run, outcome: Outcome, stored: Stored | None) -> None:
            if outcome.error is not None:
                self.failed[run.name] = outcome.error
            elif stored is not None:
                self.cpu_s += stored.record.measured.cpu_s
                self._note(parts_of[run.id], stored.record.measured.cpu_s)
            tracker.done(run, outcome)

        self.executor.do(todo, done, watch=tracker.running if self.watch else None)

    def why_not(self, world: World) -> str | None:
        """Say why there is no such world; None if there is one."""
        return next((self.impossible[part] for part in self.parts([world]) if part in self.impossible), None)

    def judge(self, world: World) -> Seen:
        """Judge the claims in a world whose runs are done."""
        found: dict[str, Judgement] = {}
        excluded: list[Exclusion] = []
        for figure in self.figures:
            own = [
                self._measured(Part(figure.name, contender, world.only(self.concern[figure.name, contender])))
                for contender in self._contenders(figure)
            ]
            rows, ideal = (
                pl.concat([one[kind][panel] for panel in range(len(figure.panels)) for one in own]) for kind in (0, 1)
            )
            curves = pl.DataFrame(schema=FigureData.curve_schema())
            data = FigureData(rows, curves, RunsUsed(self.scale, len(self.runs)), ideal)
            found |= {one.claim.id: one for one in judged(self.paper, figure, data, self.claims)}
            excluded += exclusions([claim for claim in self.claims if claim.figure == figure.name], data)
        return Seen(world, {claim.id: found[claim.id] for claim in self.claims}, tuple(excluded))

    def cpu_of(self, figure: str, contender: str) -> float:
        """CPU time of the runs of a contender of a figure in the default world, which is done."""
        return self._cpu_of.get(Part(figure, contender, DEFAULT), 0.0)

    def _note(self, parts: Iterable[Part], cpu_s: float) -> None:
        for part in parts:
            self._cpu_of[part] += cpu_s

    def _contenders(self, figure: FigureSpec) -> list[str]:
        """List the contenders that a figure shows, in its order."""
        return list(
            dict.fromkeys(name for one in figure.panels for name in self._shown(one.experiment, one.contenders))
        )

    def _shown(self, experiment: str, chosen: Sequence[str]) -> Sequence[str]:
        return chosen or list(self.paper.experiments[experiment].at(self.scale).contenders)

    def _plan(self, world: World) -> Plan:
        if world not in self._plans:
            self._plans[world] = Plan(in_world(self.paper, world), self.scale)
        return self._plans[world]

    def _figure(self, name: str) -> FigureSpec:
        return next(figure for figure in self.figures if figure.name == name)

    def _possible(self, part: Part) -> list[Run]:
        """List the runs of a part; none, and the reason is kept, if its specs are refused."""
        try:
            return self._runs_of(part)
        except SpecError as error:
            if part.world == DEFAULT:
                raise
            self.impossible[part] = str(error)
            return []

    def _runs_of(self, part: Part) -> list[Run]:
        """List the runs of a part, with the tables that its figure reads."""
        figure, plan = self._figure(part.figure), self._plan(part.world)
        tables = needed_tables(figure, self.paper)
        return [
            replace(plan.run(case), tables=tuple(sorted(tables.get(case.experiment, ()))))
            for case in cases_of_figure(figure, self.paper, self.scale)
            if case.contender == part.contender
        ]

    def _measured(self, part: Part) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        if part not in self._rows:
            figure, plan = self._figure(part.figure), self._plan(part.world)
            tables = needed_tables(figure, self.paper)

            @lru_cache(_RUNS_HELD)
            def result(case: Case) -> Result | None:
                run = replace(plan.run(case), tables=tuple(sorted(tables.get(case.experiment, ()))))
                stored = self.executor.find(run)
                return None if stored is None else stored.result

            rows, ideal = (
                measured_rows(figure, part.contender, plan.paper, self.scale, result, ideal=one)
                for one in (False, True)
            )
            self._rows[part] = (rows, ideal)
        return self._rows[part]
