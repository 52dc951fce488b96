"""Connection matrices that uet-htsim ran, run again under Ultra Ethernet's transport: when the last flow was done.

Run it with `make fidelity`, or some cases with `python tests/fidelity/uec.py CASE ...`. uec.md beside this file has the
set-up.
"""

import math
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from beside import Beside, shown
from rich.console import Console
from rich.table import Table

import weft

HERE = Path(__file__).parent
BOUND = 0.10

PACKET = 4_150
"""A full packet, bytes on the wire."""
HEADER = 64
"""An acknowledgement, and what is left of a trimmed packet."""

SCHEMES: dict[str, dict[str, object]] = {
    "oblivious": {"entropies": 64, "order": "permutation"},
    "bitmap": {"entropies": 64, "timeout": 0},
    "reps": {"entropies": 64, "explore_every": 1},
}
"""The parameters of each load balancer that make it uet-htsim's; uec.md says why."""

FAT_TREE: dict[str, object] = {}
OVERSUBSCRIBED: dict[str, object] = {"cores": 4}
LEAF_SPINE: dict[str, object] = {"kind": "leaf-spine", "leaves": 16, "spines": 8, "hosts_per_leaf": 8}


def into_first_pod(cables: int, **fault: object) -> dict[str, object]:
    """So many of the 16 cables from cores into the first pod have this fault, on the way down: four to each switch."""
    return {"fault": [{"link": f"core{core}>agg{core // 4}"} | fault for core in range(cables)]}


@dataclass(frozen=True)
class Case:
    """One matrix on one fabric."""

    matrix: str
    fabric: dict[str, object] = field(default_factory=dict)
    """Differences from uec.toml."""
    transport: dict[str, object] = field(default_factory=dict)
    gbps: int = 100

    @property
    def hops(self) -> int:
        """Links from host to host on the longest path."""
        return 4 if self.fabric.get("kind") == "leaf-spine" else 6

    @property
    def round_trip_us(self) -> float:
        """Round-trip time of a full packet and its answer on the longest path of an idle fabric."""
        return 2 * self.hops * 1.0 + self.hops * (PACKET + HEADER) * 8 / self.gbps / 1_000

    @property
    def queue_packets(self) -> int:
        """Capacity of a queue: a bandwidth-delay product."""
        return math.ceil(self.round_trip_us * self.gbps * 1_000 / 8 / PACKET)

    def spec(self) -> dict[str, object]:
        """The whole spec, but for the traffic and the load balancer."""
        spec = tomllib.loads((HERE / "uec.toml").read_text())
        fabric, packets = spec["fabric"], self.queue_packets
        if "kind" in self.fabric:
            del fabric["k"]
        fabric |= {"host_rate": f"{self.gbps}Gbps", "fabric_rate": f"{self.gbps}Gbps"} | self.fabric
        headers, data = fabric["switch_queue"]["class"]
        headers["buffer"] = f"{2 * packets * PACKET}B"
        data["buffer"] = f"{packets * PACKET}B"
        low, high = math.ceil(0.2 * packets) * PACKET, math.ceil(0.8 * packets) * PACKET
        data["red"] = {"min": f"{low}B", "max": f"{high}B", "probability": 1.0}
        spec["transport"] |= {
            "base_rtt": f"{self.round_trip_us:.5f}us",
            "rto": f"{15 + 6 * packets * PACKET * 8 / self.gbps / 1_000:.3f}us",
        }
        spec["transport"] |= self.transport
        return spec


CASES: dict[str, Case] = {
    "perm_2MB": Case("perm_2MB"),
    "perm_2MB_ack1": Case("perm_2MB", transport={"ack_bytes": "4000B"}),
    "perm_2MB_2tier": Case("perm_2MB", LEAF_SPINE),
    "perm_2MB_os4": Case("perm_2MB", OVERSUBSCRIBED),
    "perm_2MB_400G": Case("perm_2MB", gbps=400),
    "perm_2MB_slow8": Case("perm_2MB", into_first_pod(8, rate="25Gbps")),
    "perm_2MB_slow8_queues": Case("perm_2MB", into_first_pod(8, rate="25Gbps")),
    "perm_2MB_dead1": Case("perm_2MB", into_first_pod(1, loss=1.0)),
    "perm_2MB_dead4": Case("perm_2MB", into_first_pod(4, loss=1.0)),
    "perm_100KB": Case("perm_100KB"),
    "perm_8MB": Case("perm_8MB"),
    "incast8_1MB": Case("incast8_1MB"),
    "incast32_1MB": Case("incast32_1MB"),
    "incast64_250KB": Case("incast64_250KB"),
    "incast127_2MB": Case("incast127_2MB"),
    "incast_collateral": Case("incast_collateral"),
    "outcast_incast": Case("outcast_incast"),
    "a2a_g16_serial_1MB": Case("a2a_g16_serial_1MB"),
    "a2a_g32_p4_256KB": Case("a2a_g32_p4_256KB"),
    "a2a_g128_p8_64KB": Case("a2a_g128_p8_64KB"),
}

