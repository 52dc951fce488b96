"""Pauses, a deadlock and the critical path in the replay."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from weft.collectives import CRITICAL_PARTS, top_level_collectives
from weft.report.cells import short
from weft.summary_words import deadlock_words

if TYPE_CHECKING:
    from weft.simulation import Result

__all__ = ["critical", "deadlock", "pauses"]

_MOST_ROWS = 4_000
"""Largest number of rows of a variant: the longest pauses, or the last links of a critical path."""


def pauses(result: "Result", number: Mapping[str, int]) -> list[list[float]]:
    """Return for each paused link and link to blame both, how long it was paused because of that one, how often."""
    rows = result.pauses.sort("paused_us", descending=True, maintain_order=True).head(_MOST_ROWS)
    return [
        [number[row["link"]], number[row["because_of"]], short(row["paused_us"]), row["pauses"]]
        for row in rows.iter_rows(named=True)
    ]


def deadlock(result: "Result", number: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the links of a circle of pauses, and the sentence on it; None without."""
    lossless = result.summary.lossless
    if lossless is None or not lossless.deadlock:
        return None
    return {"links": [number[link] for link in lossless.deadlock], "text": deadlock_words(lossless.deadlock)}


def critical(result: "Result") -> dict[str, Any] | None:
    """Return the critical path of the collective that ended last of the outermost ones; None if none ended."""
    table, paths = result.collectives, result.critical_path
    if table.is_empty() or paths.is_empty():
        return None
    names = {(one.label, one.kind) for one in top_level_collectives(result.summary)}
    own = [(label, kind) in names for label, kind in table.select("label", "kind").iter_rows()]
    ended = table.filter(pl.Series(own) & pl.col("end_us").is_not_null()).sort("end_us", "collective")
    if ended.is_empty():
        return None
    last = ended.row(-1, named=True)
    rows = paths.filter(pl.col("collective") == last["collective"]).sort("link").tail(_MOST_ROWS)
    links = [
        {
            "flow": row["flow"],
            "src": f"host{row['src']}",
            "dst": None if row["dst"] is None else f"host{row['dst']}",
            "from": short(row["ready_us"]),
            "until": short(row["end_us"]),
            "at": row["late_at"],
            # Most parts are 0, and pauses have a column only where links may be paused.
            "parts": [
                [place, short(value)]
                for place, key in enumerate(CRITICAL_PARTS)
                if (value := row.get(f"{key}_us", 0.0)) > 0.0
            ],
        }
        for row in rows.iter_rows(named=True)
    ]
    return {"title": f"{last['label']} ({last['kind']})", "end": short(last["end_us"]), "links": links}
