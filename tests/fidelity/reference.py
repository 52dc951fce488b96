"""The flows of reference runs in ns-3, run again: the table of differences, and whether they are within their bounds.

Run it with `make fidelity`. README.md beside this file has the set-up, scheme by scheme.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl
from beside import Beside, shown
from rich.console import Console
from rich.table import Table

import weft
from weft.summary import BINS, LIMITS, BinName

Fabric: TypeAlias = Literal["symmetric", "asymmetric"]

HERE = Path(__file__).parent
SEEDS = range(1, 11)
MEAN_BOUND = 0.10
P99_BOUND = 0.20

SLOW = (
    "leaf0-spine3",
    "leaf2-spine4",
    "leaf3-spine7",
    "leaf4-spine6",
    "leaf5-spine3",
    "leaf6-spine0",
    "leaf6-spine2",
    "leaf7-spine4",
)
"""The cables that ns-3's `asymCapacity` left a fifth of their rate, both ways."""

FABRICS: dict[Fabric, dict[str, object]] = {
    "symmetric": {},
    "asymmetric": {"fabric.fault": [{"link": link, "rate": "2Gbps"} for link in SLOW]},
}

SCHEMES: dict[str, dict[str, object]] = {
    "ecmp": {},
    "letflow": {"gap": "500us"},
    "drill": {"d": 2, "m": 1, "memory": "host"},
    "conga": {
        "t_dre": "30us",
        "alpha": 0.2,
        "metric_bits": 3,
        "metric_limit": "none",
        "collects": "behind-uplink",
        "reports_first": "renewed",
        "ties": "first-twice",
        "gap": "500us",
        "detection": "timer",
        "aging": "10ms",
        "falls": "at-once",
    },
    "clove": {
        "mode": "ecn",
        "steers": "routes",
        "choice": "at-random",
        "acknowledgements": "ecmp",
        "gap": "500us",
        "cut": 0.33,
        "spread": "others",
        "relay": "20us",
        "spaced_by": "sender",
    },
    "hermes": {
        "measures": "one-way",
        "rtt_low": "40us",
        "rtt_high": "180us",
        "delta_rtt": "100us",
        "ecn": False,
        "prefers": "fewest-flows",
        "leaves_for_bad": True,
        "reroute_after": "600KB",
        "reroute_below": 0.5125,
        "reroute_rate": "path",
        "reroute_probability": 0.5,
        "retry_gap": "100us",
        "probe_interval": "500us",
        "probe_best": False,
        "samples": 2,
        "retransmitted": 0.99,
        "blackhole_timeouts": 255,
        "aging": "75us",
        "aged_rtt": "60us",
        "forget_after": "1ms",
        "acknowledgements": "ecmp",
    },
}
"""The parameters of each load balancer that make it ns-3's; README.md says of each why."""


OUTSIDE: dict[tuple[Fabric, str], set[str]] = {
    ("symmetric", "clove"): {"mean, > 10 MB"},
    ("asymmetric", "ecmp"): {"mean, 100 KB - 10 MB", "mean, > 10 MB"},
}
"""Figures that are out of their bounds. Why, as far as it is known, stands in docs/fidelity.md."""


@dataclass(frozen=True, kw_only=True)
class Difference(Beside):
    """A completion time beside that in ns-3, in microseconds."""

    fabric: Fabric
    scheme: str
    statistic: str


@cache
def reference(fabric: Fabric = "symmetric") -> pl.DataFrame:
    """The flows and their completion times in ns-3: a column `ns3_fct_us_SCHEME`, or one a run, `..._2` and so on."""
    flows = pl.read_csv(HERE / "ns3-web-search-load-0.5.csv")
    times = pl.read_csv(HERE / f"ns3-{fabric}.csv")
    kept = flows if fabric == "symmetric" else flows.select("start_us", "src", "dst", "size_bytes")
    return pl.concat([kept, times], how="horizontal")


def schemes(fabric: Fabric) -> list[str]:
    """The schemes that ns-3 ran on a fabric."""
    columns = reference(fabric).columns
    return [scheme for scheme in SCHEMES if f"ns3_fct_us_{scheme}" in columns]


def ns3_runs(fabric: Fabric, scheme: str) -> pl.DataFrame:
    """Completion time of every flow in ns-3, a column a run; null where it never completed."""
    name = f"ns3_fct_us_{scheme}"
    flows = reference(fabric)
    return flows.select(column for column in flows.columns if column == name or column.startswith(f"{name}_"))


