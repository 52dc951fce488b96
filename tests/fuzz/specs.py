"""A case of the fuzzer: a small spec that runs, and what was changed in it, so that the changes can be taken back."""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from fuzz.classes import classes_of_ports
from fuzz.graphs import Graph, drawn_graph
from fuzz.space import OMIT, Space
from weft import _core
from weft.catalog import entries
from weft.errors import SpecError
from weft.spec import to_toml

__all__ = ["SLOWED", "Case", "Maker", "document", "resolved"]

SLOWED = re.compile(r"((?:^|/)(?:flows|graph|graph-\d+))(\.csv|\.toml)$")
"""A file of flows or of a fabric. With times ten times as long and rates a tenth, it has `-slow` behind its name."""
TRACE = "flows.csv"

Path_: TypeAlias = tuple[str | int, ...]
Tweak: TypeAlias = tuple[Path_, Any]

_SEVERAL = 0.2
"""The share of cases with several transports."""
_CLASSES = ("short", "long", "best-effort", "unknown", "tc4", "tc5", "tc6", "tc7")
_MOST_OTHERS = 3
"""Transports beside the first one."""
_SCHEDULES = ("ring.goal", "ring.cm")
"""Flows that wait for each other, between the four hosts that every fabric here has."""

_FABRICS: Sequence[Mapping[str, Any]] = (
    {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    {"kind": "leaf-spine", "leaves": 3, "spines": 3, "hosts_per_leaf": 2},
    {"kind": "leaf-spine", "leaves": 2, "spines": 4, "hosts_per_leaf": 4},
    {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
    {"kind": "fat-tree", "k": 4},
    {"kind": "rail", "servers": 4, "servers_per_group": 2, "gpus": 2, "spines": 2},
    {"kind": "graph", "file": "graph.toml"},
)
GRAPH = """
hosts = ["host0", "host1", "host2", "host3"]
switches = ["leaf0", "leaf1", "spine0", "spine1"]
rate = "RATE Mbps"
delay = "TIME us"
link = [
    { from = ["host0", "host1"], to = "leaf0" },
    { from = ["host2", "host3"], to = "leaf1" },
    { from = ["leaf0", "leaf1"], to = "spine0", rate = "HALF Mbps" },
    { from = ["leaf0", "leaf1"], to = "spine1", delay = "3TIME us" },
]
"""

FITS = {
    "scheme": "qall-poly",
    "time_constant": "10ms",
    "polynomials": [
        {"degree": degree, "coefficients": [0.1, 0.5, -0.1] + [0.0] * more} for degree, more in ((1, 0), (2, 3), (3, 7))
    ],
}

CABLES = (
    "leaf0-spine0", "leaf1-spine0", "leaf0-spine1", "leaf0>spine0", "spine1>leaf1", "host0-leaf0", "host1-leaf0",
    "host2>leaf1",
)  # fmt: skip
NAMES: Mapping[str, Sequence[str]] = {
    "link": CABLES,
    "tier": ("leaf-spine", "host-leaf"),
    "workload": [item.name for item in entries("workloads")],
    "bins": [item.name for item in entries("bins")] + ["0-1KB,1KB-"],
    "file": ("fits.json",),
}
"""Names that the strings of a spec may have: no files of traces, and of cables those of the smallest fabric."""

_TIERS_OF_GRAPH = ("host-switch", "switch-switch")
_ARBITRARY = 0.3
"""The share of cases whose fabric is an arbitrary graph."""

_TRAFFICS: Sequence[Mapping[str, Any]] = (
    {"size": "20KB", "load": 0.6, "flows": 10},
    {"size": "200KB", "load": 0.8, "flows": 20},
    {"trace": TRACE},
    {"incast": [{"senders": 3, "size": "50KB", "receiver": 0}]},
)


@dataclass(frozen=True)
class Case:
    """A spec as the smallest one of its schemes, and changes."""

    base: Mapping[str, Any]
    tweaks: Sequence[Tweak]
    graph: Graph | None = None
    """The fabric, if it is an arbitrary graph."""

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole spec."""
        return document(self.base, self.tweaks)

    @property
    def pair(self) -> tuple[str, str]:
        """The scheme, and the transport: the first one of several."""
        transport = self.base["transport"]
        return self.base["scheme"]["name"], (transport[0] if isinstance(transport, list) else transport)["name"]

    def changed(self, tweaks: Sequence[Tweak]) -> "Case":
        """Return the case with other changes."""
        return Case(self.base, tweaks, self.graph)

    @property
    def files(self) -> Mapping[str, str]:
        """The files of this case alone, by name."""
        return {} if self.graph is None else {self.base["fabric"]["file"]: self.graph.text(1)}

    @cached_property
    def toml(self) -> str:
        """The whole spec as a file."""
        return to_toml(self.document)


def document(base: Mapping[str, Any], tweaks: Sequence[Tweak]) -> dict[str, Any]:
    """Apply changes to a spec."""
    found = copy.deepcopy(dict(base))
    for path, value in tweaks:
        table: Any = found
        for part in path[:-1]:
            table = table[part] if isinstance(part, int) else table.setdefault(part, {})
        table[path[-1]] = value
        if path == ("traffic", "workload"):
            table.pop("size", None)
    return found


def resolved(toml: str, folder: Path) -> dict[str, Any]:
    """Resolve a spec, or raise `SpecError`."""
    found: dict[str, Any] = json.loads(_core.resolve(toml, base_dir=str(folder)))
    return found


class Maker:
    """Makes cases by their number: the same number, the same case."""

    def __init__(self, folder: Path, *, only_graphs: bool = False) -> None:
        """Put the files that specs name into a folder. The fabric may be an arbitrary graph in all cases."""
        self.folder = folder
        self._arbitrary = 1.0 if only_graphs else _ARBITRARY
        folder.mkdir(parents=True, exist_ok=True)
        self._keep_with_slowed(TRACE, _trace)
        self._keep_with_slowed("graph.toml", _graph)
        for name, text in zip(_SCHEDULES, (_goal(), _matrix()), strict=True):
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "fits.json").write_text(json.dumps(FITS), encoding="utf-8")
        self._space = Space(json.loads(_core.schema()), NAMES)
        self._schemes = self._space.variants("scheme")
        self._transports = self._space.variants("transport")
        hosts = self._space.variants("hosts")
        self._hosts = next(node for node in hosts if node["properties"]["kind"]["const"] == "simulated")
        fabrics = {node["properties"]["kind"]["const"]: node for node in self._space.variants("fabric")}
        self._fabrics = [(base, fabrics[base["kind"]]) for base in _FABRICS]
        self._graphs = fabrics["graph"]

    def case(self, number: int) -> Case:
        """Make a case whose spec the core takes: what it refuses is taken back, one change at a time."""
        random = Random(number)
        # Every pair of a scheme and a transport comes in turn.
        scheme = self._schemes[number % len(self._schemes)]
        transport = self._transports[number // len(self._schemes) % len(self._transports)]
        fabric, fabric_node = random.choice(self._fabrics)
        graph = self._graph(number)
        if graph is not None:
            fabric, fabric_node = {"kind": "graph", "file": f"graph-{number}.toml"}, self._graphs
        base = {
            "run": {"seed": random.randint(0, 2**31), "time_limit": random.choice(("5ms", "50ms", "1s"))},
            "fabric": dict(fabric),
            "hosts": {"kind": "simulated"},
            "traffic": copy.deepcopy(dict(random.choice(_TRAFFICS))),
            "transport": _smallest(transport),
            "scheme": _smallest(scheme),
        }
        nodes = {
            "fabric": fabric_node, "transport": transport, "scheme": scheme,
            "hosts": self._hosts, "run": self._space.variants("run")[0], "traffic": self._space.variants("traffic")[0],
        }  # fmt: skip
        # From streams of their own: a new key changes the cases of its own section alone.
        tweaks = [
            tweak
            for section, node in nodes.items()
            for tweak in self._tweaks(section, node, Random(f"{number}, {section}"), graph)
        ]
        company = Random(f"{number}, in company")
        if company.random() < _SEVERAL:
            tweaks = [*self._in_company(base, tweaks, company)]
        tweaks += classes_of_ports(self._space, fabric_node, Random(f"{number}, in classes"))
        return self._accepted(Case(base, tweaks, graph), random)

    def _graph(self, number: int) -> Graph | None:
        """Draw the graph of a case, if it is an arbitrary one, and write its file."""
        random = Random(f"{number}, graph")
        if random.random() >= self._arbitrary:
            return None
        graph = drawn_graph(random)
        self._keep_with_slowed(f"graph-{number}.toml", graph.text)
        return graph

    def _keep_with_slowed(self, name: str, text: Callable[[int], str]) -> None:
        for factor, own in ((1, name), (10, SLOWED.sub(r"\1-slow\2", name))):
            (self.folder / own).write_text(text(factor), encoding="utf-8")

    def _in_company(self, base: dict[str, Any], tweaks: Sequence[Tweak], random: Random) -> Iterator[Tweak]:
        """Put other transports beside the one of a case, each for the flows of a class."""
        others = random.choices(self._transports, k=random.randint(1, _MOST_OTHERS))
        labelled = [{"label": f"t{place + 1}"} | _smallest(node) for place, node in enumerate(others)]
        own = base["transport"]["name"]
        base["transport"] = [base["transport"], *labelled]
        labels = [own, *(table["label"] for table in labelled)]
        classes = random.sample(_CLASSES, len(labels))
        base["traffic"]["classes"] = {
            "short_below": random.choice(("10KB", "100KB")), "best_effort": random.choice((0.0, 0.3)),
            "transport": dict(zip(classes, labels, strict=True)),
        }  # fmt: skip
        for table in base["traffic"].get("incast", ()):
            table["transport"] = random.choice(labels)
        for path, value in tweaks:
            if path[0] == "transport":
                yield ("transport", 0, *path[1:]), value
            elif path != ("traffic", "classes"):
                yield path, value
        for place, node in enumerate(others):
            for path, value in self._tweaks("transport", node, random):
                yield ("transport", place + 1, *path[1:]), value

    def _tweaks(
        self, section: str, node: Mapping[str, Any], random: Random, graph: Graph | None = None
    ) -> Iterator[Tweak]:
        share = random.choice((0.0, 0.1, 0.3, 0.6))
        for key, inner in node["properties"].items():
            if random.random() < share and key not in ("name", "seed", "trace", "schedule"):
                if section == "fabric" and key in ("kind", "file"):
                    continue
                value = self._space.draw(inner, key, random)
                if value is not OMIT:
                    yield (section, key), value
        if section == "fabric" and "fault" in node["properties"] and random.random() < 0.4:
            yield ("fabric", "fault"), [self._fault(node, random, graph) for _ in range(random.randint(1, 4))]
        if section == "traffic" and random.random() < 0.1:
            table = self._space.node(node["properties"]["schedule"])
            drawn = self._space.table({**table, "required": ()}, random, share=0.3)
            yield ("traffic", "schedule"), drawn | {"file": random.choice(_SCHEDULES)}

    def _fault(self, fabric: Mapping[str, Any], random: Random, graph: Graph | None) -> dict[str, Any]:
        """Draw a fault that comes, and perhaps goes, while packets are queued: others may overlap it."""
        inner = self._space.node(fabric["properties"]["fault"])
        drawn: dict[str, Any] = self._space.table(self._space.node(inner["items"]), random, share=0.3)
        drawn["at"] = f"{random.choice((0, random.randint(1, 400)))}us"
        if random.random() < 0.7:
            drawn["until"] = f"{random.randint(1, 900)}us"
        if random.random() < 0.7:
            drawn["link"] = random.choice(CABLES if graph is None else graph.names)
            drawn.pop("share", None), drawn.pop("tier", None)
        elif graph is not None and "tier" in drawn:
            drawn["tier"] = random.choice(_TIERS_OF_GRAPH)
        return drawn

    def _accepted(self, case: Case, random: Random) -> Case:
        while True:
            try:
                resolved(case.toml, self.folder)
            except SpecError as error:
                if not case.tweaks:
                    return case
                case = case.changed(_without_refused(case.tweaks, str(error), random))
            else:
                return case


def _without_refused(tweaks: Sequence[Tweak], message: str, random: Random) -> list[Tweak]:
    """Take back the change that a message is about; one by chance if none is named."""
    words = set(re.findall(r"[a-z_]+", message))
    named = [tweak for tweak in tweaks if tweak[0][-1] in words]
    gone = random.choice(named or tweaks)
    return [tweak for tweak in tweaks if tweak is not gone]


def _graph(factor: int) -> str:
    """Two racks and two ways between them, one slower, the other longer."""
    return (
        GRAPH.replace("RATE", str(10_000 // factor))
        .replace("HALF", str(5_000 // factor))
        .replace("3TIME", str(3 * factor))
        .replace("TIME", str(factor))
    )


def _trace(factor: int) -> str:
    """Flows of many sizes between the hosts that every fabric here has."""
    random = Random(1)
    starts = sorted(random.randint(0, 300) for _ in range(24))
    rows = [
        f"{factor * start},{src},{(src + random.randint(1, 3)) % 4},{round(10 ** random.uniform(0.0, 5.3))}"
        for start, src in ((start, random.randint(0, 3)) for start in starts)
    ]
    return "\n".join(["start_us,src,dst,size_bytes", *rows, ""])


def _goal() -> str:
    """Go round a ring of four ranks: each sends on what it got, once it has worked on it."""
    ranks = [
        "\n".join(
            [
                f"rank {rank} {{",
                *(f"s{step}: send {4_000 * (step + 1)}b to {(rank + 1) % 4} tag {step}" for step in range(3)),
                *(f"r{step}: recv {4_000 * (step + 1)}b from {(rank + 3) % 4} tag {step}" for step in range(3)),
                "c0: calc 700",
                "c0 requires r0",
                "s1 requires c0",
                "s2 requires r1",
                "}",
            ]
        )
        for rank in range(4)
    ]
    return "\n".join(["num_ranks 4", *ranks, ""])


def _matrix() -> str:
    """Go round a ring of four nodes: each flow begins where the one before ends."""
    flows = [
        f"{node}->{(node + 1) % 4} id {node + 1} {'start 0' if node == 0 else f'trigger {node}'} size 6000"
        + (f" recv_done_trigger {node + 1}" if node < 3 else "")
        for node in range(4)
    ]
    triggers = [f"trigger id {number} oneshot" for number in range(1, 4)]
    return "\n".join(["Nodes 4", "Connections 4", "Triggers 3", *flows, *triggers, ""])


def _smallest(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scheme or transport with its defaults."""
    return {"name": node["properties"]["name"]["const"]}
