"""The progress of a call from Python: a bar in a notebook and on a terminal, nothing anywhere else.

Whoever gives a callback has that in its place, and whoever gives False has nothing.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from weft._core import Progress
from weft.quantity import clock, plural, time_us

if TYPE_CHECKING:
    from weft.runs.progress import RunProgress, SweepProgress

__all__ = ["ProgressArg", "jobs_bar", "run_bar", "sweep_bar"]

_T = TypeVar("_T")
ProgressArg: TypeAlias = Callable[[_T], None] | Literal[False] | None
"""Type of the argument `progress`: a callback, False for silence, or None for a bar on a terminal."""
Show: TypeAlias = Callable[[float, str], None]
"""Takes the share that is done, 0 to 1, and a few words."""

_SHOWN_AFTER_S = 1.0
"""A call that is done by then shows nothing."""
_BETWEEN_S = 0.2


@contextmanager
def run_bar(progress: ProgressArg[Progress]) -> Iterator[Callable[[Progress], None] | None]:
    """Yield the callback for one run."""
    if progress is not None:
        yield progress or None
        return
    with _bar("run") as show:
        yield show and (lambda state: show(_share(state), f"{time_us(state.simulated_us)} simulated"))


@contextmanager
def jobs_bar(progress: ProgressArg["RunProgress"], runs: int) -> "Iterator[Callable[[RunProgress], None] | None]":
    """Yield the callback for several runs."""
    if progress is not None:
        yield progress or None
        return
    with _bar("compare") as show:
        yield show and _Runs(runs, show)


@contextmanager
def sweep_bar(progress: ProgressArg["SweepProgress"], name: str) -> "Iterator[Callable[[SweepProgress], None] | None]":
    """Yield the callback for a sweep, or what is done as one."""
    if progress is not None:
        yield progress or None
        return
    with _bar(name) as show:
        if show is None:
            yield None
            return

        def tell(state: "SweepProgress") -> None:
            if state.event == "checking":
                show(state.share, f"{state.checked:,} of {plural(state.total, 'spec')} checked")
                return
            show(state.share, _counted(state.kept + state.finished, state.total, state.failed))

        yield tell


class _Runs:
    """Adds up how far each of several runs is."""

    def __init__(self, runs: int, show: Show) -> None:
        self._runs, self._show = runs, show
        self._shares: dict[int, float] = {}
        self._done: set[int] = set()
        self._lock = threading.Lock()

    def __call__(self, state: "RunProgress") -> None:
        with self._lock:
            self._shares[state.index] = 1.0 if state.done else state.fraction
            if state.done:
                self._done.add(state.index)
            share, done = sum(self._shares.values()) / self._runs, len(self._done)
        self._show(share, _counted(done, self._runs))


def _share(state: Progress) -> float:
    return state.flows_finished / state.flows_total if state.flows_total else 0.0


def _counted(done: int, runs: int, failed: int = 0) -> str:
    return f"{done:,} of {plural(runs, 'run')}" + (f", {failed:,} failed" if failed else "")


@contextmanager
def _bar(name: str) -> Iterator[Show | None]:
    """Yield what shows how far something is; None where nobody looks on. The bar is gone at the end."""
    if (display := _notebook()) is not None:
        with ExitStack() as gone:
            yield _Patient(lambda: _InNotebook(name, display, gone))
    elif sys.stderr is not None and sys.stderr.isatty():
        with ExitStack() as gone:
            yield _Patient(lambda: _OnTerminal(name, gone))
    else:
        yield None


class _Patient:
    """Shows nothing at first, and then not more often than an eye can follow. May be called from any thread."""

    def __init__(self, make: Callable[[], Show]) -> None:
        self._make = make
        self._shown: Show | None = None
        self._began = time.monotonic()
        self._next = self._began + _SHOWN_AFTER_S
        self._lock = threading.Lock()

    def __call__(self, share: float, words: str) -> None:
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                return
            self._next = now + _BETWEEN_S
            if self._shown is None:
                self._shown = self._make()
            left = (now - self._began) * (1.0 / share - 1.0) if share > 0.01 else None
            self._shown(min(share, 1.0), words if left is None else f"{words}, {clock(left)} left")


class _OnTerminal:
    """A bar of rich on stderr."""

    def __init__(self, name: str, gone: ExitStack) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bars

        self._bars = gone.enter_context(
            Bars(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TaskProgressColumn(),
                TextColumn("{task.fields[words]}", style="dim", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
        )
        self._task = self._bars.add_task(name, total=1.0, words="")

    def __call__(self, share: float, words: str) -> None:
        self._bars.update(self._task, completed=share, words=words)


class _InNotebook:
    """A bar below the cell."""

    def __init__(self, name: str, display: Any, gone: ExitStack) -> None:
        self._name = name
        self._handle = display(_Html(""), display_id=True)
        gone.callback(lambda: self._handle.update(_Html("")))

    def __call__(self, share: float, words: str) -> None:
        bar = f'<progress value="{share:.3f}" max="1" style="vertical-align: middle"></progress>'
        self._handle.update(_Html(f"<div>{escape(self._name)} {bar} {share:.0%}, {escape(words)}</div>"))


class _Html:
    """Text that a notebook shows as HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


def _notebook() -> Any:
    """Return the function that displays below a cell, in a notebook; None elsewhere, and in IPython on a terminal."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display").display
