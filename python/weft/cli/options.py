"""Options that several commands have in common."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = ["Bins", "Force", "Json", "Out", "Preset", "SampleEvery", "Seed", "Set", "SpecFile", "TraceFlows"]

SpecFile: TypeAlias = Annotated[
    Path | None, typer.Argument(help="Spec file (TOML). Without it, every setting has its default.", show_default=False)
]
Preset: TypeAlias = Annotated[
    str | None, typer.Option("--preset", metavar="NAME", help="A paper's set-up in place of SPEC (weft presets).")
]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Replace one setting, e.g. --set fabric.leaves=4. May be repeated."
    ),
]
Bins: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bins",
        metavar="NAME|RANGES",
        help="Report these flow sizes too: a paper's (weft bins), or ranges as in 0-100KB,100KB-1MB,1MB-.",
    ),
]
Seed: TypeAlias = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of all random numbers. Same spec, same seed, same result.")
]
Out: TypeAlias = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write the results to this directory.")
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
