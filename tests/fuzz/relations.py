"""Runs that must tell the same, or the same but for a factor, whatever the spec."""

import copy
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from fuzz.specs import SLOWED
from weft.runs.run import Measured
from weft.schemas import TABLES
from weft.simulation import Result
from weft.spec import to_toml

__all__ = ["RELATIONS", "Doubt", "Run"]

Run: TypeAlias = Callable[[str], Result]
"""Runs the TOML of a spec."""
Doubt: TypeAlias = str
Document: TypeAlias = Mapping[str, Any]

_OBSERVING = ("sample_every", "paths_of", "trace_flows", "bins")
_THREADS = (1, 2, 3, 5, 8)
_MEASURED = frozenset(Measured.__struct_fields__)
"""Fields of a summary that describe how a run was done."""
_FACTOR = 10
_ROUNDING = 1e-6
_UNIT = re.compile(r"^(\d+(?:\.\d+)?) *(Tbps|Gbps|Mbps|Kbps|bps|s|ms|us|ns|ps|pps)$")
_PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_MOST_PICOSECONDS = {
    "interrupt_delay": 10**12, "cpu_per_packet": 10**9, "cpu_per_byte": 10**6, "forwarding_per_byte": 10**6,
}  # fmt: skip
"""Times of machines that have a largest one."""
_BITS = {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}


def the_resolved_spec_gives_the_same_bytes_on_other_threads(
    result: Result, _document: Document, run: Run
) -> Iterator[Doubt]:
    """Check that the resolved spec is enough to repeat a result: on other threads and groups, too.

    Arbitrary graphs are cut in many ways, so they are run on each number of threads.
    """
    spec = tomllib.loads(result.spec)
    own = spec["run"].get("threads", 1)
    others = [number for number in _THREADS if number != own]
    if spec["fabric"]["kind"] != "graph":
        others = [others[spec["run"]["seed"] % len(others)]] if own == 1 else [1]
    for number in others:
        spec["run"]["threads"] = number
        again = run(to_toml(spec))
        for name in TABLES:
            if not getattr(again, name).equals(getattr(result, name)):
                yield f"table {name} is another one on {number} threads"
        for name, value in result.summary.raw.items():
            if name not in _MEASURED and again.summary.raw[name] != value:
                yield f"{name} of the summary is another one on {number} threads"


def observation_changes_no_flow(result: Result, document: Document, run: Run) -> Iterator[Doubt]:
    """Looking at links, paths and traces more, less or not at all moves no packet."""
    other = copy.deepcopy(dict(document))
    other["run"] = {key: value for key, value in document["run"].items() if key not in _OBSERVING}
    if "sample_every" not in document["run"]:
        other["run"] |= {"sample_every": "100us", "paths_of": "0B", "trace_flows": 3}
    yield from _same_flows(result, run(to_toml(other)))


def nothing_but_time_is_longer_at_a_tenth_of_the_rate(result: Result, _document: Document, run: Run) -> Iterator[Doubt]:
    """All rates divided by ten and all times multiplied by ten: every flow takes ten times as long.

    Only where that is exact: a byte takes whole picoseconds, and flows come when a trace says, not at drawn times. What
    a scheme works out of times may round. So does a retransmission timer, a smoothed round trip in whole picoseconds:
    where one expires, a picosecond may decide who comes first in a queue.
    """
    spec = tomllib.loads(result.spec)
    rates = result.links["rate_bps"].unique().to_list() + list(_rates(spec))
    if _has_time_of_its_own(spec["scheme"]) or any(map(_counts_seconds, _transports(spec))):
        return
    if not _may_be_slower(spec):
        return
    if spec["traffic"].get("application", {}).get("pause_distribution") == "exponential":
        return
    if any(8 * 10**12 % rate for rate in rates) or not spec["traffic"].get("trace") or _has_more(spec):
        return
    slow = run(to_toml(_scaled(spec)))
    own, other = (one.flows.sort("id") for one in (result, slow))
    if own["timeouts"].sum() or other["timeouts"].sum():
        return
    for name in ("start_us", "fct_us"):
        apart = (other[name] - own[name] * _FACTOR).abs() > own[name].abs() * _FACTOR * _ROUNDING
        if apart.any() or own[name].null_count() != other[name].null_count():
            row = int(apart.fill_null(False).arg_max() or 0)
            yield f"{name} of flow {row}: {own[name][row]} and, slowed down, {other[name][row]}"
            return


def a_rack_without_traffic_changes_nothing(result: Result, document: Document, run: Run) -> Iterator[Doubt]:
    """In a fabric of one path, another rack that neither sends nor receives is not noticed.

    Unless the scheme sends packets of its own: those of the idle rack's switches take their place on links, too.
    """
    fabric, traffic = document["fabric"], document["traffic"]
    if not _one_path(fabric) or "trace" not in traffic or fabric.get("fault") or "red" in str(fabric):
        return
    # Who is drawn for a flow that no trace names depends on how many hosts there are.
    if _sends(result) or traffic.get("long_lived") or _has_more({"traffic": traffic}):
        return
    more = copy.deepcopy(dict(document))
    more["fabric"]["leaves"] = fabric["leaves"] + 1
    yield from _same_flows(result, run(to_toml(more)))


def with_one_path_all_schemes_are_alike(result: Result, document: Document, run: Run) -> Iterator[Doubt]:
    """Where there is nothing to choose, a scheme that sends nothing of its own is as good as ECMP.

    Unless packets vanish by the hash of their five-tuple, which some schemes change.
    """
    if not _one_path(document["fabric"]) or document["scheme"]["name"] == "ecmp" or _sends(result):
        return
    if any(fault.get("blackhole") for fault in document["fabric"].get("fault", ())):
        return
    plain = run(to_toml({**document, "scheme": {"name": "ecmp"}}))
    yield from _same_flows(result, plain, ("id", "start_us", "fct_us", "segments_sent", "retransmissions", "timeouts"))


