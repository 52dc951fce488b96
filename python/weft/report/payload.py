"""The numbers behind the report's charts, in the form that the page's script reads.

`schemes` are the contenders, `sizes` the ranges of flow sizes, `fields` the swept fields with their values, and
`points` one entry for each combination of these values: `at` (the place of each field's value) and `cells` (one for
each contender, null where nothing was run). A comparison has no fields and one point.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.palette import SPENT_COLOURS, TIER_COLOURS, looks
from weft.report.cells import STATISTICS
from weft.report.sizes import Sizes
from weft.summary import SPENT, TIERS

__all__ = ["curve_points", "payload"]

_BUDGET = 120_000
"""Points of all curves of a page together: some 2 MB."""


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
            {"label": label, "colour": look.colour, "dark": look.dark_colour, "dash": look.dash}
            for label, look in looks(labels).items()
        ],
        "sizes": [one.title for one in sizes],
        "statistics": STATISTICS,
        "tiers": [{"title": title, "colour": TIER_COLOURS[name]} for name, title in TIERS.items()],
        "parts": [{"title": title, "colour": SPENT_COLOURS[name]} for name, title in SPENT.items()],
        "fields": list(fields),
        "points": list(points),
        **more,
    }


def curve_points(cells: int, sizes: int) -> int:
    """How many points a curve may have when there are so many contenders, points and ranges of sizes."""
    return max(40, min(400, _BUDGET // max(2 * cells * sizes, 1)))
