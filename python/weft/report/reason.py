"""The numbers of a verdict's reason: each part of the mean time, under the winner and under the other one."""

from dataclasses import dataclass

from weft.quantity import number, plain, time_scale, time_us
from weft.reason import Reason
from weft.report.tables import Cell, Head, Row, Table

__all__ = ["ReasonView", "reason_view"]


@dataclass(frozen=True, slots=True)
class ReasonView:
    """The table and what it is of."""

    table: Table
    note: str


def reason_view(reason: Reason) -> ReasonView:
    """Return what the template shows, the part with the largest share first."""
    parts = [part for part in reason.parts if part.winner_us or part.other_us]
    unit, scale = time_scale([time for part in parts for time in (part.winner_us, part.other_us)])

    def cell(value_us: float) -> Cell:
        return Cell(repr(value_us), plain(value_us / scale), "")

    rows = []
    for part in sorted(parts, key=lambda part: -(part.share or 0.0)):
        share = "-" if part.share is None else str(round(100.0 * part.share))
        cells = [cell(part.winner_us), cell(part.other_us), Cell(repr(part.share or 0.0), share, "")]
        rows.append(Row((), part.words, cells))
    heads = [Head("part"), Head(reason.winner, unit), Head(reason.other, unit)]
    together = (
        f"Together {time_us(reason.winner_us)} under {reason.winner}, {time_us(reason.other_us)} under {reason.other}."
    )
    of = (
        f" Of the {number(reason.flows or 0)} flows that finished under both, without {number(reason.left_out)} others."
        if reason.left_out
        else ""
    )
    return ReasonView(Table([*heads, Head("of the difference", "%")], rows), together + of)
