"""Description of a run in one sentence: fabric, faults, traffic, load, transport, seeds."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from weft.faults import MOST_NAMED, faults_of, first_of
from weft.quantity import number, percent, plain, spaced
from weft.quantity import plural as many
from weft.ranking import listed

if TYPE_CHECKING:
    from weft.simulation import Result

__all__ = ["description_of", "description_words"]

_TRANSPORTS = {
    "tcp": "TCP",
    "dctcp": "DCTCP",
    "mptcp": "MPTCP",
    "expresspass": "ExpressPass",
    "maxpass": "MaxPass",
    "roce": "RoCE",
    "irn": "IRN",
    "uec": "Ultra Ethernet",
    "swift": "Swift",
    "mprdma": "MP-RDMA",
}
"""Transports as their papers write them; another one is called as in the spec."""
_PAIRS = {
    "between-racks": "between racks",
    "anywhere": "between any two hosts",
    "group-to-group": "from group to group",
    "permutation": "in a permutation of hosts",
}
_LOAD_OF = {"leaf-uplinks": "", "host-links": " of the host links", "bisection": " of the bisection"}
_MOST_KINDS = 3
_MOST_SEEDS = 5


def description_of(groups: Mapping[str, Sequence["Result"]]) -> str:
    """Say what the runs of a comparison have in common; `groups` are the runs by label."""
    specs = [tomllib.loads(runs[0].spec) for runs in groups.values()]
    seeds = [run.summary.seed for run in next(iter(groups.values()))]
    return description_words(specs, seeds)


def description_words(
    specs: Sequence[Mapping[str, Any]], seeds: Sequence[int], swept: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Say it of resolved specs: what they have in common, and what each is of where they differ.

    `swept` are fields whose values are told by themselves.
    """
    swept = swept or {}
    fabrics = [spec.get("fabric", {}) for spec in specs]
    traffic = [_without(spec.get("traffic", {}), "traffic", swept) for spec in specs]
    parts = [
        _either([_fabric(fabric) for fabric in fabrics], "fabrics"),
        _either([_faults(fabric) for fabric in fabrics], "sets of faults"),
        _either([_traffic(one) for one in traffic], "kinds of traffic"),
        _transport(specs),
        _seeds(seeds),
        *(f"{key} {listed(values)}" for key, values in swept.items() if len(values) > 1),
    ]
    return f"{'; '.join(filter(None, parts))}."


def _without(table: Mapping[str, Any], name: str, swept: Mapping[str, Sequence[str]]) -> Mapping[str, Any]:
    """Leave out the fields of a table that are swept."""
    return {key: value for key, value in table.items() if f"{name}.{key}" not in swept}


def _either(texts: Sequence[str], kinds: str) -> str:
    """Return the text that all share, or each of a few, or how many there are."""
    found = list(dict.fromkeys(texts))
    if len(found) == 1:
        return found[0]
    if len(found) > _MOST_KINDS:
        return f"{len(found)} {kinds}"
    first, *others = [text for text in found if text]
    told = [first, *(text[0].lower() + text[1:] for text in others)]
    return ", or ".join(told if "" not in found else [*told, "none"])


def _fabric(fabric: Mapping[str, Any]) -> str:
    match fabric.get("kind"):
        case "leaf-spine":
            size = _leaf_spine(fabric)
        case "rail":
            size = _rail(fabric)
        case "fat-tree":
            size = _fat_tree(fabric)
        case "graph":
            return f"The fabric of {PurePath(fabric['file']).name}"
        case _:
            return ""
    return f"A {fabric['kind']} of {size}, {_rates(fabric)}"


def _leaf_spine(fabric: Mapping[str, Any]) -> str:
    cables = fabric["links_per_pair"]
    several = f" with {cables} cables a pair" if cables > 1 else ""
    leaves, spines = many(fabric["leaves"], "leaf", "leaves"), many(fabric["spines"], "spine")
    return f"{leaves} and {spines}{several}, {many(fabric['leaves'] * fabric['hosts_per_leaf'], 'host')}"


def _rail(fabric: Mapping[str, Any]) -> str:
    servers, gpus = fabric["servers"], fabric["gpus"]
    groups = servers // fabric.get("servers_per_group", servers)
    parts = f" in {groups} groups" if groups > 1 else ""
    cables = fabric["links_per_pair"]
    several = f" with {cables} cables a pair" if cables > 1 else ""
    hosts = f"{many(servers * gpus, 'host')} in {many(servers, 'server')}"
    planes = fabric.get("planes", 1)
    each = f" in each of {planes} planes" if planes > 1 else ""
    return f"{many(gpus, 'rail')}{parts} and {many(fabric['spines'], 'spine')}{several}{each}, {hosts}"


