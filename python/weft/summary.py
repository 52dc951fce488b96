"""The summary of one run, typed. The numbers are the core's; nothing is computed here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["BINS", "SPENT", "TIERS", "Background", "BinName", "Distribution", "Goodput", "SizeBin", "Summary"]

BinName: TypeAlias = Literal["all", "small", "medium", "large"]

BINS: Mapping[BinName, str] = {
    "all": "all flows",
    "small": "< 100 KB",
    "medium": "100 KB - 10 MB",
    "large": "> 10 MB",
}
"""The groups of flows in every summary, with their sizes."""

TIERS: Mapping[str, str] = {
    "host": "host (NIC)",
    "leaf": "leaf uplink",
    "spine": "spine downlink",
    "last": "last hop",
}
"""Where a packet can wait, in the order in which it gets there."""


SPENT: Mapping[str, str] = {
    "transmission": "propagation and serialisation",
    "host": "waiting at the host",
    "leaf": "leaf uplink",
    "spine": "spine",
    "last": "last hop",
    "reordering": "reordering stalls",
    "timeouts": "timeouts",
    "window": "window and recovery",
}
"""Where a flow's completion time goes; together they are the completion time."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Mean and percentiles over finished flows; every field is None when there is none."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None

    @classmethod
    def read(cls, raw: Mapping[str, Any] | None) -> "Distribution":
        """Read the object of `summary.json`."""
        raw = raw or {}
        return cls(*(raw.get(key) for key in ("mean", "p50", "p95", "p99", "p999")))


@dataclass(frozen=True, slots=True)
class Goodput:
    """Payload over completion time, in Mbit/s, over finished flows; None when there is none."""

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

    @classmethod
    def read(cls, raw: Mapping[str, Any] | None) -> "Goodput":
        """Read the object of `summary.json`."""
        raw = raw or {}
        return cls(*(raw.get(key) for key in ("mean", "min", "p25", "p50", "p75", "max", "sum", "together")))


@dataclass(frozen=True, slots=True)
class Background:
    """Flows that never end."""

    flows: int
    delivered_bytes: int
    goodput_mbps: float | None
    """The mean over flows, from start to the end of the run."""


