"""`weft report`: the report of a result directory, once more."""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import completion
from weft.cli.console import answers, log

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(answers(report))


def report(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Directory of weft run, compare, sweep, reproduce or multiverse.",
            autocompletion=completion.files,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write it. Default: DIR/report.html.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file in --out.")] = False,
) -> None:
    """Write the HTML report of a result: one file that needs no network.

    Without `--out` it takes the place of the report that is there.

    **Examples**

    - `weft report out/first`
    - `weft report out/first --out first.html`
    - `weft report out/mine-sweep`
    - `weft report out/reproduce-quick`
    - `weft report out/multiverse-lbt-8`
    """
    from weft.output import check_file, write_file
    from weft.report import render_directory
    from weft.report.paper import is_reproduction, write_paper_report

    target = out if out is not None else directory / "report.html"
    if out is not None:
        check_file(out, force=force)
    if is_reproduction(directory):
        write_paper_report(directory, target)
    else:
        write_file(target, render_directory(directory))
    log().print(f"written to {target}")
