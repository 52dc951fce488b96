"""One colour and one marker for each scheme, the same in every figure and in the report.

The colours are those of Okabe and Ito (2008), told apart by the colour-blind; where points are drawn, markers
tell schemes apart without colour too. There are more schemes than colours: those that share one have other markers,
and where they stand in one figure, the second one's line is dashed and its bars are hatched otherwise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

__all__ = ["CRITICAL_COLOURS", "FAULT_COLOUR", "FCT_PART_COLOURS", "TIER_COLOURS", "Look", "free_home", "home", "looks"]


@dataclass(frozen=True, slots=True)
class Look:
    """How a scheme is drawn."""

    colour: str
    dark_colour: str
    """On a dark background."""
    marker: str
    """A marker of Matplotlib."""
    dash: str
    hatch: str
    """The pattern of bars, as Matplotlib writes it; empty for none."""


_COLOURS = (
    ("#0072B2", "#3E9BDC"),
    ("#D55E00", "#F0813A"),
    ("#009E73", "#1FC496"),
    ("#CC79A7", "#E095BF"),
    ("#56B4E9", "#8CD0F7"),
    ("#E69F00", "#F2B93B"),
)
_MARKERS = "osD^vP"
_DASHES = ("solid", "dashed", "dotted")
_HATCHES = ("////", "", "....", "\\\\\\\\", "xxxx", "----")
"""Hatches of bars of each colour, which distinguish them without it: orange-red, a paper's own, has none."""

FAULT_COLOUR = "#C0142F"
"""Colour that marks faults: no scheme has it."""

TIER_COLOURS: Mapping[str, str] = {"host": "#999999", "leaf": "#0072B2", "spine": "#E69F00", "last": "#56B4E9"}
"""The colours of the tiers in which packets wait."""

FCT_PART_COLOURS: Mapping[str, str] = {
    "transmission": "#8C8C8C",
    "host": "#56B4E9",
    "leaf": "#0072B2",
    "spine": "#009E73",
    "last": "#F0E442",
    "reordering": "#D55E00",
    "timeouts": "#882255",
    "acknowledgement": "#332288",
    "window": "#CC79A7",
    "pause": "#661100",
}
"""The colours of the parts of a completion time."""

CRITICAL_COLOURS: Mapping[str, str] = {"compute": "#44AA99", "waiting": "#DDCC77", **FCT_PART_COLOURS}
"""The colours of the parts of a critical path: the same, and what comes between flows."""


_Home: TypeAlias = tuple[int, str]

_GREY, _BLACK = -1, -2
_APART: Mapping[int, tuple[str, str]] = {_GREY: ("#595959", "#B8B8B8"), _BLACK: ("#111111", "#F5F5F5")}
"""Colours that no other label gets."""

_HOMES: Mapping[str, _Home] = {
    "ecmp": (_GREY, "X"),  # what the others are held against
    "oracle": (_BLACK, "8"),  # no scheme, but a reference
    "meet": (1, "s"), "tr": (1, "<"), "qall": (1, ">"), "lbt": (1, "p"), "maxpass": (1, "*"),
    "conga": (0, "o"), "drb": (0, ">"), "mptcp": (0, "d"), "qall-poly": (0, "*"), "plb": (0, "H"),
    "letflow": (2, "D"), "expresspass": (2, "o"), "hedera": (2, "v"),
    "hermes": (3, "^"), "rps": (3, "p"), "hula": (3, "<"), "dctcp": (3, "v"),
    "drill": (4, "v"), "wcmp": (4, "s"), "tcp": (4, "o"),
    "clove": (5, "P"), "presto": (5, "s"), "flowbender": (5, "D"), "qall-flowlet": (5, "h"),
    "reps": (2, "s"), "ofan": (2, "<"), "ar": (3, "D"), "conweave": (4, "P"), "flowcut": (4, "^"),
    "oblivious": (5, "p"), "bitmap": (5, "^"),
    "roce": (0, "s"), "irn": (1, "D"), "uec": (2, "P"), "swift": (3, "d"),
    "mprdma": (4, "*"),
}  # fmt: skip
"""The colour of each scheme, by its place in `_COLOURS`, and its marker. Orange-red is a paper's own scheme; no two
schemes that one paper compares share a colour or a marker."""


def looks(labels: Iterable[str]) -> Mapping[str, Look]:
    """Give each label its look; a scheme has one colour and one marker, whatever stands beside it.

    A label begins with the name of its scheme, as in `tr:threshold=100KB`; the first of a scheme gets the look of the
    scheme, the others those that are left. Labels of no known scheme get what is left, too.
    """
    known = list(dict.fromkeys(labels))
    found: dict[str, Look] = {}
    housed: set[_Home] = set()
    taken: set[tuple[int, int]] = set()
    """Dashes and colours."""
    for label in known:
        own = home(label)
        if own is not None and own not in housed:
            housed.add(own)
            colour, marker = own
            turn = next(turn for turn in count() if (turn, colour) not in taken)
            taken.add((turn, colour))
            found[label] = _look(turn, colour, marker)
    free = ((turn, colour) for turn in count() for colour in range(len(_COLOURS)))
    for label in known:
        if label not in found:
            turn, colour = next(place for place in free if place not in taken)
            taken.add((turn, colour))
            markers = [_MARKERS[(colour + turn + step) % len(_MARKERS)] for step in range(len(_MARKERS))]
            marker = next((one for one in markers if (colour, one) not in housed), markers[0])
            housed.add((colour, marker))
            found[label] = _look(turn, colour, marker)
    return {label: found[label] for label in known}


def home(label: str) -> _Home | None:
    """Colour and marker of the scheme whose name, the longest that fits, the label begins with; None for no scheme.

    `letflow.py:Mine` is somebody's own.
    """
    name = label.lower()
    if ".py:" in name:
        return None
    fits = [own for own in _HOMES if name == own or (name.startswith(own) and not name[len(own)].isalnum())]
    return _HOMES[max(fits, key=len)] if fits else None


def free_home() -> _Home:
    """Return a colour, by its place, and a marker that no scheme has together; of the colours that fewest have."""
    used = list(_HOMES.values())
    colours = sorted(range(len(_COLOURS)), key=lambda colour: sum(own[0] == colour for own in used))
    markers = list(dict.fromkeys(marker for _, marker in used))
    return next((colour, marker) for colour in colours for marker in markers if (colour, marker) not in used)


def _look(turn: int, colour: int, marker: str) -> Look:
    dash = _DASHES[turn % len(_DASHES)]
    if colour < 0:
        return Look(*_APART[colour], marker, dash, "")
    return Look(*_COLOURS[colour], marker, dash, _HATCHES[(colour + turn) % len(_HATCHES)])
