"""Parts of a figure that a scenario changes: each depends on the choices that concern it and on no others.

A part is a variant, with those that it is divided by; or the whole figure, where its rows are made of all runs
together. Its runs are done once for all scenarios that agree in its choices, and its rows are made once.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import polars as pl

from weft.papers.declared import FigureSpec, Paper, Scale
from weft.papers.measured import RunsUsed
from weft.papers.measuring import measured_rows
from weft.papers.open import Choice
from weft.papers.runs import Case, Plan, cases_of_experiment, cases_of_figure, needed_tables
from weft.papers.scenarios import Scenario, relevant
from weft.papers.special import find_special, make_special
from weft.papers.special.own_runs import OwnRuns
from weft.runs.run import Run
from weft.simulation import Result

__all__ = ["FigureParts", "Part", "Rows", "Work", "parts_of", "why_left_out"]

WHOLE = "whole figure"
"""The name of the part that is all of a figure."""

Rows: TypeAlias = tuple[pl.DataFrame, pl.DataFrame]
"""As in `FigureData`: what was measured, and what it would be if flows took their ideal times."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a figure in the scenarios that agree in the choices that concern it."""

    figure: str
    name: str
    """The variant."""
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Work:
    """Inputs and callbacks with which the rows of a part are made."""

    plan: Plan
    """Plan of the paper in the scenario."""
    result: Callable[[Case], Result | None]
    """Finds the run of a place; None if it failed."""
    own: OwnRuns
    """Does runs that no experiment declares."""
    keep: Callable[[str, str], Path]
    """Keeps a file that such a run's spec names."""


@dataclass(frozen=True, slots=True)
class FigureParts:
    """The parts of a figure, however it is made."""

    figure: FigureSpec
    paper: Paper
    scale: Scale
    names: Mapping[str, frozenset[str]]
    """For each part, in the order of the figure, the variants whose runs it rests on."""
    _rows: Callable[[str, str, Work], Rows]
    """Makes the rows of a figure and a part, by their names."""

    @property
    def has_own_runs(self) -> bool:
        """Whether rows are made of runs that no experiment declares: they are done in the making."""
        return bool(self.figure.set_ups)

    def concern(self, name: str, choices: Iterable[Choice]) -> frozenset[str]:
        """Name the choices that change a part."""
        every = tuple(choices)
        return frozenset[str]().union(
            *(relevant(one, self.figure, self.paper, self.scale, every) for one in self.names[name])
        )

    def runs(self, name: str, plan: Plan) -> list[Run]:
        """List the runs of a part, with the tables that the figure reads; `SpecError` if a spec is refused."""
        for case in self._cases(self.figure.set_ups):
            plan.run(case)
        cases = cases_of_figure(self.figure, self.paper, self.scale)
        return [self.run(case, plan) for case in cases if case.variant in self.names[name]]

    def run(self, case: Case, plan: Plan) -> Run:
        """Return the run of a place, with the tables that the figure reads."""
        tables = needed_tables(self.figure, self.paper)
        return replace(plan.run(case), tables=tuple(sorted(tables.get(case.experiment, ()))))

    def rows(self, name: str, work: Work) -> Rows:
        """Make the rows of a part."""
        return self._rows(self.figure.name, name, work)

    def _cases(self, names: Iterable[str]) -> Iterable[Case]:
        return (case for one in names for case in cases_of_experiment(self.paper.experiments[one].at(self.scale)))


def parts_of(figure: FigureSpec, paper: Paper, scale: Scale, named: Collection[str]) -> FigureParts:
    """Find the parts of a figure; without variants that the paper does not have, unless claims name them."""
    left_out = set(paper.added_to(figure, scale)) - set(named)

    def shown(*experiments: str) -> list[str]:
        grids = [paper.experiments[name].at(scale).variants for name in experiments]
        return list(dict.fromkeys(one for grid in grids for one in grid))

    if figure.special is None:
        names: dict[str, frozenset[str]] = {}
        for panel in figure.panels:
            bases = {panel.relative_to} if isinstance(panel.relative_to, str) else set[str]()
            for one in panel.variants or shown(panel.experiment):
                names[one] = names.get(one, frozenset()) | {one} | bases
        rows = _measured
    else:
        every = shown(*figure.experiments, *figure.set_ups)
        by_variant = find_special(figure.special).by_variant
        names = {one: frozenset({one}) for one in every} if by_variant else {WHOLE: frozenset(every)}
        rows = _made
    kept = {name: own for name, own in names.items() if name not in left_out}
    return FigureParts(figure, paper, scale, kept, rows)


def why_left_out(figure: FigureSpec) -> str | None:
    """Say why no scenario changes a figure; None if scenarios do."""
    return None if figure.special is None else find_special(figure.special).left_out or None


def _measured(figure: str, name: str, work: Work) -> Rows:
    plan = work.plan
    rows, ideal = (
        pl.concat(measured_rows(plan.paper.figure(figure), name, plan.paper, plan.scale, work.result, ideal=one))
        for one in (False, True)
    )
    return rows, ideal


def _made(figure: str, name: str, work: Work) -> Rows:
    data = make_special(
        work.plan.paper.figure(figure),
        work.plan,
        jobs=work.own.executor.cores,
        result=work.result,
        runs=RunsUsed(work.plan.scale, runs=0),
        own=work.own,
        keep=work.keep,
        variant=None if name == WHOLE else name,
    )
    return data.rows, data.ideal
