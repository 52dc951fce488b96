"""`weft explain`: every setting, its value and where the value came from."""

import json as json_module

import typer
from rich.text import Text

from weft.cli import options
from weft.cli.console import answers, data, print_json
from weft.cli.layout import new_table
from weft.cli.subject import chosen_spec

__all__ = ["register"]


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
    seed: options.Seed = None,
    json: options.Json = False,
    jobs: options.Jobs = None,
) -> None:
    """Show every setting that a run would use, its value and where the value came from.

    Nothing is run. What stands in the spec is told apart from `--set` and from defaults. The last line says on how many
    threads the run would work, and why.

    **Examples**

    - `weft explain` - all defaults
    - `weft explain my.toml --set balancer.name=presto`
    - `weft explain --preset tr-micro`
    """
    from weft import _core
    from weft.runs.execution import own_cores
    from weft.spec import parse_assignments

    text = chosen_spec(spec, preset)
    given = options.settings(fabric=fabric, workload=workload, load=load, flows=flows, transport=transport)
    resolved = json_module.loads(
        _core.resolve(
            text.text,
            base_dir=text.base_dir,
            overrides=[*given, *parse_assignments(set_ or [])],
            seed=seed,
            origin=text.origin,
            jobs=own_cores() if jobs is None else jobs,
        )
    )
    if json:
        print_json(resolved)
        return
    table = new_table("key", "value", "origin", left=("key", "value", "origin"))
    for item in resolved["origins"]:
        value = item["value"]
        shown = value if isinstance(value, str) else json_module.dumps(value)
        style = "dim" if item["origin"] == "default" else ""
        table.add_row(Text(item["key"]), Text(shown), Text(item["origin"], style=style))
    data().print(table)
    data().print(Text(resolved["missing"] or resolved["cores"]["text"]))
