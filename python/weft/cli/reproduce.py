"""`weft reproduce`: figures and tables of the papers, made again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from weft.cli import completion, options
from weft.cli.cluster import chosen_cluster
from weft.cli.console import EXIT_SOME_FAILED, answers, data, log, print_json
from weft.cli.sweep_progress import show_sweep
from weft.errors import SpecError
from weft.quantity import plural

if TYPE_CHECKING:
    from weft.papers.declared import Hosts, Scale
    from weft.papers.reproduction import Reproduction

__all__ = ["register"]

_FAILURES_SHOWN = 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce")(answers(reproduce))


def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(
            help="meet, tr, qall, lbt, maxpass, or all.", show_default=False, autocompletion=completion.papers
        ),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...",
            help="Default: all of the paper.",
            show_default=False,
            autocompletion=completion.figures_of,
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(metavar="quick|paper", help="quick: few flows, loads and seeds; paper: the paper's own numbers."),
    ] = "quick",
    hosts: Annotated[
        str,
        typer.Option(
            metavar="simulated|linux",
            help="linux: figures that have a set-up with Linux hosts, of the same flows with both kinds of hosts.",
        ),
    ] = "simulated",
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Run no more than the first so many seeds; the figures say so.", show_default="all"),
    ] = None,
    flows: Annotated[
        int | None,
        typer.Option(min=1, help="Let no run have more flows than so many; the figures say so.", show_default="all"),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="CHOICE=ALTERNATIVE,...",
            help="What the paper leaves open, not as by default: weft multiverse PAPER --list names it.",
            show_default="as by default",
        ),
    ] = None,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="Put a perfect per-packet choice (reference) beside the others.")
    ] = False,
    scheme: options.Scheme = None,
    _no_code: options.NoCode = False,
    scenarios: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="A directory of weft multiverse: verdicts then name the scenario in which a claim is reproduced that "
            "is not by default. May be given several times.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where figures go. Default: out/reproduce-SCALE, or -linux."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Do runs again that are there.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List figures and tables, and how long they take.")] = False,
    write_times: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what the figures took on two cores to this file.", hidden=True),
    ] = None,
    json: options.Json = False,
    jobs: options.Jobs = None,
    store: options.Store = None,
    scheduler: options.Scheduler = None,
    slurm: options.Slurm = False,
    pbs: options.Pbs = False,
    workers: options.Workers = 1,
    batch: options.BatchJob = None,
) -> None:
    """Make figures and tables of the papers again, with a verdict on each claim that they test.

    Each figure is a declared experiment. Runs that figures share are done once; those that are there, from the same
    resolved spec and version of the results, are not done again: what was stopped or killed goes on with the same
    command. A run that fails is recorded; the rest go on, and the exit code is 3.

    **Examples**

    - `weft reproduce --list`
    - `weft reproduce --list --hosts linux`
    - `weft reproduce meet 6`
    - `weft reproduce tr 7 8 --scale paper --out out/tr`
    - `weft reproduce meet 7 --scale paper --seeds 3`
    - `weft reproduce tr 11 --scale paper --seeds 1 --flows 5000`
    - `weft reproduce qall 10 --hosts linux`
    - `weft reproduce meet 6 --scenario drill.memory=rack`
    - `weft reproduce meet 6 --scenarios out/multiverse-meet-6`
    - `weft reproduce lbt 8 --scheme my.py:Least`
    - `weft reproduce all`
    """
    from weft.cli.reproduce_progress import Shown
    from weft.output import check_file, write_file
    from weft.papers import reproduce as make
    from weft.papers.times import read_times, times_text

    names = figures or []
    if list_:
        _list(paper, names, cast("Scale", scale), linux_hosts=hosts == "linux", as_json=json)
        return
    if paper is None:
        raise SpecError("which paper? Name one, or all; weft reproduce --list shows every figure")
    cluster = chosen_cluster(scheduler, slurm=slurm, pbs=pbs, workers=workers, batch=batch)
    if write_times is not None:
        check_file(write_times, force=True, option="--write-times")
    known = read_times(write_times) if write_times is not None else {}
    with show_sweep("runs") as show:
        watch = Shown(show)
        result = make(
            paper,
            *names,
            scale=cast("Scale", scale),
            hosts=cast("Hosts", hosts),
            seeds=seeds,
            flows=flows,
            scenario=scenario,
            oracle=oracle,
            scheme=scheme,
            scenarios=scenarios or (),
            out=out,
            jobs=jobs,
            cluster=cluster,
            force=force,
            store=store,
            watch=watch,
        )
    if write_times is not None:
        write_file(write_times, times_text(known, result.scale, result.made))
    if json:
        print_json(result.to_dict())
    else:
        from weft.cli.reproduce_tables import print_made

        print_made(data(), result)
    _close(result)


def _list(paper: str | None, figures: list[str], scale: "Scale", *, linux_hosts: bool, as_json: bool) -> None:
    """Show what there is, with Linux hosts if these are asked for, and what it took."""
    from weft.cli.reproduce_tables import listed, print_list
    from weft.papers.reproduction import ALL, planned

    found = planned(paper or ALL, figures, scale="linux" if linux_hosts else scale)
    rows = listed([one for one in found if one.linux_hosts] if linux_hosts else found)
    if as_json:
        print_json(rows)
    else:
        print_list(data(), rows)


def _close(result: "Reproduction") -> None:
    """Say where it is and what failed; with failures, the exit code tells."""
    console = log()
    failed: list[str] = []
    for one in [result] if result.beside is None else [result.beside, result]:
        kept = f", {one.kept:,} of them there before" if one.kept else ""
        console.print(f"{plural(one.runs, 'run')}{kept}; written to {one.path}")
        failed += [f"{made.figure.key}: {made.error}" for made in one.made if made.error is not None]
        failed += [f"{name}: {error}" for name, error in one.failed.items()]
    if not failed:
        return
    console.print(f"{len(failed):,} failed; the same command tries them again", style="bold red")
    for line in failed[:_FAILURES_SHOWN]:
        console.print(f"  {line}")
    if len(failed) > _FAILURES_SHOWN:
        console.print(f"  and {len(failed) - _FAILURES_SHOWN:,} more")
    raise typer.Exit(EXIT_SOME_FAILED)
