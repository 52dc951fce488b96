"""Results made by hand, for tests of what is done with results."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import polars as pl

from weft import _core
from weft.comparison import Comparison
from weft.simulation import Result
from weft.summary import FCT_PARTS, Goodput, LowerBounds, Summary

PERCENTILES = LowerBounds.__struct_fields__
GOODPUT = tuple(name for name in Goodput.__struct_fields__ if name != "at_most")


def distribution(value: float | None, *, is_open: bool = False) -> dict[str, Any]:
    """All of it are this value, or at least that."""
    values = dict.fromkeys(PERCENTILES, value)
    return {**dict.fromkeys(PERCENTILES), "at_least": values} if is_open and value is not None else values


def size_bin(flows: int, mean_us: float | None, unfinished: int = 0) -> dict[str, Any]:
    """With unfinished flows, times are lower bounds, and goodputs upper ones."""
    fct = distribution(mean_us, is_open=unfinished > 0)
    slowdown = distribution(None if mean_us is None else mean_us / 10.0, is_open=unfinished > 0)
    goodput: dict[str, Any] = dict.fromkeys(GOODPUT, None if mean_us is None else 1e4 / mean_us)
    if unfinished and mean_us is not None:
        goodput = dict.fromkeys(GOODPUT) | {"at_most": dict.fromkeys(("mean", "sum", "together"), 1e4 / mean_us)}
    resent = {"after_loss": 1, "after_reordering": 2, "after_timeout": 0, "share": 0.003, "reordering_share": 0.002}
    return {
        "flows": flows,
        "unfinished": unfinished,
        "never_started": 0,
        "fct_us": fct,
        "slowdown": slowdown,
        "ideal_fct_us": dict.fromkeys(PERCENTILES, None if mean_us is None else 10.0),
        "goodput_mbps": goodput,
        "fct_breakdown_us": dict.fromkeys(FCT_PARTS, None if mean_us is None else mean_us / len(FCT_PARTS)),
        "queueing_us": 7.0,
        "resent": resent,
        "duplicate_acks": {"total": 8, "one_or_more": 0.2, "three_or_more": 0.1},
    }


def collective(mean_us: float | None, unfinished: int = 0) -> dict[str, Any]:
    """Two all-reduces that took so long on average; the longer one a tenth longer."""
    return {
        "label": "gradients",
        "kind": "all-reduce",
        "algorithm": "ring",
        "count": 2,
        "unfinished": unfinished,
        "completion_us": distribution(mean_us, is_open=unfinished > 0),
        "longest_us": None if mean_us is None or unfinished else 1.1 * mean_us,
        **({"longest_at_least_us": mean_us} if unfinished else {}),
        "bus_bandwidth_mbps": None,
        "straggler_us": None,
    }


def summary(
    label: str = "ecmp",
    seed: int = 1,
    mean_us: float | None = 100.0,
    *,
    scheme: str | None = None,
    unfinished: int = 0,
    leaf_wait_us: float = 5.0,
    sizes: Sequence[str] = (),
    own_bytes: int = 0,
    collectives: Sequence[dict[str, Any]] = (),
    breakdown: Mapping[str, float] | None = None,
) -> Summary:
    """`breakdown` are the parts of the mean completion time; those that are not named are 0."""
    parts = {} if breakdown is None else {"fct_breakdown_us": dict.fromkeys(FCT_PARTS, 0.0) | dict(breakdown)}
    return Summary.read(
        {
            "scheme": scheme or label,
            "label": label,
            "seed": seed,
            **size_bin(10, mean_us, unfinished),
            **parts,
            "small": size_bin(8, mean_us, unfinished),
            "medium": size_bin(2, mean_us),
            "large": size_bin(0, None),
            "bins": [{"label": label, "from_bytes": 0, "up_to_bytes": None, **size_bin(5, mean_us)} for label in sizes],
            "retransmissions": 3,
            "timeouts": 1,
            "data_packets": 1000,
            "out_of_order_packets": 20,
            "out_of_order_share": 0.02,
            "duplicate_segments": 0,
            "packet_hops": 4000,
            "dropped_packets": 0,
            "unroutable_packets": 0,
            "input_dropped_packets": 0,
            "events": 4000,
            "simulated_us": 500.0,
            "sample_interval_us": None,
            "cpu_s": 0.01,
            "wall_s": 0.01,
            "packet_hops_per_cpu_s": 4e5,
            "link_bytes": 1_000_000,
            "overhead_bytes": own_bytes,
            "memory_bytes": 1_000_000,
            "state_bytes_per_switch": 0,
            "state_bytes_per_host": 0,
            "warnings": [],
            "version": _core.version(),
            "results_version": "1",
            "spec_hash": "0123456789abcdef",
            "wait_us": {"host": 1.0, "leaf": leaf_wait_us, "spine": 2.0, "last": 3.0},
            "collectives": list(collectives),
        }
    )


_ENDS = [("host0", "leaf0", "host"), ("leaf0", "host0", "last"), ("host1", "leaf0", "host"), ("leaf0", "host1", "last")]
LINKS = pl.DataFrame(
    [(f"{start}>{end}", start, end, tier, 0) for start, end, tier in _ENDS],
    schema=["link", "from", "to", "tier", "dropped_packets"],
    orient="row",
)


class Tables:
    """Stands in for the core's result where only the tables matter."""

    def __init__(self, slowdowns: Sequence[float | None]) -> None:
        self.flows = pl.DataFrame(
            {
                "size_bytes": [2_000] * len(slowdowns),
                "background": [False] * len(slowdowns),
                "slowdown": slowdowns,
                "fct_us": [None if slowdown is None else 10.0 * slowdown for slowdown in slowdowns],
            },
            schema_overrides={"slowdown": pl.Float64, "fct_us": pl.Float64},
        )

    def table(self, name: str) -> pl.DataFrame:
        if name in ("programs", "classes"):  # there are none
            return pl.DataFrame()
        if name == "links":
            return LINKS
        assert name == "flows"
        return self.flows


def result(of: Summary, slowdowns: Sequence[float | None] = (1.0, 2.0, 4.0), spec: str = "[run]\n") -> Result:
    return Result(of, spec, core=cast(_core.RunResult, Tables(slowdowns)))


def comparison(*summaries: Summary, command: str | None = None, spec: str = "[run]\n") -> Comparison:
    return Comparison([result(of, spec=spec) for of in summaries], command=command)