def run(fabric: Fabric, scheme: str, seed: int) -> weft.Result:
    """The flows of the reference in Weft."""
    balancer = {f"balancer.{key}": value for key, value in SCHEMES[scheme].items()}
    changes = {"balancer.name": scheme} | balancer | FABRICS[fabric]
    return weft.run(HERE / "reference.toml", set=changes, seed=seed, jobs=1)


def weft_runs(fabric: Fabric, scheme: str) -> pl.DataFrame:
    """Completion time of every flow in Weft, a column a seed."""
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(partial(run, fabric, scheme), SEEDS))
    assert all(result.summary.unfinished == 0 for result in runs)
    return pl.DataFrame(
        {f"weft_fct_us_{seed}": result.flows["fct_us"] for seed, result in zip(SEEDS, runs, strict=True)}
    )


@cache
def differences(fabric: Fabric, scheme: str) -> list[Difference]:
    """The mean by size, and the 99th percentile: each averaged over the runs, beside ns-3's.

    Flows that never completed in ns-3 are part of neither.
    """
    ns3, here = ns3_runs(fabric, scheme), weft_runs(fabric, scheme)
    complete = pl.all_horizontal(pl.col(ns3.columns).is_not_null())
    flows = pl.concat([reference(fabric).select("size_bytes"), ns3, here], how="horizontal").filter(complete)
    outside = OUTSIDE.get((fabric, scheme), set())

    def row(
        statistic: str, of: Callable[[pl.DataFrame], tuple[float, ...]], chosen: pl.DataFrame, bound: float
    ) -> Difference:
        return Difference(
            fabric=fabric,
            scheme=scheme,
            statistic=statistic,
            weft=of(chosen.select(here.columns)),
            other=of(chosen.select(ns3.columns)),
            bound=bound,
            is_known=statistic in outside,
        )

    means = [row(f"mean, {title}", mean, flows.filter(group(name)), MEAN_BOUND) for name, title in BINS.items()]
    return [*means, row("p99, all flows", p99, flows, P99_BOUND)]


def group(name: BinName) -> pl.Expr:
    """Which flows are of a group of sizes."""
    low, high = LIMITS[name]
    size = pl.col("size_bytes")
    return size >= low if high is None else size.is_between(low, high)


def mean(runs: pl.DataFrame) -> tuple[float, ...]:
    """Of each column."""
    return runs.mean().row(0)


def p99(runs: pl.DataFrame) -> tuple[float, ...]:
    """Of each column."""
    return runs.quantile(0.99, "linear").row(0)


def undisturbed() -> pl.DataFrame:
    """The flows that met nobody, each simulator taken by itself.

    In ns-3: both schemes gave the flow the same time, though their paths differ. In Weft: with one of the seeds, no
    packet of it waited outside its own host.
    """
    alone_in_ns3 = (pl.col("ns3_fct_us_ecmp") - pl.col("ns3_fct_us_letflow")).abs() < 0.1
    flows = reference().with_row_index("id").filter(alone_in_ns3)
    alone = [seed_flows.filter(queued_us=0) for seed_flows in map(queued, SEEDS)]
    in_weft = pl.concat(alone).unique("id", keep="first", maintain_order=True)
    both = flows.join(in_weft, on="id").sort("id")
    return both.select("size_bytes", ns3_us="ns3_fct_us_ecmp", weft_us="fct_us")


def queued(seed: int) -> pl.DataFrame:
    """Completion time of every flow under ECMP, and how long its packets waited outside its own host."""
    flows = run("symmetric", "ecmp", seed).flows
    return flows.select("id", "fct_us", queued_us=pl.sum_horizontal("wait_leaf_us", "wait_spine_us", "wait_last_us"))


def table(fabric: Fabric, found: list[Difference]) -> Table:
    """The differences of one fabric."""
    rows = Table(
        "scheme", "statistic", "Weft us", "ns-3 us", "difference", "bound", title=f"Weft beside ns-3, {fabric}"
    )
    for row in found:
        rows.add_row(row.scheme, row.statistic, shown(row.weft), shown(row.other), row.told, f"{row.bound:.0%}")
    return rows


def main() -> int:
    """Print the tables; 1 if figures other than `OUTSIDE` says are out of their bounds."""
    console = Console()
    found = {fabric: [row for scheme in schemes(fabric) for row in differences(fabric, scheme)] for fabric in FABRICS}
    for fabric, rows in found.items():
        console.print(table(fabric, rows))
    single = Table("size, bytes", "ns-3 us", "Weft us", title="Flows that met nobody")
    for size, ns3_us, weft_us in undisturbed().iter_rows():
        single.add_row(f"{size:,}", f"{ns3_us:.3f}", f"{weft_us:.3f}")
    console.print(single)
    return 0 if all(row.expected for rows in found.values() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
