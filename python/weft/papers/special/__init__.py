"""Figures that are no panels of a grid of runs: models, fits, distributions, costs.

Each is a module with two functions. A figure names it by `special = "..."`:

- `make(context) -> FigureData` works the data out, in the tidy form of every figure; `runs` of it is `context.runs`,
  which a module that does more runs replaces.
- `draw(paper, figure, data, note) -> matplotlib.figure.Figure` draws it. `weft.papers.drawing.draw_panels` draws
  panels that the module declares itself; as `DRAWN` they also tell the units of its values.

A scenario (`weft.papers.scenarios`) changes the experiments that a figure names, and its options. A module whose rows
of a variant are made of that variant's runs alone says so by `BY_VARIANT = True`: they are then made once for all
scenarios that agree in what concerns it. One that no scenario changes says why by `LEFT_OUT = "..."`.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.papers.declared import FigureSpec, PanelSpec, Paper, Scale
from weft.papers.measured import FigureData, RunsUsed
from weft.papers.reading import nearest
from weft.papers.runs import Case, Plan, cases_of_experiment
from weft.papers.special.own_runs import OwnRuns
from weft.simulation import Result
from weft.spec import SpecText

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SPECIAL", "Special", "SpecialContext", "find_special", "make_special"]

SPECIAL: Mapping[str, str] = {
    "qall-decision-delay": "qall_decision_delay",
    "qall-fit": "qall_fit",
    "qall-load-sharing": "qall_load_sharing",
    "qall-observations": "qall_observations",
    "qall-queue-variance": "qall_queue_variance",
    "scheme-costs": "scheme_costs",
    "tr-model": "tr_model",
    "workload-cdf": "workload_cdf",
}
"""The module of each name."""


@dataclass(frozen=True, slots=True)
class SpecialContext:
    """Input of a special figure: its declaration, its scale and its runs."""

    paper: Paper
    figure: FigureSpec
    scale: Scale
    jobs: int
    """How many cores may be used."""
    cases: Mapping[str, Sequence[Case]]
    """For each of the figure's `experiments`, the places of its grid at this scale."""
    result: Callable[[Case], Result | None]
    """Finds the run of a place, with the tables that the experiment names; None if it failed."""
    runs: RunsUsed
    """The runs of these experiments."""
    set_ups: Mapping[str, Sequence[Case]]
    """For each of the figure's `set_ups`, the places of its grid at this scale: nobody has run them."""
    spec: Callable[[Case], SpecText]
    """Returns the resolved spec of a place; `SpecError` if there is none."""
    simulate: Callable[[Sequence[SpecText], Iterable[str]], list[Result | None]]
    """Does more runs, each a whole spec with its seed, and keeps the tables named; those that are there are reused."""
    keep: Callable[[str, str], Path]
    """Keeps a file with this name and text that such a spec names, and returns where it is."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Options in the declaration of the figure."""
        return self.figure.options


@dataclass(frozen=True, slots=True)
class Special:
    """Interface of a special figure's module."""

    make: Callable[[SpecialContext], FigureData]
    draw: "Callable[[Paper, FigureSpec, FigureData, str], Figure]"
    drawn: Sequence[PanelSpec] = ()
    """The panels of its data, if it declares them."""
    by_variant: bool = False
    """Whether the rows of a variant are made of its own runs alone."""
    left_out: str = ""
    """Why no scenario changes it; empty: scenarios do."""


def find_special(name: str) -> Special:
    """Find a special figure; `SpecError` names the nearest one if there is none."""
    if name not in SPECIAL:
        raise nearest("special figure", name, SPECIAL)
    module = importlib.import_module(f"weft.papers.special.{SPECIAL[name]}")
    return Special(
        module.make,
        module.draw,
        getattr(module, "DRAWN", ()),
        getattr(module, "BY_VARIANT", False),
        getattr(module, "LEFT_OUT", ""),
    )


def make_special(
    figure: FigureSpec,
    plan: Plan,
    *,
    jobs: int,
    result: Callable[[Case], Result | None],
    runs: RunsUsed,
    own: OwnRuns,
    keep: Callable[[str, str], Path],
    variant: str | None = None,
) -> FigureData:
    """Make the data of a special figure, or those of one variant, from runs that are done and runs of its own."""

    def places(names: Iterable[str]) -> dict[str, list[Case]]:
        grids = {name: cases_of_experiment(plan.paper.experiments[name].at(plan.scale)) for name in names}
        return {name: [one for one in grid if variant in (None, one.variant)] for name, grid in grids.items()}

    context = SpecialContext(
        paper=plan.paper,
        figure=figure,
        scale=plan.scale,
        jobs=jobs,
        cases=places(figure.experiments),
        result=result,
        runs=runs,
        set_ups=places(figure.set_ups),
        spec=lambda case: plan.run(case).spec,
        simulate=own.simulate,
        keep=keep,
    )
    assert figure.special is not None
    return find_special(figure.special).make(context)
