"""QALL's Table II: how long it takes until decisions know of a queue, and how old what they know is.

Weft counts both for QALL. ECMP and LetFlow look at no queue; DRILL looks at its own, as they were an `age` before the
decision, which its spec says. For CONGA and HULA nothing is counted. The figure names one experiment, with the table
`scheme`.
"""

import tomllib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from weft import _core
from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.special import SpecialContext
from weft.papers.special.tidy import figure_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BY_VARIANT", "DRAWN", "delays_us", "draw", "make", "set_age_us"]

_KNOWN, _AGE = "until a queue is known", "mean age of what decides"

DRAWN = (PanelSpec("", "", "table", (Measure(label=_KNOWN, unit="us"), Measure(label=_AGE, unit="us"))),)

_BY_SPEC = ("drill",)
"""Whose knowledge is as old as the spec says, at every decision."""

BY_VARIANT = True


def make(context: SpecialContext) -> FigureData:
    """Read the counters of each run."""
    return figure_data(_rows(context), context.runs)


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw a table with a row for each scheme; a dash where there is no such time, or none is counted."""
    return draw_panels(paper, DRAWN, data, note)


def delays_us(counters: Mapping[str, int]) -> tuple[float | None, float | None]:
    """Work out both times from a scheme's counters, in microseconds; None for what it does not count."""
    if "decision_delay_ns" not in counters:
        return None, None
    clones = counters["clones"] - counters["clones_lost"]
    informed = counters["decisions"] - counters["uninformed_decisions"]
    known = counters["decision_delay_ns"] / clones / 1e3 if clones else None
    age = counters["state_age_ns"] / informed / 1e3 if informed else None
    return known, age


def set_age_us(spec: str) -> float:
    """Return how old the queue lengths are by which a resolved spec's load balancer decides, in microseconds."""
    return _core.quantity(tomllib.loads(spec)["scheme"]["age"], "time") / 1e6


def _rows(context: SpecialContext) -> Iterator[tuple[Any, ...]]:
    (cases,) = context.cases.values()
    for case in cases:
        result = context.result(case)
        if result is None:
            known, age = None, None
        elif case.variant in _BY_SPEC:
            known = age = set_age_us(result.spec)
        else:
            known, age = delays_us(dict(result.scheme.iter_rows()))
        yield (0, case.variant, "", None, case.seed, _KNOWN, known)
        yield (0, case.variant, "", None, case.seed, _AGE, age)
