"""Runs whose results answer nothing: said in red, with an exit code of its own."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from weft.cli.console import EXIT_INVALID, log

if TYPE_CHECKING:
    from weft.summary import Summary

__all__ = ["answer_invalid"]

_SHOWN = 10


def answer_invalid(runs: Iterable[tuple[str, "Summary"]]) -> None:
    """Say which runs answer nothing, and why; with one or more, the exit code tells. An unnamed run is the only one."""
    found = [(name, "; ".join(summary.invalid)) for name, summary in runs if summary.invalid]
    if not found:
        return
    for name, why in found[:_SHOWN]:
        log().print(f"{name}{': ' if name else ''}the results answer nothing: {why}", style="bold red")
    if len(found) > _SHOWN:
        log().print(f"and {len(found) - _SHOWN:,} more runs", style="bold red")
    raise typer.Exit(EXIT_INVALID)
