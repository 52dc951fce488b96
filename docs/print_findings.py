"""Prints the findings on the pages of CONGA, CLOVE, Hermes and MEET: small runs, whose bounds are tests of `weft-fabric`.

.venv/bin/python docs/print_findings.py conga
"""

import argparse
import tempfile
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import polars as pl

import weft
from weft.simulation import Result

Flow = tuple[float, int, int, int]
"""Start in us, source, destination, bytes."""


def simulate(fabric: str, flows: Iterable[Flow], scheme: str, **settings: object) -> Result:
    """Run these flows over DCTCP."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "flows.csv"
        rows = (f"{start:.3f},{src},{dst},{size}\n" for start, src, dst, size in flows)
        trace.write_text("start_us,src,dst,size_bytes\n" + "".join(rows), encoding="utf-8")
        spec = f'scheme = "{scheme}"\n[fabric]\nkind = "leaf-spine"\n{fabric}\n[traffic]\ntrace = "{trace}"\n'
        return weft.run(spec, set={"transport.name": "dctcp", **settings})


def spine_bytes(result: Result, spine: int) -> int:
    """Bytes that leaf 0 sent to a spine."""
    return int(result.links.filter(link=f"leaf0>spine{spine}").get_column("bytes").item())


def sent(result: Result, spine: int, from_us: float, to_us: float) -> int:
    """Return the bytes that leaf 0 sent to a spine in the intervals of the samples that end in this time."""
    samples = result.samples.filter(pl.col("time_us").is_between(from_us, to_us), link=f"leaf0>spine{spine}")
    return int(samples.get_column("sent_bytes").sum())


def mean_fct_us(result: Result) -> float:
    """Mean completion time."""
    return float(result.flows.get_column("fct_us").to_numpy().mean())


def conga() -> None:
    """The split between a whole path and a half one, and bursts at low load."""
    half = '[[fabric.fault]]\nlink = "spine1>leaf1"\nrate = '

    def flows(hosts: int, size: int, duration_us: int, every_ns: int) -> list[Flow]:
        count = duration_us * 1_000 // every_ns
        return [(at * every_ns / 1e3, at % hosts, hosts + at * 5 % hosts, size) for at in range(count)]

    world = (
        f'leaves = 2\nspines = 2\nhosts_per_leaf = 128\nhost_rate = "1Gbps"\nfabric_rate = "100Gbps"\n{half}"50Gbps"'
    )
    print("| flows last | bits | split |\n|---|---|---|")
    for size, duration_us, bits in ((2_500_000, 100_000, 6), (2_500_000, 100_000, 3), (62_500, 20_000, 6)):
        every_ns = int(size * 1_500 / 1_460 * 8 / 100)
        found = simulate(
            world, flows(128, size, duration_us, every_ns), f"conga:metric_bits={bits}", **{"run.sample_every": "1ms"}
        )
        # Long flows: from when as many end as begin. Short ones: the whole run.
        window = (40_500, 100_500) if size > 1_000_000 else (0, float("inf"))
        split = sent(found, 0, *window) / sent(found, 1, *window)
        print(f"| {size * 8 / 1e6:g} ms | {bits} | {split:.2f} to 1 |")
    world = f'leaves = 2\nspines = 2\nhosts_per_leaf = 32\nhost_rate = "10Gbps"\nreroute_after = "1ms"\n{half}"5Gbps"'
    print("\n| bursts, aging | split | longest idle time of the half path (ms) |\n|---|---|---|")
    for aging in ("10ms", "1ms"):
        found = simulate(
            world, flows(32, 30_000, 60_000, 41_100), f"conga:aging={aging}", **{"run.sample_every": "1ms"}
        )
        used = (found.samples.filter(link="leaf0>spine1").get_column("time_us") / 1e3).to_list()
        idle = max(after - before - 1 for before, after in pairwise(used))
        split = spine_bytes(found, 0) / spine_bytes(found, 1)
        print(f"| {aging} | {split:.1f} to 1 | {idle:.0f} |")


def clove() -> None:
    """Print the bytes on a slow path, of 100 flows of 100 KB."""
    world = (
        'leaves = 2\nspines = 2\nhosts_per_leaf = 2\nswitch_queue.mark = "30KB"\n'
        '[[fabric.fault]]\nlink = "leaf1-spine1"\nrate = "1Gbps"'
    )
    flows = [(1_000 + 400 * at, 0, 2, 100_000) for at in range(100)]
    print("| mode | bytes on the slow path, in flows |\n|---|---|")
    for mode in ("ecn", "edge-flowlet"):
        found = simulate(world, flows, f"clove:mode={mode}")
        print(f"| `{mode}` | {spine_bytes(found, 1) / 1e5:.1f} |")


def hermes() -> None:
    """Print the share of a path that fell to a tenth, and the cost of moves where nothing is lost."""
    world = 'leaves = 2\nspines = {}\nhosts_per_leaf = 16\nreroute_after = "10s"\n{}[[fabric.fault]]\nlink = "spine1>leaf1"\n'
    flows: list[Flow] = [(50 * at, at % 16, 16 + at * 5 % 16, 30_000) for at in range(800)]
    fault = 'at = "10ms"\nrate = "1Gbps"'
    print("| scheme | share of the bytes |\n|---|---|")
    for scheme in ("ecmp", "hermes"):
        found = simulate(world.format(2, "") + fault, flows, scheme, **{"run.sample_every": "1ms"})
        slow, whole = (sent(found, spine, 11_500, 40_500) for spine in (1, 0))
        print(f"| {scheme} | {slow / (slow + whole):.0%} |")
    slower = world.format(4, 'switch_queue.buffer = "unlimited"\n') + 'rate = "2Gbps"'
    flows = [(500 * at, at % 16, 16 + at * 5 % 16, 1_500_000) for at in range(160)]
    found = simulate(slower, flows, "hermes")
    moves = dict(found.scheme.iter_rows())["reroutes"]
    print(f"\n{moves} moves, {found.summary.retransmissions} retransmissions, {found.summary.dropped_packets} drops")


def meet() -> None:
    """The gap when the proxy is cut off, and what it costs the other hosts."""
    flows = [(at + 10 * host, host, 8 + host, 20_000) for at in range(0, 16_000, 100) for host in range(1, 8)]
    equal = 'leaves = 2\nspines = 4\nhosts_per_leaf = 8\nreroute_after = "1s"\n'
    slow = f'{equal}[[fabric.fault]]\nlink = "leaf0-spine1"\nrate = "1Gbps"\n'
    cut = '[[fabric.fault]]\nlink = "host0-leaf0"\nat = "4ms"\ndown = true\n'
    print("| seed | gap (ms) |\n|---|---|")
    seeds = range(1, 6)
    for seed in seeds:
        counters = dict(simulate(equal + cut, flows, "meet", **{"run.seed": seed}).scheme.iter_rows())
        print(f"| {seed} | {counters['proxy_gap_ns'] / counters['proxy_changes'] / 1e6:.2f} |")
    print("\n| mean FCT of the other hosts' flows (us) | proxy alive | proxy cut off |\n|---|---|---|")
    for name, world in (("four equal spines", equal), ("one of them at 1 Gbit/s", slow)):
        means = [
            sum(mean_fct_us(simulate(text, flows, "meet", **{"run.seed": seed})) for seed in seeds) / len(seeds)
            for text in (world, world + cut)
        ]
        print(f"| {name} | {means[0]:.1f} | {means[1]:.1f} |")


def main() -> None:
    """Print the findings of one scheme."""
    schemes = {one.__name__: one for one in (conga, clove, hermes, meet)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scheme", choices=list(schemes))
    schemes[parser.parse_args().scheme]()


if __name__ == "__main__":
    main()
