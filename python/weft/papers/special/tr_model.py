"""TR's Fig. 6: the completion times of the paper's model beside simulated ones, as `weft model tr` shows them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.special import SpecialContext
from weft.papers.special.tidy import figure_data
from weft.papers.tr_fig6 import PANELS, SCHEMES, Point, model_time_us, spec_of, trace, trace_name
from weft.simulation import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "make"]

_SEEDS = {"quick": 3, "paper": 10}
_MODEL, _SIMULATED = "model", "simulation"
_MEASURES = (Measure(label=_SIMULATED, unit="us"), Measure(label=_MODEL, unit="us"))
DRAWN = (
    PanelSpec(
        "(a) 20 flows of more and more bytes",
        "",
        "lines",
        _MEASURES,
        x="size",
        x_label="size of a flow (KB)",
        y_label="mean FCT",
    ),
    PanelSpec(
        "(b) More and more flows of 300 KB",
        "",
        "lines",
        _MEASURES,
        x="flows",
        x_label="number of flows",
        y_label="mean FCT",
    ),
)


def make(context: SpecialContext) -> FigureData:
    """Simulate every point with RPS and TR, with each seed, and work the model out beside it."""
    seeds = range(1, _SEEDS[context.scale] + 1)
    points = sorted({point for own in PANELS.values() for point in own}, key=lambda point: (point.flows, point.size_kb))
    files = {point: context.keep(trace_name(point), trace(point)) for point in points}
    keys = [(point, scheme, seed) for point in points for scheme in SCHEMES for seed in seeds]
    found = context.simulate([spec_of(scheme, seed, files[point]) for point, scheme, seed in keys], ["flows"])
    runs = replace(
        context.runs,
        runs=len(keys),
        failed=sum(result is None for result in found),
        seeds=len(seeds),
        flows=tuple(sorted({point.flows for point in points})),
        points={"size": len(PANELS["a"])},
    )
    return figure_data(_rows(dict(zip(keys, found, strict=True)), seeds), runs)


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw both plots."""
    return draw_panels(paper, DRAWN, data, note)


def _rows(found: dict[tuple[Point, str, int], Result | None], seeds: range) -> Iterator[tuple[Any, ...]]:
    for panel, name in enumerate(PANELS):
        for scheme in SCHEMES:
            for point in PANELS[name]:
                x = point.size_kb if name == "a" else point.flows
                model_us = model_time_us(point, scheme)
                for seed in seeds:
                    yield (panel, scheme, str(x), float(x), seed, _SIMULATED, _mean_fct_us(found[point, scheme, seed]))
                for seed in seeds:
                    yield (panel, scheme, str(x), float(x), seed, _MODEL, model_us)


def _mean_fct_us(result: Result | None) -> float | None:
    mean = None if result is None else result.flows["fct_us"].mean()
    return float(mean) if isinstance(mean, int | float) else None
