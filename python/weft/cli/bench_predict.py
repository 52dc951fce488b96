"""`weft bench --predict`: what more cores than this machine has would give."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from weft import _core
from weft.cli.console import Text, log
from weft.cli.layout import new_table
from weft.quantity import percent, plain

__all__ = ["measure_and_predict", "predicted_wall_s", "print_predicted"]


def measure_and_predict(
    sizes: Sequence[int], schemes: Sequence[str], transport: str, cores: Sequence[int]
) -> list[dict[str, Any]]:
    """Measure each scheme on each size on one thread: whole, and in the partitions of each number of threads.

    What these would take is predicted: see `predicted_wall_s`.
    """
    window_s = _core.bench_window()
    rows: list[dict[str, Any]] = []
    for size in sizes:
        for scheme in schemes:

            def measure(number: int, predict: bool, size: int = size, scheme: str = scheme) -> dict[str, Any]:
                what = f"as if on {number} cores" if predict else "on 1 core"
                log().print(f"{scheme}, {transport}, {size:,} hosts, {what} ...", style="dim")
                found: dict[str, Any] = json.loads(
                    _core.bench(size, scheme, transport=transport, threads=number, predict=predict)
                )
                return {"cores": number, **found}

            whole = measure(1, False)
            rows.append(whole | {"window_s": window_s, "predicted_wall_s": None, "predicted_speed_up": None})
            for number in cores:
                row = measure(number, True)
                wall_s = predicted_wall_s(row, window_s)
                speed_up = None if wall_s is None else whole["wall_s"] / wall_s
                rows.append(row | {"window_s": window_s, "predicted_wall_s": wall_s, "predicted_speed_up": speed_up})
    return rows


def predicted_wall_s(row: dict[str, Any], window_s: float) -> float | None:
    """Predict the seconds on the wall clock that a run would take on `cores` cores; none if its fabric stays whole.

    The CPU time of one thread that works on the same partitions, mail and all, as far as the busiest core has
    it; and for each window that is shared, the time in which cores find each other, which is taken to grow
    with their number.
    """
    if row["busiest_events"] is None or not row["events"]:
        return None
    busiest: float = row["cpu_s"] * row["busiest_events"] / row["events"]
    return busiest + float(row["shared_windows"]) * window_s * float(row["cores"]) / 2


def print_predicted(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """Print a row for each number of cores: what was measured on one, and what follows from it."""
    table = new_table(
        "scheme", "hosts", "cores", "partitions", "CPU s on one core", "events/window", "hops that cross", "evenness",
        "predicted wall s", "predicted speed-up",
        left=("scheme",),
    )  # fmt: skip
    for row in rows:
        speed_up = row["predicted_speed_up"]
        table.add_row(
            Text(row["scheme"]),
            f"{row['hosts']:,}",
            f"{row['cores']}",
            f"{row['partitions']:,}",
            f"{row['cpu_s']:.2f}",
            plain(row["events"] / row["windows"]) if row["windows"] else "-",
            percent(row["crossings"] / row["packet_hops"]) if row["partitions"] > 1 else "-",
            percent(row["events"] / (row["cores"] * row["busiest_events"])) if row["busiest_events"] else "-",
            "-" if row["predicted_wall_s"] is None else f"{row['predicted_wall_s']:.2f}",
            Text("-" if speed_up is None else f"{speed_up:.1f}", style="bold"),
        )
    console.print(table)
    window_ns = 1e9 * rows[0]["window_s"] if rows else 0
    console.print(
        Text(
            f"Two cores find each other in {window_ns:,.0f} ns. All was measured on one core but the last two "
            "columns, which are predictions: they take it that every core is as fast as this one, with caches "
            "and memory to itself, and that n cores take n/2 times as long to find each other as two."
        )
    )
