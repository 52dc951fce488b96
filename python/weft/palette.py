"""One colour and one marker for each scheme, the same in every figure and in the report.

The colours are those of Okabe and Ito (2008), told apart by the colour-blind; where points are drawn, markers
tell schemes apart without colour too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["SPENT_COLOURS", "TIER_COLOURS", "Look", "looks", "settled_looks"]


@dataclass(frozen=True, slots=True)
class Look:
    """How a scheme is drawn."""

    colour: str
    dark_colour: str
    """On a dark background."""
    marker: str
    """A marker of Matplotlib."""
    dash: str


_COLOURS = (
    ("#0072B2", "#3E9BDC"),
    ("#D55E00", "#F0813A"),
    ("#009E73", "#1FC496"),
    ("#CC79A7", "#E095BF"),
    ("#56B4E9", "#8CD0F7"),
    ("#E69F00", "#F2B93B"),
)
_REFERENCE = ("#595959", "#B8B8B8")
_MARKERS = "osD^vP"
_DASHES = ("solid", "dashed", "dotted")

TIER_COLOURS: Mapping[str, str] = {"host": "#999999", "leaf": "#0072B2", "spine": "#E69F00", "last": "#56B4E9"}
"""The colours of the tiers in which packets wait."""

SPENT_COLOURS: Mapping[str, str] = {
    "transmission": "#8C8C8C",
    "host": "#56B4E9",
    "leaf": "#0072B2",
    "spine": "#009E73",
    "last": "#F0E442",
    "reordering": "#D55E00",
    "timeouts": "#882255",
    "window": "#CC79A7",
}
"""The colours of the parts of a completion time."""


def looks(labels: Iterable[str]) -> Mapping[str, Look]:
    """Give each label its look. ECMP is always grey, being what the others are held against."""
    found: dict[str, Look] = {}
    position = 0
    for label in labels:
        if label == "ecmp":
            found[label] = Look(*_REFERENCE, "X", "solid")
            continue
        turn, colour = divmod(position, len(_COLOURS))
        marker = _MARKERS[(colour + turn) % len(_MARKERS)]
        found[label] = Look(*_COLOURS[colour], marker, _DASHES[turn % len(_DASHES)])
        position += 1
    return found


_GREY = -1
_HOMES: Mapping[str, int] = {
    "ecmp": _GREY,
    **dict.fromkeys(("meet", "tr", "qall", "lbt", "maxpass"), 1),
    **dict.fromkeys(("conga", "drb", "mptcp"), 0),
    **dict.fromkeys(("letflow", "expresspass"), 2),
    **dict.fromkeys(("hermes", "rps", "hula"), 3),
    **dict.fromkeys(("drill", "wcmp"), 4),
    **dict.fromkeys(("presto", "clove", "qall-flowlet", "flowbender"), 5),
}
"""The colour of each scheme that the papers compare, by its place in `_COLOURS`: orange-red is a paper's own scheme,
and no two schemes that one paper compares share a colour."""


def settled_looks(labels: Iterable[str]) -> Mapping[str, Look]:
    """Give each label its look, the same for a scheme in all figures whatever stands beside it.

    A label begins with the name of its scheme, as in `tr:threshold=100KB`; the first of a scheme gets the colour of
    the scheme, the others those that are left. Labels of no known scheme get what is left, too.
    """
    known = list(dict.fromkeys(labels))
    found: dict[str, Look] = {}
    taken: set[tuple[int, int]] = set()
    for label in known:
        home = _scheme(label)
        if home is not None and (0, home) not in taken:
            taken.add((0, home))
            found[label] = _look(0, home)
    free = ((turn, colour) for turn in range(len(known) + 1) for colour in range(len(_COLOURS)))
    for label in known:
        if label not in found:
            place = next(place for place in free if place not in taken)
            taken.add(place)
            found[label] = _look(*place)
    return {label: found[label] for label in known}


def _scheme(label: str) -> int | None:
    """Place of the colour of the scheme whose name, the longest that fits, the label begins with."""
    name = label.lower()
    fits = [own for own in _HOMES if name == own or (name.startswith(own) and not name[len(own)].isalnum())]
    return _HOMES[max(fits, key=len)] if fits else None


def _look(turn: int, colour: int) -> Look:
    if colour == _GREY:
        return Look(*_REFERENCE, "X", "solid")
    marker = _MARKERS[(colour + turn) % len(_MARKERS)]
    return Look(*_COLOURS[colour], marker, _DASHES[turn % len(_DASHES)])
