"""A picture of the fabric, for the head of a report: switches, hosts and cables, those with a fault marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from weft.report.fabric_drawing import Node, place_nodes

__all__ = ["Mark", "Picture", "picture"]

Mark: TypeAlias = Literal["cut", "degraded"]
"""Effect of a fault on a cable: it carries nothing, or less than without the fault."""

_WIDTH, _SIDE, _TOP, _BOTTOM, _RISE = 1000.0, 40.0, 26.0, 12.0, 86.0
_MOST_HOSTS = 256
"""With more hosts, switches alone are drawn."""
_BEND = 30.0
"""How far cables between switches of one level are bent away from them."""
_LETTER = 7.0
"""The width of a letter of a name."""


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable, or several in parallel."""

    path: str
    """As SVG writes it."""
    mark: Mark | None
    title: str
    """Tooltip of the cable: its ends and the effect of faults on it."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node."""

    x: float
    y: float
    width: float
    height: float
    name: str
    """Label above the node; empty where there is no room."""
    middle: float
    """Where that is centred."""
    host: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that a template draws."""

    width: float
    height: float
    cables: Sequence[Cable]
    """Those with a mark last, so that none is drawn over."""
    boxes: Sequence[Box]
    hosts_left_out: int


def picture(links: pl.DataFrame, marks: Mapping[str, tuple[Mark, str]]) -> Picture | None:
    """Draw a run's table of links; `marks` says of some links what a fault did, in one word and in several."""
    nodes = place_nodes(links)
    hosts = sum(node.level == 0 for node in nodes)
    if not nodes:
        return None
    left_out = hosts if hosts > _MOST_HOSTS else 0
    shown = [node for node in nodes if node.level > 0 or not left_out]
    top = max(node.level for node in shown)
    lowest = min(node.level for node in shown)
    height = _TOP + _BOTTOM + _RISE * max(top - lowest, 0)
    places = {
        node.name: (_SIDE + node.x * (_WIDTH - 2 * _SIDE), _TOP + _RISE * (top - node.level), node.level)
        for node in shown
    }
    per_level = {level: sum(node.level == level for node in shown) for level in range(top + 1)}
    boxes = [_box(node, places[node.name], _WIDTH / per_level[node.level]) for node in shown]
    return Picture(_WIDTH, round(height, 1), _cables(links, places, marks), boxes, left_out)


def _box(node: Node, place: tuple[float, float, int], room: float) -> Box:
    x, y, level = place
    half = min(3.0, 0.3 * room) if level == 0 else min(16.0, max(3.0, 0.3 * room))
    tall = half if level == 0 else min(6.0, half)
    name = node.name if level > 0 and room > _LETTER * len(node.name) + 8 else ""
    middle = min(max(x, _LETTER * len(name) / 2), _WIDTH - _LETTER * len(name) / 2)
    left, above, width, height = (round(value, 1) for value in (x - half, y - tall, 2 * half, 2 * tall))
    return Box(left, above, width, height, name, round(middle, 1), level == 0)


def _cables(
    links: pl.DataFrame, places: Mapping[str, tuple[float, float, int]], marks: Mapping[str, tuple[Mark, str]]
) -> list[Cable]:
    found: dict[tuple[str, str], dict[str, tuple[Mark, str]]] = {}
    for link, start, end in links.select("link", "from", "to").iter_rows():
        if start in places and end in places:
            ends = (start, end) if (end, start) not in found else (end, start)
            mine = found.setdefault(ends, {})
            if link in marks:
                mine[link] = marks[link]
    cables = []
    for (start, end), marked in found.items():
        # A cut one of several in parallel is what a reader looks for.
        kinds = [kind for kind, _ in marked.values()]
        mark: Mark | None = "cut" if "cut" in kinds else kinds[0] if kinds else None
        said = "; ".join(dict.fromkeys(words for _, words in marked.values()))
        cables.append(Cable(_path(places[start], places[end]), mark, f"{start} – {end}{f': {said}' if said else ''}"))
    return sorted(cables, key=lambda cable: (cable.mark is not None, cable.mark == "cut"))


def _path(one: tuple[float, float, int], other: tuple[float, float, int]) -> str:
    (x1, y1, level), (x2, y2, far) = one, other
    if level == far:
        return f"M{x1:.1f} {y1:.1f}Q{(x1 + x2) / 2:.1f} {y1 - _BEND:.1f} {x2:.1f} {y2:.1f}"
    return f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
