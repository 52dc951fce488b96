"""The summary of one run, typed. The numbers are the core's; nothing is computed here.

The fields are those of `summary.json`. All but those with a default must be there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, UnsetType

from weft.catalog import entries
from weft.decoding import convert, decode

__all__ = [
    "BINS",
    "FCT_PARTS",
    "LIMITS",
    "PART_WORDS",
    "TIERS",
    "Background",
    "BinName",
    "CollectiveFacts",
    "CriticalFacts",
    "Deadlines",
    "Distribution",
    "DuplicateAcks",
    "FaultFacts",
    "FctBreakdown",
    "Goodput",
    "GoodputBounds",
    "LabelledBin",
    "LosslessFacts",
    "Lost",
    "LowerBounds",
    "PathSpread",
    "PhaseFacts",
    "PhaseName",
    "ReactionFacts",
    "Resent",
    "SizeBin",
    "Summary",
    "Unmeasured",
    "Waits",
]

BinName: TypeAlias = Literal["all", "small", "medium", "large"]

PhaseName: TypeAlias = Literal["before", "during", "after"]

BINS: Mapping[BinName, str] = {
    "all": "all flows",
    **{cast(BinName, group.name): group.title for group in entries("groups")},
}
"""The groups of flows in every summary, with their sizes."""

LIMITS: Mapping[BinName, tuple[int, int | None]] = {
    "all": (0, None),
    **{cast(BinName, group.name): (group.raw["from_bytes"], group.raw["up_to_bytes"]) for group in entries("groups")},
}
"""The smallest and the largest size of each group, both in it; None if there is no largest."""

TIERS: Mapping[str, str] = {
    "host": "sender's NIC",
    "leaf": "leaf uplink",
    "spine": "spine downlink",
    "last": "last hop",
}
"""Where a packet can wait, in the order in which it gets there."""


FCT_PARTS: Mapping[str, str] = {
    "transmission": "propagation and serialisation",
    "host": "waiting at the sender's NIC",
    "leaf": "leaf uplink",
    "spine": "spine",
    "last": "last hop",
    "reordering": "reordering stalls",
    "timeouts": "timeouts",
    "acknowledgement": "acknowledgement path",
    "window": "window and recovery",
    "pause": "pauses",
}
"""Where a flow's completion time goes; together they are the completion time. Pauses: with lossless classes alone."""

PART_WORDS: Mapping[str, str] = {
    key: f"queues at the {title}" if key in ("leaf", "spine", "last") else title for key, title in FCT_PARTS.items()
}
"""Words for these parts in a sentence."""


class Part(msgspec.Struct, frozen=True):
    """An object of `summary.json`. A key that is not declared belongs to a later version, and is passed over."""


