"""`weft flow`: one flow of a result, under each scheme: its windows over time, and its packets for Wireshark."""

import time
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import completion, options
from weft.cli.console import Text, answers, data, log, print_json
from weft.cli.layout import new_table
from weft.cli.progress import show_progress
from weft.errors import SpecError
from weft.quantity import percent, plain, time_scale, time_us

if TYPE_CHECKING:
    import polars as pl

    from weft._core import Progress
    from weft.one_flow import OneFlow
    from weft.runs.progress import JobsCallback
    from weft.simulation import Result

__all__ = ["register"]

_FIGURES = (".png", ".pdf", ".svg")
_TABLES = (".csv", ".parquet", ".pcapng")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("flow")(answers(flow))


def flow(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="Directory of weft run or compare, or one run within.",
            autocompletion=completion.files,
        ),
    ],
    number: Annotated[
        int | None,
        typer.Argument(metavar="[FLOW]", min=0, help="Its number. Without it, flows are listed.", show_default=False),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How often to look at it, e.g. 10us. Default: 400 times.", show_default=False
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw its windows into this file: .png, .pdf or .svg.",
            autocompletion=completion.files,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write its windows to .csv or .parquet, or its packets to .pcapng.",
            autocompletion=completion.files,
            show_default=False,
        ),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="So many packets at most in a .pcapng.")] = 1_000_000,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the files in --figure and --out.")] = False,
    _no_code: options.NoCode = False,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Of several seeds, this one.", show_default="the first")
    ] = None,
    json: options.Json = False,
) -> None:
    """Follow one flow: what became of it under each scheme, and its congestion window over time.

    The run is made again from its spec and looked at; that changes no packet. Without a number, the flows that were
    traced (`run.trace_flows`) are listed, or else the largest ones. A `.pcapng` file opens in Wireshark: an interface
    for each link that the flow took.

    **Examples**

    - `weft flow out/first`
    - `weft flow out/first 42 --figure window.pdf`
    - `weft flow out/first/runs/drill-seed1 42 --out flow42.pcapng`
    """
    from weft.one_flow import flow_pcapng, follow, runs_of_seed, worth_a_look
    from weft.output import check_file, write_file

    _check_names(figure, out)
    for target, option in ((figure, "--figure"), (out, "--out")):
        if target is not None:
            check_file(target, force=force, option=option)
    runs = runs_of_seed(run, seed)
    if number is None:
        if figure is not None or out is not None:
            raise SpecError(f"which flow? weft flow {run} lists some; name one, as in weft flow {run} 0")
        listed = {one.summary.label: worth_a_look(one) for one in runs}
        _print_list(listed, json=json)
        return
    if out is not None and out.suffix == ".pcapng":
        if len(runs) > 1:
            names = ", ".join(str(one.path) for one in runs)
            raise SpecError(f"--out {out}: has packets of one run; name one of {names}")
        with show_progress(1) as show:
            write_file(out, flow_pcapng(runs[0], number, most=most, progress=_told(show, 0, runs[0])))
    with show_progress(len(runs)) as show:
        found = follow(runs, number, every=every, watch=lambda place, one: _told(show, place, one))
    if json:
        print_json(found.to_dict())
    else:
        _print(found)
    if figure is not None:
        from weft.figures import save

        save(found.plot(), figure)
    if out is not None and out.suffix != ".pcapng":
        write_file(out, _table(found.windows, out.suffix))
    for target in (figure, out):
        if target is not None:
            log().print(f"written to {target}")


def _check_names(figure: Path | None, out: Path | None) -> None:
    for target, option, kinds in ((figure, "--figure", _FIGURES), (out, "--out", _TABLES)):
        if target is not None and target.suffix not in kinds:
            raise SpecError(f"{option} {target}: expected a name that ends in {', '.join(kinds)}")


def _told(show: "JobsCallback", place: int, run: "Result") -> "Callable[[Progress], None]":
    from weft.runs.progress import RunProgress

    start = time.monotonic()

    def tell(state: "Progress") -> None:
        show(
            RunProgress(
                index=place,
                label=run.summary.label,
                seed=run.summary.seed,
                simulated_us=state.simulated_us,
                flows_finished=state.flows_finished,
                flows_total=state.flows_total,
                packet_hops=state.packet_hops,
                elapsed_s=time.monotonic() - start,
            )
        )

    return tell


