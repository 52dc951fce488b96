"""Figures of links, queues and receivers over time, of runs that were sampled."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from weft.faults import faults_of, first_of
from weft.figures import Groups, curve_style, legend_above, new_figure, note_below
from weft.over_time import (
    MEASURES,
    PAUSES,
    SHARED_BUFFER,
    Curve,
    any_pauses,
    any_shared_buffer,
    leaf_to_show,
    shown,
    uplink_curves,
)
from weft.palette import FAULT_COLOUR, looks
from weft.quantity import time_scale
from weft.spec import SpecText, parse_document
from weft.summary import FaultFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from weft.over_time import Shown

__all__ = [
    "figures_over_time",
    "pauses",
    "queues",
    "shared_buffer",
    "throughput",
    "uplink_spread",
    "uplink_utilisation",
]

_KIND_TITLES = {
    "unknown": "flows of no class",
    "short": "short",
    "long": "long",
    "best-effort": "best effort",
    "tc4": "traffic class 4",
    "tc5": "traffic class 5",
    "tc6": "traffic class 6",
    "tc7": "traffic class 7",
}


def figures_over_time(groups: Groups) -> dict[str, Figure]:
    """Every figure over time by file name; empty when no run was sampled."""
    runs = shown(groups)
    if not runs:
        return {}
    figures = {"queues": _pair(runs, "queue_mean", "queue_largest"), "throughput": _throughput(runs)}
    if leaf_to_show(runs.values()) is not None:
        figures["uplink-utilisation"] = _uplink_utilisation(runs)
        figures["uplink-spread"] = _pair(runs, "utilisation", "spread")
    if any_pauses(runs.values()):
        figures["pauses"] = _pair(runs, *PAUSES)
    if any_shared_buffer(runs.values()):
        figures["shared_buffer"] = _pair(runs, *SHARED_BUFFER)
    if note := _of_faults(groups):
        for figure in figures.values():
            note_below(figure, note)
    return figures


def uplink_utilisation(groups: Groups) -> Figure:
    """Utilisation of each uplink of the busiest leaf over time, a panel a scheme."""
    return _uplink_utilisation(shown(groups))


def uplink_spread(groups: Groups) -> Figure:
    """Utilisation of all uplinks over time, and its standard deviation over the uplinks of a leaf."""
    return _pair(shown(groups), "utilisation", "spread")


def queues(groups: Groups) -> Figure:
    """Backlog of the uplinks' queues over time: the mean over queues, and the longest queue."""
    return _pair(shown(groups), "queue_mean", "queue_largest")


def pauses(groups: Groups) -> Figure:
    """How many links are paused at a time: those of hosts, and those between switches."""
    return _pair(shown(groups), *PAUSES)


def shared_buffer(groups: Groups) -> Figure:
    """Draw the occupancy of the switches' shared buffers over time: the mean of all, and the largest of any."""
    return _pair(shown(groups), *SHARED_BUFFER)


def throughput(groups: Groups) -> Figure:
    """Delivered payload over time: all receivers, the busiest one, and each kind of flow if there are several."""
    return _throughput(shown(groups))


def _pair(runs: Mapping[str, "Shown"], *keys: str) -> Figure:
    with new_figure(7.2, 3.3) as figure:
        for axes, key in zip(figure.subplots(1, len(keys)), keys, strict=True):
            _panel(axes, runs, {label: MEASURES[key].read(one) for label, one in runs.items()})
            axes.set_title(MEASURES[key].title)
            axes.set_ylabel(MEASURES[key].axis)
        legend_above(figure, len(runs))
    return figure


