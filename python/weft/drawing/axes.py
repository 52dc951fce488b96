"""Axes of all plots: legible ticks, gaps, scales that suit the values."""

import math
import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from weft.drawing.view import Place
from weft.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["empty", "label_sizes", "positions", "set_log", "tick_groups", "tick_places", "value_axis", "whiskers"]

_CHARACTER_IN = 0.075
"""Width of a character of a tick's label, in inches."""
_LONG = 8
"""Labels with more letters are broken at spaces."""
_CROWDED = 0.045
"""Ticks closer than this share of a linear axis run into each other."""

_SIZES = (("GB", 1e9), ("MB", 1e6), ("KB", 1e3))


def empty(axes: "Axes") -> None:
    """Say that there is nothing to show, in place of axes without a curve."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center", color="#777777")


def positions(own: Sequence[Place], *, log: bool) -> list[float] | None:
    """Where the points stand on a numeric axis; None if they are names and stand side by side.

    Numbers that carry a unit in their label, such as 10KB and 1MB, stand side by side where a linear axis would push
    their labels into one another.
    """
    numbers = [place.number for place in own]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers) or not known or (log and min(known) <= 0.0):
        return None
    if not log and _crowded(known) and not all(_is_number(place.label) for place in own):
        return None
    return known


def tick_places(axes: "Axes", own: Sequence[Place], where: Sequence[float] | None, *, log: bool) -> None:
    """Put a tick at each point, with the point's own label, unless numbers stand too close for that."""
    if where is None:
        axes.set_xticks(range(len(own)), [place.label for place in own])
        _fit_labels(axes, [place.label for place in own])
        axes.set_xlim(-0.5, len(own) - 0.5)
        return
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    if log or not _crowded(where):
        labels = _spaced(axes, [place.label for place in own], [math.log(x) if log else x for x in where])
        axes.set_xticks(list(where), labels)
        axes.xaxis.set_minor_formatter(NullFormatter())
    if len(where) == 1:
        half = abs(where[0]) * 0.5 or 1.0
        axes.set_xlim(where[0] - half, where[0] + half)


def tick_groups(axes: "Axes", labels: Sequence[str]) -> None:
    """Label groups of bars or boxes, with lines between them."""
    axes.set_xticks(range(len(labels)), labels)
    _fit_labels(axes, labels)
    axes.set_xlim(-0.55, len(labels) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)


def value_axis(
    axes: "Axes", values: Sequence[Estimate], divisor: float, *, log: bool, from_zero: bool, points: bool = False
) -> None:
    """Scale y for these values: logarithmic if asked for and possible, from 0 otherwise unless some are below.

    `points` tells that there are points, which must not be cut in two, rather than bars.
    """
    means = [value.mean / divisor for value in values]
    if log and any(mean > 0.0 for mean in means):
        set_log(axes, means, "y")
    elif from_zero and min(means, default=0.0) >= 0.0:
        top = axes.get_ylim()[1] if max(means, default=0.0) > 0.0 else 1.0
        # A line along zero is seen whole.
        axes.set_ylim(-0.03 * top if points and min(means) < 0.02 * top else 0.0, top)
    elif min(means, default=0.0) >= 0.0:
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
    if not log:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def set_log(axes: "Axes", values: Sequence[float], which: str) -> None:
    """Make an axis logarithmic with plain labels; values of 0 get a linear piece below the smallest other one."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    choose = axes.set_xscale if which == "x" else axes.set_yscale
    positive = [value for value in values if value > 0.0]
    low, high = min(positive), max(positive)
    if len(positive) < len(values):
        choose("symlog", linthresh=low)
    else:
        choose("log", nonpositive="clip")
        limits = axes.set_xlim if which == "x" else axes.set_ylim
        limits(low / 1.4, high * 1.4)
        narrow = high / low < 100.0
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def label_sizes(axes: "Axes") -> None:
    """Label the decades of x, in bytes, each with the unit that suits it: 1 B, 1 KB, 1 MB."""

    def text(value: float, _: int) -> str:
        name, divisor = next(((name, scale) for name, scale in _SIZES if value >= scale), ("B", 1.0))
        return f"{value / divisor:,.6g} {name}"

    axes.xaxis.set_major_locator(LogLocator(numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(text))
    axes.tick_params(axis="x", labelsize="small")


def whiskers(values: Sequence[Estimate | None], divisor: float, *, log: bool) -> list[list[float]] | None:
    """Half-widths below and above; None, rather than caps of no height, where there is no interval.

    On a logarithmic axis the lower one ends before zero.
    """
    if all(value is None or value.half_width is None for value in values):
        return None
    above = [0.0 if value is None else (value.half_width or 0.0) / divisor for value in values]
    means = [0.0 if value is None else value.mean / divisor for value in values]
    below = [min(half, 0.98 * mean) if log and mean > 0.0 else half for half, mean in zip(above, means, strict=True)]
    return [below, above]


def _fit_labels(axes: "Axes", labels: Sequence[str]) -> None:
    """Break labels at spaces, and slant them if that is not enough."""
    room = max(int(_width_in(axes) / max(len(labels), 1) / _CHARACTER_IN), 3)
    # A number stays beside its unit.
    whole = [re.sub(r"(?<=\d) (?=[A-Za-zµ%]{1,4}\b|%)", "\u00a0", label) for label in labels]
    broken = [textwrap.fill(label, room, break_long_words=False, break_on_hyphens=False) for label in whole]
    if all(max(map(len, text.split("\n")), default=0) <= room for text in broken):
        axes.set_xticklabels(broken)
    else:
        axes.set_xticklabels(labels, rotation=30.0, ha="right", rotation_mode="anchor")


def _spaced(axes: "Axes", labels: Sequence[str], where: Sequence[float]) -> list[str]:
    """Leave out labels that would run into the one before; break those of several words."""
    width_in = _width_in(axes)
    span = max(where) - min(where)
    shown: list[str] = []
    free_from = -math.inf
    for label, x in zip(labels, where, strict=True):
        text = label.replace(" ", "\n") if len(label) > _LONG else label
        middle_in = (x - min(where)) / span * width_in if span else 0.0
        half_in = _CHARACTER_IN * max(map(len, text.split("\n")), default=0) / 2.0
        fits = middle_in - half_in > free_from
        shown.append(text if fits else "")
        free_from = middle_in + half_in + _CHARACTER_IN / 2.0 if fits else free_from
    return shown


def _width_in(axes: "Axes") -> float:
    return axes.get_position().width * axes.figure.get_figwidth()  # type: ignore[union-attr]


def _crowded(numbers: Sequence[float]) -> bool:
    ordered = sorted(numbers)
    span = ordered[-1] - ordered[0]
    return span > 0.0 and min(after - before for before, after in pairwise(ordered)) / span < _CROWDED


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
