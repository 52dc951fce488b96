"""How often two copies of one scheme are told apart that differ in nothing but their random streams: it should be 5 %.

Each pair of runs has the same flows, from a file, so that the seed of a run moves the scheme alone: the hashes of ECMP.
The seeds are then numbered anew, as if each pair had one, and every so many pairs are one comparison. With a time limit
some flows do not finish.

    .venv/bin/python tests/python/calibration.py 3000

prints the shares of so many pairs; `test_calibration.py` asks a few hundred.
"""

import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, lgamma, log, log1p
from pathlib import Path

import msgspec

import weft
from weft.metrics import ALL_METRICS
from weft.ranking import rank
from weft.summary import Summary

SEEDS = (2, 5, 10)
METRICS = ("mean_fct_us", "p50_fct_us", "p99_fct_us")
LEVEL = 0.05
ALL, LOSSES = {"run.time_limit": "10s"}, {"fabric.switch_queue.buffer": "20KB"}
CUT = {"run.time_limit": "120us"}
"""A time limit, after the last start, that leaves some flows unfinished in most runs."""
_FLOWS, _HOSTS, _OVER_US = 30, 8, 200.0
_SIZES = (6_000, 15_000, 60_000)

Pair = tuple[Summary, Summary]


@dataclass(frozen=True)
class Count:
    """Comparisons of copies by a metric, with so many seeds."""

    metric: str
    seeds: int
    comparisons: int
    apart: int
    """Number of comparisons in which one copy leads."""
    known: int
    """Number of comparisons in which no unfinished flow leaves a mean open."""

    @property
    def too_often(self) -> bool:
        """Whether that is more than chance does in 2.5 % of such counts."""
        return self.apart > binomial_bounds(self.comparisons)[1]

    @property
    def too_rarely(self) -> bool:
        """Whether it is less."""
        return self.apart < binomial_bounds(self.comparisons)[0]


def pairs(number: int, folder: Path, changes: Mapping[str, str] = ALL) -> Iterator[Pair]:
    """Run so many pairs of copies, each pair on flows of its own."""
    for pair in range(number):
        trace = folder / f"{pair}.csv"
        trace.write_text(_flows(random.Random(pair)))
        spec = {"fabric": {"leaves": 2, "spines": 4, "hosts_per_leaf": _HOSTS // 2}, "scheme": {"name": "ecmp"}}
        spec |= {"traffic": {"trace": str(trace)}}
        runs = [weft.run(spec, set={**changes, "run.seed": 2 * pair + copy}).summary for copy in (0, 1)]
        one, other = (msgspec.structs.replace(run, seed=pair) for run in runs)
        yield one, other


def _flows(rng: random.Random) -> str:
    half = _HOSTS // 2
    rows = sorted(
        (rng.uniform(0.0, _OVER_US), rng.randrange(half), rng.randrange(half, _HOSTS), rng.choice(_SIZES))
        for _ in range(_FLOWS)
    )
    text = "".join(f"{start:.3f},{source},{sink},{size}\n" for start, source, sink, size in rows)
    return f"start_us,src,dst,size_bytes\n{text}"


def counts(found: Sequence[Pair]) -> Iterator[Count]:
    """Compare the copies, every so many pairs as the seeds of one comparison."""
    by_key = {metric.key: metric for metric in ALL_METRICS}
    for key in METRICS:
        for seeds in SEEDS:
            apart = exact = 0
            starts = range(0, len(found) - seeds + 1, seeds)
            for start in starts:
                copies = zip(*found[start : start + seeds], strict=True)
                ranking = rank({}, dict(zip(("one", "other"), copies, strict=True)), by_key[key], matters=0.0)
                assert ranking is not None
                apart += ranking.leader is not None
                exact += ranking.best is not None and not ranking.others[0].mean.sign
            yield Count(key, seeds, len(starts), apart, exact)


def binomial_bounds(trials: int, level: float = LEVEL) -> tuple[int, int]:
    """Return the least and the most successes that 95 % of counts lie within, 2.5 % at most beyond on each side."""
    # The logarithms: powers of thousands of trials are beyond a float.
    logarithms = [
        lgamma(trials + 1)
        - lgamma(hits + 1)
        - lgamma(trials - hits + 1)
        + hits * log(level)
        + (trials - hits) * log1p(-level)
        for hits in range(trials + 1)
    ]
    below = list(accumulate(map(exp, logarithms)))
    above = list(accumulate(map(exp, reversed(logarithms))))
    low = next(hits for hits, share in enumerate(below) if share > 0.025)
    high = trials - next(hits for hits, share in enumerate(above) if share > 0.025)
    return low, high


def main(number: int) -> None:
    """Print the shares of so many pairs."""
    with tempfile.TemporaryDirectory() as folder:
        for changes in (ALL, LOSSES, CUT):
            found = list(pairs(number, Path(folder), changes))
            unfinished = sum(run.unfinished for pair in found for run in pair)
            print(f"{changes}: {number:,} pairs of runs, {unfinished:,} flows unfinished")
            for one in counts(found):
                low, high = binomial_bounds(one.comparisons)
                print(
                    f"  {one.metric:12} {one.seeds:2} seeds: {one.apart:4} of {one.comparisons:5} told apart "
                    f"({100.0 * one.apart / one.comparisons:.1f} %; 95 %: {low} to {high}), {one.known} known"
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