class LowerBounds(Part, frozen=True):
    """Lower bounds of mean and percentiles that unfinished flows leave open; None for the others."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None


class Distribution(LowerBounds, frozen=True, omit_defaults=True):
    """Mean and percentiles; None where there are no flows, or where those that did not finish leave it open."""

    at_least: LowerBounds | None = None
    """Lower bounds of what is open; None if nothing is."""


class GoodputBounds(Part, frozen=True):
    """Upper bounds of goodputs where some flows did not finish."""

    mean: float | None
    sum: float | None
    together: float | None


class Goodput(Part, frozen=True, omit_defaults=True):
    """Payload over completion time, in Mbit/s; None without flows, or where those that did not finish leave it open."""

    mean: float | None
    min: float | None
    p25: float | None
    p50: float | None
    p75: float | None
    max: float | None
    sum: float | None
    """The sum over flows, whether they were active at one time or not."""
    together: float | None
    """The payload of all over the time from the first start to the last completion."""
    at_most: GoodputBounds | None = None
    """Upper bounds of what is open; None if all flows finished."""


class FctBreakdown(Part, frozen=True, omit_defaults=True):
    """Means of the parts of the completion time, by the keys of `FCT_PARTS`; None if no flow finished."""

    transmission: float | None
    host: float | None
    leaf: float | None
    spine: float | None
    last: float | None
    reordering: float | None
    timeouts: float | None
    acknowledgement: float | None
    window: float | None
    pause: float | None = None
    """None without lossless classes, too."""


class Resent(Part, frozen=True):
    """Segments sent again, by reason, None without flows; shares are of all segments sent, None if there are none."""

    after_loss: int | None
    after_reordering: int | None
    after_timeout: int | None
    share: float | None
    reordering_share: float | None


class DuplicateAcks(Part, frozen=True):
    """Duplicate acknowledgements, of flows whose transport counts them; None without any. Shares are of these flows."""

    total: int | None
    one_or_more: float | None
    three_or_more: float | None


class Deadlines(Part, frozen=True):
    """Flows of which it is known whether they missed their deadline."""

    flows: int
    missed: int
    missed_share: float | None


class SizeBin(Part, frozen=True, kw_only=True, omit_defaults=True):
    """The flows of one range of sizes. Shares are None where there is nothing to have a share of."""

    flows: int
    """Number of flows."""
    unfinished: int
    """Number of flows that began and had not finished when the run ended."""
    never_started: int
    """Number of flows that never began, as the run ended, or what they wait for did not come; others finished."""
    fct_us: Distribution
    """Flow completion times."""
    slowdown: Distribution
    """Completion time over the ideal completion time."""
    ideal_fct_us: Distribution
    """Completion times of the same flows in an empty fabric."""
    goodput_mbps: Goodput
    fct_breakdown_us: FctBreakdown
    queueing_us: float | None
    """Mean wait of a data packet in the queues of switches."""
    resent: Resent
    duplicate_acks: DuplicateAcks
    deadlines: Deadlines | None = None
    """None if no flow has a deadline."""

    @property
    def without_completion(self) -> int:
        """Number of flows without a completion time: unfinished, or never begun."""
        return self.unfinished + self.never_started

    @property
    def missed_deadlines_share(self) -> float | None:
        """Share of the flows with a deadline that missed it; None without any."""
        return self.deadlines.missed_share if self.deadlines else None


class LabelledBin(SizeBin, frozen=True, kw_only=True, omit_defaults=True):
    """The flows of a range of sizes that the spec asked for with `run.bins`."""

    label: str
    """Label of the range."""
    from_bytes: int
    """The smallest size in it."""
    up_to_bytes: int | None
    """The largest size in it; None if there is none."""


class ClassBin(SizeBin, frozen=True, kw_only=True, omit_defaults=True):
    """The flows of a class."""

    class_name: str = msgspec.field(name="class")
    """`unknown`, `short`, `long`, `best-effort`, or `tc4` to `tc7`."""


class PathSpread(Part, frozen=True):
    """How evenly flows are spread over the paths between racks."""

    pairs: int
    paths: int
    mean_mbps: float
    """Mean throughput of a path."""
    sd_mbps: float
    """Standard deviation over the paths of a pair of racks, as a mean over the pairs."""


class Background(Part, frozen=True):
    """Flows that never end."""

    flows: int
    never_started: int
    delivered_bytes: int
    goodput_mbps: float | None
    """The mean over flows, from start to the end of the run."""
    fairness: float | None
    """Jain's index of their goodputs: 1 if all are equal."""
    retransmissions: int | None
    timeouts: int | None
    out_of_order_packets: int | None
    data_packets: int | None
    out_of_order_share: float | None
    duplicate_segments: int | None


class Unmeasured(Part, frozen=True):
    """Flows that started outside the window of measurement. They loaded the fabric, and are in no average."""

    flows: int
    unfinished: int
    never_started: int


class Waits(Part, frozen=True):
    """Mean waits of a data packet by the keys of `TIERS`; None without data packets."""

    host: float | None
    leaf: float | None
    spine: float | None
    last: float | None


class SlowedFacts(Part, frozen=True):
    """Facts about links that a fault slowed in mid-run."""

    crowded_until_us: float | None
    """When the queue of one of them was last the longest of those that could be taken, by more than two packets."""
    others_since_bytes: int
    """Bytes that those were given since then, while the fault lasted."""
    share_before: float | None
    """Their share of the bytes of all links that could be taken, before the fault."""
    share_during: float | None
    share_after: float | None
    """None if the fault did not end, too."""


class ReactionFacts(Part, frozen=True):
    """How traffic reacted to a fault that takes packets."""

    hit_flows: int
    """Flows of which it took packets on the way to their receivers."""
    moved_flows: int
    """Flows among the hit ones that left: they sent nothing more into it, but a packet by another path that arrived."""
    moved_away_us: float | None
    """When the last of these sent the first such packet."""
    used_again_us: float | None
    """When a link of the fault was first used after it ended."""
    spread_flows: int = 0
    """Flows among the hit ones that spread over it: they used other paths and the fault by turns."""
    spread_lost_packets: int = 0
    """Packets of these flows that it took."""
    spread_arrived_packets: int = 0
    """Packets of these flows that were sent and arrived while it lasted."""
    spread_until_us: float | None = None
    """When the last of their packets that met it was sent."""


