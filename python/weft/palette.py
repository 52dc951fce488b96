"""One colour and one marker for each scheme, the same in every figure and in the report.

The colours are those of Okabe and Ito (2008), told apart by the colour-blind; where points are drawn, markers
tell schemes apart without colour too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["Look", "looks"]


@dataclass(frozen=True, slots=True)
class Look:
    """How a scheme is drawn."""

    colour: str
    marker: str
    dash: str


_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_REFERENCE = "#595959"
_MARKERS = "osD^vP"
_DASHES = ("solid", "dashed", "dotted")


def looks(labels: Iterable[str]) -> Mapping[str, Look]:
    """Give each label its look. ECMP is always grey, being what the others are held against."""
    found: dict[str, Look] = {}
    next_colour = 0
    for label in labels:
        if label == "ecmp":
            found[label] = Look(_REFERENCE, "X", "solid")
            continue
        turn, colour = divmod(next_colour, len(_COLOURS))
        found[label] = Look(_COLOURS[colour], _MARKERS[(colour + turn) % len(_MARKERS)], _DASHES[turn % len(_DASHES)])
        next_colour += 1
    return found
