"""The pause tree: which links were paused because of which, from where congestion began to where its pauses went.

A row of the table `pauses` is an edge: `link` was paused because of `because_of`. A link that is to blame and was never
paused itself is a root. A link may be paused because of several; what hangs below it stands below it once.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from weft.simulation import Result

__all__ = ["PauseNode", "PauseTree", "pause_tree", "tree_of"]


@dataclass(slots=True)
class PauseNode:
    """A link in the tree."""

    link: str
    paused_us: float
    """How long it was paused because of the link above it, all classes together; of a root, how long others were."""
    pauses: int
    """How often."""
    again: bool = False
    """Whether the link stands elsewhere, too, and what was paused because of it there."""
    below: list["PauseNode"] = field(default_factory=list)
    """Links that were paused because of this one, the longest pause first."""


@dataclass(frozen=True, slots=True)
class PauseTree:
    """The tree, or trees."""

    roots: Sequence[PauseNode]
    left_out: int
    """Pairs of a paused link and a link to blame that do not stand in it."""
    left_out_us: float


def tree_of(result: "Result", most: int = 10) -> PauseTree | None:
    """Return the pause tree of a run; None if nothing was paused. The summary's `root` comes first."""
    lossless = result.summary.lossless
    return pause_tree(result.pauses, most, first=None if lossless is None else lossless.root)


def pause_tree(pauses: pl.DataFrame, most: int = 10, *, first: str | None = None) -> PauseTree | None:
    """Return the tree of a table `pauses`, `most` of its lines; None for an empty table.

    The tree of `first` comes first, then those of other roots, those because of which most was paused first. Of a tree
    that is larger, the longest pauses stand there, each below the one that it hangs on. Of a circle, in which each is
    paused, `first` is the root, or that link because of which others were paused the most.
    """
    if pauses.is_empty():
        return None
    edges = pauses.group_by("because_of", "link", maintain_order=True).agg(
        pl.col("paused_us").sum(), pl.col("pauses").sum()
    )
    edges = edges.sort("paused_us", "because_of", "link", descending=[True, False, False])
    below: dict[str, list[PauseNode]] = {}
    for cause, link, paused_us, times in edges.select("because_of", "link", "paused_us", "pauses").iter_rows():
        below.setdefault(cause, []).append(PauseNode(link, paused_us, times))
    roots = [
        PauseNode(link, sum(one.paused_us for one in below[link]), sum(one.pauses for one in below[link]))
        for link in _roots(below, first)
    ]
    shown = _longest(roots, below, most)
    return PauseTree(shown, *_left_out(edges, shown))


def _roots(below: Mapping[str, Sequence[PauseNode]], first: str | None) -> Iterator[str]:
    """Yield links from which every edge is reached: those that were never paused, then one of each circle."""
    paused = {one.link for nodes in below.values() for one in nodes}
    total = {link: sum(one.paused_us for one in nodes) for link, nodes in below.items()}
    reached: set[str] = set()
    # Those that were paused themselves come last, and only if no other leads to them.
    for link in sorted(below, key=lambda link: (link != first, link in paused, -total[link], link)):
        if link in reached:
            continue
        yield link
        stack = [link]
        while stack:
            at = stack.pop()
            if at not in reached:
                reached.add(at)
                stack.extend(one.link for one in below.get(at, ()))


def _longest(roots: Sequence[PauseNode], below: Mapping[str, Sequence[PauseNode]], most: int) -> list[PauseNode]:
    """Take the lines with the most paused time, root by root, each after the one that it hangs on."""
    found: list[PauseNode] = []
    expanded: set[str] = set()
    order = 0
    waiting: list[tuple[float, int, PauseNode, list[PauseNode]]] = []
    ahead = iter(roots)
    for _ in range(most):
        if not waiting:
            root = next(ahead, None)
            if root is None:
                break
            waiting.append((-root.paused_us, order, root, found))
        _, _, node, beside = heapq.heappop(waiting)
        beside.append(node)
        if node.link in expanded:
            node.again = node.link in below
            continue
        expanded.add(node.link)
        for one in below.get(node.link, ()):
            heapq.heappush(waiting, (-one.paused_us, order, one, node.below))
            order += 1
    return found


def _left_out(edges: pl.DataFrame, roots: Sequence[PauseNode]) -> tuple[int, float]:
    """Count what does not stand in the tree, and its paused time."""
    lines, us = 0, 0.0
    stack = [one for root in roots for one in root.below]
    while stack:
        node = stack.pop()
        lines, us = lines + 1, us + node.paused_us
        stack.extend(node.below)
    return edges.height - lines, max(float(edges.get_column("paused_us").sum()) - us, 0.0)
