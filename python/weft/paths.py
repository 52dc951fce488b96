"""The shortest ways over switches, from one leaf to another."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from weft.errors import SpecError

__all__ = ["shortest_paths"]

_SCHEMA: Mapping[str, Any] = {"source": pl.String, "target": pl.String, "path": pl.String, "link": pl.List(pl.String)}


def shortest_paths(links: pl.DataFrame, source: str | None = None, target: str | None = None) -> pl.DataFrame:
    """Return a row a path: `source`, `target`, `path` (its links in words) and `link` (a list of them).

    `links` is the table of links of a run. Raises `SpecError` for a leaf that is not there.
    """
    leaves = links.filter(pl.col("tier") == "last").get_column("from").unique(maintain_order=True).to_list()
    for name in (source, target):
        if name is not None and name not in leaves:
            raise SpecError(f"there is no leaf {name!r}: allowed are {', '.join(leaves)}")
    between = links.filter(pl.col("tier").is_in(["leaf", "spine"]))
    out: dict[str, list[tuple[str, str]]] = {}
    for link, start, end in between.select("link", "from", "to").iter_rows():
        out.setdefault(start, []).append((link, end))
    rows = [
        (start, end, " ".join(path), path)
        for start in ([source] if source is not None else leaves)
        for end, paths in _from(start, out).items()
        if end in leaves and end != start and target in (None, end)
        for path in paths
    ]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _from(start: str, out: dict[str, list[tuple[str, str]]]) -> dict[str, list[list[str]]]:
    """All shortest paths from a switch to each other one, hop by hop."""
    found: dict[str, list[list[str]]] = {start: [[]]}
    frontier = [start]
    while frontier:
        next_frontier: dict[str, list[list[str]]] = {}
        for node in frontier:
            for link, end in out.get(node, []):
                if end not in found:
                    next_frontier.setdefault(end, []).extend([*path, link] for path in found[node])
        found |= next_frontier
        frontier = list(next_frontier)
    return found
