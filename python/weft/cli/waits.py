"""Pauses and classes of ports, on the terminal."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.tree import Tree

from weft.cli.console import Text
from weft.cli.layout import new_table, stacked
from weft.quantity import time_us

if TYPE_CHECKING:
    from weft.pause_tree import PauseNode
    from weft.simulation import Result

__all__ = ["print_classes", "print_pause_tree"]


def print_pause_tree(console: Console, result: "Result") -> None:
    """Print which links were paused because of which, if any were: the longest pauses, and how many others."""
    from weft.pause_tree import tree_of

    found = tree_of(result)
    if found is None:
        return
    console.print("pause tree: a link was paused because of the one that it hangs on")
    for root in found.roots:
        tree = Tree(Text(f"{root.link}: others paused for {time_us(root.paused_us)} because of it"))
        _hang(tree, root)
        console.print(tree)
    if found.left_out:
        console.print(f"and {found.left_out:,} more, {time_us(found.left_out_us)} together: the table pauses has them")


def _hang(tree: Tree, node: "PauseNode") -> None:
    for one in node.below:
        times = "once" if one.pauses == 1 else f"{one.pauses:,} times"
        elsewhere = ", see above or below" if one.again else ""
        _hang(tree.add(Text(f"{one.link}: {time_us(one.paused_us)}, {times}{elsewhere}")), one)


def print_classes(console: Console, groups: "Mapping[str, Sequence[Result]]") -> None:
    """Print a row a variant and class of ports, if there are several classes."""
    from weft.port_classes import class_table

    found = class_table(groups)
    if found is None:
        return
    several = len(groups) > 1
    heads = [stacked(title, unit) for title, unit in found.heads]
    left = ("scheme", "class at ports of switches")
    table = new_table(*left[0 if several else 1 :], *heads, left=left)
    for label, title, _, cells in found.rows:
        table.add_row(*([Text(label)] if several else []), Text(title), *map(Text, cells))
    console.print(table)
