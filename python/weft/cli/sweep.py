"""`weft sweep`: every combination of the fields of a spec that are lists."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import completion, options
from weft.cli.cluster import chosen_cluster
from weft.cli.compare import parse_seeds, split_schemes
from weft.cli.console import EXIT_SOME_FAILED, answers, data, log, print_json
from weft.cli.invalid import answer_invalid
from weft.cli.subject import only_one
from weft.cli.sweep_progress import show_sweep
from weft.cli.sweep_table import print_sweep
from weft.quantity import plural

if TYPE_CHECKING:
    from weft.sweeps import Sweep

__all__ = ["register"]

_FAILURES_SHOWN = 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep")(answers(sweep))


def sweep(
    spec: options.SpecFile = None,
    preset: options.Preset = None,
    fabric: options.FabricKind = None,
    workload: options.Workload = None,
    load: options.Load = None,
    flows: options.Flows = None,
    transport: options.Transport = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=A,B,...",
            help="Sweep a setting, e.g. --vary traffic.load=0.2,0.4. May be repeated.",
            autocompletion=completion.keys,
        ),
    ] = None,
    schemes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Sweep the load balancer, the transport, or both, as for weft compare: letflow:gap=100us, mptcp+ecmp, "
            "my.py:Least.",
            autocompletion=completion.variants,
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Sweep the seed: how many (5 means 1 to 5), or which: 3,7,9 or 10-19.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="KEY,...", help="Columns of the table, by key, as in table.csv. Default: ten of them."),
    ] = None,
    figure: options.Figure = None,
    matters: options.Matters = 0.01,
    fault: options.Fault = None,
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The directory of the sweep. Default: out/ and the spec's name.",
            autocompletion=completion.files,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Begin anew: remove what is in --out.")] = False,
    json: options.Json = False,
    jobs: options.Jobs = None,
    store: options.Store = None,
    scheduler: options.Scheduler = None,
    slurm: options.Slurm = False,
    pbs: options.Pbs = False,
    workers: options.Workers = 1,
    batch: options.BatchJob = None,
) -> None:
    """Run every combination of the fields of a spec that are lists.

    Any field may be a list: `load = [0.2, 0.4]`. A field that is a list by itself is swept by a list of lists, and
    the load balancer by several `[[scheme]]` tables. All combinations are checked before the first run.

    A run that is there already, from the same resolved spec and version of the results, is not run again: a sweep that
    was stopped, killed or ran out of disk goes on with the same command. A run that fails is recorded; the rest go
    on, and the exit code is 3. If most packets of a run find no route, or no flow of finite size finishes in it, the
    exit code is 4.

    At the end come a verdict, which says who leads where and where the lead changes, and figures: mean FCT, 99th
    percentile and slowdown over the swept field that is a number, or those that `--figure` asks for. Where flows wait
    for each other, it is the completion time of collectives, and of jobs that of steps, as in `weft compare`.

    **Examples**

    - `weft sweep my.toml --out out/loads`
    - `weft sweep --vary traffic.load=0.2,0.4,0.6,0.8 --schemes ecmp,letflow,drill --seeds 5 --flows 500`
    - `weft sweep my.toml --figure "p99 FCT over load by scheme" --figure "CDF of slowdown"`
    - `weft sweep my.toml --scheduler tcp://head:8786`
    - `weft sweep my.toml --slurm --workers 20 --batch cores=8 --batch memory=16GB --batch queue=short`
    """
    from weft.faults import telling_faults, with_faults
    from weft.metrics import chosen
    from weft.spec import load_spec, parse_assignments
    from weft.sweeps import sweep as run_sweep
    from weft.sweeps.grid import parse_vary

    given = options.settings(fabric=fabric, workload=workload, load=load, flows=flows, transport=transport)
    metrics = None if columns is None else chosen(split_schemes(columns))
    text, names = _subject(spec, preset, schemes)
    text = load_spec(text)
    cluster = chosen_cluster(scheduler, slurm=slurm, pbs=pbs, workers=workers, batch=batch)
    target = out if out is not None else Path("out") / (spec.stem if spec is not None else preset or "sweep")
    with telling_faults(text, fault or []), show_sweep() as show:
        result = run_sweep(
            text,
            target,
            vary=parse_vary(vary or []),
            schemes=names,
            seeds=parse_seeds(seeds) if seeds is not None else None,
            set=[*given, *with_faults(text, fault or []), *parse_assignments(set_ or [])],
            jobs=jobs,
            cluster=cluster,
            store=store,
            force=force,
            progress=show,
            figures=figure or "usual",
            matters=matters,
            command=shlex.join(["weft", *sys.argv[1:]]),
        )
    if json:
        print_json(result.to_dict())
    else:
        print_sweep(data(), result, metrics)
    _close(result)


def _subject(spec: Path | None, preset: str | None, schemes: str | None) -> tuple[Any, list[str] | None]:
    """Return the spec to sweep and the schemes: those of the preset by default."""
    from weft.catalog import preset as find_preset

    names = split_schemes(schemes) if schemes is not None else None
    if preset is None:
        return (spec if spec is not None else ""), names
    only_one(spec, preset)
    found = find_preset(preset)
    return found.spec, names if names is not None else list(found.schemes)


def _close(result: "Sweep") -> None:
    """Say where it is and what failed; with failures, the exit code tells."""
    console = log()
    kept = f", {result.kept:,} of them there before" if result.kept else ""
    console.print(f"{plural(len(result.runs), 'run')}{kept}; written to {result.path}")
    if not result.failed:
        return answer_invalid(
            (", ".join(f"{key} = {label}" for key, label in run.labels.items()), run.summary)
            for run in result.runs
            if run.summary is not None
        )
    console.print(f"{len(result.failed):,} failed; the same command tries them again", style="bold red")
    for run in result.failed[:_FAILURES_SHOWN]:
        point = ", ".join(f"{key} = {label}" for key, label in run.labels.items())
        console.print(f"  {point}: {run.error}")
    if len(result.failed) > _FAILURES_SHOWN:
        console.print(f"  and {len(result.failed) - _FAILURES_SHOWN:,} more: {result.path / 'provenance'}")
    raise typer.Exit(EXIT_SOME_FAILED)
