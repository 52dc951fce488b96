"""Whole runs of random specs, tables held against each other, and runs held against other runs.

    .venv/bin/python tests/fuzz                       until it is stopped (make fuzz)
    .venv/bin/python tests/fuzz --specs 2000          so many cases
    .venv/bin/python tests/fuzz --case 1234           one case again
    .venv/bin/python tests/fuzz --graphs              every fabric an arbitrary graph
    .venv/bin/python tests/fuzz --stores 20           stores that are killed, damaged and out of disk

A case is made from its number by the schema of a spec, for each pair of a load balancer and a transport in turn. What
fails is made small, written to out/fuzz/ and told with the command that repeats it. The exit code is 1 if any failed.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz.crew import told_by_crew
from fuzz.stores import rounds
from fuzz.worker import judge_one, work

OUT = Path("out") / "fuzz"
KNOWN: dict[str, str] = {}
"""Open defects, by the check that notices them: told and counted, and no failure of the fuzzer."""


def main() -> int:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--specs", type=int, help="how many cases (default: until it is stopped)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="judge this case alone")
    parser.add_argument("--graphs", action="store_true", help="the fabric of each case is an arbitrary graph")
    parser.add_argument("--stores", type=int, help="disturb so many stores, in place of cases")
    parser.add_argument("--seconds", type=float, default=10.0, help="what a run may take")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--worker", nargs=3, type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        work(int(given.worker[0]), int(given.worker[1]), given.worker[2], only_graphs=given.graphs)
    more = ["--graphs"] if given.graphs else []
    if given.stores is not None:
        return _stores(given.stores, given.first)
    if given.case is not None:
        return int(_tell(judge_one(given.case, given.seconds, only_graphs=given.graphs), more))
    return _cases(given.first, given.specs, given.jobs, given.seconds, more)


def _cases(first: int, specs: int | None, jobs: int, seconds: float, more: Sequence[str]) -> int:
    began, last = time.monotonic(), time.monotonic()
    cases = runs = failed = known = long = 0
    kinds: Counter[str] = Counter()
    pairs: set[tuple[str, ...]] = set()
    try:
        for told in told_by_crew(first, specs, jobs, seconds, more):
            cases, runs, long = cases + 1, runs + told["runs"], long + ("long" in told)
            pairs.add(tuple(told.get("pair", ())))
            own = _kinds(told)
            kinds.update(own)
            failed, known = failed + _tell(told, more), known + bool(own & KNOWN.keys())
            if time.monotonic() - last > 30.0:
                last = time.monotonic()
                print(
                    f"{cases:,} specs, {runs:,} runs, {failed:,} failed, {long:,} too long", file=sys.stderr, flush=True
                )
    except KeyboardInterrupt:
        pass
    print(
        f"{cases:,} specs ({runs:,} runs, {len(pairs):,} pairs of a load balancer and a transport) in "
        f"{time.monotonic() - began:.0f} s: {failed:,} failed, {known:,} by a known defect, "
        f"{long:,} took longer than {seconds:g} CPU-seconds"
    )
    for kind, number in kinds.most_common():
        print(f"  {number:,} {kind}")
    return int(failed > 0)


def _tell(told: dict[str, Any], more: Sequence[str]) -> bool:
    """Say what is wrong with a case, and how to see it again; whether anything is that is not known."""
    if not told["problems"] and "long" not in told:
        return False
    number, toml = told["case"], told.get("toml")
    what = told["problems"] or [f"too long: {told['long']}"]
    print(f"case {number} ({' over '.join(told.get('pair', ['?']))}): {'; '.join(what)}")
    print(f"  again: {' '.join([sys.executable, 'tests/fuzz', '--case', str(number), *more])}")
    if toml is not None:
        OUT.mkdir(parents=True, exist_ok=True)
        for name, text in {f"{number}.toml": toml, **told["files"]}.items():
            (OUT / name).write_text(text, encoding="utf-8")
        print(f"  spec: {OUT / f'{number}.toml'}", flush=True)
    return bool(_kinds(told) - KNOWN.keys())


def _kinds(told: dict[str, Any]) -> set[str]:
    return {problem.split(":", 1)[0] for problem in told["problems"]}


def _stores(number: int, first: int) -> int:
    failed = 0
    for place, problem in rounds(first, number):
        if problem is not None:
            failed += 1
            print(
                f"store {place}: {problem}\n  again: {sys.executable} tests/fuzz --stores 1 --first {place}", flush=True
            )
    print(f"{number} stores disturbed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
