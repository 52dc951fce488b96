"""TR's Fig. 6: the completion times of the paper's model beside simulated ones.

The scenario is that of the paper's section Design motivation, at its full size: the preset `tr-micro`, with flows of
one size that start together, as the model has them, in place of random ones. The paper does not say which flow it
shows, nor how many flows the second plot goes up to: here it is the mean over all flows, and up to the 100 of the
scenario. Beside what is drawn, the data tell which share of the flows sent a packet again, in panels of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.catalog import preset
from weft.flows import measured
from weft.models import Working, work_out
from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.special import SpecialContext
from weft.papers.special.tidy import figure_data
from weft.simulation import Result
from weft.spec import SpecText

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAWN", "PANELS", "Point", "draw", "make", "trace"]

_SCHEMES = ("rps", "tr")
_GROUP = 10
"""Hosts of a group: each pair of one of the first group and one of the second has the same number of flows."""
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


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the axis of a panel: how many flows, and how large they are."""

    flows: int
    size_kb: int

    @property
    def trace_name(self) -> str:
        """What the file of its flows is called."""
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
    seeds = range(1, _SEEDS[context.scale] + 1)
    points = sorted({point for own in PANELS.values() for point in own}, key=lambda point: (point.flows, point.size_kb))
    files = {point: context.keep(point.trace_name, trace(point)) for point in points}
    keys = [(point, scheme, seed) for point in points for scheme in _SCHEMES for seed in seeds]
    found = context.simulate([_spec(scheme, seed, files[point]) for point, scheme, seed in keys], ["flows"])
    runs = replace(
        context.runs,
        runs=len(keys),
        failed=sum(result is None for result in found),
        seeds=len(seeds),
        flows=tuple(sorted({point.flows for point in points})),
        points={"size": len(PANELS["size"])},
    )
    return figure_data(_rows(dict(zip(keys, found, strict=True)), seeds), runs)


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw both plots."""
    return draw_panels(paper, DRAWN, data, note)


def trace(point: Point) -> str:
    """All flows at once, from each host of the first group to its counterpart in the second in turn."""
    rows = [f"0,{index % _GROUP},{_GROUP + index % _GROUP},{1_000 * point.size_kb}" for index in range(point.flows)]
    return "\n".join(["start_us,src,dst,size_bytes", *rows, ""])


def _spec(scheme: str, seed: int, trace_file: Path) -> SpecText:
    spec = preset("tr-micro").spec.with_table("traffic", {"trace": str(trace_file)})
    return spec.with_table("balancer", {"name": scheme}).with_table("run", spec.table("run") | {"seed": seed})


def _rows(found: Mapping[tuple[Point, str, int], Result | None], seeds: range) -> Iterator[tuple[Any, ...]]:
    """Yield completion times in the panels drawn, then shares of flows that sent a packet again in as many more."""
    for panel, (axis, points) in enumerate(PANELS.items()):
        for scheme in _SCHEMES:
            for point in points:
                x = point.size_kb if axis == "size" else point.flows
                model = point.model()
                resent = model.value("reordered") if scheme == "rps" else 0.0
                for seed in seeds:
                    run = found[point, scheme, seed]
                    place = (scheme, str(x), float(x), seed)
                    yield (panel, *place, _SIMULATED, _mean_fct_us(run))
                    yield (panel, *place, _MODEL, model.value(f"{scheme}_time"))
                    yield (len(PANELS) + panel, *place, f"resent, {_SIMULATED}", _resent(run))
                    yield (len(PANELS) + panel, *place, f"resent, {_MODEL}", resent)


def _mean_fct_us(result: Result | None) -> float | None:
    mean = None if result is None else measured(result.flows)["fct_us"].mean()
    return float(mean) if isinstance(mean, int | float) else None


def _resent(result: Result | None) -> float | None:
    """Share of the flows that sent a packet again."""
    if result is None:
        return None
    flows = measured(result.flows)
    return float((flows["retransmissions"] > 0).sum()) / flows.height