class FaultFacts(Part, frozen=True, omit_defaults=True):
    """A fault of the fabric, and what was lost into it. What it leaves as it was is None."""

    links: tuple[str, ...]
    from_us: float
    until_us: float | None
    """None if it lasts as long as the run."""
    lost_packets: int
    """Packets that were lost at its links while it lasted, and that no other fault is charged with."""
    last_lost_us: float | None
    unroutable_packets: int
    """Packets that switches had no way for because its links were down."""
    last_unroutable_us: float | None
    down: bool | None = None
    rate_bps: int | None = None
    delay_us: float | None = None
    loss: float | None = None
    blackhole: float | None = None
    reaction: ReactionFacts | None = None
    """Reaction to a fault that takes packets."""
    slowed: SlowedFacts | None = None
    """Facts about a fault that slows links in mid-run and loses nothing."""


class Lost(Part, frozen=True):
    """Packets lost, by reason."""

    queue: int
    down: int
    loss: int
    blackhole: int
    no_route: int
    input: int
    shared_buffer: int
    headroom: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(getattr(self, reason) for reason in self.__struct_fields__)


class PhaseFacts(Part, frozen=True):
    """Flows that start before, during or after faults, and packets lost then."""

    phase: PhaseName
    simulated_us: float
    flows: int
    unfinished: int
    fct_us: Distribution
    slowdown: Distribution
    retransmissions: int
    timeouts: int
    lost: Lost


class CriticalFacts(Part, frozen=True, omit_defaults=True):
    """The time on critical paths, on average over the collectives of one kind that finished, in microseconds."""

    flows: float
    """Flows on a path."""
    compute_us: float
    waiting_us: float
    transmission_us: float
    host_us: float
    leaf_us: float
    spine_us: float
    last_us: float
    reordering_us: float
    timeouts_us: float
    window_us: float
    acknowledgement_us: float
    worst_flow: int | None
    """The flow that lost the most time; None if none lost any."""
    worst_hosts: tuple[int, int] | None
    worst_us: float
    worst_late_by: str | None
    """The longest part of that."""
    worst_late_at: str | None
    worst_late_us: float | None = None
    """The length of that part."""
    pause_us: float | None = None
    """None without lossless classes."""


class ScheduleFacts(Part, frozen=True):
    """The contents of a schedule's file, as they were read."""

    ranks: int
    messages: int
    """Flows, with those of collectives that the file has."""
    bytes: int
    first_start_us: float
    """The start of the first message if the network took no time."""
    last_start_us: float


class CollectiveFacts(Part, frozen=True, omit_defaults=True):
    """Collectives of one label, kind and algorithm, and outside of jobs and files of one size and number of ranks."""

    label: str
    kind: str
    algorithm: str | None
    count: int
    unfinished: int
    completion_us: Distribution
    longest_us: float | None
    """None if one did not finish, as are the next two."""
    bus_bandwidth_mbps: float | None
    """Mean, by the convention of NCCL's tests; None where there is none."""
    straggler_us: float | None
    """From when the first rank was done until the last was, on average."""
    critical_path: CriticalFacts | None = None
    part_of: str | None = None
    """The label of the job or file that they are part of."""
    ranks: int | None = None
    """None if that differs."""
    size_bytes: int | None = None
    """Payload at every rank, as NCCL counts it; None if that differs or means nothing."""
    read: ScheduleFacts | None = None
    """The contents of the file, if it is one."""
    longest_at_least_us: float | None = None
    """Lower bound of the longest completion time, if a collective did not finish."""


class LosslessFacts(Part, frozen=True, omit_defaults=True):
    """Pauses of ports, and occupancy of the shared buffers of switches."""

    pauses: int
    """How often a class of a link was paused."""
    paused_us: float
    """How long, all links and classes together."""
    paused_links: int
    """Links that were paused in any class."""
    paused_queues: int
    """Queues that were paused: each class of a link is one."""
    root: str | None
    """The link to which most of the paused time goes back; None if nobody paused."""
    root_share: float | None
    """The share of the paused time that goes back to it."""
    innocent_flows: int
    """Flows that a pause held up though their packets then went another way than the one because of which it was."""
    innocent_us: float
    trimmed_packets: int
    largest_shared_buffer_bytes: int
    deadlock: tuple[str, ...] = ()
    """Links on which nothing would ever have moved again: each waits for the next one, the last one for the first."""


