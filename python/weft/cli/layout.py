"""How tables on the terminal are laid out."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

__all__ = ["new_table", "stacked"]


def new_table(*titles: str, left: Sequence[str] = (), title: str | None = None) -> Table:
    """Make an empty table; columns are right-aligned unless their title is in `left`."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1),
        header_style="bold",
    )  # fmt: skip
    for title in titles:
        table.add_column(title, justify="left" if title in left else "right", overflow="fold")
    return table


def stacked(title: str, unit: str) -> str:
    """Break a title over lines, its unit last, so that columns stay narrow."""
    words = title.replace("out of order", "out of|order").replace(" ", "\n").replace("out\nof|", "out of\n")
    return f"{words}\n({unit}) " if unit else f"{words} "
