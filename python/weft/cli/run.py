"""`weft run`: one simulation."""

import time

import typer

from weft.cli import options
from weft.cli.console import EXIT_SOME_FAILED, answers, data, log, print_json
from weft.cli.invalid import answer_invalid
from weft.cli.progress import show_progress
from weft.cli.subject import chosen_spec, telling_sweeps
from weft.cli.tables import print_load_sharing, print_programs, print_summary

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(answers(run))


def run(
    spec: options.SpecFile = None,
    preset: options.Preset = None,
    fabric: options.FabricKind = None,
    workload: options.Workload = None,
    load: options.Load = None,
    flows: options.Flows = None,
    transport: options.Transport = None,
    bins: options.Bins = None,
    fault: options.Fault = None,
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    seed: options.Seed = None,
    sample_every: options.SampleEvery = None,
    trace_flows: options.TraceFlows = None,
    load_sharing: options.LoadSharing = False,
    out: options.Out = None,
    force: options.Force = False,
    json: options.Json = False,
    jobs: options.Jobs = None,
) -> None:
    """Run one simulation and print what came out.

    With `--out`, the directory gets `spec.toml` (everything that is needed to run it again), `summary.json`
    and the tables `flows`, `links`, `samples`, `deliveries`, `paths`, `traces`, `scheme`, `programs`,
    `connections`, `subflows`, `faults`, `phases`, `drops`, `collectives` and `critical_path` as Parquet. If a program
    of the traffic fails, the results are written, marked as incomplete; the exit code is 3. If
    most packets find no route, or no flow of finite size finishes, it is 4.

    **Examples**

    - `weft run my.toml --out out/first`
    - `weft run my.toml --set scheme.name=drill --load 0.8 --seed 7`
    - `weft run my.toml --json | jq .fct_us.mean`
    """
    from weft._core import Progress
    from weft.faults import telling_faults, with_faults
    from weft.output import check_target
    from weft.runs.progress import RunProgress
    from weft.simulation import run_text
    from weft.spec import parse_assignments

    text = chosen_spec(spec, preset)
    given = options.settings(
        fabric=fabric,
        workload=workload,
        load=load,
        flows=flows,
        transport=transport,
        bins=bins,
        sample_every=sample_every,
        trace_flows=trace_flows,
    )
    overrides = [*given, *with_faults(text, fault or []), *parse_assignments(set_ or [])]
    if load_sharing:
        options.check_load_sharing(text, overrides)
    if out is not None:
        check_target(out, force=force)
    start = time.monotonic()
    with telling_faults(text, fault or []), telling_sweeps(), show_progress(1) as show:

        def tell(state: Progress, done: bool = False) -> None:
            show(
                RunProgress(
                    index=0,
                    label="run",
                    seed=seed,
                    simulated_us=state.simulated_us,
                    flows_finished=state.flows_finished,
                    flows_total=state.flows_total,
                    packet_hops=state.packet_hops,
                    elapsed_s=time.monotonic() - start,
                    done=done,
                )
            )

        result = run_text(text, overrides=overrides, seed=seed, progress=tell, jobs=jobs)
        if out is not None:
            result.write(out, force=force)
    if json:
        print_json(result.summary.raw)
    else:
        data().print(result.description)
        print_summary(data(), result)
        if load_sharing and result.load_sharing is not None:
            print_load_sharing(data(), result.load_sharing)
        if not result.programs.is_empty():
            print_programs(data(), result.programs)
    if out is not None:
        log().print(f"written to {out}")
    elif sample_every is not None and not load_sharing:
        options.tell_of_lost_samples()
    if result.summary.incomplete:
        log().print(f"the results are incomplete: {'; '.join(result.summary.incomplete)}", style="red")
        raise typer.Exit(EXIT_SOME_FAILED)
    answer_invalid([("", result.summary)])
