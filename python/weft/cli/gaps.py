"""`weft gaps`: how long packets of a flow pause, and what flowlets that makes."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from weft.cli import completion, options
from weft.cli.compare import split_schemes
from weft.cli.console import answers, data, log, print_json
from weft.cli.layout import new_table
from weft.errors import SpecError
from weft.quantity import percent, plain

__all__ = ["register"]

_FIGURES = (".png", ".pdf", ".svg")
_SHOWN = (10.0, 50.0, 100.0, 500.0, 1_000.0, 10_000.0)
"""The gaps of the table on the terminal, in microseconds."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gaps")(answers(gaps))


def gaps(
    spec: options.SpecFile = None,
    schemes: Annotated[
        str,
        typer.Option(
            metavar="A,B,...",
            help="Variants, as for weft compare: dctcp+ecmp,linux+dctcp+ecmp.",
            autocompletion=completion.variants,
        ),
    ] = "ecmp",
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    seed: options.Seed = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the figure to this file: .png, .pdf or .svg.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file in --figure.")] = False,
    json: options.Json = False,
) -> None:
    """Measure the gaps between packets of a flow as they leave their host, and the flowlets that these make.

    A load balancer that moves flowlets can move a flow only where it pauses. The table has, for several gaps that may
    begin a flowlet, how many flowlets there are, how large they are, and how many flows have more than one.

    **Examples**

    - `weft gaps --schemes tcp+ecmp,dctcp+ecmp`
    - `weft gaps examples/linux.toml --schemes simulated+ecmp,linux+ecmp --figure gaps.pdf`
    """
    from weft.figures import save
    from weft.gaps import measure
    from weft.output import check_file
    from weft.spec import parse_assignments

    if figure is not None and figure.suffix not in _FIGURES:
        raise SpecError(f"--figure {figure}: expected a name that ends in {', '.join(_FIGURES)}")
    if figure is not None:
        check_file(figure, force=force, option="--figure")
    text = spec if spec is not None else ""
    found = measure(split_schemes(schemes), spec=text, set=parse_assignments(set_ or []), seed=seed)
    if json:
        print_json(found.table.to_dicts())
    else:
        titles = ("gap (µs)", "flowlets", "mean flowlet (KB)", "flows with several")
        table = new_table("variant", *titles, left=("variant",))
        for row in found.table.to_dicts():
            if row["gap_us"] in _SHOWN:
                size = plain(row["mean_flowlet_bytes"] / 1_000.0)
                several = percent(row["share_of_flows_with_several"])
                table.add_row(Text(row["variant"]), f"{row['gap_us']:,.0f}", f"{row['flowlets']:,}", size, several)
        data().print(table)
    if figure is not None:
        save(found.plot(), figure)
        log().print(f"written to {figure}")
