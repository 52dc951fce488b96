"""`weft schema`: the JSON Schema of a spec."""

import json

import typer

from weft.cli.console import answers, print_json

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema")(answers(schema))


def schema() -> None:
    """Print the JSON Schema of a spec, for editors that check and complete TOML.

    **Example**

    - `weft schema > weft.schema.json`
    """
    from weft import _core

    print_json(json.loads(_core.schema()))
