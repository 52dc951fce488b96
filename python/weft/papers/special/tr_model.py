"""TR's Fig. 6: the completion times of the paper's model beside simulated ones.

The scenario is that of the paper's section Design motivation, at its full size: the preset `tr-micro`, with flows of
one size that start together, as the model has them, in place of random ones. The paper does not say which flow it
shows, nor how many flows the second plot goes up to: here it is the mean over all flows, and up to the 100 of the
scenario. Beside what is drawn, the data tell in panels of their own which share of the flows sent a packet again, and
how far the model is off: the longer of its time and the simulated one over the shorter.

The figure names one set-up, with the schemes of the model: its fabric and transport, for other flows. Its option
`pairing` says between which hosts these are: `counterparts`, each host and one of the other group in turn, or `random`,
any two of both groups, drawn for each seed.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from weft.errors import SpecError
from weft.flows import measured
from weft.models import Working, work_out
from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.reading import nearest
from weft.papers.runs import Case
from weft.papers.special import SpecialContext
from weft.papers.special.tidy import figure_data
from weft.simulation import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAWN", "PANELS", "Point", "draw", "make", "trace"]

_GROUP = 10
"""Hosts of a group."""

_COUNTERPARTS, _RANDOM = "counterparts", "random"

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


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the axis of a panel: how many flows, and how large they are."""

    flows: int
    size_kb: int

    @property
    def trace_name(self) -> str:
        """Name of the file of its flows."""
        return f"{self.flows}-flows-of-{self.size_kb}-kb.csv"

    def model(self) -> Working:
        """Work out the paper's model here."""
        return work_out("tr", {"flows": self.flows, "size": f"{self.size_kb}KB"})


PANELS: Mapping[str, Sequence[Point]] = {
    "size": tuple(Point(20, size_kb) for size_kb in (100, 150, 200, 250, 300, 350)),
    "flows": tuple(Point(flows, 300) for flows in (20, 40, 60, 80, 100)),
}
"""The points of Fig. 6a (20 flows of more and more bytes) and of Fig. 6b (more and more flows of 300 KB)."""


def make(context: SpecialContext) -> FigureData:
    """Simulate every point with RPS and TR, with each seed, and work the model out beside it."""
    (name,), (cases,) = context.set_ups.keys(), context.set_ups.values()
    points = sorted({point for own in PANELS.values() for point in own}, key=lambda point: (point.flows, point.size_kb))
    keys = [(point, case) for point in points for case in cases]
    files = {point: _traces(context, point, {case.seed for case in cases}) for point in points}
    specs = [context.spec(case).with_table("traffic", {"trace": str(files[point][case.seed])}) for point, case in keys]
    found = context.simulate(specs, ["flows"])
    runs = replace(
        context.runs,
        runs=len(keys),
        failed=sum(result is None for result in found),
        seeds=len({case.seed for case in cases}),
        declared_seeds=context.paper.experiments[name].at(context.scale).seeds,
        flows=tuple(sorted({point.flows for point in points})),
        points={"size": len(PANELS["size"])},
    )
    return figure_data(_rows(dict(zip(keys, found, strict=True)), cases), runs)


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw both plots."""
    return draw_panels(paper, DRAWN, data, note)


def trace(point: Point, drawn: Random | None = None) -> str:
    """All flows at once: from each host of the first group to its counterpart in turn, or from and to drawn ones."""
    rows = []
    for index in range(point.flows):
        src, dst = (drawn.randrange(_GROUP), drawn.randrange(_GROUP)) if drawn else (index % _GROUP, index % _GROUP)
        rows.append(f"0,{src},{_GROUP + dst},{1_000 * point.size_kb}")
    return "\n".join(["start_us,src,dst,size_bytes", *rows, ""])


def _traces(context: SpecialContext, point: Point, seeds: Set[int]) -> Mapping[int, Path]:
    """Keep the flows of a point for each seed; those between counterparts are the same for all."""
    pairing = context.options.get("pairing", _COUNTERPARTS)
    if pairing == _RANDOM:
        name = f"random-{point.trace_name.removesuffix('.csv')}"
        return {
            seed: context.keep(f"{name}-seed-{seed}.csv", trace(point, Random(f"{point.trace_name} {seed}")))
            for seed in sorted(seeds)
        }
    if pairing != _COUNTERPARTS:
        raise SpecError(f"{context.figure.key}: options: {nearest('pairing', pairing, (_COUNTERPARTS, _RANDOM))}")
    return dict.fromkeys(seeds, context.keep(point.trace_name, trace(point)))


def _rows(found: Mapping[tuple[Point, Case], Result | None], cases: Sequence[Case]) -> Iterator[tuple[Any, ...]]:
    """Yield completion times in the panels drawn, and what is told beside them in as many more for each.

    These are the shares of flows that sent a packet again, then how far the model is off.
    """
    for panel, (axis, points) in enumerate(PANELS.items()):
        for scheme in dict.fromkeys(case.variant for case in cases):
            for point in points:
                x = point.size_kb if axis == "size" else point.flows
                model = point.model()
                resent = model.value("reordered") if scheme == "rps" else 0.0
                for case in (case for case in cases if case.variant == scheme):
                    run = found[point, case]
                    place = (scheme, str(x), float(x), case.seed)
                    mean_us, model_us = _mean_fct_us(run), model.value(f"{scheme}_time")
                    yield (panel, *place, _SIMULATED, mean_us)
                    yield (panel, *place, _MODEL, model_us)
                    yield (2 * len(PANELS) + panel, *place, "off", _off(mean_us, model_us))
                    yield (len(PANELS) + panel, *place, f"resent, {_SIMULATED}", _resent(run))
                    yield (len(PANELS) + panel, *place, f"resent, {_MODEL}", resent)


def _mean_fct_us(result: Result | None) -> float | None:
    return None if result is None else result.summary.fct_us.mean


def _off(one: float | None, other: float) -> float | None:
    """The larger over the smaller."""
    return None if not one else max(one / other, other / one)


def _resent(result: Result | None) -> float | None:
    """Share of the flows that sent a packet again."""
    if result is None:
        return None
    flows = measured(result.flows)
    return float((flows["retransmissions"] > 0).sum()) / flows.height
