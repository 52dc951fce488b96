"""Cost of figures at their papers' scale, estimated from their cost at quick scale.

A figure that was measured at quick scale costs as much a flow at its paper's: the same schemes on the same fabric, with
more flows, places and seeds. What lasts for a time, or needs no runs of its own grid, is not foretold.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from weft.papers.declared import FigureSpec, Paper, Scale
from weft.papers.measured import CORES
from weft.papers.runs import Case, Plan, cases_of_figure
from weft.papers.times import read_times

__all__ = ["paper_cpu_s"]


def paper_cpu_s(
    paper: Paper, figures: Iterable[FigureSpec], quick_s: Mapping[str, float] | None = None
) -> float | None:
    """Foretell the CPU time of some figures together with their paper's own numbers, in seconds.

    Runs that they share count once. `quick_s` has what figures take at quick scale, in seconds on `CORES` cores; by
    default what comes with Weft. None if one of the figures is not in it, or its runs have no number of flows.
    """
    measured = _measured().get(paper.name, {}) if quick_s is None else quick_s
    wanted: dict[Case, None] = {}
    rates: dict[str, float] = {}
    for figure in figures:
        rate = _cpu_s_a_flow(paper, figure, measured.get(figure.name))
        if rate is None:
            return None
        cases = cases_of_figure(figure, paper, "paper")
        wanted.update(dict.fromkeys(cases))
        for case in cases:
            rates.setdefault(case.experiment, rate)
    flows = _flows_by_experiment(paper, "paper", wanted)
    return None if flows is None else sum(rates[name] * number for name, number in flows.items())


def _cpu_s_a_flow(paper: Paper, figure: FigureSpec, seconds: float | None) -> float | None:
    flows = _flows_by_experiment(paper, "quick", cases_of_figure(figure, paper, "quick"))
    return seconds * CORES / sum(flows.values()) if seconds is not None and flows else None


def _flows_by_experiment(paper: Paper, scale: Scale, cases: Iterable[Case]) -> Counter[str] | None:
    """Count the flows of all runs; None if a run has no number of them."""
    plan, found = Plan(paper, scale), Counter[str]()
    for case in cases:
        flows = plan.declared_flows(case)
        if flows is None:
            return None
        found[case.experiment] += flows
    return found


@cache
def _measured() -> dict[str, dict[str, float]]:
    return {paper: dict(figures) for paper, figures in read_times().get("quick", {}).items()}
