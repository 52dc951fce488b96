"""The numbers behind the report's charts, in the form that the page's script reads.

`schemes` are the variants, `sizes` the ranges of flow sizes, `fields` the swept fields with their values, and
`points` one entry for each combination of these values: `at` (the place of each field's value) and `cells` (one for
each variant, null where nothing was run). A comparison has no fields and one point.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.palette import FCT_PART_COLOURS, TIER_COLOURS, looks
from weft.report.cells import STATISTICS
from weft.report.sizes import Sizes
from weft.summary import FCT_PARTS, TIERS

__all__ = ["SYMBOLS", "curve_points", "payload"]

_BUDGET = 120_000
"""Points of all curves of a page together: some 2 MB."""


SYMBOLS: Mapping[str, str] = {
    "o": "circle",
    "s": "rect",
    "D": "path://M5,0L10,5L5,10L0,5Z",
    "^": "triangle",
    "v": "path://M0,0H10L5,9Z",
    "<": "path://M9,0V10L0,5Z",
    ">": "path://M0,0L9,5L0,10Z",
    "d": "path://M3,0L6,5L3,10L0,5Z",
    "P": "path://M3,0H7V3H10V7H7V10H3V7H0V3H3Z",
    "X": "path://M2,0L5,3L8,0L10,2L7,5L10,8L8,10L5,7L2,10L0,8L3,5L0,2Z",
    "p": "path://M5,0L9.8,3.5L7.9,9H2.1L0.2,3.5Z",
    "*": "path://M5,0L6.2,3.4L9.8,3.5L6.9,5.6L7.9,9L5,7L2.1,9L3.1,5.6L0.2,3.5L3.8,3.4Z",
    "h": "path://M5,0L9.3,2.5V7.5L5,10L0.7,7.5V2.5Z",
    "H": "path://M2.5,0.7H7.5L10,5L7.5,9.3H2.5L0,5Z",
    "8": "path://M3,0H7L10,3V7L7,10H3L0,7V3Z",
}
"""The markers of Matplotlib as the page's charts draw them."""


def payload(
    labels: Iterable[str],
    sizes: Sequence[Sizes],
    points: Sequence[Mapping[str, Any]],
    fields: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> dict[str, Any]:
    """Everything that the page's script draws."""
    return {
        "schemes": [
            {
                "label": label,
                "colour": look.colour,
                "dark": look.dark_colour,
                "dash": look.dash,
                "symbol": SYMBOLS[look.marker],
            }
            for label, look in looks(labels).items()
        ],
        "sizes": [one.title for one in sizes],
        "statistics": STATISTICS,
        "tiers": [{"title": title, "colour": TIER_COLOURS[name]} for name, title in TIERS.items()],
        "parts": [{"title": FCT_PARTS[name], "colour": FCT_PART_COLOURS[name]} for name in _parts(points)],
        "fields": list(fields),
        "points": list(points),
        **more,
    }


def _parts(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """The parts of completion times that any variant has: pauses, which are the last, with lossless classes alone."""
    last = len(FCT_PARTS) - 1
    cells = (cell for point in points for cell in point["cells"] if cell is not None)
    has_last = any(breakdown[last] is not None for cell in cells for breakdown in cell["breakdown"])
    return list(FCT_PARTS) if has_last else list(FCT_PARTS)[:last]


def curve_points(cells: int, sizes: int) -> int:
    """How many points a curve may have when there are so many variants, points and ranges of sizes."""
    return max(40, min(400, _BUDGET // max(2 * cells * sizes, 1)))