def one_transport_under_two_labels_is_one(_result: Result, document: Document, run: Run) -> Iterator[Doubt]:
    """Labels move no packet: a transport beside itself, each for the flows of a class, is that transport alone."""
    transport, traffic = document["transport"], document["traffic"]
    if isinstance(transport, list):
        return
    classes = {"short_below": "20KB"} | dict(traffic.get("classes", {}))
    named = classes | {"transport": {"short": "one", "long": "two"}}
    alone = {**document, "traffic": {**traffic, "classes": classes}}
    twice = {
        **document,
        "traffic": {**traffic, "classes": named},
        "transport": [{**transport, "label": label} for label in ("one", "two")],
    }
    yield from _same_flows(run(to_toml(alone)), run(to_toml(twice)))


def the_order_of_other_transports_changes_nothing(result: Result, document: Document, run: Run) -> Iterator[Doubt]:
    """The first of several carries what names none; in which order the others stand says nothing."""
    first, *others = _transports(document)
    if len(others) > 1:
        yield from _same_flows(result, run(to_toml({**document, "transport": [first, *reversed(others)]})))


RELATIONS: Mapping[str, Callable[[Result, Document, Run], Iterator[Doubt]]] = {
    relation.__name__: relation
    for relation in (
        the_resolved_spec_gives_the_same_bytes_on_other_threads,
        observation_changes_no_flow,
        nothing_but_time_is_longer_at_a_tenth_of_the_rate,
        a_rack_without_traffic_changes_nothing,
        with_one_path_all_schemes_are_alike,
        one_transport_under_two_labels_is_one,
        the_order_of_other_transports_changes_nothing,
    )
}


def _same_flows(own: Result, other: Result, names: tuple[str, ...] | None = None) -> Iterator[Doubt]:
    left, right = own.flows.sort("id"), other.flows.sort("id")
    for name in names or left.columns:
        if not left[name].equals(right[name], null_equal=True):
            apart = left[name].ne_missing(right[name]).arg_max() if left.height == right.height else None
            where = "" if apart is None else f" of flow {apart}: {left[name][apart]} and {right[name][apart]}"
            yield f"{name}{where}"
            return


def _transports(document: Document) -> list[Document]:
    transport = document["transport"]
    return transport if isinstance(transport, list) else [transport]


def _has_more(spec: Mapping[str, Any]) -> bool:
    """Whether there are flows beside those of a trace whose ends or times follow from the spec."""
    return any(spec["traffic"].get(name) for name in ("incast", "collective", "job", "schedule"))


def _one_path(fabric: Document) -> bool:
    return fabric["kind"] == "leaf-spine" and fabric.get("spines") == 1 and fabric.get("links_per_pair", 1) == 1


def _sends(result: Result) -> bool:
    """Whether a scheme sent packets or header bytes of its own, or hid marks from the transport."""
    counters = dict(result.scheme.select("name", "value").iter_rows())
    own = sum(value for name, value in counters.items() if "probe" in name or "relay" in name or "message" in name)
    return bool(own or result.summary.raw["overhead_bytes"])


def _rates(value: Any) -> Iterator[int]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _rates(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _rates(inner)
    elif isinstance(value, str) and (found := _UNIT.match(value)) and found[2] in _BITS:
        yield round(float(found[1]) * _BITS[found[2]])


def _has_time_of_its_own(scheme: Document) -> bool:
    """Whether a scheme goes by a time that no parameter says.

    Hermes' `rtt_low` is 20 us above the idle round trip; one-way delays have steps, and classes of round trips a width.
    """
    if scheme["name"] != "hermes":
        return False
    is_fixed = scheme.get("measures") == "one-way" or scheme.get("prefers") == "fewest-flows"
    return is_fixed or "rtt_low" not in scheme


def _may_be_slower(spec: Document) -> bool:
    """Whether the times that have a largest one may be ten times as long."""
    tables = (spec.get("hosts", {}), spec["fabric"].get("software_switch") or {})
    times = ((table.get(key), most) for table in tables for key, most in _MOST_PICOSECONDS.items())
    return all(_picoseconds(time) * _FACTOR <= most for time, most in times if time is not None)


def _picoseconds(text: str) -> int:
    found = _UNIT.match(text)
    return round(float(found[1]) * _PICOSECONDS[found[2]]) if found else 0


def _counts_seconds(transport: Document) -> bool:
    """Whether it knows times that no key sets.

    CUBIC counts since a loss, segmentation offload knows paths with short bursts, and the answers of Swift carry the
    delay at the far end in ticks of 2^14 ps.
    """
    offload = transport.get("segmentation_offload", "0B")
    return transport.get("congestion") == "cubic" or offload != "0B" or transport["name"] == "swift"


def _scaled(value: Any) -> Any:
    """Make times ten times as long, and rates a tenth."""
    if isinstance(value, Mapping):
        return {key: _scaled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_scaled(inner) for inner in value]
    if isinstance(value, str) and SLOWED.search(value):
        return SLOWED.sub(r"\1-slow\2", value)
    if isinstance(value, str) and (found := _UNIT.match(value)):
        if found[2] == "pps":
            return f"{int(found[1]) // _FACTOR}pps"
        if found[2] in _BITS:
            return f"{round(float(found[1]) * _BITS[found[2]]) // _FACTOR}bps"
        return f"{round(float(found[1]) * _PICOSECONDS[found[2]]) * _FACTOR}ps"
    return value
