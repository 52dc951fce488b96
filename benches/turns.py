"""Another build of the core and this one by turns: packet-hops per CPU-second of each, and their ratio.

    git worktree add ../before COMMIT
    cargo build --release -p weft-python --manifest-path ../before/Cargo.toml
    make build
    .venv/bin/python benches/turns.py ../before/target/release/lib_core.so [--hosts 8192] [--turns 3] [--scheme ecmp]

The set-up is that of `weft bench`: web search at a load of 0.6 with DCTCP on a leaf-spine fabric of 128, 1,024 or 8,192
hosts, one thread. Each run is a process of its own, and pairs go by turns, so that a machine's moods meet both. It
needs cores that nobody else uses.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
from pathlib import Path

import weft

SHAPES = {128: (8, 8), 1_024: (32, 16), 8_192: (64, 64)}
"""Leaves and spines, by hosts."""


def flows_of(hosts: int) -> int:
    """As `weft bench` has them: eight a host, at least 2,000 and at most 32,768."""
    return min(max(8 * hosts, 2_000), 32_768)


def once(module: Path, hosts: int, scheme: str) -> None:
    """One run of a build of the core; prints hops, and hops a CPU-second."""
    found = importlib.util.spec_from_file_location("weft._core", module)
    assert found is not None and found.loader is not None
    core = importlib.util.module_from_spec(found)
    found.loader.exec_module(core)
    leaves, spines = SHAPES[hosts]
    keys = {
        "traffic.flows": flows_of(hosts),
        "scheme.name": scheme,
        "fabric.leaves": leaves,
        "fabric.spines": spines,
        "fabric.hosts_per_leaf": hosts // leaves,
    }
    overrides = [(key, str(value)) for key, value in keys.items()]
    try:
        result = core.run("", overrides=overrides, seed=1, jobs=1)
    except TypeError:  # builds from before runs had several threads
        result = core.run("", overrides=overrides, seed=1)
    summary = json.loads(result.summary)
    print(summary["packet_hops"], summary["packet_hops_per_cpu_s"])


def measured(module: Path, hosts: int, scheme: str) -> tuple[int, float]:
    """Hops, and million hops a CPU-second, in a process of its own."""
    command = [sys.executable, __file__, "--once", str(module), "--hosts", str(hosts), "--scheme", scheme]
    hops, speed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(hops), float(speed) / 1e6


def main(before: Path, hosts: int, turns: int, scheme: str) -> None:
    """Measure and print."""
    now = next(Path(weft.__file__).parent.glob("_core*.so"))
    pairs = []
    for _ in range(turns):
        (hops, first), (same, second) = (measured(module, hosts, scheme) for module in (before, now))
        assert hops == same, f"not the same run: {hops} and {same} packet-hops"
        pairs.append((first, second))
        print(f"{first:.2f} M hops a CPU-second before, {second:.2f} now: {second / first:.3f} times", flush=True)
    ratios = [second / first for first, second in pairs]
    print(f"{scheme}, {hosts:,} hosts: {statistics.median(ratios):.3f} times, the median of {turns} turns")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=Path)
    parser.add_argument("--hosts", type=int, default=8_192, choices=SHAPES)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--scheme", default="ecmp")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        once(given.module, given.hosts, given.scheme)
    else:
        main(given.module, given.hosts, given.turns, given.scheme)
