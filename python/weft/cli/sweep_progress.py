"""Progress of a sweep on stderr: one bar over all runs on a terminal, a line per run elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from weft.cli.console import log
from weft.quantity import clock
from weft.runs.progress import SweepProgress

__all__ = ["ShownSweep", "show_sweep"]

_SECONDS_BETWEEN_LINES = 1.0
_SECONDS_BETWEEN_CHECKS = 5.0


class ShownSweep(Protocol):
    """The callback of a sweep, and a way to say something beside it."""

    def __call__(self, state: SweepProgress) -> None:
        """Show how far the sweep is."""

    def say(self, text: str) -> None:
        """Print a line."""


@contextmanager
def show_sweep(name: str = "sweep") -> Iterator[ShownSweep]:
    """Yield the callback to hand to a sweep; shows how far it is until the block ends."""
    console = log()
    if not console.is_terminal:
        yield _Lines(console)
        return
    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[detail]}", style="dim", markup=False),
        console=console,
        refresh_per_second=5,
    )
    with bars:
        yield _Bar(bars, name)


class _Bar:
    """One bar; a line above it for each run that fails."""

    def __init__(self, bars: Progress, name: str) -> None:
        self._bars = bars
        self._name = name
        self._task = bars.add_task(name, total=1.0, detail="")

    def __call__(self, state: SweepProgress) -> None:
        if state.event == "checking":
            detail = f"{state.checked:,}/{state.total:,}{_left(state)}"
            self._bars.update(self._task, description="checking specs", completed=state.share, detail=detail)
            return
        if state.event == "failed":
            self._bars.console.print(f"failed: {state.run}: {state.error}")
        detail = f"{_count(state)}{_left(state)}"
        self._bars.update(self._task, description=self._name, completed=state.share, detail=detail)

    def say(self, text: str) -> None:
        self._bars.console.print(text)


class _Lines:
    """A line when a run ends, but for those within a second of the last line; failures and the end always.

    While specs are checked there is a line every few seconds.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_line = 0.0
        self._next_check = _SECONDS_BETWEEN_LINES

    def __call__(self, state: SweepProgress) -> None:
        if state.event == "checking":
            self._checking(state)
            return
        last = state.kept + state.finished == state.total
        if state.event == "running" or (state.event == "done" and not last and time.monotonic() < self._next_line):
            return
        self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
        error = f": failed: {state.error}" if state.error is not None else ""
        self._console.print(f"[{_count(state)}{_left(state)}] {state.run}{error}")

    def _checking(self, state: SweepProgress) -> None:
        if state.elapsed_s >= self._next_check:
            self._next_check = state.elapsed_s + _SECONDS_BETWEEN_CHECKS
            self._console.print(f"[{state.checked:,}/{state.total:,} specs checked{_left(state)}]")

    def say(self, text: str) -> None:
        self._console.print(text)


def _count(state: SweepProgress) -> str:
    failed = f", {state.failed:,} failed" if state.failed else ""
    return f"{state.kept + state.finished:,}/{state.total:,}{failed}"


def _left(state: SweepProgress) -> str:
    if state.kept + state.finished == state.total:
        return f", took {clock(state.elapsed_s)}"
    return "" if state.left_s is None else f", {clock(state.left_s)} left"
