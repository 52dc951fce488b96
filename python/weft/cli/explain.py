"""`weft explain`: every setting, its value and where the value came from."""

import json as json_module
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
import typer

from weft.cli import completion, options
from weft.cli.compare import split_schemes
from weft.cli.console import Text, answers, data, print_json
from weft.cli.layout import new_table
from weft.cli.subject import chosen_spec
from weft.conditions import Condition, notes_of
from weft.variant import parse_variants

__all__ = ["register"]

_NONE = "-"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(answers(explain))


def explain(
    spec: options.SpecFile = None,
    preset: options.Preset = None,
    fabric: options.FabricKind = None,
    workload: options.Workload = None,
    load: options.Load = None,
    flows: options.Flows = None,
    transport: options.Transport = None,
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    seed: options.Seed = None,
    schemes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Show the transport of each of these, as for weft compare, side by side.",
            autocompletion=completion.variants,
        ),
    ] = None,
    json: options.Json = False,
    jobs: options.Jobs = None,
) -> None:
    """Show every setting that a run would use, its value and where the value came from.

    Nothing is run. What stands in the spec is told apart from `--set` and from defaults. The last line says on how many
    threads the run would work, and why. With `--schemes`, the transports that a comparison would use stand side by
    side; what differs is in bold.

    **Examples**

    - `weft explain` - all defaults
    - `weft explain my.toml --set scheme.name=presto`
    - `weft explain --preset tr-micro`
    - `weft explain my.toml --schemes roce,irn`
    """
    from weft import _core
    from weft.runs.execution import own_cores
    from weft.spec import parse_assignments

    text = chosen_spec(spec, preset)
    given = options.settings(fabric=fabric, workload=workload, load=load, flows=flows, transport=transport)

    def resolve(variant: str | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = json_module.loads(
            _core.resolve(
                text.text,
                base_dir=text.base_dir,
                overrides=[*given, *parse_assignments(set_ or [])],
                seed=seed,
                origin=text.origin,
                variant=variant,
                jobs=own_cores() if jobs is None else jobs,
            )
        )
        return answer

    if schemes is not None:
        variants = parse_variants(split_schemes(schemes))
        _print_transports({variant.label: resolve(variant.text) for variant in variants}, json=json)
        return
    resolved = resolve()
    if json:
        print_json(resolved)
        return
    table = new_table("key", "value", "origin", left=("key", "value", "origin"))
    for item in resolved["origins"]:
        value = item["value"]
        style = "dim" if item["origin"] == "default" else ""
        table.add_row(Text(item["key"]), Text(_shown(value)), Text(item["origin"], style=style))
    data().print(table)
    for note in resolved["notes"]:
        data().print(f"note: {note}")
    data().print(Text(resolved["missing"] or resolved["cores"]["text"]))


def _print_transports(resolved: Mapping[str, dict[str, Any]], *, json: bool) -> None:
    """Print the transport of each variant in a column of its own."""
    conditions = {label: msgspec.convert(answer["conditions"], list[Condition]) for label, answer in resolved.items()}
    notes = notes_of((label, answer["notes"], conditions[label]) for label, answer in resolved.items())
    transports = {label: dict(_leaves(answer["spec"]["transport"])) for label, answer in resolved.items()}
    if json:
        print_json({"transports": transports, "notes": notes})
        return
    table = new_table("transport", *transports, left=("transport", *transports))
    for key in dict.fromkeys(key for transport in transports.values() for key in transport):
        cells = [transport.get(key, _NONE) for transport in transports.values()]
        style = "bold yellow" if len(set(cells)) > 1 else ""
        mark = "*" if style else ""
        table.add_row(Text(f"{key}{mark}", style=style), *(Text(cell, style=style) for cell in cells))
    data().print(table)
    if len(transports) > 1:
        data().print("* differs; - the transport has no such key, or leaves it to its default", style="dim")
    for note in notes:
        data().print(f"note: {note}")


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """List the values within tables and lists, with their keys."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{at}.{key}" if at else key)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{at}[{place}]")
    else:
        yield at, _NONE if value is None else _shown(value)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json_module.dumps(value)
