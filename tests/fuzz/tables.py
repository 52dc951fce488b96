"""Relations that hold between the tables of one run, whatever its spec.

What holds of packets, links, classes, pauses, samples and flows as the engine counts them is checked in Rust when a run
ends (`crates/fabric/src/engine/identities.rs`): a debug build, which the fuzzer runs, panics if it does not.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import polars as pl

from weft.flows import counted
from weft.simulation import Result

__all__ = ["mistakes"]

Check: TypeAlias = Callable[[Result, Mapping[str, Any]], Iterator[str]]

_BY_CREDIT = ("expresspass", "maxpass")
_ROUNDING = 1e-6
"""Times are whole picoseconds, told in microseconds: what differs by less comes of adding them up."""


def mistakes(result: Result, spec: Mapping[str, Any]) -> list[str]:
    """List what does not hold; `spec` is the resolved one."""
    return [f"{check.__name__}: {text}" for check in _CHECKS for text in check(result, spec)]


def finished_flows_are_delivered(result: Result, _spec: Mapping[str, Any]) -> Iterator[str]:
    """Delivered bytes are the size of a flow that finished, and no more than that of one that did not."""
    flows = result.flows.filter(~pl.col("background"))
    short = flows.filter(pl.col("fct_us").is_not_null() & (pl.col("delivered_bytes") != pl.col("size_bytes")))
    more = flows.filter(pl.col("delivered_bytes") > pl.col("size_bytes"))
    yield from _rows(short.select("id", "delivered_bytes", "size_bytes"))
    yield from _rows(more.select("id", "delivered_bytes", "size_bytes"))


def parts_of_a_time_add_up(result: Result, _spec: Mapping[str, Any]) -> Iterator[str]:
    """Check that the parts of a flow's time add up to its completion time; no part is negative."""
    flows = result.flows
    parts = [name for name in flows.columns if name.startswith("fct_") and name != "fct_us"]
    told = flows.filter(pl.col("fct_us").is_not_null() & pl.all_horizontal(pl.col(parts).is_not_null()))
    total = pl.sum_horizontal(parts)
    apart = (total - pl.col("fct_us")).abs() > _ROUNDING * pl.col("fct_us") + 1e-5
    yield from _rows(told.filter(apart).select("id", "fct_us", total.alias("parts")))
    yield from _rows(told.filter(pl.any_horizontal(pl.col(parts) < -1e-9)).select("id", *parts))


def a_packet_waits_no_longer_than_its_flow_takes(result: Result, _spec: Mapping[str, Any]) -> Iterator[str]:
    """The mean wait of a finished flow's packets, over all tiers, is no longer than the flow took.

    Of a segment that came twice, one copy may be under way when its flow is over, for another made it superfluous: the
    packets of such a flow wait no longer than from its start to the end of the run.
    """
    waits = [name for name in result.flows.columns if name.startswith("wait_")]
    flows = result.flows.filter(pl.col("fct_us").is_not_null() & (pl.col("segments_received") > 0))
    mean = pl.sum_horizontal(waits) / pl.col("segments_received")
    whole = pl.lit(result.summary.raw["simulated_us"]) - pl.col("start_us")
    once = pl.max_horizontal("fct_us", "sender_fct_us")
    longest = pl.when(pl.col("duplicate_segments") > 0).then(whole).otherwise(once)
    yield from _rows(flows.filter(mean > longest * (1 + _ROUNDING)).select("id", "fct_us", mean.alias("wait_us")))


def links_carry_no_more_than_they_can(result: Result, _spec: Mapping[str, Any]) -> Iterator[str]:
    """Utilisation is at most 1, over the run and in each interval; a byte more is rounding."""
    capacity = pl.col("rate_bps") * pl.col("interval_us") / 8e6
    over = (pl.col("utilisation") - 1.0) * capacity > 2.0
    yield from _rows(result.samples.filter(over).select("link", "time_us", "sent_bytes", "utilisation"))
    # To the byte it is checked in Rust.
    yield from _rows(result.links.filter(pl.col("utilisation") > 1.001).select("link", "bytes", "utilisation"))


def what_classes_cut_is_of_flows(result: Result, _spec: Mapping[str, Any]) -> Iterator[str]:
    """Packets that classes cut are segments of flows, and no more complaints come to senders than receivers send."""
    cut = int(result.classes["trimmed"].sum() or 0)
    flows = result.flows
    of_flows = int(flows["trimmed_segments"].sum()) if "trimmed_segments" in flows.columns else 0
    if cut != of_flows:
        yield f"{cut} packets were cut in classes, {of_flows} of flows"
    if "nacks" in flows.columns:
        counters = dict(result.scheme.select("name", "value").iter_rows())
        came, sent = int(flows["nacks"].sum() or 0), counters.get("nacks_sent", 0)
        if came > sent:
            yield f"{came} NACKs came, {sent} were sent"


def deliveries_are_payload_of_flows(result: Result, _spec: Mapping[str, Any]) -> Iterator[str]:
    """Check that the payload that receivers got over time is the payload that the flows delivered."""
    if result.samples.is_empty():
        return
    got, flows = int(result.deliveries["payload_bytes"].sum() or 0), result.flows
    ended = int(flows.filter(pl.col("fct_us").is_not_null())["delivered_bytes"].sum())
    if got < ended or (flows["fct_us"].null_count() == 0 and got != ended):
        yield f"{got} bytes in deliveries, {ended} of the flows that ended"