def _throughput(runs: Mapping[str, "Shown"]) -> Figure:
    panels = [
        (MEASURES[key].title, {label: MEASURES[key].read(one) for label, one in runs.items()})
        for key in ("throughput", "receiver")
    ]
    host = next(iter(runs.values())).receiver
    panels[1] = (f"{panels[1][0]} (host{host})", panels[1][1])
    kinds = sorted({kind for one in runs.values() for kind in _kinds(one)})
    if len(kinds) > 1:
        panels += [(_kind_title(*kind), {label: _of_kind(one, *kind) for label, one in runs.items()}) for kind in kinds]
    rows = -(-len(panels) // 2)
    with new_figure(7.2, 0.9 + 2.3 * rows) as figure:
        grid = list(figure.subplots(rows, 2, squeeze=False).flat)
        for axes, (title, curves) in zip(grid, panels, strict=False):
            _panel(axes, runs, curves)
            axes.set_title(title)
            axes.set_ylabel("throughput (Gbit/s)")
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        legend_above(figure, len(runs))
    return figure


def _uplink_utilisation(runs: Mapping[str, "Shown"]) -> Figure:
    leaf = leaf_to_show(runs.values())
    assert leaf is not None
    rows = -(-len(runs) // 2)
    with new_figure(7.2, 0.9 + 2.1 * rows) as figure:
        grid = figure.subplots(rows, min(2, len(runs)), sharex=True, sharey=True, squeeze=False)
        unit, scale = time_scale([max(one.run.end_us for one in runs.values())])
        for axes, (label, one) in zip(grid.flat, runs.items(), strict=False):
            curves = uplink_curves(one, leaf)
            colours = mpl.colormaps["viridis"]
            for place, (link, curve) in enumerate(curves.items()):
                colour = colours(0.92 * place / max(len(curves) - 1, 1))
                hit = any(link in fault.links for fault in one.faults)
                style = {"color": FAULT_COLOUR, "linewidth": 1.8} if hit else {"color": colour, "linewidth": 1.0}
                _steps(axes, curve, scale, label=f"{link} (fault)" if hit else link, **style)
            _shade(axes, one, scale)
            axes.set_title(label)
            axes.set_ylim(0.0, 1.02)
        for axes in list(grid.flat)[len(runs) :]:
            axes.set_axis_off()
        for axes in list(grid.flat)[: len(runs)][-2:]:
            axes.set_xlabel(f"time ({unit})")
            axes.tick_params(labelbottom=True)
            axes.set_xlim(left=0.0)
        for axes in grid[:, 0]:
            axes.set_ylabel("utilisation")
        legend_above(figure, 4)
    return figure


def _panel(axes: "Axes", runs: Mapping[str, "Shown"], curves: Mapping[str, Curve]) -> None:
    """Draw one curve a scheme, against time, and shade the faults."""
    unit, scale = time_scale([max((curve.time_us[-1] for curve in curves.values() if curve.time_us), default=0.0)])
    for turn, (label, look) in enumerate(looks(curves).items()):
        style = curve_style(look, len(curves[label].values), turn, curves)
        _steps(axes, curves[label], scale, label=label, linewidth=1.2, **style)
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    _shade(axes, next(iter(runs.values())), scale)
    axes.set_xlabel(f"time ({unit})")


def _of_faults(groups: Groups) -> str:
    """Say what is shaded; nothing where nothing is."""
    run = next(iter(groups.values()))[0]
    faults = faults_of(parse_document(SpecText(run.spec)).get("fabric", {}))
    words = [fault.words for fault, facts in zip(faults, run.summary.faults, strict=False) if _passes(facts)]
    return f"Shaded: {'; '.join(first_of(words))}." if words else ""


def _passes(fault: FaultFacts) -> bool:
    """Whether it does not hold for the whole run."""
    return fault.from_us > 0.0 or fault.until_us is not None


def _shade(axes: "Axes", one: "Shown", scale: float) -> None:
    """Shade the time of each fault that does not hold for the whole run."""
    right = axes.get_xlim()[1]
    for fault in one.faults:
        ends = right if fault.until_us is None else min(fault.until_us / scale, right)
        begins = fault.from_us / scale
        if begins < ends and _passes(fault):
            axes.axvspan(begins, ends, color=FAULT_COLOUR, alpha=0.13, linewidth=0.0, zorder=0)
    axes.set_xlim(right=right)


def _steps(axes: "Axes", curve: Curve, scale: float, **style: Any) -> None:
    """Draw values that hold for the interval that ends at their time."""
    if not curve.values:
        return
    times = [0.0, *(time / scale for time in curve.time_us)]
    axes.step(times, [curve.values[0], *curve.values], where="pre", **style)


def _kinds(one: "Shown") -> list[tuple[str, bool]]:
    return one.run.deliveries.select("class", "background").unique().rows()


def _of_kind(one: "Shown", name: str, background: bool) -> Curve:
    import polars as pl

    mine = (pl.col("class") == name) & (pl.col("background") == background)
    frame = one.curves.throughput(["class", "background"]).filter(mine)
    return Curve(frame.get_column("time_us").to_list(), frame.get_column("throughput_gbps").to_list())


def _kind_title(name: str, background: bool) -> str:
    title = _KIND_TITLES[name]
    return f"Throughput, {title}{', long-lived' if background else ''}"
