"""`weft validate`: simulated hosts against real Linux ones, flow by flow."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from weft.cli import completion, options
from weft.cli.compare import parse_seeds, split_schemes
from weft.cli.console import answers, data, log, print_json
from weft.cli.layout import new_table
from weft.cli.progress import show_progress
from weft.errors import SpecError
from weft.quantity import percent, plain, time_scale

__all__ = ["register"]

if TYPE_CHECKING:
    from weft.validation import Parting, Validation


_FIGURES = (".png", ".pdf", ".svg")
_FIGURE = "windows.svg"
"""The figure in the directory of `--out`."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate")(answers(validate))


def validate(
    spec: options.SpecFile = None,
    schemes: Annotated[
        str,
        typer.Option(
            metavar="A,B,...",
            help="Load balancers, or transports, as for weft compare.",
            autocompletion=completion.variants,
        ),
    ] = "ecmp",
    seeds: Annotated[
        str | None, typer.Option(help="How many seeds (5 means 1 to 5), or which: 3,7,9 or 10-19. Default: the spec's.")
    ] = None,
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    partings: Annotated[
        bool, typer.Option("--partings/--no-partings", help="Look for the first data packet at which two flows part.")
    ] = True,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the windows over time into this file: .png, .pdf or .svg."),
    ] = None,
    out: options.Out = None,
    force: options.Force = False,
    json: options.Json = False,
    jobs: options.Jobs = None,
    store: options.Store = None,
) -> None:
    """Run the same flows with simulated hosts and with Linux hosts, and say where they differ.

    Completion times by size, what happened to packets, where the time went, the flows that are furthest apart, the
    first data packet at which the furthest part, and what of it was in flight over time, beside its congestion
    windows. Needs the kernel that `make linux-hosts` builds. With `--out`, the directory is that of a comparison, and
    has the figure of the windows, too.

    **Examples**

    - `weft validate examples/linux.toml --schemes ecmp,letflow`
    - `weft validate my.toml --schemes tcp+ecmp --seeds 5`
    """
    from weft import validation
    from weft.figures import save
    from weft.output import check_file
    from weft.spec import parse_assignments

    if figure is not None and figure.suffix not in _FIGURES:
        raise SpecError(f"--figure {figure}: expected a name that ends in {', '.join(_FIGURES)}")
    if figure is not None and not partings:
        raise SpecError("--figure needs the runs that --no-partings leaves out")
    if figure is not None:
        check_file(figure, force=force, option="--figure")
    names = split_schemes(schemes)
    wanted = parse_seeds(seeds) if seeds is not None else None
    with show_progress(2 * len(names) * len(wanted or (0,))) as show:
        result = validation.validate(
            names,
            spec=spec if spec is not None else "",
            set=parse_assignments(set_ or []),
            seeds=wanted,
            jobs=jobs,
            partings=partings,
            out=out,
            force=force,
            store=store,
            progress=show,
        )
    if json:
        print_json(result.to_dict())
    else:
        _print(data(), result)
    drawn = [path for path in (figure, out / _FIGURE if out is not None and partings else None) if path is not None]
    if drawn:
        drawing = result.plot()
        for path in drawn:
            save(drawing, path)
    if figure is not None:
        log().print(f"written to {figure}")
    if out is not None:
        log().print(f"written to {out}; open {out / 'report.html'} in a browser")


def _print(console: Console, result: "Validation") -> None:
    _print_times(console, result)
    _print_counts(console, result)
    _print_breakdown(console, result)
    for scheme in result.schemes:
        _print_apart(console, result, scheme)
    for parting in result.partings:
        console.print(Text(f"{parting.scheme}, flow {parting.flow}, {parting.sentence}"))
    for parting in result.partings:
        _print_windows(console, parting)


def _print_times(console: Console, result: "Validation") -> None:
    rows = result.table.to_dicts()
    unit, scale = time_scale([row["linux_us"] for row in rows])
    titles = ("flows", f"simulated ({unit})", f"linux ({unit})", "difference", "linux / simulated, by flow")
    table = new_table("scheme", "sizes", *titles, left=("scheme", "sizes"), title="Mean FCT")
    for row in rows:
        spread = f"{row['median_ratio']:.3f}  ({row['p10_ratio']:.3f} to {row['p90_ratio']:.3f})"
        means = (plain(row[key] / scale) for key in ("simulated_us", "linux_us"))
        table.add_row(
            row["scheme"], row["bin"], f"{row['flows']:,}", *means, f"{100 * row['difference']:+.1f} %", spread
        )
    console.print(table)


def _print_counts(console: Console, result: "Validation") -> None:
    from weft.validation import COUNTED

    titles = ("segments", "resent", "timeouts", "out of order", "marked ACKs", "dropped")
    table = new_table("scheme", "hosts", *titles, left=("scheme", "hosts"), title="What happened to packets")
    for row in result.counts.to_dicts():
        table.add_row(row["scheme"], row["hosts"], *(f"{row[key]:,}" for key in COUNTED))
    console.print(table)


def _print_breakdown(console: Console, result: "Validation") -> None:
    from weft.summary import FCT_PARTS

    rows = [row for row in result.breakdown.to_dicts() if row["simulated_us"] or row["linux_us"]]
    unit, scale = time_scale([row["linux_us"] for row in rows])
    left = ("scheme", "part of the FCT")
    table = new_table(
        *left, f"simulated ({unit})", f"linux ({unit})", left=left, title="Where the time went, mean of a flow"
    )
    for row in rows:
        values = (plain(row[key] / scale) for key in ("simulated_us", "linux_us"))
        table.add_row(row["scheme"], FCT_PARTS[row["part"]], *values)
    console.print(table)


def _print_windows(console: Console, parting: "Parting") -> None:
    if not parting.windows:
        return
    unit, scale = time_scale([row["until_us"] or 0.0 for row in parting.windows])
    title = f"Segments in flight, window and threshold, {parting.scheme}, flow {parting.flow}, means over intervals"
    shown = {"in flight": "", "cwnd": "_cwnd", "ssthresh": "_ssthresh"}
    kinds = ("simulated", "linux")
    keys = [f"{kind}{end}" for end in shown.values() for kind in kinds]
    titles = [f"{name}, {kind}" for name in shown for kind in kinds]
    table = new_table(f"until ({unit})", *titles, title=title)
    for row in parting.windows:
        values = (row.get(key) for key in keys)
        until = plain((row["until_us"] or 0.0) / scale)
        table.add_row(until, *("–" if value is None else plain(value) for value in values))
    console.print(table)


def _print_apart(console: Console, result: "Validation", scheme: str) -> None:
    from weft.summary import FCT_PARTS

    rows = result.apart(3, scheme).to_dicts()
    unit, scale = time_scale([row["fct_us_linux"] for row in rows])
    for row in rows:
        known = [part for part in FCT_PARTS if f"fct_{part}_us" in row]
        parts = {part: row[f"fct_{part}_us_linux"] - row[f"fct_{part}_us"] for part in known}
        part = max(parts, key=lambda name: abs(parts[name]))
        share = percent(abs(parts[part]) / (sum(abs(value) for value in parts.values()) or 1.0))
        times = f"{plain(row['fct_us'] / scale)} {unit} simulated, {plain(row['fct_us_linux'] / scale)} {unit} linux"
        flow = f"{scheme}, seed {row['seed']}, flow {row['id']} ({row['size_bytes']:,} B)"
        console.print(Text(f"{flow}: {times}; most of it {FCT_PARTS[part]} ({share})"))
