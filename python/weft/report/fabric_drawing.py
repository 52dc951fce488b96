"""Where the nodes of a fabric are drawn: hosts at the bottom, switches above them by tier, pods side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

__all__ = ["Node", "place_nodes"]

_LEAF_GAP, _POD_GAP = 1.0, 2.0
"""Room between the hosts of two leaves and of two pods, in hosts."""


@dataclass(frozen=True, slots=True)
class Node:
    """A host or a switch."""

    name: str
    level: int
    """0 for hosts; for a switch, its distance to the nearest host."""
    x: float
    """From 0 at the left to 1 at the right."""


def place_nodes(links: pl.DataFrame) -> list[Node]:
    """Place every node; `links` is the table of links of a run."""
    near: dict[str, list[str]] = {}
    for start, end in links.select("from", "to").iter_rows():
        near.setdefault(start, []).append(end)
        near.setdefault(end, [])
    hosts = links.filter(pl.col("tier") == "host").get_column("from").unique(maintain_order=True).to_list()
    levels = _levels(hosts, near)
    top = max(levels.values(), default=0)
    pods = _pods(near, levels, top)
    places, extents = _place_hosts(pods, near, levels)
    for level in range(1, top + 1):
        for number, pod in enumerate(pods):
            row = [name for name in pod if levels[name] == level]
            under = {name: [places[host] for host in near[name] if levels[host] == 0] for name in row}
            for position, name in enumerate(row):
                own = under[name]
                places[name] = sum(own) / len(own) if own else _spread(position, len(row), *extents[number])
    tops = [name for name in near if levels.get(name) == top and top > 0 and name not in places]
    left, right = extents[0][0] if extents else 0.0, extents[-1][1] if extents else 1.0
    for position, name in enumerate(tops):
        places[name] = _spread(position, len(tops), left, right)
    width = max(right - left, 1e-9)
    return [Node(name, levels[name], (places[name] - left) / width) for name in near if name in places]


def _levels(hosts: Sequence[str], near: Mapping[str, Sequence[str]]) -> dict[str, int]:
    found = dict.fromkeys(hosts, 0)
    frontier = list(hosts)
    while frontier:
        following = []
        for name in frontier:
            for other in near[name]:
                if other not in found:
                    found[other] = found[name] + 1
                    following.append(other)
        frontier = following
    return found


def _pods(near: Mapping[str, Sequence[str]], levels: Mapping[str, int], top: int) -> list[list[str]]:
    """Return the components without the top level: pods of a fat-tree, leaves of a leaf-spine with their hosts.

    Where switches of the only level hang together, that is one pod.
    """
    within = {name for name in near if name in levels and (levels[name] < top or top == 1)}
    seen: set[str] = set()
    pods = []
    for name in near:
        if name not in within or name in seen:
            continue
        pod, stack = {name}, [name]
        while stack:
            new = [other for other in near[stack.pop()] if other in within and other not in pod]
            pod.update(new)
            stack.extend(new)
        seen |= pod
        pods.append([other for other in near if other in pod])
    return pods


def _place_hosts(
    pods: Sequence[Sequence[str]], near: Mapping[str, Sequence[str]], levels: Mapping[str, int]
) -> tuple[dict[str, float], list[tuple[float, float]]]:
    """Places of hosts, leaf by leaf; and where each pod begins and ends."""
    places: dict[str, float] = {}
    extents = []
    at = 0.0
    # Pods of one leaf are that leaf with its hosts: no wider gap between these than between leaves.
    wide = any(sum(levels[name] == 1 for name in pod) > 1 for pod in pods)
    for pod in pods:
        begin = at
        for leaf in (name for name in pod if levels[name] == 1):
            for host in near[leaf]:
                if levels[host] == 0 and host not in places:
                    places[host] = at
                    at += 1.0
            at += _LEAF_GAP
        extents.append((begin, max(at - _LEAF_GAP - 1.0, begin)))
        at += _POD_GAP if wide else 0.0
    return places, extents


def _spread(position: int, count: int, left: float, right: float) -> float:
    """Places with equal room on both sides of each."""
    return left + (right - left) * (position + 0.5) / count
