"""The ranges of flow sizes that a reader of the report can choose from."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from weft.summary import BINS, LIMITS, BinName, SizeBin, Summary

__all__ = ["Sizes", "sizes_of"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Flows from one size to another, both included."""

    title: str
    name: BinName | None
    """One of those that every summary has; None for one that the spec asked for."""
    place: int
    """Position among the ranges that the spec requests."""
    from_bytes: int
    up_to_bytes: int | None

    def of(self, summary: Summary) -> SizeBin | None:
        """Return what a run says of these flows; None if it was not asked for them."""
        if self.name is not None:
            return summary.bins[self.name]
        return summary.size_bins[self.place] if self.place < len(summary.size_bins) else None

    def chosen(self) -> pl.Expr:
        """Which rows of a table of flows are meant. Background flows never are."""
        size = pl.col("size_bytes")
        upper = pl.lit(True) if self.up_to_bytes is None else size <= self.up_to_bytes
        return (size >= self.from_bytes) & upper & ~pl.col("background")


def sizes_of(summary: Summary) -> Sequence[Sizes]:
    """All, small, medium and large flows, and the ranges that the spec of this run asked for."""
    found = [Sizes(title, name, 0, *LIMITS[name]) for name, title in BINS.items()]
    for place, one in enumerate(summary.size_bins):
        found.append(Sizes(one.label, None, place, one.from_bytes, one.up_to_bytes))
    return found
