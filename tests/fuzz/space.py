"""From the JSON Schema of a spec to values: a parameter that is added to Weft is drawn here without a change.

A value lies in the range that the schema or the description of the parameter gives, or around its default. A few names
are known here: what would make a run large, and strings that name something.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

__all__ = ["OMIT", "Space"]

OMIT = object()
"""Stands for a key that is not written."""

_LARGEST: Mapping[str, int] = {
    "leaves": 3, "spines": 4, "hosts_per_leaf": 4, "links_per_pair": 3, "k": 4, "flows": 40, "repeats": 3, "count": 2,
    "senders": 6, "trace_flows": 20, "threads": 4, "iterations": 3, "steps": 2, "microbatches": 3, "chunks": 3,
    "buckets": 3, "experts": 6, "top_k": 2, "tensor": 2, "pipeline": 2, "stages": 2,
}  # fmt: skip
"""Keys that multiply the work of a run, and how much of it a run gets."""

_PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_BITS = {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
_LONGEST: Mapping[str, float] = {
    "interrupt_delay": 1e8, "cpu_per_packet": 1e6, "cpu_per_byte": 1e3, "forwarding_per_byte": 1e3,
}  # fmt: skip
"""Keys for the time of each packet or byte, in picoseconds: with longer times runs are long."""
_SHORTEST: Mapping[str, float] = {"sample_every": 1e6}
"""How often all links are looked at, in picoseconds: with shorter times a run does little else."""
_PACKETS_PER_SECOND = (10_000, 100_000, 250_000, 1_000_000, 5_000_000, 50_000_000)
"""Rates at which a packet takes whole picoseconds, also at a tenth."""
_RANGE = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?) to (\d[\d,]*(?:\.\d+)?)(?![\w.^]| %)")
_QUANTITY = re.compile(r"^(\d+(?:\.\d+)?) *([A-Za-z]+)$")


class Space:
    """The values of a schema."""

    def __init__(self, schema: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> None:
        """Take the schema, and by key what strings may be called there."""
        self._definitions = schema["$defs"]
        self.sections: Mapping[str, Any] = schema["properties"]
        self._names = names

    def node(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """Follow references; what stands beside one counts."""
        found = dict(node)
        while "$ref" in found:
            target = self._definitions[found.pop("$ref").rsplit("/", 1)[-1]]
            found = {**target, **found}
        return found

    def variants(self, section: str) -> list[dict[str, Any]]:
        """List the kinds of a section: each scheme, each transport, each fabric; one where there is no choice.

        A list of tables, as of several transports, is no kind.
        """
        node = self.node(self.sections[section])
        return [kind for one in node.get("oneOf", [node]) if "properties" in (kind := self.node(one))]

    def draw(self, node: Mapping[str, Any], key: str, random: Random) -> Any:
        """Draw a value of a parameter, or `OMIT`."""
        node = self.node(node)
        for choice in ("anyOf", "oneOf"):
            if choice in node:
                options = [self.node(one) for one in node[choice]]
                kept = [one for one in options if one.get("type") != "null"]
                inner = {**random.choice(kept)}
                inner.setdefault("default", node.get("default"))
                inner["description"] = f"{node.get('description', '')} {inner.get('description', '')}"
                return self.draw(inner, key, random)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return random.choice(node["enum"])
        kinds = node.get("type", "string")
        kind = next(one for one in ([kinds] if isinstance(kinds, str) else kinds) if one != "null")
        match kind:
            case "boolean":
                return random.random() < 0.5
            case "integer":
                return self._integer(node, key, random)
            case "number":
                return self._number(node, random)
            case "array":
                return [self.draw(node["items"], key, random) for _ in range(random.randint(1, 3))]
            case "object":
                return self.table(node, random)
        return self._string(node, key, random)

    def table(self, node: Mapping[str, Any], random: Random, share: float = 0.5) -> dict[str, Any]:
        """Draw a table: what it must have, and a share of what it may have."""
        required = set(node.get("required", ()))
        found = {
            key: self.draw(inner, key, random)
            for key, inner in node.get("properties", {}).items()
            # What a table is of stands in it, even where that is the default: checks look at it.
            if key in required or "const" in inner or random.random() < share
        }
        return {key: value for key, value in found.items() if value is not OMIT}

    def _integer(self, node: Mapping[str, Any], key: str, random: Random) -> int:
        low, high = _range(node, 0, 2**31)
        default = node.get("default")
        near = default if isinstance(default, int) and default > 0 else 4
        drawn = random.choice((
            low,
            low + random.randint(0, 4),
            round(near * 2.0 ** random.uniform(-2.0, 2.0)),
            round(near * 2.0 ** random.uniform(-1.0, 1.0)),
            high if high < 10**4 else near,
        ))  # fmt: skip
        return int(max(low, min(high, drawn, _LARGEST.get(key, drawn))))

    def _number(self, node: Mapping[str, Any], random: Random) -> float:
        low, high = _range(node, 0.0, 1.0)
        default = node.get("default")
        near = float(default) if isinstance(default, int | float) and default > 0 else random.random()
        drawn = random.choice((low, high, random.uniform(low, high), near * 2.0 ** random.uniform(-2.0, 2.0)))
        return float(f"{drawn:.6g}")

    def _string(self, node: Mapping[str, Any], key: str, random: Random) -> Any:
        if key in self._names:
            return random.choice(self._names[key])
        pattern = node.get("pattern", "")
        words = re.match(r"^\^\((\w+)\|", pattern)
        if words and random.random() < 0.2:
            return words[1]
        if "pps" in pattern:
            return f"{random.choice(_PACKETS_PER_SECOND)}pps"
        for units, low, high in ((_PICOSECONDS, 1e4, 1e10), (_BYTES, 1.0, 2e5), (_BITS, 1e8, 1e11)):
            if re.search(rf"\b({'|'.join(units)})\b.*\)\$", pattern):
                if key in _LONGEST:
                    low, high = 1.0, _LONGEST[key]
                low = _SHORTEST.get(key, low)
                return _quantity(units, low, high, node.get("default"), "packet" in pattern, random)
        return node["default"] if isinstance(node.get("default"), str) else OMIT


def _range(node: Mapping[str, Any], low: float, high: float) -> tuple[Any, Any]:
    """Find the range of a number: that of its description, within that of its type."""
    least, most = node.get("minimum", low), node.get("maximum", high)
    if documented := _RANGE.search(node.get("description", "").split("Source:")[0].replace("\n", " ")):
        own = [float(text.replace(",", "").rstrip(".")) for text in documented.groups()]
        if own[0] < own[1]:
            least, most = max(least, own[0]), min(most, own[1]) if "maximum" in node else own[1]
    return least, most


def _quantity(units: Mapping[str, int], low: float, high: float, default: Any, packets: bool, random: Random) -> str:
    """Draw a quantity around the default, or between two sizes that keep a run short."""
    if packets and random.random() < 0.3:
        return f"{random.choice((1, 2, 3, 8, 64, 250))} packets"
    smallest = next(iter(units))
    known = _QUANTITY.match(default) if isinstance(default, str) else None
    if known and known[2] in units and float(known[1]) > 0.0:
        base = float(known[1]) * units[known[2]]
        if units is _BITS:
            return f"{max(round(base * random.choice((0.1, 0.25, 0.5, 1, 1, 2, 4, 10))), 10**7)}bps"
        drawn = base * 10.0 ** random.uniform(-1.3, 1.3)
    elif units is _BITS:
        return f"{random.choice((1, 2, 5, 10, 25, 40, 100))}Gbps"
    else:
        drawn = 10.0 ** random.uniform(len(str(int(low))) - 1.0, len(str(int(high))) - 1.0)
    return f"{max(round(drawn), 1)}{smallest}"
