"""`weft model`: the analytic models of papers, equation by equation; options are the inputs that the core lists."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console

from weft.catalog import Entry, Parameter, entries
from weft.cli import options
from weft.cli.compare import split_schemes
from weft.cli.console import Text, answers, data, print_json
from weft.cli.layout import new_table
from weft.errors import SpecError
from weft.models import Quantity, Working, work_out

__all__ = ["register"]


@dataclass(frozen=True, slots=True)
class _Shown:
    """How a model is shown: what is particular to it on the command line."""

    varied: Mapping[str, tuple[str, str]]
    """Options that give an input several values: the input, and an example."""
    columns: Sequence[str]
    """Quantities of a table with a row for each of these values."""
    examples: Sequence[str]
    note: str = ""
    """Note that a reader of that table needs."""


_SHOWN: Mapping[str, _Shown] = {
    "lbt": _Shown(
        varied={"loads": ("load", "0.1,0.2,0.5")},
        columns=("load_1", "load_2", "needed_1", "threshold_1", "used_1", "needed_2", "threshold_2", "used_2"),
        note="A switch uses `least` for a negative Q_1, at least `ratio` times Q_1 for Q_2, `most` for infinite ones.",
        examples=(
            "weft model lbt",
            "weft model lbt --loads 0.1,0.2,0.3,0.4,0.5,0.6,0.7",
            "weft model lbt --load 0.5 --short-fct 200us --json",
        ),
    ),
    "tr": _Shown(
        varied={"sizes": ("size", "100KB,350KB"), "flow-counts": ("flows", "20,100")},
        columns=("packets", "largest_window", "reordered", "rps_window", "rps_time", "tr_window", "tr_time"),
        examples=(
            "weft model tr --bad-delay 700us",
            "weft model tr --sizes 100KB,200KB,300KB",
        ),
    ),
}


def register(app: typer.Typer) -> None:
    """Add the commands, one for each model."""
    group = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="""Work out the analytic model of a paper, equation by equation. Nothing is simulated.

        **Examples**

        - `weft model lbt --loads 0.1,0.3,0.5`
        - `weft model tr`
        """,
    )
    for item in entries("models"):
        examples = "\n".join(f"- `{example}`" for example in _SHOWN[item.name].examples)
        text = f"{item.title}\n\nSource: {item.source}.\n\n**Examples**\n\n{examples}"
        group.command(item.name, help=text)(answers(_command(item)))
    app.add_typer(group, name="model")


def _command(item: Entry) -> Callable[..., None]:
    """Make the command of a model: an option for each input, and for each input that can have several values."""
    shown = _SHOWN[item.name]

    def show(**given: Any) -> None:
        json = given.pop("json")
        lists = {name: given.pop(name.replace("-", "_")) for name in shown.varied}
        inputs = {key: value for key, value in given.items() if value is not None}
        varied = [(name, text) for name, text in lists.items() if text is not None]
        if not varied:
            working = work_out(item.name, inputs)
            if json:
                print_json(working.raw)
            else:
                _print_one(data(), item, working)
            return
        if len(varied) > 1:
            raise SpecError(f"--{varied[0][0]} and --{varied[1][0]}: give one of them")
        key, workings = _several(item, inputs, *varied[0])
        if json:
            print_json([working.raw for _, working in workings])
        else:
            _print_table(data(), key, workings, shown)

    lists = [_list_parameter(name, key, example) for name, (key, example) in shown.varied.items()]
    json = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=options.Json)
    parameters = [*map(_parameter, item.parameters), *lists, json]
    # Typer reads options off the signature.
    show.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    show.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return show


def _parameter(parameter: Parameter) -> inspect.Parameter:
    source = f" Source: {parameter.source}." if parameter.source else ""
    metavar = parameter.type.split(" ")[0].upper()
    option = typer.Option(metavar=metavar, help=f"{parameter.doc}{source}", show_default=parameter.default or False)
    return inspect.Parameter(
        parameter.key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option]
    )


def _list_parameter(name: str, key: str, example: str) -> inspect.Parameter:
    option = typer.Option(f"--{name}", metavar="A,B,...", help=f"A table for several values of --{key}: {example}.")
    return inspect.Parameter(
        name.replace("-", "_"),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, option],
    )


def _several(item: Entry, inputs: Mapping[str, str], name: str, text: str) -> tuple[str, list[tuple[str, Working]]]:
    key, example = _SHOWN[item.name].varied[name]
    if key in inputs:
        raise SpecError(f"--{name} stands in place of --{key}: give one of them")
    values = split_schemes(text)
    if not values:
        raise SpecError(f"--{name} {text!r}: expected values with commas between them, such as {example}")
    return key, [(value, work_out(item.name, {**inputs, key: value})) for value in values]


def _print_one(console: Console, item: Entry, working: Working) -> None:
    given = new_table("input", "value", "what it is", left=("input", "what it is"))
    docs = {parameter.key: parameter.doc for parameter in item.parameters}
    for key, value in working.inputs.items():
        given.add_row(Text(f"--{key.replace('_', '-')}"), Text(str(value)), Text(_first_sentence(docs[key])))
    console.print(given)
    table = new_table("equation", "symbol", "what it is", "value", "", left=("symbol", "what it is", ""))
    for quantity in working.quantities.values():
        table.add_row(
            Text(quantity.equation), Text(quantity.symbol), Text(quantity.meaning), _value(quantity), quantity.unit
        )
    console.print(table)
    for conclusion in working.conclusions:
        console.print(Text(conclusion))


def _print_table(console: Console, key: str, workings: Sequence[tuple[str, Working]], shown: _Shown) -> None:
    first, columns = workings[0][1].quantities, shown.columns
    titles = [_title(first[column]) for column in columns]
    table = new_table(key, *titles)
    for value, working in workings:
        table.add_row(Text(value), *(_value(working.quantities[column]) for column in columns))
    console.print(table)
    for column, title in zip(columns, titles, strict=True):
        quantity = first[column]
        console.print(Text(f"{title.splitlines()[0]}: {quantity.meaning}", style="dim"))
    if shown.note:
        console.print(Text(shown.note))


def _title(quantity: Quantity) -> str:
    by = "" if quantity.equation in {"-", "text", "given"} else f"Eq. {quantity.equation}"
    return "\n".join((" ".join(filter(None, (quantity.symbol, f"({quantity.unit})" if quantity.unit else ""))), by))


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".")


def _value(quantity: Quantity) -> Text:
    return Text("infinite" if quantity.value is None else _exact(quantity.value))


def _exact(value: float) -> str:
    """Enough digits to follow a calculation by hand."""
    if math.fabs(value) >= 1e4:
        return f"{value:,.0f}"
    return f"{value:.6g}"