OUTSIDE = {
    ("perm_2MB_slow8", "oblivious"),
    ("perm_2MB_slow8", "bitmap"),
    ("perm_2MB_slow8", "reps"),
    ("perm_2MB_dead4", "oblivious"),
    ("perm_2MB_dead4", "bitmap"),
}
"""Cases and load balancers that are out of their bound. Why, as far as it is known, stands in docs/fidelity.md."""


@dataclass(frozen=True, kw_only=True)
class Difference(Beside):
    """When the last flow of a case was done, in microseconds, with as many seeds here and there."""

    scheme: str
    resent: tuple[float, float]
    """Packets that were sent again, the mean over the runs: here and there."""


@cache
def reference() -> pl.DataFrame:
    """The runs of uet-htsim: case, scheme, seed, flows, when the last one was done, mean completion time, packets."""
    return pl.read_csv(HERE / "uec-runs.csv")


def matrix(name: str) -> str:
    """A matrix as a `.cm` file: each host has `at_once` flows under way, and starts the next ones as they end."""
    flows, triggers = [], 0
    rows = pl.read_csv(HERE / "uec-flows.csv", schema_overrides={"dsts": pl.String}).filter(pl.col("matrix") == name)
    for _, src, size, at_once, dsts in rows.iter_rows():
        named = dsts.split()
        batches = [named[first : first + at_once] for first in range(0, len(named), at_once)]
        for number, batch in enumerate(batches):
            start = f"trigger {triggers}" if number else "start 0"
            is_last = number + 1 == len(batches)
            triggers += 0 if is_last else 1
            then = "" if is_last else f" send_done_trigger {triggers}"
            flows += [(f"{src}->{dst}", f"{start} size {size}{then}") for dst in batch]
    lines = [f"{pair} id {number} {rest}" for number, (pair, rest) in enumerate(flows, 1)]
    ends = [f"trigger id {number} multishot" for number in range(1, triggers + 1)]
    return "\n".join(["Nodes 128", f"Connections {len(lines)}", f"Triggers {triggers}", *lines, *ends, ""])


def run(case: Case, scheme: str, file: Path, seed: int) -> tuple[float, int]:
    """When the sender of the last flow had its last acknowledgement, in us, and how many packets were sent again."""
    spec = case.spec() | {
        "scheme": {"name": scheme} | SCHEMES[scheme],
        "traffic": {"schedule": {"file": str(file)}},
    }
    result = weft.run(spec, seed=seed, jobs=1, progress=False)
    assert result.summary.unfinished == 0
    done = result.flows.select((pl.col("start_us") + pl.col("sender_fct_us")).max()).item()
    return float(done), result.summary.retransmissions


def differences(name: str, folder: Path) -> Iterator[Difference]:
    """One for each load balancer."""
    case = CASES[name]
    file = folder / f"{case.matrix}.cm"
    file.write_text(matrix(case.matrix))
    for scheme in SCHEMES:
        there = reference().filter(pl.col("case") == name, pl.col("scheme") == scheme)
        with ThreadPoolExecutor() as pool:
            here = list(pool.map(partial(run, case, scheme, file), range(1, there.height + 1)))
        resent = sum(packets for _, packets in here) / len(here), there.select(pl.col("packets_resent").mean()).item()
        yield Difference(
            scheme=scheme,
            weft=tuple(us for us, _ in here),
            other=tuple(there["last_us"]),
            bound=BOUND,
            is_known=(name, scheme) in OUTSIDE,
            resent=resent,
        )


def main(names: list[str]) -> int:
    """Print the table; 1 if figures other than `OUTSIDE` says are out of their bound."""
    title = "Weft beside uet-htsim: when the last flow is done"
    rows = Table("case", "scheme", "Weft us", "htsim us", "difference", "resent", "htsim's", title=title)
    is_well = True
    with TemporaryDirectory() as folder:
        for name in names or CASES:
            for row in differences(name, Path(folder)):
                is_well &= row.expected
                resent = (f"{packets:,.0f}" for packets in row.resent)
                rows.add_row(name, row.scheme, shown(row.weft), shown(row.other), row.told, *resent)
    Console(width=None if sys.stdout.isatty() else 120).print(rows)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