def _fat_tree(fabric: Mapping[str, Any]) -> str:
    k = fabric["k"]
    edges = k * k // 2
    hosts = many(edges * fabric.get("hosts_per_edge", k // 2), "host")
    return f"{many(k, 'pod')} and {many(fabric.get('cores', k * k // 4), 'core')}, {hosts}"


def _rates(fabric: Mapping[str, Any]) -> str:
    between = list(dict.fromkeys(fabric[key] for key in ("fabric_rate", "core_rate") if key in fabric))
    if between == [fabric["host_rate"]]:
        return spaced(fabric["host_rate"])
    return f"{spaced(fabric['host_rate'])} to hosts and {listed([spaced(rate) for rate in between])} between switches"


def _faults(fabric: Mapping[str, Any]) -> str:
    alike: dict[str, list[str]] = {}
    for fault in faults_of(fabric):
        alike.setdefault(fault.effect, []).append(fault.where)
    found = [f"{_cables(where)} {what}" for what, where in alike.items()]
    return ", ".join(first_of(found))


def _cables(names: Sequence[str]) -> str:
    return listed(names) if len(names) <= MOST_NAMED else f"{names[0]} and {len(names) - 1} more cables"


def _traffic(traffic: Mapping[str, Any]) -> str:
    is_random = "trace" not in traffic and ("load" in traffic or "flows" in traffic)
    found = [_random_flows(traffic)] if is_random else [_trace(traffic)] if "trace" in traffic else []
    found += _times([_incast(one) for one in traffic.get("incast", ())])
    found += _collectives(traffic)
    if lasting := sum(one.get("count", 1) for one in traffic.get("long_lived", ())):
        found.append(many(lasting, "long-lived flow"))
    if programs := len(traffic.get("program", ())):
        found.append(many(programs, "program"))
    return listed(found) if found else ""


def _trace(traffic: Mapping[str, Any]) -> str:
    """Name a trace, and of which rows; it may have fewer than were asked for."""
    first = f"the first {many(traffic['flows'], 'flow')}" if "flows" in traffic else "the flows"
    until = f" that start before {spaced(traffic['duration'])}" if "duration" in traffic else ""
    return f"{first} of {PurePath(traffic['trace']).name}{until}"


def _collectives(traffic: Mapping[str, Any]) -> list[str]:
    """Name the collectives, those that are alike together, the jobs and the files."""
    alike: dict[str, int] = {}
    for one in traffic.get("collective", ()):
        # Resolved or not, a list of hosts names them one by one or by ranges.
        ranks = one.get("count") or sum(map(_hosts, one["hosts"])) if one.get("count") or "hosts" in one else None
        between = f" between {many(ranks, 'host')}" if ranks else ""
        size = f" of {spaced(one['size'])}" if "size" in one else ""
        words = f"{one['kind']}{size}{between}"
        alike[words] = alike.get(words, 0) + one.get("iterations", 1)
    found = [f"{words}, {count} times" if count > 1 else words for words, count in alike.items()]
    if jobs := len(traffic.get("job", ())):
        found.append(many(jobs, "training job"))
    # One table, not a list of them: a spec has one schedule.
    if schedule := traffic.get("schedule"):
        found.append(f"the schedule of {PurePath(schedule['file']).name}")
    return found


def _hosts(given: int | str) -> int:
    """How many hosts `3` or `"8-15"` names."""
    first, dash, last = str(given).partition("-")
    return int(last) - int(first) + 1 if dash else 1


def _random_flows(traffic: Mapping[str, Any]) -> str:
    flows = "flow" if traffic.get("flows") == 1 else "flows"
    kind = f"{flows} of {spaced(traffic['size'])}" if "size" in traffic else f"{_workload(traffic)} {flows}"
    if "size_scale" in traffic:
        kind += f" of {plain(traffic['size_scale'])} times the size"
    if "flows" in traffic:
        kind = f"{number(traffic['flows'])} {kind}"
    elif "duration" in traffic:
        kind += f" for {spaced(traffic['duration'])}"
    load = f" at load {traffic['load']}{_LOAD_OF.get(traffic.get('load_of', ''), '')}" if "load" in traffic else ""
    pairs = _PAIRS.get(traffic.get("pairs", ""), "")
    return f"{kind} {pairs}{load}"


def _workload(traffic: Mapping[str, Any]) -> str:
    return PurePath(str(traffic.get("workload", "random"))).name


def _times(named: Sequence[str]) -> list[str]:
    """Name those that are alike once, and how many there are."""
    return [f"{many} times {one}" if (many := named.count(one)) > 1 else one for one in dict.fromkeys(named)]


def _incast(incast: Mapping[str, Any]) -> str:
    often = ""
    if "period" in incast:
        often = f" every {spaced(incast['period'])}"
    elif "load" in incast:
        often = f" at load {percent(incast['load'])}"
    return f"incast of {incast.get('senders')} × {spaced(str(incast.get('size')))}{often}"


def _transport(specs: Sequence[Mapping[str, Any]]) -> str:
    named = list(dict.fromkeys(_transport_of(spec) for spec in specs))
    return listed(named, "or") if all(named) else ""


def _transport_of(spec: Mapping[str, Any]) -> str:
    tables = spec.get("transport", {})
    tables = tables if isinstance(tables, list) else [tables]
    hosts = spec.get("hosts", {})
    linux = hosts.get("kind") == "linux"
    if linux and "at" not in hosts:
        return listed([_of_kernel(one, hosts) for one in tables]) + " of the Linux kernel"
    found = listed([_simulated(one) for one in tables])
    return f"{found}, some hosts with the Linux kernel" if linux else found


_AS_IN = {"linux": " as in Linux", "hermes-ns3": " as in the ns-3 of Hermes' authors"}
"""Suffix that a profile of TCP adds to its name."""


def _simulated(transport: Mapping[str, Any]) -> str:
    called = transport.get("name", "")
    name = "CUBIC" if transport.get("congestion") == "cubic" else _TRANSPORTS.get(called, called)
    return name + _AS_IN.get(transport.get("profile", "rfc"), "")


def _of_kernel(transport: Mapping[str, Any], hosts: Mapping[str, Any]) -> str:
    """Name what a kernel's sockets do: it takes a spec's `tcp` for CUBIC unless told."""
    called = str(hosts.get("congestion_control", transport.get("name", "")))
    return "CUBIC" if called == "tcp" else called.upper()


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {listed([str(seed) for seed in seeds])}" if len(seeds) <= _MOST_SEEDS else f"{len(seeds)} seeds"
