"""Resources of a switch that a program needs, counted in the compiler's JSON.

A stage is what a match-action pipeline does at once (Bosshart et al., SIGCOMM 2013): it looks up tables and carries
out their actions, and what it writes can be read in the next one (Jose et al., NSDI 2015: match and action
dependencies). An operation is one primitive of the JSON, such as a sum or a read of a register. So:

- an operation is one stage behind the latest of what it reads, and not before its table is looked up;
- a table is looked up one stage behind the latest part of its key;
- what a condition guards comes one stage behind the latest of what the condition reads.

The longest such chain is the least number of stages, on a switch with as much as it wants of everything else.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weft.p4.program import compile_program

__all__ = ["Counted", "Pipeline", "Register", "count", "count_json"]

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """An ingress or egress pipeline."""

    name: str
    tables: int
    """Those with a key."""
    conditions: int
    operations: int
    stages: int


@dataclass(frozen=True, slots=True)
class Register:
    """An array of registers."""

    name: str
    entries: int
    bits: int
    accesses: int
    """Places in the program that read or write it; a chip's stage has one for a packet."""

    @property
    def bytes(self) -> int:
        """Size of the table, each entry in whole bytes."""
        return self.entries * -(-self.bits // 8)


@dataclass(frozen=True, slots=True)
class Counted:
    """All of it."""

    pipelines: tuple[Pipeline, ...]
    registers: tuple[Register, ...]

    @property
    def register_bytes(self) -> int:
        """Size of all registers, in bytes."""
        return sum(register.bytes for register in self.registers)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        registers = [{**asdict(register), "bytes": register.bytes} for register in self.registers]
        pipelines = [asdict(pipeline) for pipeline in self.pipelines]
        return {"pipelines": pipelines, "registers": registers, "register_bytes": self.register_bytes}


def count(compiler: str, source: Path, macros: Mapping[str, str]) -> Counted:
    """Compile a program for a switch, with these macros, and count. Raises `OutputError` if the compiler refuses it."""
    with tempfile.TemporaryDirectory(prefix="weft-p4-") as folder:
        compiled = compile_program(compiler, source, Path(folder) / "program.json", macros)
        return count_json(json.loads(compiled.read_bytes()))


def count_json(program: Json) -> Counted:
    """Count in the compiler's JSON."""
    actions = {action["id"]: action for action in program["actions"]}
    pipelines = [_Graph(pipeline, actions) for pipeline in program["pipelines"]]
    accesses: dict[str, int] = {}
    for graph in pipelines:
        for name in graph.accesses():
            accesses[name] = accesses.get(name, 0) + 1
    registers = (
        Register(array["name"], array["size"], array["bitwidth"], accesses.get(array["name"], 0))
        for array in program.get("register_arrays", [])
    )
    return Counted(
        pipelines=tuple(graph.counted() for graph in pipelines if graph.nodes),
        registers=tuple(register for register in registers if register.accesses),
    )


def _fields(value: Any) -> Iterator[str]:
    """Yield the reads of an expression, a parameter or a key: fields of headers and of metadata, and registers."""
    if isinstance(value, Mapping):
        kind, inner = value.get("type"), value.get("value")
        if kind == "field" and isinstance(inner, Sequence):
            yield ".".join(map(str, inner))
        elif kind in ("register_array", "header", "header_stack"):
            yield str(inner)
        elif kind not in ("hexstr", "bool", "runtime_data", "calculation", "string"):
            for part in value.values():
                yield from _fields(part)
    elif isinstance(value, list):
        for part in value:
            yield from _fields(part)


def _effects(primitive: Json) -> tuple[list[str], list[str]]:
    """Return the reads and the writes of a primitive."""
    op, parameters = primitive["op"], primitive.get("parameters", [])
    each = [list(_fields(parameter)) for parameter in parameters]
    if op == "register_write":
        return [name for fields in each[1:] for name in fields], each[0]
    if not each or op in ("exit", "drop", "mark_to_drop"):
        return [], ["standard_metadata.egress_spec"]
    # The first parameter is where the result goes.
    return [name for fields in each[1:] for name in fields], each[0]


class _Graph:
    """A pipeline: tables and conditions, and which comes behind which."""

    def __init__(self, pipeline: Json, actions: Mapping[int, Json]) -> None:
        self.name: str = pipeline["name"]
        self.nodes: dict[str, Json] = {
            node["name"]: node for node in [*pipeline["tables"], *pipeline.get("conditionals", [])]
        }
        self._first: str | None = pipeline["init_table"]
        self._actions = actions
        self._order = self._topological()

    def _next(self, name: str) -> list[str | None]:
        node = self.nodes[name]
        if "true_next" in node:
            return [node["true_next"], node["false_next"]]
        return list({*node["next_tables"].values(), node.get("base_default_next")})

    def _topological(self) -> list[str]:
        order: list[str] = []
        seen: set[str] = set()
        waiting: list[tuple[str, bool]] = [] if self._first is None else [(self._first, False)]
        while waiting:
            name, is_done = waiting.pop()
            if is_done:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                waiting.append((name, True))
                waiting += [(later, False) for later in self._next(name) if later is not None and later not in seen]
        return order[::-1]

    def _guards(self) -> dict[str, set[str]]:
        """By node, what decides whether it is reached: it is not behind all of the ways on from there."""
        behind: dict[str | None, set[str]] = {None: set()}
        for name in reversed(self._order):
            ways = [behind[later] for later in self._next(name)]
            behind[name] = {name}.union(set.intersection(*ways) if ways else set())
        guards: dict[str, set[str]] = {name: set() for name in self._order}
        for name in self._order:
            for later in self._next(name):
                for guarded in behind[later] - behind[name]:
                    guards[guarded].add(name)
        return guards

    def _primitives(self, name: str) -> Iterator[list[Json]]:
        for number in self.nodes[name].get("action_ids", []):
            yield self._actions[number]["primitives"]

    def accesses(self) -> Iterator[str]:
        """The registers that primitives read or write, once for each."""
        for name in self._order:
            for primitives in self._primitives(name):
                for primitive in primitives:
                    if primitive["op"] in ("register_read", "register_write"):
                        place = 1 if primitive["op"] == "register_read" else 0
                        yield primitive["parameters"][place]["value"]

    def counted(self) -> Pipeline:
        """Count it."""
        ready: dict[str, int] = {}
        guards = self._guards()
        decided: dict[str, int] = {}
        operations = last = 0

        def latest(names: Iterator[str] | list[str]) -> int:
            return max((ready.get(name, 0) for name in names), default=0)

        for name in self._order:
            node = self.nodes[name]
            guarded = max((decided[guard] for guard in guards[name]), default=0)
            if "expression" in node:
                # What it reads is there behind this stage; what it guards comes in the next one.
                decided[name] = max(guarded, latest(_fields(node["expression"])))
                continue
            key = latest([".".join(map(str, part["target"])) for part in node.get("key", [])])
            looked_up = max(guarded, key) + 1
            decided[name] = looked_up
            if node.get("key"):
                last = max(last, looked_up)
            written: dict[str, int] = {}
            for primitives in self._primitives(name):
                of_action: dict[str, int] = {}
                for primitive in primitives:
                    operations += 1
                    reads, writes = _effects(primitive)
                    before = max((of_action.get(field, ready.get(field, 0)) for field in reads), default=0)
                    stage = max(looked_up, before + 1)
                    last = max(last, stage)
                    for field in writes:
                        of_action[field] = max(of_action.get(field, 0), stage)
                for field, stage in of_action.items():
                    written[field] = max(written.get(field, 0), stage)
            for field, stage in written.items():
                ready[field] = max(ready.get(field, 0), stage)
        found = [self.nodes[name] for name in self._order]
        return Pipeline(
            name=self.name,
            tables=sum(bool(node.get("key")) for node in found),
            conditions=sum("expression" in node for node in found),
            operations=operations,
            stages=last,
        )
