"""`weft compare`: several schemes on the same flows."""

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from weft.cli import completion, options
from weft.cli.cluster import chosen_cluster
from weft.cli.console import answers, data, log, print_json
from weft.cli.invalid import answer_invalid
from weft.cli.progress import show_progress
from weft.cli.subject import only_one, telling_sweeps
from weft.cli.tables import print_comparison
from weft.errors import SpecError
from weft.quantity import plural
from weft.seeds import check_seeds
from weft.spec import SpecLike

__all__ = ["parse_seeds", "register", "split_schemes"]

_SEED = re.compile(r"[0-9]{1,20}")
"""No longer than a number of 64 bits."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(answers(compare))


def compare(
    spec: options.SpecFile = None,
    schemes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Load balancers to compare, or transports; parameters after colons: letflow:gap=100us. A transport "
            "may bring its load balancer: mptcp+ecmp. One of your own is a class in a file: my.py:Least.",
            autocompletion=completion.variants,
        ),
    ] = None,
    preset: options.Preset = None,
    fabric: options.FabricKind = None,
    workload: options.Workload = None,
    load: options.Load = None,
    flows: options.Flows = None,
    transport: options.Transport = None,
    seeds: Annotated[
        str | None, typer.Option(help="How many seeds (5 means 1 to 5), or which: 3,7,9 or 10-19. Default: the spec's.")
    ] = None,
    bins: options.Bins = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="KEY,...", help="Columns of the table, by key, as in table.csv. Default: ten of them."),
    ] = None,
    sample_every: options.SampleEvery = None,
    trace_flows: options.TraceFlows = None,
    load_sharing: options.LoadSharing = False,
    figure: options.Figure = None,
    matters: options.Matters = 0.01,
    fault: options.Fault = None,
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    out: options.Out = None,
    force: options.Force = False,
    json: options.Json = False,
    jobs: options.Jobs = None,
    store: options.Store = None,
    scheduler: options.Scheduler = None,
    slurm: options.Slurm = False,
    pbs: options.Pbs = False,
    workers: options.Workers = 1,
    batch: options.BatchJob = None,
) -> None:
    """Run several schemes on exactly the same flows; say which wins, by how much, and why.

    Runs are kept as they end, if there is an `--out` or a `--store`: the same command goes on where it was stopped, and
    what another command ran is not run again.

    With `--out`, the directory gets every run, `compare.json`, the table as CSV and Parquet, figures as PNG, PDF
    and SVG (more of them with `--figure`), and `report.html`, one file to open in a browser or to send to somebody.
    With `--sample-every` there are figures of links, queues and throughput over time, too, and the report has a replay
    of the fabric.

    If most packets of a run find no route, or no flow of finite size finishes in it, the exit code is 4.

    **Examples**

    - `weft compare --schemes ecmp,letflow,drill`
    - `weft compare --schemes ecmp,drb,presto --workload web-search --load 0.8 --seeds 5 --out out/first`
    - `weft compare my.toml --schemes letflow:gap=50us,letflow:gap=500us --set fabric.spines=4`
    - `weft compare --schemes dctcp,mptcp,maxpass+ecmp:hash=symmetric --fabric fat-tree`
    - `weft compare --schemes ecmp,my.py:Least:tolerance=2us`
    - `weft compare --preset tr-micro --seeds 5 --bins short-long`
    - `weft compare --schemes ecmp,rps --columns mean_fct_us,resent_after_loss,resent_after_reordering`
    - `weft compare --schemes ecmp,drill --figure "p99 FCT by size" --figure "CDF of fct_us" --out out/figures`
    - `weft compare --schemes ecmp,drill --fault "leaf0-spine1 down 20ms..40ms" --sample-every 200us --out out/outage`
    - `weft compare --schemes ecmp,conga --sample-every 100us --trace-flows 20 --out out/over-time`
    """
    from weft import comparing
    from weft.faults import telling_faults, with_faults
    from weft.metrics import chosen
    from weft.spec import load_spec, parse_assignments

    overrides = options.settings(
        fabric=fabric,
        workload=workload,
        load=load,
        flows=flows,
        transport=transport,
        bins=bins,
        sample_every=sample_every,
        trace_flows=trace_flows,
    )
    metrics = None if columns is None else chosen(split_schemes(columns))
    text, names = _subject(spec, preset, schemes)
    text = load_spec(text)
    cluster = chosen_cluster(scheduler, slurm=slurm, pbs=pbs, workers=workers, batch=batch)
    wanted = parse_seeds(seeds) if seeds is not None else None
    overrides += [*with_faults(text, fault or []), *parse_assignments(set_ or [])]
    if load_sharing:
        options.check_load_sharing(text, overrides)
    shown = show_progress(len(names) * len(wanted or (0,)))
    with telling_faults(text, fault or []), telling_sweeps(), shown as show:
        result = comparing.compare(
            names,
            spec=text,
            set=overrides,
            seeds=wanted,
            jobs=jobs,
            cluster=cluster,
            out=out,
            force=force,
            store=store,
            progress=show,
            figures=figure or (),
            matters=matters,
            command=shlex.join(["weft", *sys.argv[1:]]),
        )
    if json:
        print_json(result.to_dict())
    else:
        print_comparison(data(), result, metrics, load_sharing=load_sharing)
    if result.kept:
        log().print(f"{plural(len(result.runs), 'run')}, {result.kept:,} of them there before")
    if out is not None:
        log().print(f"written to {out}; open {out / 'report.html'} in a browser")
    elif sample_every is not None and not load_sharing:
        options.tell_of_lost_samples()
    answer_invalid((f"{run.summary.label}, seed {run.summary.seed}", run.summary) for run in result.runs)


def _subject(spec: Path | None, preset: str | None, schemes: str | None) -> tuple[SpecLike, list[str]]:
    """Return the spec to compare on and the schemes: those of the preset by default."""
    from weft.catalog import preset as find_preset

    if preset is None:
        if schemes is None:
            raise SpecError("--schemes is missing: name the schemes to compare, as in --schemes ecmp,letflow,drill")
        return spec if spec is not None else "", split_schemes(schemes)
    only_one(spec, preset)
    found = find_preset(preset)
    return found.spec, split_schemes(schemes) if schemes is not None else list(found.schemes)


def split_schemes(text: str) -> list[str]:
    """Split the list of schemes at its commas; empty parts are dropped."""
    return [name for part in text.split(",") if (name := part.strip())]


def parse_seeds(text: str) -> list[int]:
    """Read `--seeds`: a count, a list, ranges, or a list of both."""
    if _SEED.fullmatch(text.strip()):
        return _listed_seeds(range(1, int(text) + 1)) or _bad_seeds(text)
    seeds: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        if not _SEED.fullmatch(first) or (dash and not _SEED.fullmatch(last)):
            return _bad_seeds(text)
        seeds.extend(_listed_seeds(range(int(first), int(last if dash else first) + 1), len(seeds)))
    return seeds if seeds and len(set(seeds)) == len(seeds) else _bad_seeds(text)


def _listed_seeds(seeds: range, before: int = 0) -> list[int]:
    """List the seeds of a range, unless there are more than anybody runs: they would fill the memory."""
    check_seeds(before + seeds.stop - seeds.start)
    return list(seeds)


def _bad_seeds(text: str) -> list[int]:
    raise SpecError(f"--seeds {text!r}: expected a count (5), different seeds (3,7,9) or a range (10-19)")
