"""`weft bench --memory`: what a fabric takes in memory, and what a flow that is over leaves there."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from weft.cli.console import Text, log
from weft.cli.layout import new_table
from weft.errors import SpecError
from weft.quantity import count

__all__ = ["measure_memory", "print_memory"]


def measure_memory(
    sizes: Sequence[int], schemes: Sequence[str], transport: str, flows: int | None
) -> list[dict[str, Any]]:
    """Measure each scheme on each size; `flows` is the number of the longer run, 0 for none.

    What is refused has `refused`, which says why, and no figures. Refused is all of it if nothing can be measured.
    """
    rows: list[dict[str, Any]] = []
    refused: list[SpecError] = []
    for size in sizes:
        for scheme in schemes:
            log().print(f"{scheme}, {transport}, {size:,} hosts ...", style="dim")
            try:
                rows.append(_apart(size, scheme, transport=transport, **({} if flows is None else {"flows": flows})))
            except SpecError as error:
                refused.append(error)
                rows.append({"scheme": scheme, "hosts": size, "transport": transport, "refused": str(error)})
    if len(refused) == len(rows):
        raise refused[0]
    return rows


def print_memory(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """Print them as a table."""
    table = new_table(
        "scheme", "hosts", "links", "set-up CPU s", "bytes/host", "bytes/link", "bytes/active flow",
        "bytes/finished flow", "flows", "peak bytes",
        left=("scheme",),
    )  # fmt: skip
    for row in rows:
        if "refused" in row:
            table.add_row(Text(row["scheme"]), f"{row['hosts']:,}", "refused", *["-"] * 7)
            continue
        table.add_row(
            Text(row["scheme"]),
            f"{row['hosts']:,}",
            f"{row['links']:,}",
            f"{row['setup_cpu_s']:.2f}",
            _bytes(row["bytes_per_host"]),
            _bytes(row["bytes_per_link"]),
            _bytes(row["bytes_per_active_flow"]),
            _bytes(row["bytes_per_finished_flow"]),
            f"{row['flows']:,}",
            _bytes(row["peak_rss_bytes"]),
        )
    console.print(table)
    for row in rows:
        if "refused" in row:
            console.print(Text(f"{row['scheme']}, {row['hosts']:,} hosts: {row['refused']}"))


def _bytes(number: int | None) -> str:
    return "-" if number is None else count(number)


def _apart(hosts: int, scheme: str, **settings: str | int) -> dict[str, Any]:
    """Return the result of `_core.bench_memory` from a process of its own: this one would use freed memory again."""
    program = (
        "import json, sys\n"
        "from weft import _core\n"
        "hosts, scheme, settings = json.loads(sys.argv[1])\n"
        "try:\n"
        "    print(_core.bench_memory(hosts, scheme, **settings))\n"
        "except (_core.SpecError, OSError) as error:\n"
        "    print(json.dumps({'error': str(error)}))\n"
    )
    arguments = json.dumps([hosts, scheme, settings])
    done = subprocess.run([sys.executable, "-c", program, arguments], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout)
        if "error" in found:
            raise SpecError(found["error"])
        return found
    if done.returncode == -signal.SIGKILL:
        raise SpecError(
            f"--memory: the process that measures {scheme} with {hosts:,} hosts was killed; memory may be too small"
        )
    raise RuntimeError(done.stderr.strip())
