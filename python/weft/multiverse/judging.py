"""The runs and the verdicts of scenarios.

What a part of a figure is in a scenario depends only on the choices that concern it: its runs are done once for all
scenarios that agree in these, and measured once. So a few hundred runs judge thousands of scenarios.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import polars as pl

from weft.durable import goes_on, write_file
from weft.errors import SpecError
from weft.multiverse.parts import FigureParts, Part, Rows, Work, parts_of
from weft.multiverse.result import Seen
from weft.papers.claims import Claim
from weft.papers.declared import FigureSpec, Paper, Scale
from weft.papers.exclusions import Exclusion, exclusions
from weft.papers.measured import FigureData, RunsUsed
from weft.papers.open import Choice
from weft.papers.runs import Case, Plan
from weft.papers.scenarios import DEFAULT, Scenario, in_scenario
from weft.papers.scorecard import judged
from weft.papers.special.own_runs import OwnRuns
from weft.papers.verdicts import Judgement
from weft.runs.execution import Executor
from weft.runs.progress import SweepProgress, Tracker
from weft.runs.run import Outcome, Run
from weft.runs.store import Stored
from weft.simulation import Result

__all__ = ["Explorer"]

_RUNS_HELD = 64


@dataclass
class Explorer:
    """Does the runs of scenarios, and judges claims in them."""

    paper: Paper
    figures: Sequence[FigureSpec]
    scale: Scale
    claims: Sequence[Claim]
    choices: Mapping[str, Choice]
    executor: Executor
    inputs: Path
    """Where files are kept that specs of figures' own runs name."""
    watch: Callable[[SweepProgress], None] | None = None
    cpu_s: float = 0.0
    """CPU time of the runs of this session, in seconds."""
    failed: dict[str, str] = field(default_factory=dict)
    """Runs that failed and figures that could not be made, and why: where they would count, there is no value."""
    runs: set[str] = field(default_factory=set)
    """The addresses of all runs that were asked for."""
    kept: set[str] = field(default_factory=set)
    """Those that had been done before."""
    impossible: dict[Part, str] = field(default_factory=dict)
    """Parts that no run can be made of, and the reason, such as links that cannot carry the load."""
    _cpu_of: dict[Part, float] = field(default_factory=dict)
    _cpu_of_run: dict[str, float] = field(default_factory=dict)
    """CPU time of each run in seconds, by the run's identity: parts share runs."""
    _observing_s: float = 0.0
    _not_there: dict[Part, float] = field(default_factory=dict)
    _plans: dict[Scenario, Plan] = field(default_factory=dict)
    _rows: dict[Part, Rows] = field(default_factory=dict)

    @cached_property
    def figure_parts(self) -> Mapping[str, FigureParts]:
        """The parts of each figure that claims are about."""
        named = frozenset[str]().union(*(claim.rule.named for claim in self.claims if claim.rule is not None))
        return {figure.name: parts_of(figure, self.paper, self.scale, named) for figure in self.figures}

    @cached_property
    def concern(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """The choices that concern each part of each figure."""
        return {
            (figure, name): own.concern(name, self.choices.values())
            for figure, own in self.figure_parts.items()
            for name in own.names
        }

    def parts(self, scenarios: Iterable[Scenario]) -> list[Part]:
        """List the parts that some scenarios are made of, each once."""
        return list(
            dict.fromkeys(
                Part(figure, name, scenario.only(concern))
                for scenario in scenarios
                for (figure, name), concern in self.concern.items()
            )
        )

    def do(self, scenarios: Iterable[Scenario]) -> None:
        """Do the runs that scenarios need and that are not there."""
        new = [part for part in self.parts(scenarios) if part not in self._cpu_of]
        wanted: dict[str, Run] = {}
        parts_with: dict[str, list[Part]] = {}
        for part in new:
            self._cpu_of[part] = 0.0
            for run in self._possible(part):
                known = wanted.get(run.id, run)
                wanted[run.id] = replace(known, tables=tuple(sorted({*known.tables, *run.tables})))
                parts_with.setdefault(run.id, []).append(part)
        there = {run_id: stored for run_id, run in wanted.items() if (stored := self.executor.find(run)) is not None}
        self.kept |= {run_id for run_id in there if run_id not in self.runs}
        self.runs |= wanted.keys()
        for run_id, stored in there.items():
            self._note(stored, parts_with[run_id])
        todo = [replace(run, index=number) for number, run in enumerate(wanted.values()) if run.id not in there]
        tracker = Tracker(len(todo), 0, self.watch)

        def done(run: Run, outcome: Outcome, stored: Stored | None) -> None:
            if outcome.error is not None:
                self.failed[run.name] = outcome.error
            elif stored is not None:
                self.cpu_s += stored.record.measured.cpu_s
                self._note(stored, parts_with[run.id])
            tracker.done(run, outcome)

        self.executor.do(todo, done, watch=tracker.running if self.watch else None)
        for part in new:
            if self.figure_parts[part.figure].has_own_runs and part not in self.impossible:
                self._make(part)

    def why_not(self, scenario: Scenario) -> str | None:
        """Say why there is no such scenario; None if there is one."""
        return next((self.impossible[part] for part in self.parts([scenario]) if part in self.impossible), None)

    def judge(self, scenario: Scenario) -> Seen:
        """Judge the claims in a scenario whose runs are done."""
        found: dict[str, Judgement] = {}
        excluded: list[Exclusion] = []
        for figure in self.figures:
            own = [
                self._made(Part(figure.name, name, scenario.only(self.concern[figure.name, name])))
                for name in self.figure_parts[figure.name].names
            ]
            rows, ideal = (pl.concat([one[kind] for one in own]).sort("panel", maintain_order=True) for kind in (0, 1))
            curves = pl.DataFrame(schema=FigureData.curve_schema())
            data = FigureData(rows, curves, RunsUsed(self.scale, len(self.runs)), ideal)
            found |= {one.claim.id: one for one in judged(self.paper, figure, data, self.claims)}
            excluded += exclusions([claim for claim in self.claims if claim.figure == figure.name], data)
        return Seen(scenario, {claim.id: found[claim.id] for claim in self.claims}, tuple(excluded))

    def cpu_of(self, part: Part) -> float:
        """CPU time of the runs of a part that are done, in seconds; 0 if none is."""
        return self._cpu_of.get(part, 0.0)

    @property
    def all_cpu_s(self) -> float:
        """CPU time of all runs that were asked for, when they were done."""
        return math.fsum(self._cpu_of_run.values()) + self._observing_s

    def share_not_there(self, part: Part) -> float:
        """The share of the runs of a part that are still to be done, 0 to 1.

        Runs that figures make themselves are not known before: they are not there as long as the part is not done.
        """
        if part in self._cpu_of:
            return 0.0
        if part not in self._not_there:
            runs = self._possible(part)
            missing = sum(self.executor.find(run) is None for run in runs)
            own = self.figure_parts[part.figure].has_own_runs and part not in self.impossible
            self._not_there[part] = missing / len(runs) if runs else float(own)
        return self._not_there[part]

    def _note(self, stored: Stored, parts: Sequence[Part]) -> None:
        """Note what a run took: once, for the part that rests on the fewest variants, however many share it."""
        cpu_s = stored.record.measured.cpu_s
        self._cpu_of_run[stored.run.id] = cpu_s
        least = min(parts, key=lambda part: len(self.figure_parts[part.figure].names[part.name]))
        self._cpu_of[least] += cpu_s

    def _plan(self, scenario: Scenario) -> Plan:
        if scenario not in self._plans:
            self._plans[scenario] = Plan(in_scenario(self.paper, scenario), self.scale)
        return self._plans[scenario]

    def _possible(self, part: Part) -> list[Run]:
        """List the runs of a part; none, and the reason is kept, if its specs are refused."""
        try:
            return self.figure_parts[part.figure].runs(part.name, self._plan(part.scenario))
        except SpecError as error:
            if part.scenario == DEFAULT:
                raise
            self.impossible[part] = str(error)
            return []

    def _made(self, part: Part) -> Rows:
        if part not in self._rows:
            self._make(part)
        return self._rows[part]

    def _make(self, part: Part) -> None:
        """Make the rows of a part, and count what its own runs take; no rows, and the reason is kept, if it fails."""
        parts, plan = self.figure_parts[part.figure], self._plan(part.scenario)

        @lru_cache(_RUNS_HELD)
        def result(case: Case) -> Result | None:
            stored = self.executor.find(parts.run(case, plan))
            return None if stored is None else stored.result

        began = time.process_time()
        own = OwnRuns(self.executor, self._found, self._done)
        try:
            self._rows[part] = parts.rows(part.name, Work(plan, result, own, self._keep))
        except SpecError as error:
            self.failed[f"figure {part.figure} in scenario {part.scenario}"] = str(error)
            none = pl.DataFrame(schema=FigureData.row_schema())
            self._rows[part] = none, none
        # Where own runs are kept nowhere, as those that are observed only, they are what the making takes.
        observing_s = time.process_time() - began if parts.has_own_runs and not own.asked else 0.0
        self.cpu_s += observing_s
        self._observing_s += observing_s
        self._cpu_of[part] += own.cpu_s + observing_s

    def _found(self, stored: Stored) -> None:
        """Note a figure's own run that was done before."""
        if stored.run.id not in self.runs:
            self.kept.add(stored.run.id)
        self.runs.add(stored.run.id)
        self._cpu_of_run[stored.run.id] = stored.record.measured.cpu_s

    def _done(self, run: Run, outcome: Outcome, stored: Stored | None) -> None:
        """Note a figure's own run as it ends."""
        self.runs.add(run.id)
        if outcome.error is not None:
            self.failed[run.name] = outcome.error
        elif stored is not None:
            self.cpu_s += stored.record.measured.cpu_s
            self._cpu_of_run[run.id] = stored.record.measured.cpu_s

    def _keep(self, name: str, text: str) -> Path:
        """Keep a file that a spec of a figure's own runs names; returns its place."""
        with goes_on(self.inputs):
            self.inputs.mkdir(parents=True, exist_ok=True)
            write_file(self.inputs / name, text.encode())
        return self.inputs / name