def the_summary_is_that_of_the_flows(result: Result, _spec: Mapping[str, Any]) -> Iterator[str]:
    """Flows, those that did not finish, what they sent again and what was dropped are counted alike."""
    flows, raw = result.flows, result.summary.raw
    own = counted(flows)
    # What is outside the window of measurement is counted apart.
    beside = result.summary.unmeasured
    ending = flows.filter(~pl.col("background")).height
    if ending != own.height + (beside.flows if beside else 0):
        yield f"of {ending} flows {own.height} are measured, and {beside} are not"
    pairs = {
        "flows": own.height,
        "unfinished": own["fct_us"].null_count() - own["start_us"].null_count(),
        "never_started": own["start_us"].null_count(),
        # Of no flow nothing is counted.
        "retransmissions": int(own["retransmissions"].sum()) if own.height else None,
        "timeouts": int(own["timeouts"].sum()) if own.height else None,
        "dropped_packets": int(result.links["dropped_packets"].sum())
        + raw["unroutable_packets"]
        + raw.get("input_dropped_packets", 0),
    }
    for name, value in pairs.items():
        if raw[name] != value:
            yield f"{name} is {raw[name]} in the summary, {value} in the tables"


def what_faults_did_adds_up(result: Result, _spec: Mapping[str, Any]) -> Iterator[str]:
    """Check that every drop of a run with faults has a place and a reason, and every flow its phase."""
    summary = result.summary
    if not summary.faults:
        yield from (f"{name} has rows" for name in ("phases", "drops") if getattr(result, name).height)
        return
    lost = {
        "drops": int(result.drops["packets"].sum()),
        "phases": int(result.phases["lost_packets"].sum()),
        "the summary's phases": sum(one.lost.total for one in summary.phases),
    }
    for where, packets in lost.items():
        if packets != summary.dropped_packets:
            yield f"{packets} packets lost in {where}, {summary.dropped_packets} dropped"
    starts = (int(result.phases["flows"].sum()), sum(one.flows for one in summary.phases))
    begun = summary.flows - summary.never_started
    if starts != (begun, begun):
        yield f"{starts} flows start in phases, {begun} began"


def a_flow_has_the_transport_that_the_spec_gives_it(result: Result, spec: Mapping[str, Any]) -> Iterator[str]:
    """Each flow's is one of the labels, and that of its class where no other table names one; one alone is not told."""
    flows, transports = result.flows, _transports(spec)
    if not transports:
        if "transport" in flows.columns:
            yield "a column transport in a run with one"
        return
    yield from _rows(flows.filter(~pl.col("transport").is_in(list(transports))).select("id", "transport"))
    traffic = spec["traffic"]
    if any("transport" in table for table in (*traffic.get("incast", ()), *traffic.get("long_lived", ()))):
        return
    named = (traffic.get("classes") or {}).get("transport") or {}
    given = pl.col("class").replace_strict(named, default=next(iter(transports)), return_dtype=pl.String)
    yield from _rows(flows.filter(pl.col("transport") != given).select("id", "class", "transport"))


def each_transport_counts_what_it_does(result: Result, spec: Mapping[str, Any]) -> Iterator[str]:
    """Check that transports with credits have no windows to reduce, and send one segment per credit."""
    by_credit = [label for label, name in _transports(spec).items() if name in _BY_CREDIT]
    if not _transports(spec):
        return
    flows = result.flows.filter(pl.col("transport").is_in(by_credit))
    windows = ("fast_recoveries", "duplicate_acks", "marked_acks")
    yield from _rows(flows.filter(pl.any_horizontal(pl.col(windows) > 0)).select("id", "transport", *windows))
    counters = dict(result.scheme.select("name", "value").iter_rows())
    sent = counters.get("credits_sent", 0)
    used = int(flows["segments_sent"].sum()) + counters.get("credits_wasted", 0) + counters.get("credits_dropped", 0)
    if used > sent:
        yield f"{sent} credits were sent, and {used} used, wasted or dropped"


_CHECKS: tuple[Check, ...] = (
    finished_flows_are_delivered,
    parts_of_a_time_add_up,
    a_packet_waits_no_longer_than_its_flow_takes,
    links_carry_no_more_than_they_can,
    what_classes_cut_is_of_flows,
    deliveries_are_payload_of_flows,
    the_summary_is_that_of_the_flows,
    what_faults_did_adds_up,
    a_flow_has_the_transport_that_the_spec_gives_it,
    each_transport_counts_what_it_does,
)


def _transports(spec: Mapping[str, Any]) -> dict[str, str]:
    """The names of several transports by label, the first one first; none of one alone."""
    tables = spec.get("transport", {})
    return {table.get("label") or table["name"]: table["name"] for table in tables} if isinstance(tables, list) else {}


def _rows(frame: pl.DataFrame) -> Iterator[str]:
    """Tell the first row that is wrong."""
    if frame.height:
        yield f"{frame.height} rows, as {frame.row(0, named=True)}"