def _table(frame: "pl.DataFrame", suffix: str) -> bytes:
    if suffix == ".csv":
        return frame.write_csv().encode()
    content = BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _print_list(listed: "Mapping[str, pl.DataFrame]", *, json: bool) -> None:
    if json:
        print_json({label: frame.to_dicts() for label, frame in listed.items()})
        return
    # The same flows in every run; those of the first are in the order of size.
    first = next(iter(listed.values()))
    times = [time for frame in listed.values() for time in frame["fct_us"].drop_nulls()]
    unit, scale = time_scale(times or [1.0])
    table = new_table("flow", "from", "to", "size (KB)", *(f"{label} ({unit})" for label in listed))
    finished = {label: dict(frame.select("id", "fct_us").iter_rows()) for label, frame in listed.items()}
    for row in first.to_dicts():
        shown = (finished[label].get(row["id"]) for label in listed)
        ends = (f"host{row['src']}", f"host{row['dst']}", plain(row["size_bytes"] / 1_000.0))
        table.add_row(f"{row['id']}", *ends, *("–" if took is None else plain(took / scale) for took in shown))
    data().print(table)


def _print(found: "OneFlow") -> None:
    first = found.outcomes[0]
    size = plain(first["size_bytes"] / 1_000.0)
    data().print(Text(f"Flow {found.flow}: {size} KB from host{first['src']} to host{first['dst']}"))
    _print_outcomes(found.outcomes)
    if found.windows.is_empty():
        data().print(Text("Its transport has no congestion window."))
    else:
        _print_windows(found)


def _print_outcomes(outcomes: Sequence[Mapping[str, Any]]) -> None:
    unit, scale = time_scale([row["fct_us"] for row in outcomes if row["fct_us"] is not None] or [1.0])
    titles = (f"FCT ({unit})", "slowdown", "segments", "resent", "timeouts", "out of order", "marked ACKs")
    table = new_table("scheme", *titles, left=("scheme",))
    for row in outcomes:
        took, slowdown = row["fct_us"], row["slowdown"]
        counted = ("segments_sent", "retransmissions", "timeouts", "out_of_order_packets", "marked_acks")
        table.add_row(
            Text(row["scheme"]),
            "–" if took is None else plain(took / scale),
            "–" if slowdown is None else plain(slowdown),
            *(f"{row[key]:,}" for key in counted),
        )
    data().print(table)
    for row in outcomes:
        if row["fct_us"] is not None:
            data().print(Text(f"Longest part of its time under {row['scheme']}: {_longest_part(row)}"))


def _longest_part(row: Mapping[str, Any]) -> str:
    from weft.summary import FCT_PARTS, PART_WORDS

    parts = {name: row.get(f"fct_{name}_us") or 0.0 for name in FCT_PARTS}
    part = max(parts, key=parts.__getitem__)
    return f"{PART_WORDS[part]}, {time_us(parts[part])} ({percent(parts[part] / row['fct_us'])})"


def _print_windows(found: "OneFlow") -> None:
    import polars as pl

    from weft.segments_in_flight import INTERVALS
    from weft.windows import means_by_interval

    end_us = max(found.windows["time_us"].to_list())
    unit, scale = time_scale([end_us])
    schemes = [str(row["scheme"]) for row in found.outcomes]
    means = []
    for scheme in schemes:
        own = found.windows.filter(pl.col("scheme") == scheme)
        for key in ("cwnd", "outstanding"):
            means.append(means_by_interval(list(own.select("time_us", key).iter_rows()), end_us, INTERVALS))
    titles = [f"{what}, {scheme}" for scheme in schemes for what in ("window", "in flight")]
    data().print(Text("Congestion window and what is in flight, in segments, as means over intervals:"))
    table = new_table(f"until ({unit})", *titles)
    for place, values in enumerate(zip(*means, strict=True)):
        until = end_us * (place + 1) / INTERVALS
        table.add_row(plain(until / scale), *("–" if value is None else plain(value) for value in values))
    data().print(table)
