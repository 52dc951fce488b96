"""Packet-hops per CPU-second of RDMA: Ultra Ethernet beside uet-htsim's figure, each transport beside DCTCP.

    make build
    .venv/bin/python benches/rdma.py [HOSTS] [--htsim DIRECTORY/htsim_uec]

HOSTS, 8,192 by default, are those of a permutation: k^3 / 4 of an even k. It needs cores that nobody else uses: each
figure is the best of three runs on one core. Answers count as hops. With --htsim that program runs the same permutation
once, and its figure is Weft's hops over the CPU time that it took; Weft's whole process is held against it, too.
"""

import argparse
import random
import resource
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import weft

RUNS = 3
SPEC = Path(__file__).parent.parent / "tests" / "fidelity" / "uec.toml"
BESIDE_TCP: list[dict[str, object]] = [
    {"name": "roce", "profile": "conweave-ns3"},
    {"name": "irn", "profile": "conweave-ns3"},
    {"name": "swift", "mtu": "1000B"},
    {"name": "uec", "mtu": "1000B"},
    {"name": "mprdma", "mtu": "1000B"},
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


def permutation(hosts: int, folder: Path) -> dict[str, object]:
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
    spec["scheme"] = {"name": "oblivious", "entropies": 64, "order": "permutation"}
    return spec


def cpu_of_child(command: list[str], folder: Path) -> float:
    """CPU seconds of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_of_weft(hosts: int, folder: Path) -> float:
    """The least that this program takes for one run of the permutation, all of it, set-up and results too."""
    command = [sys.executable, str(Path(__file__).resolve()), str(hosts), "--once"]
    return min(cpu_of_child(command, folder) for _ in range(RUNS))


def cpu_of_htsim(program: Path, hosts: int, folder: Path) -> float:
    """Return the CPU time that uet-htsim takes for a permutation of the hosts."""
    pairs = [f"{src}->{dst} start 0 size 1000000" for src, dst in enumerate(derangement(hosts))]
    (folder / "permutation.cm").write_text("\n".join([f"Nodes {hosts}", f"Connections {hosts}", *pairs, ""]))
    asked = "-tm permutation.cm -tiers 3 -sender_cc_only -load_balancing_algo oblivious -seed 1 -end 2000 -o log"
    return cpu_of_child([str(program.resolve()), *asked.split(), "-nodes", str(hosts)], folder)


def beside_htsim(program: Path, hosts: int, folder: Path) -> None:
    """Measure both, and print."""
    ours, theirs = cpu_of_weft(hosts, folder), cpu_of_htsim(program, hosts, folder)
    result = weft.run(permutation(hosts, folder), seed=1, jobs=1, progress=False)
    hops = float(str(result.summary.packet_hops))
    print(
        f"uet-htsim, the same permutation: {theirs:.1f} CPU-s, {hops / theirs / 1e6:.3f} M of these hops a CPU-second"
    )
    print(f"weft, the whole process: {ours:.2f} CPU-s, {theirs / ours:.1f} times less")


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
            "scheme": {"name": "ecmp"},
        }
    )


def main(hosts: int, htsim: Path | None) -> None:
    """Measure and print."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        found = best(permutation(hosts, folder))
        print(f"uec, permutation, {hosts:,} hosts: {found:.2f} M hops a CPU-second")
        if htsim:
            beside_htsim(htsim, hosts, folder)
    tcp = beside_tcp({"name": "dctcp", "mss": "1000B"})
    print(f"dctcp, 128 hosts: {tcp:.2f} M hops a CPU-second")
    for transport in BESIDE_TCP:
        rdma = beside_tcp(transport)
        print(f"{transport['name']}, the same flows: {rdma:.2f} M hops a CPU-second, {rdma / tcp:.2f} of dctcp")


def once(hosts: int) -> None:
    """One run of the permutation, and nothing else."""
    with TemporaryDirectory() as folder:
        weft.run(permutation(hosts, Path(folder)), seed=1, jobs=1, progress=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="?", type=int, default=8_192)
    parser.add_argument("--htsim", type=Path)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        once(given.hosts)
    else:
        main(given.hosts, given.htsim)
