"""Packet-hops per CPU-second of RDMA: Ultra Ethernet beside uet-htsim's figure, each transport beside DCTCP.

    make build
    .venv/bin/python benches/rdma.py [HOSTS]

HOSTS, 8,192 by default, are those of a permutation: k^3 / 4 of an even k. It needs cores that nobody else uses: each
figure is the best of three runs on one core. Answers count as hops, here and there.
"""

import random
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import weft

RUNS = 3
SPEC = Path(__file__).parent.parent / "tests" / "fidelity" / "uec.toml"
HTSIM = 0.135
"""Million hops a CPU-second of uet-htsim (commit 40ccb05) at 8,192 hosts, 1 MB a flow, on a busy machine."""

BESIDE_TCP: list[dict[str, object]] = [
    {"name": "roce", "profile": "conweave-ns3"},
    {"name": "irn", "profile": "conweave-ns3"},
    {"name": "swift", "mtu": "1000B"},
    {"name": "uec", "mtu": "1000B"},
]
"""On DCTCP's fabric and flows, with packets of the same payload."""


def derangement(hosts: int) -> list[int]:
    """To whom each host sends: everybody to one other."""
    chosen, stream = list(range(hosts)), random.Random(1)
    while any(src == dst for src, dst in enumerate(chosen)):
        stream.shuffle(chosen)
    return chosen


def best(spec: dict[str, object]) -> float:
    """Million packet-hops a CPU-second, of the fastest run."""
    results = [weft.run(spec, seed=1, jobs=1, progress=False) for _ in range(RUNS)]
    assert all(result.summary.unfinished == 0 for result in results)
    return max(float(str(result.summary.packet_hops_per_cpu_s)) for result in results) / 1e6


def permutation(hosts: int, folder: Path) -> float:
    """A permutation of 1 MB a host on a fat-tree, sprayed."""
    ports = round((4 * hosts) ** (1 / 3))
    if ports**3 != 4 * hosts or ports % 2:
        raise SystemExit(f"HOSTS = {hosts}: allowed is k^3 / 4 of an even k, as 128, 1024 or 8192")
    trace = folder / "permutation.csv"
    rows = [f"0,{src},{dst},1000000" for src, dst in enumerate(derangement(hosts))]
    trace.write_text("\n".join(["start_us,src,dst,size_bytes", *rows, ""]))
    spec = tomllib.loads(SPEC.read_text())
    spec["fabric"]["k"] = ports
    spec["traffic"] = {"trace": str(trace)}
    spec["balancer"] = {"name": "oblivious", "entropies": 64, "order": "permutation"}
    return best(spec)


def beside_tcp(transport: dict[str, object]) -> float:
    """Web-search flows at a load of 0.5 on 128 hosts of 100 Gbit/s, packets of 1,000 bytes of payload, ECMP."""
    return best(
        {
            "fabric": {
                "kind": "leaf-spine",
                "host_rate": "100Gbps",
                "fabric_rate": "100Gbps",
                "switch_queue": {"buffer": "4MB", "red": {"min": "100KB", "max": "400KB", "probability": 0.2}},
            },
            "traffic": {"workload": "web-search", "load": 0.5, "flows": 2_000},
            "transport": transport,
            "balancer": {"name": "ecmp"},
        }
    )


def main(hosts: int) -> None:
    """Measure and print."""
    with TemporaryDirectory() as folder:
        found = permutation(hosts, Path(folder))
    times = f"{found / HTSIM:.1f} times uet-htsim's {HTSIM}"
    print(f"uec, permutation, {hosts:,} hosts: {found:.2f} M hops a CPU-second, {times}")
    tcp = beside_tcp({"name": "dctcp", "mss": "1000B"})
    print(f"dctcp, 128 hosts: {tcp:.2f} M hops a CPU-second")
    for transport in BESIDE_TCP:
        rdma = beside_tcp(transport)
        print(f"{transport['name']}, the same flows: {rdma:.2f} M hops a CPU-second, {rdma / tcp:.2f} of dctcp")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8_192)
