"""`weft store`: what the store of runs holds, and emptying it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from weft.cli import options
from weft.cli.console import answers, data, log, print_json
from weft.errors import OutputError
from weft.quantity import plural

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("store")(answers(store))


def store(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Default: $WEFT_STORE, or out/.weft.", show_default=False),
    ] = None,
    clear: Annotated[
        Literal["other", "all"] | None,
        typer.Option(help="Remove runs: those of other versions of the results and damaged ones, or all."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show how many runs the store has, and what they take on the disk.

    A store can be emptied at any time: directories of `weft compare`, `sweep` and `reproduce` are whole without it.

    **Examples**

    - `weft store`
    - `weft store out/.weft --clear other`
    """
    from weft import _core
    from weft.runs.store import Entry, RunStore, is_store, named_store

    place = directory or named_store() or Path("out/.weft")
    if not is_store(place):
        raise OutputError(f"{place}: there is no store of runs")

    def is_other(entry: Entry) -> bool:
        return entry.results_version != _core.results_version()

    with RunStore(place) as opened:
        removed = 0 if clear is None else opened.clear(is_other if clear == "other" else lambda _: True)
        entries = list(opened.entries())
    here = [entry.size_bytes for entry in entries if not is_other(entry)]
    other = [entry.size_bytes for entry in entries if is_other(entry)]
    if clear is not None:
        log().print(f"{plural(removed, 'run')} removed")
    if json:
        counts = {"runs": len(here), "bytes": sum(here), "other_runs": len(other), "other_bytes": sum(other)}
        print_json({"directory": str(place), "results_version": _core.results_version(), **counts})
        return
    data().print(f"{place}: {plural(len(here), 'run')}, {_size(sum(here))}")
    if other:
        data().print(f"and {len(other):,} of other versions of the results, or damaged, {_size(sum(other))}")


def _size(number: int) -> str:
    if number < 1_000_000:
        return f"{number / 1e3:.1f} KB"
    return f"{number / 1e6:.1f} MB" if number < 1_000_000_000 else f"{number / 1e9:.1f} GB"
