"""Distributions of flow sizes, as the simulations draw from them: no run is needed.

Options: `workloads`, the names of those to show; `bins`, the set of ranges of sizes (`weft bins`) by which their
numbers are told. Rows: of each workload the mean size, and the shares of flows and of bytes in each range.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from weft.catalog import entry
from weft.errors import SpecError
from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.measured import POOLED, FigureData
from weft.papers.special import SpecialContext
from weft.papers.special.tidy import figure_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LEFT_OUT", "byte_share_above", "draw", "flow_share_up_to", "make"]

LEFT_OUT = "it shows what simulations begin with: no run is needed"

Knots = Sequence[tuple[float, float]]
"""Size in bytes and the share of the flows that have at most this size, linear in between."""

_STEPS = 24
"""Points from one knot to the next: on a logarithmic axis the straight line between them is a curve."""


def make(context: SpecialContext) -> FigureData:
    """Return a curve a workload, and its numbers as rows."""
    names = context.options.get("workloads", [])
    if not isinstance(names, list) or not names:
        raise SpecError(f"{context.figure.key}: options.workloads: expected a list of workloads, not {names!r}")
    ranges = _ranges(context)
    rows: list[tuple[object, ...]] = []
    curves: list[tuple[object, ...]] = []
    for name in names:
        raw = entry("workloads", name).raw
        knots = [(float(size), float(share)) for size, share in raw["knots"]]
        rows += [
            (0, name, "", None, 1, measure, value) for measure, value in _numbers(knots, raw["mean_bytes"], ranges)
        ]
        curves += [(0, name, "", POOLED, order, *point) for order, point in enumerate(_points(knots))]
    return figure_data(rows, context.runs, curves)


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw the curves over sizes on a logarithmic axis."""
    from weft.papers.drawing import draw_panels

    panel = PanelSpec(
        title="",
        experiment="",
        plot="cdf",
        measures=(Measure(table="flows", column="size_bytes", unit="bytes"),),
        x_label="flow size",
        y_label="share of flows",
        x_scale="log",
    )
    names = {name: name.replace("-", " ") for name in figure.options["workloads"]}
    return draw_panels(replace(paper, labels={**names, **paper.labels}), [panel], data, note)


def flow_share_up_to(knots: Knots, size: float) -> float:
    """Return the share of the flows that have at most this size."""
    share = 0.0
    for (low, before), (high, after) in pairwise(knots):
        if size >= high:
            share = after
        elif size >= low:
            return before + (after - before) * (size - low) / (high - low)
    return share


def byte_share_above(knots: Knots, size: float) -> float:
    """Return the share of the bytes that is in flows of more than this size."""
    every = above = 0.0
    for (low, before), (high, after) in pairwise(knots):
        every += (after - before) * (low + high) / 2.0
        if high > size:
            start = max(low, size)
            part = (high - start) / (high - low) if high > low else 1.0
            above += (after - before) * part * (start + high) / 2.0
    return above / every


def _ranges(context: SpecialContext) -> dict[str, tuple[float, float]]:
    """The ranges by name: above one size, up to another."""
    name = context.options.get("bins")
    if not isinstance(name, str):
        raise SpecError(f"{context.figure.key}: options.bins: expected the name of a set of ranges, not {name!r}")
    # Sizes are whole numbers of bytes.
    return {
        one["title"]: (one["from_bytes"] - 1.0, float("inf") if one["up_to_bytes"] is None else one["up_to_bytes"])
        for one in entry("bins", name).raw["bounds"]
    }


def _numbers(knots: Knots, mean_bytes: float, ranges: Mapping[str, tuple[float, float]]) -> list[tuple[str, float]]:
    found = [("mean size (bytes)", mean_bytes)]
    for name, (low, high) in ranges.items():
        found.append((f"flows {name}", flow_share_up_to(knots, high) - flow_share_up_to(knots, low)))
    for name, (low, high) in ranges.items():
        found.append((f"bytes {name}", byte_share_above(knots, low) - byte_share_above(knots, high)))
    return found


def _points(knots: Knots) -> list[tuple[float, float]]:
    """Points of the curve: a flow has at least one byte, whatever the distribution begins with."""
    found = [knots[0]]
    for (low, before), (high, after) in pairwise(knots):
        parts = sorted(_parts(max(low, 1.0), high)) if high > low else [1.0]
        found += [(low + (high - low) * part, before + (after - before) * part) for part in parts]
    return [(max(size, 1.0), share) for size, share in found]


def _parts(low: float, high: float) -> set[float]:
    """Places on the way from one size to another, evenly on a linear axis and on a logarithmic one."""
    even = {step / _STEPS for step in range(1, _STEPS + 1)}
    if high <= low:
        return even
    ratio = high / low
    return even | {(ratio ** (step / _STEPS) - 1.0) / (ratio - 1.0) for step in range(1, _STEPS)}
