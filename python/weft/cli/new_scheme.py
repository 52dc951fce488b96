"""`weft new-scheme`: the files of a scheme of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.console import answers, log
from weft.untrusted import one_line

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("new-scheme")(answers(new_scheme))


def new_scheme(
    name: Annotated[str, typer.Argument(help="What it is called: small letters, digits and hyphens, as in my-scheme.")],
    rust: Annotated[
        bool,
        typer.Option("--rust", help="In Rust, among the schemes of a source tree of Weft, and as fast as they are."),
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="Where to write, or the source tree. Default: here.", show_default=False
        ),
    ] = None,
) -> None:
    """Write a scheme to begin with: its file, its test and its page. It runs at once.

    In Python (the default) it is a file of your own: nothing has to be built. With `--rust` it goes into a source tree
    of Weft, with a line wherever that lists its schemes. Nothing that is there is replaced.

    **Examples**

    - `weft new-scheme least-queue`
    - `weft new-scheme least-queue --rust --dir ~/weft`
    """
    from weft.new_scheme import class_name, python_scheme, rust_scheme, write

    place = Path() if folder is None else folder
    changes = rust_scheme(name, place) if rust else python_scheme(name, place)
    write(changes)
    for change in changes:
        typer.echo(one_line(f"{'wrote' if change.is_new else 'added a line to'} {change.path}"))
    if rust:
        steps = [
            f"cargo test -p weft-balance --lib {name.replace('-', '_')}",
            f"make dev && .venv/bin/weft compare --schemes ecmp,{name} --set traffic.flows=500",
            "WEFT_WRITE_PINS=1 cargo test -p weft-lab --test fingerprints   # when it does what it should",
            ".venv/bin/python docs/generate_spec.py; .venv/bin/python docs/generate_tables.py   # the guide",
        ]
    else:
        file = changes[0].path
        steps = [
            f"weft compare --schemes ecmp,{file}:{class_name(name)} --set traffic.flows=200",
            f"python -m pytest {changes[1].path}",
        ]
    log().print("next:")
    for step in steps:
        log().print(f"  {step}")
