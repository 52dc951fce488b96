"""The picture of a deadlock: the circle of paused links, each of which waits for the next."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weft.figures import new_figure, note_below
from weft.palette import FAULT_COLOUR
from weft.quantity import time_us

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weft.simulation import Result

__all__ = ["deadlock"]

_LEAST_IN, _MOST_IN = 3.6, 9.0
_MOST_NAMED = 24
"""With more links, switches alone have their names: there is no room for what stands at each link."""
_INK, _PAPER = "#222222", "white"


def deadlock(result: "Result") -> "Figure | None":
    """Draw the links on which nothing would ever have moved again, and how long each was paused; None without any.

    A switch stands at the corner of the circle from which its link leaves; one that is passed twice stands there twice.
    """
    lossless = result.summary.lossless
    if lossless is None or not lossless.deadlock:
        return None
    circle = list(lossless.deadlock)
    ends = {link: (start, end) for link, start, end in result.links.select("link", "from", "to").iter_rows()}
    size = min(max(_LEAST_IN, 0.9 + 0.55 * len(circle)), _MOST_IN)
    with new_figure(size, size) as figure:
        axes = figure.subplots()
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set_xlim(-1.45, 1.45)
        axes.set_ylim(-1.3, 1.3)
        _draw(axes, [ends[link] for link in circle], _paused(result, circle))
        many = "" if len(circle) <= _MOST_NAMED else f" The circle has {len(circle)} links."
        note_below(
            figure,
            "A deadlock: each link is paused until the next one on the circle has sent what came by it: none ever does."
            f" Times: how long each was paused when the run was ended.{many}",
        )
    return figure


def _paused(result: "Result", circle: Sequence[str]) -> Mapping[str, float]:
    """Return how long each link was paused because of the next one, in microseconds."""
    found = dict.fromkeys(circle, 0.0)
    following = dict(zip(circle, [*circle[1:], circle[0]], strict=True))
    for link, cause, paused_us in result.pauses.select("link", "because_of", "paused_us").iter_rows():
        if following.get(link) == cause:
            found[link] += paused_us
    return found


def _draw(axes: "Axes", circle: Sequence[tuple[str, str]], paused: Mapping[str, float]) -> None:
    count = len(circle)
    # The first one stands on top, and all go on clockwise.
    places = [(math.sin(turn), math.cos(turn)) for turn in (2.0 * math.pi * at / count for at in range(count))]
    letters = 9.0 if count <= _MOST_NAMED else max(9.0 * _MOST_NAMED / count, 3.5)
    for at, (start, _) in enumerate(circle):
        (x, y), (to_x, to_y) = places[at], places[(at + 1) % count]
        arrow = {
            "arrowstyle": "-|>",
            "color": FAULT_COLOUR,
            "linewidth": 2.2,
            "shrinkA": 1.6 * letters,
            "shrinkB": 1.6 * letters,
            "mutation_scale": 1.5 * letters,
            "connectionstyle": "arc3,rad=-0.25" if count == 2 else "arc3",
        }
        axes.annotate("", (to_x, to_y), (x, y), arrowprops=arrow)
        axes.text(x, y, start, fontsize=letters, color=_PAPER, ha="center", va="center", zorder=3.0,
            bbox={"boxstyle": "round,pad=0.4", "facecolor": _INK, "edgecolor": _INK})  # fmt: skip
    if count > _MOST_NAMED:
        return
    for at, us in enumerate(paused.values()):
        x, y = _outside(places[at], places[(at + 1) % count], count)
        flat = abs(x) < 0.15 and count > 2
        across = "center" if flat else "left" if x > 0.0 else "right"
        along = "center" if not flat else "bottom" if y > 0.0 else "top"
        axes.text(x, y, f"paused\n{time_us(us)}", fontsize=7.5, color=FAULT_COLOUR, ha=across, va=along)


def _outside(one: tuple[float, float], other: tuple[float, float], count: int) -> tuple[float, float]:
    """Return where a word on the link between two places stands: beyond its middle, seen from that of the circle."""
    x, y = (one[0] + other[0]) / 2.0, (one[1] + other[1]) / 2.0
    away = math.hypot(x, y)
    if count == 2:  # both links pass the middle, each bent to its right
        return (0.42, 0.0) if one[1] > other[1] else (-0.42, 0.0)
    return x * (away + 0.08) / away, y * (away + 0.08) / away
