"""Flow lists that conweave-ns3 ran, run again: DCQCN on lossless fabrics (PFC), and IRN without; slowdowns compared.

Run it with `make fidelity`, or one list with `python tests/fidelity/rdma.py --list NAME`. rdma.md beside this file has
the set-up.
"""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path

import polars as pl
from beside import Beside, shown
from ordering import chain, order
from rich.console import Console
from rich.table import Table

import weft

HERE = Path(__file__).parent
SEEDS = range(1, 11)
BOUND = 0.15

LISTS = {"load-50": "", "load-80": "-load-80"}
"""The flow lists by the load that conweave-ns3's run.py calls them by, and how the names of their files end."""

MODES = ("pfc", "irn")
BY_ECMP: dict[str, object] = {"acknowledgements": "ecmp"}
SCHEMES: dict[str, dict[str, object]] = {
    "ecmp": {},
    "letflow": {"gap": "100us"} | BY_ECMP,
    "conga": {"t_dre": "50us", "alpha": 0.2, "gap": "100us", "detection": "timer", "aging": "500us"} | BY_ECMP,
    "drill": {"memory": "host", "length": "waiting"} | BY_ECMP,
    "conweave": {"path_busy": "16us", "resume_extra": "16us", "queues": 1023},
}
"""The parameters of each load balancer that make it conweave-ns3's; rdma.md says why."""

STATISTICS = ("mean_slowdown", "p99_slowdown")

OUTSIDE: set[tuple[str, str, str, str]] = set()
"""Flow lists, modes, load balancers and statistics out of their bound: docs/fidelity.md has what is known of why."""


@dataclass(frozen=True, kw_only=True)
class Difference(Beside):
    """A slowdown beside that in conweave-ns3."""

    mode: str
    scheme: str
    statistic: str


@cache
def reference(flow_list: str) -> pl.DataFrame:
    """Slowdowns of conweave-ns3 by mode, load balancer and seed."""
    return pl.read_csv(HERE / f"rdma-runs{LISTS[flow_list]}.csv")


def spec(flow_list: str, mode: str, scheme: str) -> dict[str, object]:
    """The whole spec."""
    spec = tomllib.loads((HERE / "rdma.toml").read_text())
    spec["traffic"]["trace"] = str(HERE / f"rdma-flows{LISTS[flow_list]}.csv")
    spec["scheme"] = {"name": scheme} | SCHEMES[scheme]
    if mode == "pfc":
        _, data = spec["fabric"]["switch_queue"]["class"]
        data["lossless"] = True
        spec["fabric"]["pause"] = {"alpha": 1 / 16, "hysteresis": "1B", "response": "0ns"}
    else:
        spec["transport"] = {"name": "irn", "profile": "conweave-ns3", "bdp_cap": "108992B"}
    return spec


def slowdowns(flows: pl.DataFrame) -> pl.DataFrame:
    """By conweave-ns3's own rule: until the last acknowledgement, by round trip and bytes at line rate, at least 1."""
    is_inside = pl.col("src") // 16 == pl.col("dst") // 16
    round_trip_us = pl.when(is_inside).then(4.16).otherwise(8.32)
    bytes_on_wire = pl.col("size_bytes") + 48 * (pl.col("size_bytes") / 1_000).ceil()
    ideal_us = round_trip_us + bytes_on_wire * 8 / 100_000
    return flows.select("size_bytes", slowdown=(pl.col("sender_fct_us") / ideal_us).clip(lower_bound=1))


def run(flow_list: str, mode: str, scheme: str, seed: int) -> dict[str, float]:
    """Slowdowns of one run."""
    result = weft.run(spec(flow_list, mode, scheme), seed=seed, jobs=1, progress=False)
    assert result.summary.unfinished == 0
    found = slowdowns(result.flows)["slowdown"]
    row = found.to_frame().select(
        mean_slowdown=pl.col("slowdown").mean(), p99_slowdown=pl.col("slowdown").quantile(0.99, "linear")
    )
    return row.row(0, named=True)


def differences(flow_list: str, mode: str, scheme: str, seeds: Sequence[int] = SEEDS) -> list[Difference]:
    """One for each statistic."""
    is_case = (pl.col("mode") == mode) & (pl.col("scheme") == scheme)
    there = reference(flow_list).filter(is_case)
    with ThreadPoolExecutor() as pool:
        here = list(pool.map(partial(run, flow_list, mode, scheme), seeds))
    return [
        Difference(
            mode=mode,
            scheme=scheme,
            statistic=name,
            weft=tuple(found[name] for found in here),
            other=tuple(there[name]),
            bound=BOUND,
            is_known=(flow_list, mode, scheme, name) in OUTSIDE,
        )
        for name in STATISTICS
    ]


def ordered(found: list[Difference], console: Console) -> bool:
    """Print the orders of the load balancers; whether none that both simulators tell apart change places."""
    is_same = True
    for mode, statistic in product(MODES, STATISTICS):
        rows = [row for row in found if row.mode == mode and row.statistic == statistic]
        here, there = {row.scheme: row.weft for row in rows}, {row.scheme: row.other for row in rows}
        judged = order(here, there)
        text = f"{mode}, {statistic.replace('_', ' ')}: {judged.told}\n  Weft  {chain(here)}\n  ns-3  {chain(there)}"
        console.print(text, highlight=False, soft_wrap=True)
        is_same &= not judged.opposite
    return is_same


def compare(flow_list: str, console: Console) -> bool:
    """Print the table of a list and the orders of its load balancers; whether all is as it should be."""
    title = f"Weft beside conweave-ns3: {flow_list}"
    rows = Table("mode", "scheme", "slowdown", "Weft", "ns-3", "difference", title=title)
    found = [row for mode in MODES for scheme in SCHEMES for row in differences(flow_list, mode, scheme)]
    for row in found:
        name = row.statistic.removesuffix("_slowdown")
        rows.add_row(row.mode, row.scheme, name, shown(row.weft, 2), shown(row.other, 2), row.told)
    console.print(rows)
    is_same = ordered(found, console)
    return is_same and all(row.expected for row in found)


def main(arguments: list[str]) -> int:
    """Compare; 1 if figures other than `OUTSIDE` says are out of their bound, or two load balancers change places."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", choices=list(LISTS), action="append", help="a flow list; all, if none is named")
    console = Console(width=None if sys.stdout.isatty() else 120)
    outcomes = [compare(name, console) for name in parser.parse_args(arguments).list or LISTS]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
