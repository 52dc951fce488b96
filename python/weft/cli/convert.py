"""`weft convert`: today's names of keys in an older spec."""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.console import answers

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("convert")(answers(convert))


def convert(
    file: Annotated[Path, typer.Argument(metavar="SPEC", help="A file of TOML.", show_default=False)],
) -> None:
    """Print a spec with today's names of keys; everything else stays, comments included.

    **Example**

    - `weft convert old.toml > new.toml`
    """
    from weft import _core
    from weft.spec import load_spec

    text = load_spec(file)
    typer.echo(_core.convert(text.text, origin=text.origin), nl=False)
