"""One colour and one marker for each scheme, the same in every figure and in the report.

The colours are those of Okabe and Ito (2008), told apart by the colour-blind; where points are drawn, markers
tell schemes apart without colour too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["TIER_COLOURS", "Look", "looks"]


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
