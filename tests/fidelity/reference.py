"""The flows of reference runs in ns-3, run again: the table of differences, and whether they are within their bounds.

Run it with `make fidelity`. README.md beside this file has the set-up, scheme by scheme.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl
from beside import Beside, average, shown
from ordering import chain, sign
from rich.console import Console
from rich.table import Table

import weft
from weft.summary import BINS, LIMITS, BinName

CaseName: TypeAlias = Literal["symmetric", "asymmetric", "held back"]

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


@dataclass(frozen=True, kw_only=True)
class Case:
    """Flows on a fabric, and their completion times in ns-3."""

    flows: str
    """The file that has the flows."""
    times: tuple[str, ...]
    """The files that have a column `ns3_fct_us_SCHEME` of each scheme, in the order of the flows."""
    changes: dict[str, object]
    """Keys of the spec that are not as in `reference.toml`."""


FLOWS = "ns3-web-search-load-0.5.csv"
HELD_BACK = "ns3-held-back.csv"

CASES: dict[CaseName, Case] = {
    "symmetric": Case(flows=FLOWS, times=(FLOWS, "ns3-symmetric.csv"), changes={}),
    "asymmetric": Case(
        flows=FLOWS,
        times=("ns3-asymmetric.csv",),
        changes={"fabric.fault": [{"link": link, "rate": "2Gbps"} for link in SLOW]},
    ),
    "held back": Case(flows=HELD_BACK, times=(HELD_BACK,), changes={"traffic.trace": str(HERE / HELD_BACK)}),
}
"""The last one ran in ns-3 after all settings below were chosen, and none was changed by what it gave."""

SCHEMES: dict[str, dict[str, object]] = {
    "ecmp": {},
    "letflow": {"gap": "500us"},
    "drill": {"d": 2, "m": 1, "memory": "host", "length": "waiting"},
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

OUTSIDE: dict[tuple[CaseName, str], set[str]] = {
    ("symmetric", "clove"): {"mean, > 10 MB"},
    ("asymmetric", "ecmp"): {"mean, 100 KB - 10 MB", "mean, > 10 MB"},
    ("asymmetric", "letflow"): {"p99, all flows"},
    ("asymmetric", "drill"): {"mean, < 100 KB"},
    ("asymmetric", "clove"): {"mean, > 10 MB"},
    ("held back", "ecmp"): {"mean, < 100 KB"},
}
"""Figures that are out of their bounds. Why, as far as it is known, stands in docs/fidelity.md."""


@dataclass(frozen=True, kw_only=True)
class Difference(Beside):
    """A completion time beside that in ns-3, in microseconds."""

    case: CaseName
    scheme: str
    statistic: str


@cache
def reference(case: CaseName = "symmetric") -> pl.DataFrame:
    """The flows and their completion times in ns-3, a column `ns3_fct_us_SCHEME`; null where a flow never completed."""
    flows = pl.read_csv(HERE / CASES[case].flows).select("start_us", "src", "dst", "size_bytes")
    times = [pl.read_csv(HERE / file).select(r"^ns3_fct_us_.*$") for file in CASES[case].times]
    return pl.concat([flows, *times], how="horizontal")


def run(case: CaseName, scheme: str, seed: int) -> weft.Result:
    """The flows of the reference in Weft."""
    own = {f"scheme.{key}": value for key, value in SCHEMES[scheme].items()}
    changes = {"scheme.name": scheme} | own | CASES[case].changes
    return weft.run(HERE / "reference.toml", set=changes, seed=seed, jobs=1)


def weft_runs(case: CaseName, scheme: str) -> pl.DataFrame:
    """Completion time of every flow in Weft, a column a seed."""
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(partial(run, case, scheme), SEEDS))
    assert all(result.summary.unfinished == 0 for result in runs)
    return pl.DataFrame(
        {f"weft_fct_us_{seed}": result.flows["fct_us"] for seed, result in zip(SEEDS, runs, strict=True)}
    )


@cache
def differences(case: CaseName, scheme: str) -> list[Difference]:
    """The mean by size, and the 99th percentile: each averaged over the runs, beside ns-3's.

    Flows that never completed in ns-3 are part of neither.
    """
    ns3 = reference(case).select("size_bytes", ns3_fct_us=f"ns3_fct_us_{scheme}")
    here = weft_runs(case, scheme)
    flows = pl.concat([ns3, here], how="horizontal").filter(pl.col("ns3_fct_us").is_not_null())
    outside = OUTSIDE.get((case, scheme), set())

    def row(
        statistic: str, of: Callable[[pl.DataFrame], tuple[float, ...]], chosen: pl.DataFrame, bound: float
    ) -> Difference:
        return Difference(
            case=case,
            scheme=scheme,
            statistic=statistic,
            weft=of(chosen.select(here.columns)),
            other=of(chosen.select("ns3_fct_us")),
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
    """Return the mean of each column."""
    return runs.mean().row(0)


def p99(runs: pl.DataFrame) -> tuple[float, ...]:
    """Return the 99th percentile of each column."""
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


def table(case: CaseName, found: list[Difference]) -> Table:
    """The differences of one case."""
    rows = Table("scheme", "statistic", "Weft us", "ns-3 us", "difference", "bound", title=f"Weft beside ns-3, {case}")
    for row in found:
        rows.add_row(row.scheme, row.statistic, shown(row.weft), shown(row.other), row.told, f"{row.bound:.0%}")
    return rows


def orders(found: list[Difference]) -> str:
    """The schemes of a case by the mean of all flows, and how many pairs that Weft tells apart ns-3 has so, too."""
    here = {row.scheme: row.weft for row in found if row.statistic == "mean, all flows"}
    there = {row.scheme: average(row.other) for row in found if row.statistic == "mean, all flows"}
    pairs = list(combinations(sorted(there, key=lambda scheme: there[scheme]), 2))
    signs = [sign(here[lower], here[upper]) for lower, upper in pairs]
    apart, same = sum(found != 0 for found in signs), signs.count(-1)
    return (
        f"{len(pairs)} pairs, {apart} told apart in Weft, {same} of them as in ns-3\n"
        f"  Weft  {chain(here)}\n  ns-3  {', '.join(sorted(there, key=lambda scheme: there[scheme]))}"
    )


def main() -> int:
    """Print the tables; 1 if figures other than `OUTSIDE` says are out of their bounds."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    found = {case: [row for scheme in SCHEMES for row in differences(case, scheme)] for case in CASES}
    for case, rows in found.items():
        console.print(table(case, rows))
        console.print(orders(rows), highlight=False, soft_wrap=True)
    single = Table("size, bytes", "ns-3 us", "Weft us", title="Flows that met nobody")
    for size, ns3_us, weft_us in undisturbed().iter_rows():
        single.add_row(f"{size:,}", f"{ns3_us:.3f}", f"{weft_us:.3f}")
    console.print(single)
    return 0 if all(row.expected for rows in found.values() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
