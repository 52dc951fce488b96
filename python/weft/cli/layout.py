"""How tables on the terminal are laid out."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from weft.cli.console import harmless
from weft.untrusted import one_line

__all__ = ["new_table", "stacked"]


def new_table(*titles: str, left: Sequence[str] = (), title: str | None = None) -> Table:
    """Make an empty table; columns are right-aligned unless their title is in `left`."""
    table = _Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1),
        header_style="bold",
    )  # fmt: skip
    for title in titles:
        table.add_column(Text(harmless(title)), justify="left" if title in left else "right", overflow="fold")
    return table


class _Table(Table):
    """A table whose columns are as wide as what is printed, escapes and all."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row, as `rich.table.Table.add_row` does."""
        super().add_row(*map(_escaped, cells), **options)


def _escaped(cell: RenderableType | None) -> RenderableType | None:
    if isinstance(cell, str):
        return one_line(cell)
    if isinstance(cell, Text) and not cell.plain.isprintable():
        return Text(harmless(cell.plain), style=cell.style)
    return cell


def stacked(title: str, unit: str) -> str:
    """Break a title over lines, its unit last, so that columns stay narrow."""
    words = title.replace("out of order", "out of|order").replace(" ", "\n").replace("out\nof|", "out of\n")
    return f"{words}\n({unit}) " if unit else f"{words} "
