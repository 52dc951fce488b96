"""`weft bench`: how fast the core is on this machine."""

import json as json_module
from typing import Annotated, Any

import typer
from rich.text import Text

from weft.cli import options
from weft.cli.compare import split_schemes
from weft.cli.console import answers, data, log, print_json
from weft.cli.tables import new_table
from weft.errors import SpecError
from weft.quantity import count

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bench")(answers(bench))


def bench(
    hosts: Annotated[str, typer.Option(help="Sizes of the fabric, in hosts.")] = "128,1024,8192",
    schemes: Annotated[str, typer.Option(help="Schemes to measure.")] = "ecmp,letflow",
    all_schemes: Annotated[bool, typer.Option("--all-schemes", help="Measure every scheme there is.")] = False,
    json: options.Json = False,
) -> None:
    """Measure the speed of the core on this machine, in packet-hops per CPU-second, and its memory.

    **Examples**

    - `weft bench`
    - `weft bench --hosts 1024 --schemes ecmp,drill --json`
    - `weft bench --hosts 128 --all-schemes`
    """
    from weft import _core
    from weft.catalog import entries, entry

    sizes = [_size(part) for part in split_schemes(hosts)]
    chosen = entries("schemes") if all_schemes else [entry("schemes", name) for name in split_schemes(schemes)]
    names = [scheme.name for scheme in chosen]
    rows: list[dict[str, Any]] = []
    for size in sizes:
        for name in names:
            log().print(f"{name}, {size:,} hosts ...", style="dim", markup=False)
            rows.append(json_module.loads(_core.bench(size, name)))
    if json:
        print_json(rows)
        return
    table = new_table(
        "scheme", "hosts", "packet-hops", "packet-hops/CPU-s", "events", "CPU s", "bytes/host", "bytes/active flow",
        left=("scheme",),
    )  # fmt: skip
    for row in rows:
        table.add_row(
            Text(row["scheme"]),
            f"{row['hosts']:,}",
            count(row["packet_hops"]),
            Text(count(row["packet_hops_per_cpu_s"] or 0), style="bold"),
            count(row["events"]),
            f"{row['cpu_s']:.2f}",
            count(row["memory_bytes_per_host"]),
            count(row["memory_bytes_per_active_flow"]),
        )
    data().print(table)


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise SpecError(f"--hosts: expected numbers of hosts, such as 128,1024, not {text!r}")
    return int(text)
