"""`weft bench`: how fast the core is on this machine."""

import json as json_module
from typing import Annotated, Any

import typer

from weft.cli import options
from weft.cli.compare import split_schemes
from weft.cli.console import Text, answers, data, log, print_json
from weft.cli.layout import new_table
from weft.errors import SpecError
from weft.quantity import count, plain

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bench")(answers(bench))


def bench(
    hosts: Annotated[
        str | None,
        typer.Option(
            help="Sizes of the fabric, in hosts.  [default: 128,1024,8192; with --memory 65536, too]",
            show_default=False,
        ),
    ] = None,
    schemes: Annotated[
        str | None,
        typer.Option(help="Schemes to measure.  [default: ecmp,letflow; with --memory ecmp]", show_default=False),
    ] = None,
    transport: Annotated[str, typer.Option(help="The transport.")] = "dctcp",
    all_schemes: Annotated[bool, typer.Option("--all-schemes", help="Measure every scheme there is.")] = False,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="Measure each of these numbers of threads instead, and the speed-up over the first: 1,2.",
            show_default=False,
        ),
    ] = None,
    predict: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="Predict instead what so many cores would give, from runs on one: 8,16,32,64.",
            show_default=False,
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, metavar="N", help="With --threads: runs of each number, by turns.")] = 3,
    memory: Annotated[
        bool, typer.Option("--memory", help="Measure memory and set-up, each size in a process of its own.")
    ] = False,
    flows: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Flows of the longer run of --memory; 0 to measure set-up only.  [default: 1000000]",
            show_default=False,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure the speed of the core on this machine, in packet-hops per CPU-second, or its memory.

    If ECMP is among the schemes, the table says how much more CPU time each takes for a packet that has a choice of
    ways. Measure it on an idle machine: the difference of two runs is small.

    With `--threads`, each run is done on each number of threads: wall-clock time and CPU time, what share of
    packet-hops goes from one partition to another, and a check that all give the same results.

    With `--predict`, each run is done on one core in the partitions that so many cores would work on, and
    what these would take is predicted: from how evenly they would share the work, what mail costs, and how long two
    cores take to find each other.

    **Examples**

    - `weft bench`
    - `weft bench --hosts 1024 --schemes ecmp,drill --json`
    - `weft bench --hosts 128 --all-schemes`
    - `weft bench --hosts 128 --schemes ecmp --transport mptcp`
    - `weft bench --threads 1,2 --schemes ecmp`
    - `weft bench --predict 8,16,32,64 --schemes ecmp`
    - `weft bench --memory --hosts 1024 --flows 10000000`
    """
    from weft import _core
    from weft.catalog import entries, entry
    from weft.cli.bench_memory import measure_memory, print_memory
    from weft.cli.bench_predict import measure_and_predict, print_predicted
    from weft.cli.bench_threads import measure_threads, print_threads

    asked = {"--memory": memory, "--threads": threads is not None, "--predict": predict is not None}
    if sum(asked.values()) > 1:
        raise SpecError(f"{', '.join(name for name in asked if asked[name])}: one of them at a time")
    if flows is not None and not memory:
        raise SpecError("--flows: only --memory asks for a number of flows")
    carrier = entry("transports", transport).name
    _report_build()
    sizes = _numbers(
        hosts or ("128,1024,8192,65536" if memory else "128,1024,8192"), "--hosts", "hosts, such as 128,1024"
    )
    named = schemes or ("ecmp" if memory else "ecmp,letflow")
    chosen = entries("schemes") if all_schemes else [entry("schemes", name) for name in split_schemes(named)]
    names = [scheme.name for scheme in chosen]
    if memory:
        measured = measure_memory(sizes, names, carrier, flows)
        if json:
            print_json(measured)
        else:
            print_memory(data(), measured)
        return
    if threads is not None:
        numbers = _numbers(threads, "--threads", "threads, such as 1,2")
        compared = measure_threads(sizes, names, carrier, numbers, repeat)
        if json:
            print_json(compared)
        else:
            print_threads(data(), compared, repeat)
        return
    if predict is not None:
        predicted = measure_and_predict(sizes, names, carrier, _numbers(predict, "--predict", "cores, such as 8,16"))
        if json:
            print_json(predicted)
        else:
            print_predicted(data(), predicted)
        return
    rows: list[dict[str, Any]] = []
    for size in sizes:
        for name in names:
            log().print(f"{name}, {carrier}, {size:,} hosts ...", style="dim")
            rows.append(json_module.loads(_core.bench(size, name, transport=carrier)))
    for row in rows:
        row["cpu_ns_per_decision_over_ecmp"] = _decision_ns(row, rows)
    if json:
        print_json(rows)
        return
    table = new_table(
        "scheme", "hosts", "packet-hops", "packet-hops/CPU-s", "events", "CPU s", "bytes/host", "bytes/active flow",
        "bytes/switch", "ns/decision over ECMP",
        left=("scheme",),
    )  # fmt: skip
    for row in rows:
        table.add_row(
            Text(row["scheme"]),
            f"{row['hosts']:,}",
            count(row["packet_hops"]),
            Text("-" if row["packet_hops_per_cpu_s"] is None else count(row["packet_hops_per_cpu_s"]), style="bold"),
            count(row["events"]),
            f"{row['cpu_s']:.2f}",
            count(row["memory_bytes_per_host"]),
            count(row["memory_bytes_per_active_flow"]),
            count(row["state_bytes_per_switch"]),
            "-" if row["cpu_ns_per_decision_over_ecmp"] is None else plain(row["cpu_ns_per_decision_over_ecmp"]),
        )
    data().print(table)


def _report_build() -> None:
    """Say that a development build is slower: figures of speed are those of a release."""
    from weft import _core

    if _core.build() != "release":
        log().print(f"a {_core.build()} build; figures of speed are those of a release (`make build`)", style="yellow")


def _decision_ns(row: dict[str, Any], rows: list[dict[str, Any]]) -> float | None:
    """CPU time that a scheme takes for each packet with a choice of ways, in ns, beyond what ECMP takes.

    CPU time a packet-hop, less that of ECMP on the same fabric and flows, times the packet-hops that there are to one
    decision: so runs of different length can be compared. It counts all that a scheme does: decisions, packets that it
    looks at, timers, probes.
    """
    ecmp = next((other for other in rows if other["scheme"] == "ecmp" and other["hosts"] == row["hosts"]), None)
    if ecmp is None or not row["decisions"] or not ecmp["packet_hops"]:
        return None
    more_s: float = row["cpu_s"] / row["packet_hops"] - ecmp["cpu_s"] / ecmp["packet_hops"]
    return 1e9 * more_s * float(row["packet_hops"]) / float(row["decisions"])


def _numbers(text: str, option: str, of_what: str) -> list[int]:
    """Read different whole numbers from 1, with commas between them."""
    parts = split_schemes(text)
    numbers = [int(part) for part in parts if part.isdecimal()]
    if not parts or len(set(numbers)) < len(parts) or 0 in numbers:
        wrong = next((part for part in parts if not part.isdecimal() or int(part) == 0), text)
        raise SpecError(f"{option}: expected different numbers of {of_what}, not {wrong!r}")
    return numbers
