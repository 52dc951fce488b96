"""Options that several commands have in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from weft.cli import completion
from weft.cli.console import log
from weft.errors import SpecError
from weft.spec import SpecText

__all__ = [
    "BatchJob",
    "Bins",
    "FabricKind",
    "Fault",
    "Figure",
    "Flows",
    "Force",
    "Jobs",
    "Json",
    "Load",
    "LoadSharing",
    "NoCode",
    "Out",
    "Pbs",
    "Preset",
    "SampleEvery",
    "Scheduler",
    "Scheme",
    "Seed",
    "Set",
    "Slurm",
    "SpecFile",
    "Store",
    "TraceFlows",
    "Transport",
    "Workers",
    "Workload",
    "check_load_sharing",
    "settings",
    "tell_of_lost_samples",
]

SpecFile: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        help="Spec file (TOML). Without it, every setting has its default.",
        show_default=False,
        autocompletion=completion.files,
    ),
]
Preset: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="A paper's set-up in place of SPEC (weft presets).",
        autocompletion=completion.entries_of("presets"),
    ),
]
Scheme: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--scheme",
        "--schemes",
        metavar="A",
        help="A load balancer in the place of the paper's own, e.g. my.py:Least: the claims are then judged of it.",
        show_default=False,
    ),
]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace one setting, e.g. --set fabric.leaves=4. May be repeated.",
        autocompletion=completion.keys,
    ),
]


def _refuse_code(wanted: bool) -> bool:
    if wanted:
        from weft import _core

        _core.refuse_code()
    return wanted


NoCode: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--no-code",
        callback=_refuse_code,
        help="Refuse a spec that runs code: schemes in Python, Linux hosts, programs.",
    ),
]
FabricKind: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--fabric", help="Kind of fabric (weft fabrics lists them).", autocompletion=completion.entries_of("fabrics")
    ),
]
Workload: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--workload", help="Flow sizes (weft workloads lists them).", autocompletion=completion.entries_of("workloads")
    ),
]
Load: TypeAlias = Annotated[str | None, typer.Option("--load", help="Offered load, as a share of capacity, e.g. 0.6.")]
Flows: TypeAlias = Annotated[str | None, typer.Option("--flows", help="Number of flows.")]
Transport: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--transport",
        help="Transport (weft transports lists them).",
        autocompletion=completion.entries_of("transports"),
    ),
]
Bins: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bins",
        metavar="NAME|RANGES",
        autocompletion=completion.entries_of("bins"),
        help="Report these flow sizes too: a paper's (weft bins), or ranges as in 0-100KB,100KB-1MB,1MB-.",
    ),
]
Seed: TypeAlias = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of all random numbers. Same spec, same seed, same result.")
]
Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Write the results to this directory.",
        autocompletion=completion.files,
    ),
]
Fault: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="CABLE WHAT WHEN",
        help="Add a fault: 'leaf0-spine1 down 2ms..4ms', '25% leaf-spine rate=1Gbps'. May be repeated.",
        show_default=False,
    ),
]
Figure: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--figure",
        metavar="WORDS",
        help="Draw a figure: 'mean FCT over load by scheme', 'slowdown by size', 'CDF of fct_us'. May be repeated.",
        show_default=False,
    ),
]
Matters: TypeAlias = Annotated[
    float,
    typer.Option(
        "--matters",
        metavar="SHARE",
        help="The least difference that matters, as a share: a smaller one decides nothing, whatever its interval.",
    ),
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", "-f", help="Replace an earlier result in --out.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON to stdout instead of a table.")]
SampleEvery: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sample-every",
        metavar="TIME",
        help="Look at links, queues and receivers this often, e.g. 100us. Default: never.",
        show_default=False,
    ),
]
TraceFlows: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--trace-flows",
        metavar="N",
        help="Note which links the N largest flows take, for the replay in the report; needs --sample-every.",
        show_default=False,
    ),
]
LoadSharing: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--load-sharing",
        help="Print how evenly each leaf's uplinks shared the load, as QALL measures it; needs --sample-every.",
    ),
]
Store: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="Where runs are kept, for all commands. Default: $WEFT_STORE, or .weft beside --out.",
        show_default=False,
        autocompletion=completion.files,
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        help="Cores of this machine to use in all: one for each run; several, if there are fewer runs. Default: all.",
        show_default=False,
    ),
]
Scheduler: TypeAlias = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler: tcp://host:8786."),
]
Slurm: TypeAlias = Annotated[bool, typer.Option("--slurm", help="Run in batch jobs of SLURM, by dask-jobqueue.")]
Pbs: TypeAlias = Annotated[bool, typer.Option("--pbs", help="Run in batch jobs of PBS, by dask-jobqueue.")]
Workers: TypeAlias = Annotated[
    int, typer.Option("--workers", min=1, help="With --slurm or --pbs: batch jobs to ask for.")
]
BatchJob: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--batch", metavar="KEY=VALUE", help="With --slurm or --pbs: what a job gets, e.g. --batch cores=8."),
]


def settings(
    *,
    fabric: str | None,
    workload: str | None,
    load: str | None,
    flows: str | None,
    transport: str | None,
    **run: str | int | None,
) -> list[tuple[str, str]]:
    """Return what options that are short for `--set` set, by key; `run` are keys of the section `run`."""
    of_sections = {
        "fabric.kind": fabric,
        "traffic.workload": workload,
        "traffic.load": load,
        "traffic.flows": flows,
        "transport.name": transport,
    }
    given = of_sections | {f"run.{key}": value for key, value in run.items()}
    return [(key, str(value)) for key, value in given.items() if value is not None]


def check_load_sharing(spec: SpecText, overrides: Sequence[tuple[str, str]]) -> None:
    """Raise `SpecError` unless there will be samples, which `--load-sharing` is worked out of."""
    if "sample_every" not in spec.table("run") and all(key.strip() != "run.sample_every" for key, _ in overrides):
        raise SpecError("--load-sharing needs samples of the links: give --sample-every, too, as in 100us")


def tell_of_lost_samples() -> None:
    """Say that samples go nowhere without a directory: nothing that is printed shows them."""
    log().print(
        "what --sample-every looks at is drawn over time in the figures and the report: say where to with --out"
    )