class Summary(SizeBin, frozen=True, kw_only=True, omit_defaults=True):
    """Summary of one run: all its flows, some groups of them, and the whole fabric.

    Times in microseconds; waits are means per data packet.
    """

    scheme: str
    """The load balancer."""
    label: str
    """Label of the run in tables and figures."""
    seed: int
    small: SizeBin
    medium: SizeBin
    large: SizeBin
    size_bins: tuple[LabelledBin, ...] = msgspec.field(name="bins", default=())
    """The ranges of sizes that the spec asked for with `run.bins`, in its order."""
    classes: tuple[ClassBin, ...] = ()
    """The flows of each class, if there are several."""
    paths: PathSpread | None = None
    """Throughput by path, if the spec has `run.paths_of`."""
    time_limit_us: float | None = None
    """The spec's `run.time_limit`, if it ended the run before all flows had finished."""
    background: Background | None = None
    """Flows that never end, if there are any."""
    unmeasured: Unmeasured | None = None
    """Flows outside the window of measurement, if the spec has `run.warmup` or `run.measure`."""
    faults: tuple[FaultFacts, ...] = ()
    """The faults of the fabric, in the order of the spec."""
    phases: tuple[PhaseFacts, ...] = ()
    """Before, during and after faults, those that there are."""
    collectives: tuple[CollectiveFacts, ...] = ()
    """Collectives, and steps of jobs, if the traffic has any."""
    lossless: LosslessFacts | None = None
    """Pauses and memories, if the ports of switches share memory."""
    retransmissions: int | None
    """Sums over the flows but background ones, as are those that follow; None without such flows."""
    timeouts: int | None
    out_of_order_packets: int | None
    data_packets: int | None
    out_of_order_share: float | None
    duplicate_segments: int | None
    wait_us: Waits
    packet_hops: int
    dropped_packets: int
    unroutable_packets: int
    input_dropped_packets: int
    events: int
    simulated_us: float
    sample_interval_us: float | None
    cpu_s: float | UnsetType = UNSET
    """CPU seconds. A store keeps what differs from run to run elsewhere: its summaries are the same each time."""
    wall_s: float | UnsetType = UNSET
    packet_hops_per_cpu_s: float | UnsetType | None = UNSET
    link_bytes: int
    overhead_bytes: int
    memory_bytes: int | UnsetType = UNSET
    state_bytes_per_switch: int
    state_bytes_per_host: int
    warnings: tuple[str, ...]
    incomplete: tuple[str, ...] = ()
    """Why the results are incomplete, if they are: a sentence for each program that failed."""
    invalid: tuple[str, ...] = ()
    """Why the results answer nothing, if they do not: most packets found no route, or no finite flow finished."""
    version: str
    results_version: str
    """Builds with the same one give the same results."""
    spec_hash: str
    kernel: str | None = None
    """The fingerprint of the kernel of Linux hosts, if there are any."""

    @property
    def bins(self) -> Mapping[BinName, SizeBin]:
        """The groups of flows in every summary."""
        return {"all": self, "small": self.small, "medium": self.medium, "large": self.large}

    def phase(self, name: PhaseName) -> PhaseFacts | None:
        """Return the facts before, during or after faults; None if there was no such time."""
        return next((one for one in self.phases if one.phase == name), None)

    @property
    def idle(self) -> "Summary":
        """Summary with the completion times that the flows would have in an empty fabric."""

        def one(of: Any) -> Any:
            return msgspec.structs.replace(of, fct_us=of.ideal_fct_us)

        groups = {name: one(of) for name, of in self.bins.items() if name != "all"}
        return one(msgspec.structs.replace(self, **groups, size_bins=tuple(map(one, self.size_bins))))  # type: ignore[no-any-return]

    @property
    def overhead_share(self) -> float | None:
        """Share of the scheme's own packets in all bytes on links, 0 to 1."""
        return self.overhead_bytes / self.link_bytes if self.link_bytes else None

    @property
    def raw(self) -> dict[str, Any]:
        """The object of `summary.json`."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        if "bins" in found:
            found["bins"] = [_led_by(one, ("label", "from_bytes", "up_to_bytes")) for one in found["bins"]]
        return _led_by(found, ("scheme", "label", "seed"))

    @classmethod
    def parse(cls, text: str | bytes, name: str = "summary.json") -> "Summary":
        """Read the text of `summary.json`. Raises `OutputError`, which calls it `name`, for any other text."""
        return decode(text, cls, name)

    @classmethod
    def read(cls, raw: Mapping[str, Any], name: str = "summary.json") -> "Summary":
        """Read the object of `summary.json`; errors as of `parse`."""
        return convert(raw, cls, name)


def _led_by(found: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Put these keys first, where `summary.json` has them; a class puts what it inherits first."""
    return {name: found[name] for name in names} | found
