"""The flows of a reference run in ns-3, run again: the table of differences, and whether they are within their bounds.

Run it with `make fidelity`. README.md beside this file has the set-up.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

import weft
from weft.summary import BINS, LIMITS, BinName

HERE = Path(__file__).parent
SEEDS = range(1, 11)
MEAN_BOUND = 0.10
P99_BOUND = 0.20
SCHEMES: dict[str, dict[str, object]] = {
    "ecmp": {"balancer.name": "ecmp"},
    "letflow": {"balancer.name": "letflow", "balancer.gap": "500us"},
}


@dataclass(frozen=True)
class Difference:
    """One figure of Weft beside the same figure of ns-3, in microseconds."""

    scheme: str
    statistic: str
    weft_us: float
    ns3_us: float
    bound: float

    @property
    def relative(self) -> float:
        return self.weft_us / self.ns3_us - 1

    @property
    def within(self) -> bool:
        return abs(self.relative) <= self.bound


def reference() -> pl.DataFrame:
    """The flows and their completion times in ns-3."""
    return pl.read_csv(HERE / "ns3-web-search-load-0.5.csv")


def fct(scheme: str, seed: int) -> pl.DataFrame:
    """Size and completion time of every flow in one run."""
    result = weft.run(HERE / "reference.toml", set=SCHEMES[scheme], seed=seed)
    assert result.summary.unfinished == 0
    return result.flows.select("size_bytes", "fct_us")


def differences(scheme: str) -> list[Difference]:
    """The mean by size, and the 99th percentile: each averaged over the seeds, beside ns-3's."""
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(partial(fct, scheme), SEEDS))
    ns3 = reference().select("size_bytes", fct_us=pl.col(f"ns3_fct_us_{scheme}"))
    found = []
    for name, title in BINS.items():
        flows = group(name)
        weft_us = sum(mean(run.filter(flows)) for run in runs) / len(runs)
        found.append(Difference(scheme, f"mean, {title}", weft_us, mean(ns3.filter(flows)), MEAN_BOUND))
    weft_us = sum(p99(run) for run in runs) / len(runs)
    found.append(Difference(scheme, "p99, all flows", weft_us, p99(ns3), P99_BOUND))
    return found


def group(name: BinName) -> pl.Expr:
    """Which flows are of a group of sizes."""
    low, high = LIMITS[name]
    size = pl.col("size_bytes")
    return size >= low if high is None else size.is_between(low, high)


def mean(flows: pl.DataFrame) -> float:
    value = flows["fct_us"].mean()
    assert isinstance(value, float)
    return value


def p99(flows: pl.DataFrame) -> float:
    value = flows["fct_us"].quantile(0.99, "linear")
    assert value is not None
    return value


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
    flows = weft.run(HERE / "reference.toml", set=SCHEMES["ecmp"], seed=seed).flows
    return flows.select("id", "fct_us", queued_us=pl.sum_horizontal("wait_leaf_us", "wait_spine_us", "wait_last_us"))


def main() -> int:
    """Print the tables; 1 if a figure is out of its bound."""
    console = Console()
    table = Table("scheme", "statistic", "Weft us", "ns-3 us", "difference", "bound", title="Weft beside ns-3")
    found = [difference for scheme in SCHEMES for difference in differences(scheme)]
    for row in found:
        shown = f"{row.relative:+.1%}" if row.within else f"[bold red]{row.relative:+.1%}[/]"
        table.add_row(row.scheme, row.statistic, f"{row.weft_us:,.1f}", f"{row.ns3_us:,.1f}", shown, f"{row.bound:.0%}")
    console.print(table)
    single = Table("size, bytes", "ns-3 us", "Weft us", title="Flows that met nobody")
    for size, ns3_us, weft_us in undisturbed().iter_rows():
        single.add_row(f"{size:,}", f"{ns3_us:.3f}", f"{weft_us:.3f}")
    console.print(single)
    return 0 if all(row.within for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
