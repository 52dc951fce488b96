"""Figures that are no panels of a grid of runs: models, fits, distributions, costs.

Each is a module with two functions. A figure names it by `special = "..."`:

- `make(context) -> FigureData` works the data out, in the tidy form of every figure; `runs` of it is `context.runs`,
  which a module that does more runs replaces.
- `draw(paper, figure, data, note) -> matplotlib.figure.Figure` draws it. `weft.papers.drawing.draw_panels` draws
  panels that the module declares itself; as `DRAWN` they also tell the units of its values.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.papers.declared import FigureSpec, PanelSpec, Paper, Scale
from weft.papers.measured import FigureData, RunsUsed
from weft.papers.reading import nearest
from weft.papers.runs import Case
from weft.simulation import Result
from weft.spec import SpecText

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SPECIAL", "Special", "SpecialContext", "find_special"]

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
    """What a special figure is made from."""

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
    simulate: Callable[[Sequence[SpecText], Iterable[str]], list[Result | None]]
    """Does more runs, each a whole spec with its seed, and keeps the tables named; those that are there are reused."""
    keep: Callable[[str, str], Path]
    """Keeps a file with this name and text that such a spec names, and returns where it is."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What the declaration of the figure says."""
        return self.figure.options


@dataclass(frozen=True, slots=True)
class Special:
    """What a module has."""

    make: Callable[[SpecialContext], FigureData]
    draw: "Callable[[Paper, FigureSpec, FigureData, str], Figure]"
    drawn: Sequence[PanelSpec] = ()
    """The panels of its data, if it declares them."""


def find_special(name: str) -> Special:
    """Find a special figure; `SpecError` names the nearest one if there is none."""
    if name not in SPECIAL:
        raise nearest("special figure", name, SPECIAL)
    module = importlib.import_module(f"weft.papers.special.{SPECIAL[name]}")
    return Special(module.make, module.draw, getattr(module, "DRAWN", ()))
