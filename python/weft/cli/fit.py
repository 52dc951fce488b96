"""`weft fit qall`: the polynomials of `qall-poly`, fitted to the traffic of a run."""

import json as json_text
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from weft.cli import options
from weft.cli.console import answers, data, log, print_json
from weft.cli.layout import new_table
from weft.cli.progress import show_progress
from weft.cli.subject import only_one
from weft.errors import SpecError

if TYPE_CHECKING:
    from weft._core import Progress
    from weft.fitting import Report, Source

__all__ = ["register"]

_WORKLOADS = ("web-search", "data-mining")
"""The paper's background traffic, half of the observations from each."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(no_args_is_help=True, help="Fit what a scheme goes by to the traffic of a run.")
    group.command("qall")(answers(fit_qall))
    app.add_typer(group, name="fit")


def fit_qall(
    spec: Annotated[
        Path | None,
        typer.Argument(help="Spec file (TOML). Without it, QALL's fabric and traffic, with ECMP.", show_default=False),
    ] = None,
    preset: options.Preset = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the coefficients to this file (JSON).")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Observations; a quarter of them is for the test.")] = 200_000,
    degrees: Annotated[str, typer.Option(metavar="A,B,...", help="Degrees to fit, 1 to 10.")] = "1,2,3,5,8,10",
    window: Annotated[str, typer.Option(metavar="TIME", help="What an observation is over.")] = "1ms",
    time_constant: Annotated[
        str, typer.Option(metavar="TIME", help="The dequeue interval that is 1; longer ones count as that.")
    ] = "10ms",
    ports: Annotated[
        Literal["spine", "leaf", "all"], typer.Option(help="Ports of switches to switches: of spines, leaves or all.")
    ] = "spine",
    reading: Annotated[
        Literal["latest", "mean"],
        typer.Option(help="What stands for a window: its last packet, as in a clone of QALL, or the mean of them."),
    ] = "latest",
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    seed: options.Seed = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file in --out.")] = False,
    json: options.Json = False,
) -> None:
    """Fit a port's traffic to its queue's occupancy and dequeue interval, by least squares (QALL, section V-A).

    The spec is run with its own load balancer, again with the next seed, until there are enough observations. Prints
    both correlations and, beside the paper's Table I, how well polynomials do on observations that they were not
    fitted to. The file in `--out` is for `qall-poly`.

    **Examples**

    - `weft fit qall --out fit.json`
    - `weft fit qall my.toml --out fit.json --samples 40000 --degrees 1,2,3`
    - `weft compare my.toml --schemes qall,qall-poly:file=fit.json:degree=2`
    """
    from weft import fitting
    from weft.output import check_file, write_file

    wanted = _degrees(degrees)
    if out is not None:
        check_file(out, force=force)
    sources = _sources(spec, preset, set_ or [], seed)
    with show_progress(len(sources)) as show:
        observations, runs = fitting.observe(
            sources,
            samples,
            window=window,
            time_constant=time_constant,
            ports=ports,
            reading=reading,
            watch=_watch(show),
        )
    found = fitting.report(observations, wanted)
    settings = {"window": window, "ports": ports, "reading": reading, "runs": runs}
    document = fitting.document(found, time_constant, settings)
    if out is not None:
        write_file(out, json_text.dumps(document, indent=1) + "\n")
    if json:
        print_json(document)
    else:
        _print(data(), found, [f"{run['name']}, seed {run['seed']}: {run['samples']:,}" for run in runs])
    if out is not None:
        log().print(f"written to {out}; weft compare --schemes qall,qall-poly:file={out}")


def _degrees(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise SpecError(f"--degrees {text!r}: expected whole numbers, for example 1,2,3")
    return [int(part) for part in parts]


def _sources(spec: Path | None, preset: str | None, set_: list[str], seed: int | None) -> "list[Source]":
    from weft.catalog import preset as find_preset
    from weft.fitting import Source, first_seed
    from weft.spec import load_spec, parse_assignments

    only_one(spec, preset)
    overrides = tuple(parse_assignments(set_))
    own_traffic = spec is not None or preset is not None or any(key.startswith("traffic.") for key, _ in overrides)
    text = load_spec(spec) if spec is not None else find_preset(preset or "qall-symmetric").spec
    if own_traffic:
        name = str(spec) if spec is not None else f"preset {preset or 'qall-symmetric'}"
        return [Source(text, overrides, first_seed(text, overrides, seed), name)]
    return [
        Source(text, traffic, first_seed(text, traffic, seed), workload)
        for workload in _WORKLOADS
        for traffic in [(("traffic.workload", workload), *overrides)]
    ]


def _watch(show: "Callable[[Any], None]") -> "Callable[[str, int], Callable[[Progress], None]]":
    from weft.runs.progress import RunProgress

    started = 0

    def watch(name: str, seed: int) -> "Callable[[Progress], None]":
        nonlocal started
        index, start = started, time.monotonic()
        started += 1

        def tell(state: "Progress") -> None:
            show(
                RunProgress(
                    index=index,
                    label=name,
                    seed=seed,
                    simulated_us=state.simulated_us,
                    flows_finished=state.flows_finished,
                    flows_total=state.flows_total,
                    packet_hops=state.packet_hops,
                    elapsed_s=time.monotonic() - start,
                )
            )

        return tell

    return watch


def _print(console: Console, found: "Report", runs: list[str]) -> None:
    from weft.fitting import PAPER, table

    console.print(
        f"{found.observations:,} observations, {found.training:,} to fit to and {found.test:,} to test with",
    )
    for run in runs:
        console.print(f"  {run}", style="dim")
    correlations = new_table(
        "Pearson correlation of traffic", "here", "paper", left=("Pearson correlation of traffic",)
    )
    for name, here, paper in (
        ("with queue occupancy", found.occupancy_correlation, PAPER.occupancy_correlation),
        ("with dequeue interval", found.interval_correlation, PAPER.interval_correlation),
    ):
        correlations.add_row(name, f"{here:.4f}", f"{paper:.4f}")
    console.print(correlations)
    fits = new_table("degree", "R²", "R², paper", "MRE", "MRE, paper")
    for one, theirs in table(found):
        r2, mre = ("-", "-") if theirs is None else (f"{theirs[0]:.4f}", f"{theirs[1]:.4f}")
        fits.add_row(str(one.degree), f"{one.r2:.4f}", r2, f"{one.mre:.4f}", mre)
    console.print(fits)
    console.print("The paper gives neither its window nor its normalisation: its figures are no target.", style="dim")
