"""`weft bench --threads`: what more threads give, for the same results."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from weft import _core
from weft.cli.console import Text, log
from weft.cli.layout import new_table
from weft.quantity import count, percent, plain

__all__ = ["measure_threads", "print_threads"]


def measure_threads(
    sizes: Sequence[int], schemes: Sequence[str], transport: str, threads: Sequence[int], repeat: int
) -> list[dict[str, Any]]:
    """Measure each scheme on each size with each number of threads; of `repeat` runs by turns, the fastest counts.

    Speed-ups are over the first number of threads. Raises `RuntimeError` if results differ: that is a defect of Weft.
    """
    rows: list[dict[str, Any]] = []
    for size in sizes:
        for scheme in schemes:
            found: dict[int, list[dict[str, Any]]] = {number: [] for number in threads}
            for turn in range(repeat):
                for number in found:
                    what = f"{scheme}, {transport}, {size:,} hosts, {number} thread{'s' * (number > 1)}"
                    log().print(f"{what}, run {turn + 1} of {repeat} ...", style="dim")
                    row = json.loads(_core.bench(size, scheme, transport=transport, threads=number))
                    found[number].append({"asked_threads": number, **row})
            rows += _compared(found)
    return rows


def _compared(found: dict[int, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Take the fastest run with each number of threads, and compare it with that of the first number."""
    first = next(iter(found.values()))[0]
    for row in (row for rows in found.values() for row in rows):
        if row["result"] != first["result"]:
            raise RuntimeError(
                f"{row['scheme']}, {row['hosts']} hosts: the results with {row['asked_threads']} threads are not those "
                f"with {first['asked_threads']}; results must not depend on threads"
            )
    best = [min(rows, key=lambda row: float(row["wall_s"])) for rows in found.values()]
    return [row | _derived(row, best[0]) for row in best]


def _derived(row: dict[str, Any], base: dict[str, Any]) -> dict[str, float | None]:
    return {
        "speed_up": base["wall_s"] / row["wall_s"] if row["wall_s"] else None,
        "events_per_window": row["events"] / row["windows"] if row["windows"] else None,
        "crossing_share": row["crossings"] / row["packet_hops"] if row["packet_hops"] else None,
    }


def print_threads(console: Console, rows: Sequence[dict[str, Any]], repeat: int) -> None:
    """Print a row for each number of threads, and what the rows have in common."""
    table = new_table(
        "scheme", "hosts", "threads", "partitions", "wall s", "CPU s", "speed-up", "packet-hops/s", "windows",
        "events/window", "hops that cross",
        left=("scheme",),
    )  # fmt: skip
    for row in rows:
        table.add_row(
            Text(row["scheme"]),
            f"{row['hosts']:,}",
            _of(row["threads"], row["asked_threads"]),
            f"{row['partitions']:,}",
            f"{row['wall_s']:.2f}",
            f"{row['cpu_s']:.2f}",
            Text("-" if row["speed_up"] is None else f"{row['speed_up']:.2f}", style="bold"),
            count(row["packet_hops"] / row["wall_s"]) if row["wall_s"] else "-",
            count(row["windows"]),
            "-" if row["events_per_window"] is None else plain(row["events_per_window"]),
            "-" if row["partitions"] == 1 else percent(row["crossing_share"]),
        )
    console.print(table)
    runs = "one run" if repeat == 1 else f"the fastest of {repeat} runs by turns"
    console.print(Text(f"Each row is {runs}. The tables of results are the same with each number of threads."))


def _of(threads: int, asked: int) -> str:
    """Say how many threads worked, and how many were asked for if that is another number."""
    return f"{threads}" if threads == asked else f"{threads} of {asked}"
