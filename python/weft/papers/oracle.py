"""A perfect per-packet choice (reference) beside the load balancers of a paper.

It is the load balancer `oracle`, which sends each packet on the path that delivers it first, and pays nothing for
reordering. It joins the experiments whose variants differ in their load balancer alone, in every panel that shows
schemes beside each other. No claim is about it, and it bounds none: schemes may be ahead of it.
"""

from dataclasses import replace

from weft.papers.ceilings import ORACLE
from weft.papers.declared import Experiment, FigureSpec, PanelSpec, Paper

__all__ = ["with_oracle"]

_LABEL = "perfect per-packet choice (reference)"


def with_oracle(paper: Paper) -> Paper:
    """Return the paper with the oracle in each experiment that can have it."""
    experiments = {name: _experiment(one) for name, one in paper.experiments.items()}
    able = frozenset(name for name, one in experiments.items() if ORACLE in one.variants)
    figures = {name: _figure(one, able) for name, one in paper.figures.items()}
    return replace(paper, experiments=experiments, figures=figures, labels={**paper.labels, ORACLE: _LABEL})


def _experiment(one: Experiment) -> Experiment:
    schemes_alone = all(set(own) == {"scheme"} for own in one.variants.values())
    added = {ORACLE: {"scheme": ORACLE}} if schemes_alone and one.variants else {}
    quick = None if one.quick is None else _experiment(one.quick)
    return replace(one, variants={**one.variants, **added}, quick=quick)


def _figure(figure: FigureSpec, able: frozenset[str]) -> FigureSpec:
    return replace(figure, panels=tuple(_panel(panel, able) for panel in figure.panels))


def _panel(panel: PanelSpec, able: frozenset[str]) -> PanelSpec:
    if panel.experiment not in able or not panel.variants:
        return panel
    return replace(panel, variants=(*panel.variants, ORACLE))
