"""Ports with several classes: the keys of a class fit together, so they are not drawn one by one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from fuzz.space import Space

__all__ = ["classes_of_ports"]

_FLOWS = ("unknown", "short", "long", "best-effort")
_MORE_FLOWS = ("tc4", "tc5", "tc6", "tc7")
_SCHEMES = "schemes"
_MOST_WEIGHT = 1_000
_MOST_CLASSES = 8
_SIZE = re.compile(r"^(\d+)B$")
_A_PACKET = 9_000


def classes_of_ports(space: Space, fabric: Mapping[str, Any], random: Random) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Draw classes for the ports of some specs, and flows that are in them."""
    if random.random() >= 0.2:
        return
    queues = random.choice((("switch_queue",), ("switch_queue",), ("host_queue",), ("switch_queue", "host_queue")))
    flows = [*_FLOWS, *_MORE_FLOWS] if random.random() < 0.5 else list(_FLOWS)
    for queue in queues:
        drawn = _queue(space, space.node(fabric["properties"][queue]), flows, random)
        yield ("fabric", queue), _cutting(drawn) if queue == "switch_queue" else drawn
    yield ("traffic", "classes", "short_below"), f"{random.choice((2, 10, 40))}KB"
    yield ("traffic", "classes", "best_effort"), random.choice((0.0, 0.2, 0.5))
    if random.random() < 0.5:
        named = random.sample(flows, random.randint(1, len(flows)))
        incasts = [{"senders": 2, "size": "20KB", "receiver": 3, "class": name} for name in named]
        yield ("traffic", "incast"), incasts


def _queue(space: Space, node: Mapping[str, Any], flows: Sequence[str], random: Random) -> dict[str, Any]:
    """Draw a port: every class of flows is in one of its classes, and packets of schemes in none or one."""
    held = list(flows)
    random.shuffle(held)
    cuts = sorted(random.sample(range(1, len(held)), random.randint(1, len(held) - 1)))
    parts = [held[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(held)], strict=True)]
    # With other packets, alone, or where it is not said.
    match random.choice(("with others", "alone", "unsaid")):
        case "with others":
            random.choice(parts).append(_SCHEMES)
        case "alone" if len(parts) < _MOST_CLASSES:
            parts.insert(random.randint(0, len(parts)), [_SCHEMES])
    scheduler = random.choice(("strict", "weighted"))
    table = space.node(node["properties"]["class"])["items"]
    one = {**space.node(table), "required": ()}
    classes = []
    for part in parts:
        drawn = space.table(one, random, share=0.3) | {"holds": part}
        drawn.pop("weight", None)
        if scheduler == "weighted" and random.random() < 0.7:
            drawn["weight"] = random.choice((1, 2, 5, random.randint(1, _MOST_WEIGHT)))
        classes.append(_fitting(drawn, random))
    rest = {**node, "properties": {key: value for key, value in node["properties"].items() if key != "class"}}
    return _fitting(space.table(rest, random, share=0.3), random) | {"scheduler": scheduler, "class": classes}


def _cutting(queue: dict[str, Any]) -> dict[str, Any]:
    """Let one class of some ports cut packets, and one hold the headers. It moves no other draw."""
    random = Random(repr(queue))
    if random.random() >= 0.6:
        return queue
    cuts, holds = random.choice(queue["class"]), random.choice(queue["class"])
    cuts["trim"] = f"{random.randint(64, 512)}B"
    for one in (queue, cuts, holds):
        one.pop("lossless", None)
    holds["holds"] = [*holds["holds"], "trimmed"]
    return queue


def _fitting(queue: dict[str, Any], random: Random) -> dict[str, Any]:
    """Leave room for a packet, no limit where nothing is dropped, no `mark` beside RED, and RED thresholds in order."""
    if queue.get("lossless"):
        queue.pop("buffer", None)
    if (size := _SIZE.match(queue.get("buffer", ""))) and int(size[1]) < _A_PACKET:
        queue["buffer"] = f"{int(size[1]) + _A_PACKET}B"
    if "red" in queue:
        queue.pop("mark", None)
        low = random.randint(1, 60_000)
        queue["red"] |= {
            "min": f"{low}B",
            "max": f"{low + random.randint(1, 60_000)}B",
            "probability": random.choice((0.01, 0.1, 1.0)),
        }
    return queue
