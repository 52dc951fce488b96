"""`weft multiverse`: in which scenarios that a paper's text allows its claims hold, and what decides."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import msgspec
import typer

from weft.cli import completion, options
from weft.cli.cluster import chosen_cluster
from weft.cli.console import EXIT_SOME_FAILED, answers, data, log, print_json
from weft.cli.sweep_progress import show_sweep
from weft.errors import SpecError
from weft.multiverse import BUDGET_CPU_MIN
from weft.quantity import plural

if TYPE_CHECKING:
    from weft.papers.declared import Scale

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("multiverse")(answers(multiverse))


def multiverse(
    paper: Annotated[
        str | None,
        typer.Argument(help="meet, tr, qall, lbt or maxpass.", show_default=False, autocompletion=completion.papers),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...",
            help="Default: all that test a claim.",
            show_default=False,
            autocompletion=completion.figures_of,
        ),
    ] = None,
    claims: Annotated[
        str | None,
        typer.Option(metavar="ID,...", help="These claims only; --list names them.", show_default="all of the figures"),
    ] = None,
    choices: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="These open choices only; --list names them.", show_default="all"),
    ] = None,
    scale: Annotated[str, typer.Option(metavar="quick|paper", help="As for weft reproduce.")] = "quick",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="No more than the first so many seeds.", show_default="all")
    ] = None,
    oracle: Annotated[
        bool,
        typer.Option(
            "--oracle", help="Put a perfect per-packet choice (reference) beside the others, in every scenario."
        ),
    ] = False,
    scheme: options.Scheme = None,
    _no_code: options.NoCode = False,
    budget: Annotated[
        float, typer.Option(metavar="CPU-MINUTES", help="What runs may take that were not done before.")
    ] = BUDGET_CPU_MIN,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where results go. Default: out/multiverse-PAPER[-FIGURE...]."),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the open choices with their sources, and the claims.")
    ] = False,
    json: options.Json = False,
    jobs: options.Jobs = None,
    store: options.Store = None,
    scheduler: options.Scheduler = None,
    slurm: options.Slurm = False,
    pbs: options.Pbs = False,
    workers: options.Workers = 1,
    batch: options.BatchJob = None,
) -> None:
    """Judge a paper's claims in the scenarios that its text allows, and say which assumption decides each.

    A scenario has one alternative of each choice that the paper left open: of the fabric, the transport, and how its
    own scheme and the others are to be read. First each choice is changed by itself; then those that matter most are
    combined, as far as the budget goes. All scenarios have the same flows. What was run is kept: the same command goes
    on.

    **Examples**

    - `weft multiverse lbt --list`
    - `weft multiverse lbt 8`
    - `weft multiverse meet 6 --budget 60`
    - `weft multiverse lbt 8 --scheme my.py:Least`
    - `weft multiverse lbt --claims web-search-mean,web-search-throughput`
    """
    from weft.cli.multiverse_progress import Shown
    from weft.cli.multiverse_tables import print_multiverse, print_open
    from weft.multiverse.exploring import asked, check_budget, explore
    from weft.multiverse.writing import opened, written
    from weft.papers.substitute import slug_of

    if paper is None:
        raise SpecError("which paper? Name one: meet, tr, qall, lbt or maxpass")
    names = figures or []
    question = asked(
        paper,
        names,
        claims=_listed(claims),
        choices=_listed(choices),
        scale=cast("Scale", scale),
        seeds=seeds,
        oracle=oracle,
        scheme=scheme,
    )
    if list_:
        print_open(data(), question, as_json=json)
        return
    check_budget(budget)
    target = (
        out
        if out is not None
        else Path("out") / "-".join(["multiverse", paper, *names, *([slug_of(scheme)] if scheme else [])])
    )
    cluster = chosen_cluster(scheduler, slurm=slurm, pbs=pbs, workers=workers, batch=batch)
    with opened(target) as directory:
        with show_sweep("runs") as show:
            result = explore(
                question, budget_cpu_min=budget, out=target, jobs=jobs, cluster=cluster, store=store, told=Shown(show)
            )
        found = written(directory, question, result)
    if json:
        print_json(msgspec.to_builtins(found))
    else:
        print_multiverse(data(), question, result)
    kept = f", {result.kept:,} of them there before" if result.kept else ""
    log().print(f"{plural(result.runs, 'run')}{kept}, {result.cpu_s / 60.0:.1f} CPU-minutes; written to {target}")
    if result.failed:
        log().print(f"{plural(len(result.failed), 'run')} failed; the same command tries them again", style="bold red")
        for name, error in list(result.failed.items())[:10]:
            log().print(f"  {name}: {error}")
        raise typer.Exit(EXIT_SOME_FAILED)


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]
