"""Arbitrary connected graphs: hosts at any switches, in any shape, over cables of several rates and delays."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

__all__ = ["Graph", "drawn_graph"]

Pair: TypeAlias = tuple[int, int]

_RATES_MBPS = (10_000, 10_000, 10_000, 5_000, 1_000, 25_000)
"""At each of them, and at a tenth, a byte takes whole picoseconds."""
_DELAYS_NS = (1_000, 1_000, 1_000, 300, 100, 20_000)
_AT_ONCE = 0.05
"""The share of cables between switches over which a packet takes no time."""


@dataclass(frozen=True)
class Graph:
    """Switches, the one of each host, and cables."""

    switches: int
    hosts: Sequence[int]
    cables: Sequence[tuple[str, str, int, int, int]]
    """From, to, how many side by side, Mbit/s, ns."""

    @property
    def names(self) -> Sequence[str]:
        """Names of links in a fault: both directions, or one."""
        ends = [(start, end) for start, end, *_ in self.cables]
        return [f"{start}{between}{end}" for start, end in ends for between in "->"]

    def text(self, factor: int) -> str:
        """Return the file, with times so many times as long and rates so much smaller."""
        lines = [
            f'hosts = [{{ prefix = "host", count = {len(self.hosts)} }}]',
            f'switches = [{{ prefix = "s", count = {self.switches} }}]',
            "link = [",
            *(
                f'    {{ from = "{start}", to = "{end}", count = {count}, rate = "{rate // factor} Mbps", '
                f'delay = "{delay * factor} ns" }},'
                for start, end, count, rate, delay in self.cables
            ),
            "]",
        ]
        return "\n".join([*lines, ""])


def drawn_graph(random: Random) -> Graph:
    """Draw a graph of four hosts at least."""
    switches = random.choice((1, 2, 3, 3, 4, 5, 6, 8))
    shape = random.choice(sorted(_SHAPES))
    between = sorted(set(_SHAPES[shape](switches, random)))
    between += [
        (a, b)
        for a, b in ((random.randrange(switches), random.randrange(switches)) for _ in range(random.randint(0, 3)))
        if a != b
    ]
    hosts = _hosts(switches, random)
    uniform = random.random() < 0.4
    rate, delay = random.choice(_RATES_MBPS), random.choice(_DELAYS_NS)

    def condition() -> Pair:
        return (rate, delay) if uniform else (random.choice(_RATES_MBPS), random.choice(_DELAYS_NS))

    cables = [(f"host{host}", f"s{switch}", 1, *condition()) for host, switch in enumerate(hosts)]
    for a, b in between:
        cable_rate, cable_delay = condition()
        at_once = random.random() < _AT_ONCE
        side_by_side = random.choice((1, 1, 1, 2, 3))
        cables.append((f"s{a}", f"s{b}", side_by_side, cable_rate, 0 if at_once else cable_delay))
    return Graph(switches, hosts, cables)


def _hosts(switches: int, random: Random) -> Sequence[int]:
    """Put hosts at all switches, or some of them; neighbours at one, or not."""
    some = sorted(random.sample(range(switches), random.randint(1, switches)))
    held = random.choice((range(switches), some))
    hosts = [*held, *(random.choice(held) for _ in range(random.randint(0, 6)))]
    hosts += [random.choice(held) for _ in range(4 - len(hosts))]
    if random.random() < 0.8:
        hosts.sort()
    else:
        random.shuffle(hosts)
    return hosts


def _tree(count: int, random: Random) -> Iterator[Pair]:
    return ((switch, random.randrange(switch)) for switch in range(1, count))


def _star(count: int, _random: Random) -> Iterator[Pair]:
    return ((switch, 0) for switch in range(1, count))


def _chain(count: int, _random: Random) -> Iterator[Pair]:
    return ((switch, switch - 1) for switch in range(1, count))


def _ring(count: int, random: Random) -> Iterator[Pair]:
    yield from _chain(count, random)
    if count > 2:
        yield count - 1, 0


def _mesh(count: int, _random: Random) -> Iterator[Pair]:
    return ((a, b) for a in range(count) for b in range(a))


def _jellyfish(count: int, random: Random) -> Iterator[Pair]:
    """Cables at random, about three at a switch, and a ring that holds all together."""
    order = random.sample(range(count), count)
    for place in range(1, count):
        yield order[place - 1], order[place]
    for switch in range(count):
        if (other := random.randrange(count)) != switch:
            yield switch, other


def _layers(count: int, random: Random) -> Iterator[Pair]:
    """Two layers, each switch of the one with all of the other."""
    lower = random.randint(1, max(1, count - 1))
    return ((a, b) for a in range(lower) for b in range(lower, count))


_SHAPES: Mapping[str, Callable[[int, Random], Iterator[Pair]]] = {
    "chain": _chain, "jellyfish": _jellyfish, "layers": _layers, "mesh": _mesh, "ring": _ring, "star": _star,
    "tree": _tree,
}  # fmt: skip
