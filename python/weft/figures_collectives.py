"""The figure of collectives: how long they took under each scheme, and where the time on their critical paths went."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weft.collectives import (
    COMPLETION,
    CRITICAL_PARTS,
    completion_metric,
    critical_parts,
    has_collectives,
    ideal_us,
)
from weft.figures import legend_above, new_figure
from weft.metrics import over_runs
from weft.palette import CRITICAL_COLOURS, looks
from weft.quantity import time_scale
from weft.samples import distinct
from weft.statistics import Estimate
from weft.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["collectives"]

Groups = Mapping[str, Sequence[Summary]]

_WIDTH_IN, _ROW_IN, _REST_IN = 7.2, 0.3, 1.35


def collectives(groups: Groups, line_rate_mbps: float | None = None) -> "Figure | None":
    """Completion time by scheme with bars of confidence, and critical paths, stacked; None without collectives.

    Of unlike collectives it shows those that schemes are judged by.

    With the rate of a host's cable, a line says how long collectives with a bus bandwidth would take at all of it.
    """
    if not has_collectives(groups):
        return None
    found = {
        label: value for label, runs in groups.items() if (value := over_runs(COMPLETION, distinct(runs))) is not None
    }
    parts = {label: critical_parts(runs) for label, runs in groups.items()}
    unit, scale = time_scale([one.mean + (one.half_width or 0.0) for one in found.values()])
    with new_figure(_WIDTH_IN, _REST_IN + _ROW_IN * len(groups)) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.25))
        _completion(left, groups, found, scale)
        if (ideal := ideal_us([run for runs in groups.values() for run in runs], line_rate_mbps)) is not None:
            left.axvline(ideal / scale, color="#222222", linewidth=1.0, linestyle="dashed")
            left.annotate("line rate", (ideal / scale, 1.0), (2, 1), xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=7.0, va="bottom", ha="center")  # fmt: skip
        shown = _critical(right, list(groups), parts, scale)
        judged = completion_metric(groups).title
        for axes, title in ((left, judged[0].upper() + judged[1:]), (right, "Critical path")):
            axes.set_title(title, pad=12.0)
            axes.set_xlabel(f"time ({unit})")
            axes.set_xlim(left=0.0)
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
        left.set_yticks(range(len(groups)), list(groups))
        left.invert_yaxis()
        if shown:
            legend_above(figure, shown, of=right)
    return figure


def _completion(axes: "Axes", groups: Groups, found: Mapping[str, Estimate], scale: float) -> None:
    """A bar a scheme, with its interval where there are several seeds."""
    own = looks(groups)
    for place, label in enumerate(groups):
        if (value := found.get(label)) is None:
            axes.annotate("none finished", (0.0, place), (4, 0), textcoords="offset points", fontsize=8.0, va="center")
            continue
        axes.barh(
            place,
            value.mean / scale,
            height=0.66,
            xerr=None if value.half_width is None else value.half_width / scale,
            color=own[label].colour,
            hatch=own[label].hatch,
            edgecolor="white",
            linewidth=0.4,
            error_kw={"elinewidth": 0.8, "capsize": 1.5, "ecolor": "#222222"},
        )
        if value.sign:
            axes.annotate("→ at least", (value.mean / scale, place), (2, 0), textcoords="offset points", fontsize=7.0,
                va="center")  # fmt: skip


def _critical(axes: "Axes", labels: Sequence[str], parts: Mapping[str, Mapping[str, float]], scale: float) -> int:
    """A stacked bar a scheme; returns how many parts are to be seen."""
    total = max((sum(own.values()) for own in parts.values()), default=0.0)
    left = [0.0] * len(labels)
    shown = 0
    for key, title in CRITICAL_PARTS.items():
        widths = [parts[label].get(key, 0.0) / scale for label in labels]
        if max(widths, default=0.0) * scale <= total * _LEAST_SHARE:
            continue
        axes.barh(range(len(labels)), widths, left=left, height=0.66, label=title, color=CRITICAL_COLOURS[key])
        left = [start + width for start, width in zip(left, widths, strict=True)]
        shown += 1
    return shown


_LEAST_SHARE = 1e-4
"""Least share of the longest critical path: a part that is smaller everywhere is neither drawn nor in the legend."""
