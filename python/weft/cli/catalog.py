"""Commands that list the catalog and the tables of a run, one per kind: `weft schemes`, `weft tables`."""

import re
from typing import Annotated, Any

import typer
from rich.console import Console

from weft.catalog import Entry, Kind, entries, entry
from weft.cli import completion, options
from weft.cli.console import Text, answers, data, print_json
from weft.cli.layout import new_table
from weft.quantity import plain

__all__ = ["register"]

_REFERENCE = "reference, no scheme"
"""The heading of the references, which are listed apart."""
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
"""A link in Markdown; its text is the first group."""

_WHAT: dict[Kind, tuple[str, str]] = {
    "schemes": ("load balancers", "letflow"),
    "transports": ("transports", "dctcp"),
    "workloads": ("flow-size distributions", "web-search"),
    "fabrics": ("kinds of fabric", "leaf-spine"),
    "presets": ("set-ups of papers", "tr-micro"),
    "bins": ("ranges of flow sizes that papers report by", "tr"),
    "tables": ("tables of a result and their columns", "flows"),
}


def register(app: typer.Typer) -> None:
    """Add the commands, one for each kind."""
    for kind, (what, example) in _WHAT.items():
        text = f"""List the {what}, or explain one: its parameters, their defaults and sources.

        **Examples**

        - `weft {kind}`
        - `weft {kind} {example}`
        """
        app.command(kind, help=text)(answers(_command(kind)))


def _command(kind: Kind):  # type: ignore[no-untyped-def]  # noqa: ANN202 - typer reads the inner signature
    def show(
        name: Annotated[
            str | None,
            typer.Argument(help="Explain this one.", show_default=False, autocompletion=completion.entries_of(kind)),
        ] = None,
        json: options.Json = False,
    ) -> None:
        chosen = entries(kind) if name is None else [entry(kind, name)]
        if json:
            rows = [item.raw for item in chosen]
            print_json(rows if name is None else rows[0])
        elif name is None:
            _print_list(data(), kind, chosen)
        else:
            _print_one(data(), chosen[0])

    return show


def _print_list(console: Console, kind: Kind, chosen: list[Entry]) -> None:
    apart = [item for item in chosen if item.details.get("place") == "reference"]
    for title, own in (("what it is", [item for item in chosen if item not in apart]), (_REFERENCE, apart)):
        if not own:
            continue
        table = new_table("name", title, "source", left=("name", title, "source"))
        for item in own:
            table.add_row(Text(item.name, style="bold"), Text(item.title), Text(item.source, style="dim"))
        console.print(table)
    console.print(f"weft {kind} NAME explains one.", style="dim")


def _print_one(console: Console, item: Entry) -> None:
    console.print(Text(item.name, style="bold"), Text(f"- {item.title}"))
    if item.source:
        console.print(Text(f"Source: {item.source}", style="dim"))
    for key, value in item.details.items():
        if value is None or isinstance(value, dict | list):
            continue
        shown = plain(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
        console.print(Text(f"{key.replace('_', ' ')}: {shown}"))
    if "columns" in item.raw:
        _print_columns(console, item.raw["columns"])
        return
    if not item.parameters:
        console.print("No parameters." if "spec" not in item.raw else "schemes: " + ", ".join(item.raw["schemes"]))
        return
    table = new_table(
        "parameter", "default", "what it does", "source", left=("parameter", "default", "what it does", "source")
    )
    for parameter in item.parameters:
        kind = " ".join(filter(None, (parameter.type, f"({parameter.unit})" if parameter.unit else "")))
        name = Text(parameter.key, style="bold").append(f"\n{kind}", style="not bold dim")
        table.add_row(name, Text(parameter.default), Text(parameter.doc), Text(parameter.source, style="dim"))
    console.print(table)


def _print_columns(console: Console, columns: list[dict[str, Any]]) -> None:
    table = new_table("column", "what it is", "null if", left=("column", "what it is", "null if"))
    for column in columns:
        kind = " ".join(filter(None, (column["type"], f"({column['unit']})" if column["unit"] else "")))
        name = Text(column["name"], style="bold").append(f"\n{kind}", style="not bold dim")
        meaning = f"{column['doc']}; only {column['only']}" if column["only"] else column["doc"]
        table.add_row(name, Text(_LINK.sub(r"\1", meaning)), Text(column["null"] or ""))
    console.print(table)