@dataclass(frozen=True, slots=True)
class SizeBin:
    """The flows of one range of sizes. Shares are None where there is nothing to have a share of."""

    flows: int
    unfinished: int
    fct_us: Distribution
    slowdown: Distribution
    goodput_mbps: Goodput
    spent_us: Mapping[str, float | None]
    """Means of the parts of the completion time, by the keys of `SPENT`."""
    queueing_us: float | None
    """Mean wait of a data packet in the queues of switches."""
    resent: Mapping[str, float | None]
    """`after_loss`, `after_reordering`, `after_timeout`; `share` and `reordering_share` of the segments sent."""
    duplicate_acks: Mapping[str, float | None]
    """`total`; `one_or_more` and `three_or_more` as shares of the flows."""
    missed_deadlines_share: float | None
    label: str | None = None
    """What the range is called, if the spec asked for it with `run.bins`."""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> "SizeBin":
        """Read the object of `summary.json`."""
        return cls(
            flows=raw["flows"],
            unfinished=raw.get("unfinished", 0),
            fct_us=Distribution.read(raw.get("fct_us")),
            slowdown=Distribution.read(raw.get("slowdown")),
            goodput_mbps=Goodput.read(raw.get("goodput_mbps")),
            spent_us={part: (raw.get("spent_us") or {}).get(part) for part in SPENT},
            queueing_us=raw.get("queueing_us"),
            resent=raw.get("resent") or {},
            duplicate_acks=raw.get("duplicate_acks") or {},
            missed_deadlines_share=(raw.get("deadlines") or {}).get("missed_share"),
            label=raw.get("label"),
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """What one run came to. Times in microseconds; waits are means per data packet."""

    scheme: str
    label: str
    seed: int
    bins: Mapping[BinName, SizeBin]
    retransmissions: int
    timeouts: int
    data_packets: int
    out_of_order_packets: int
    out_of_order_share: float | None
    dropped_packets: int
    packet_hops: int
    packet_hops_per_cpu_s: float | None
    events: int
    cpu_s: float
    wall_s: float
    simulated_us: float
    sample_interval_us: float | None
    memory_bytes: int | None
    wait_us: Mapping[str, float | None]
    size_bins: Sequence[SizeBin]
    """The ranges of sizes that the spec asked for with `run.bins`, in its order."""
    background: Background | None
    path_throughput_mbps: float | None
    """Mean throughput of a path, if the spec has `run.paths_of`."""
    path_throughput_sd_mbps: float | None
    """Standard deviation over the paths of a pair of racks, likewise."""
    link_bytes: int | None
    overhead_bytes: int | None
    state_bytes_per_switch: int | None
    state_bytes_per_host: int | None
    raw: Mapping[str, Any] = field(repr=False)
    """The whole object of `summary.json`."""

    @property
    def overhead_share(self) -> float | None:
        """What the scheme's own packets took of all bytes on links, 0 to 1."""
        return self.overhead_bytes / self.link_bytes if self.overhead_bytes is not None and self.link_bytes else None

    @property
    def flows(self) -> int:
        """Number of flows."""
        return self.bins["all"].flows

    @property
    def unfinished(self) -> int:
        """Number of flows that had not finished when the run ended; they are in no mean and no percentile."""
        return self.bins["all"].unfinished

    @property
    def fct_us(self) -> Distribution:
        """Flow completion times of all flows."""
        return self.bins["all"].fct_us

    @property
    def slowdown(self) -> Distribution:
        """Completion time over the ideal completion time, all flows."""
        return self.bins["all"].slowdown

    @classmethod
    def parse(cls, text: str) -> "Summary":
        """Read the text of `summary.json`."""
        return cls.read(json.loads(text))

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> "Summary":
        """Read the object of `summary.json`."""
        return cls(
            scheme=raw["scheme"],
            label=raw.get("label") or raw["scheme"],
            seed=raw["seed"],
            bins={
                "all": SizeBin.read(raw),
                "small": SizeBin.read(raw["small"]),
                "medium": SizeBin.read(raw["medium"]),
                "large": SizeBin.read(raw["large"]),
            },
            retransmissions=raw["retransmissions"],
            timeouts=raw["timeouts"],
            data_packets=raw.get("data_packets", 0),
            out_of_order_packets=raw["out_of_order_packets"],
            out_of_order_share=raw.get("out_of_order_share"),
            dropped_packets=raw.get("dropped_packets", 0),
            packet_hops=raw["packet_hops"],
            packet_hops_per_cpu_s=raw.get("packet_hops_per_cpu_s"),
            events=raw.get("events", 0),
            cpu_s=raw.get("cpu_s", 0.0),
            wall_s=raw.get("wall_s", 0.0),
            simulated_us=raw.get("simulated_us", 0.0),
            sample_interval_us=raw.get("sample_interval_us"),
            memory_bytes=raw.get("memory_bytes"),
            wait_us={tier: (raw.get("wait_us") or {}).get(tier) for tier in TIERS},
            size_bins=[SizeBin.read(one) for one in raw.get("bins") or ()],
            background=Background(**raw["background"]) if raw.get("background") else None,
            path_throughput_mbps=(raw.get("paths") or {}).get("mean_mbps"),
            path_throughput_sd_mbps=(raw.get("paths") or {}).get("sd_mbps"),
            link_bytes=raw.get("link_bytes"),
            overhead_bytes=raw.get("overhead_bytes"),
            state_bytes_per_switch=raw.get("state_bytes_per_switch"),
            state_bytes_per_host=raw.get("state_bytes_per_host"),
            raw=raw,
        )
