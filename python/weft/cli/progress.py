"""Progress on stderr: bars on a terminal, brief lines elsewhere."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TaskProgressColumn, TextColumn

from weft.cli.console import Text, log
from weft.quantity import clock, count, time_us
from weft.runs.progress import JobsCallback, RunProgress
from weft.untrusted import one_line

__all__ = ["show_progress"]

_SECONDS_BETWEEN_LINES = 10.0
_KEPT = "was there before"
"""In the place of a speed, which would be that of reading a file."""


@contextmanager
def show_progress(runs: int) -> Iterator[JobsCallback]:
    """Yield the callback to hand to the runs; shows how each of them goes until the block ends."""
    console = log()
    if console.is_terminal:
        with _bars(console) as bars:
            yield _Bars(bars)
    else:
        yield _Lines(console, runs)


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[detail]}", style="dim", markup=False),
        _TimeLeft(),
        console=console,
        refresh_per_second=5,
    )


class _TimeLeft(ProgressColumn):
    """Time left, from the share of flows that have finished; the time taken once a run is done."""

    def render(self, task: Task) -> Text:
        elapsed = float(task.fields["elapsed_s"])
        if task.finished and task.fields["kept"]:
            return Text("")
        if task.finished:
            return Text(f"took {clock(elapsed)}", style="dim")
        if task.percentage < 1.0:
            return Text("")
        return Text(f"{clock(elapsed * (100.0 / task.percentage - 1.0))} left", style="dim")


class _Bars:
    """A bar for each run that has begun."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[int, TaskID] = {}
        self._lock = threading.Lock()

    def __call__(self, state: RunProgress) -> None:
        with self._lock:
            if state.index not in self._tasks:
                self._tasks[state.index] = self._bars.add_task(
                    _name(state), total=1.0, detail="", elapsed_s=0.0, kept=False
                )
        # The last flows to finish do not end a run by themselves: a full bar means done.
        share = 1.0 if state.done else min(state.fraction, 0.999)
        self._bars.update(
            self._tasks[state.index],
            completed=share,
            detail=_KEPT if state.kept else f"{time_us(state.simulated_us)} simulated, {_speed(state)}",
            elapsed_s=state.elapsed_s,
            kept=state.kept,
        )


class _Lines:
    """A line when a run ends, and now and then in between."""

    def __init__(self, console: Console, runs: int) -> None:
        self._console = console
        self._runs = runs
        self._finished = 0
        self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
        self._lock = threading.Lock()

    def __call__(self, state: RunProgress) -> None:
        with self._lock:
            if state.done:
                self._finished += 1
                took = _KEPT if state.kept else f"{clock(state.elapsed_s)}, {_speed(state)}"
                self._say(f"[{self._finished}/{self._runs}] {_name(state)}: {took}")
            elif time.monotonic() >= self._next_line:
                flows = f"{state.flows_finished:,} of {state.flows_total:,} flows"
                self._say(f"{_name(state)}: {time_us(state.simulated_us)} simulated, {flows}, {_speed(state)}")

    def _say(self, line: str) -> None:
        self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
        self._console.print(line)


def _name(state: RunProgress) -> str:
    return one_line(state.label if state.seed is None else f"{state.label} seed {state.seed}")


def _speed(state: RunProgress) -> str:
    return f"{count(state.packet_hops / max(state.elapsed_s, 1e-3))} packet-hops/s"
