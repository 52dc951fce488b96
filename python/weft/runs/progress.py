"""How far runs have come: each of them, and all of a command."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft._core import Progress
from weft.runs.run import Outcome, Run
from weft.summary import Summary

__all__ = ["JobsCallback", "RunProgress", "RunWatch", "SweepCallback", "SweepProgress", "Tracker"]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far one run of several has come."""

    index: int
    """Position among the runs, from 0."""
    label: str
    seed: int | None
    simulated_us: float
    flows_finished: int
    flows_total: int
    packet_hops: int
    elapsed_s: float
    """Wall time since the run started."""
    done: bool = False
    kept: bool = False
    """Whether it was there before, so that it took no time now."""

    @property
    def fraction(self) -> float:
        """Share of the flows that have finished, 0 to 1."""
        return self.flows_finished / self.flows_total if self.flows_total else float(self.done)


JobsCallback: TypeAlias = Callable[[RunProgress], None]
"""Called about five times a second for each run on this machine, from that run's thread, and when one is done."""


class RunWatch:
    """Tells a callback how far each of several runs is."""

    def __init__(self, callback: JobsCallback) -> None:
        self._callback = callback
        self._began: dict[int, float] = {}

    def running(self, run: Run, state: Progress) -> None:
        """Tell how far a run is."""
        began = self._began.setdefault(run.index, time.monotonic())
        self._callback(
            RunProgress(
                index=run.index,
                label=run.labels["scheme"],
                seed=run.seed,
                simulated_us=state.simulated_us,
                flows_finished=state.flows_finished,
                flows_total=state.flows_total,
                packet_hops=state.packet_hops,
                elapsed_s=time.monotonic() - began,
            )
        )

    def done(self, run: Run, summary: Summary, elapsed_s: float | None) -> None:
        """Tell that a run is done, and what it took; None if it was there before."""
        self._callback(
            RunProgress(
                index=run.index,
                label=run.labels["scheme"],
                seed=run.seed,
                simulated_us=summary.simulated_us,
                flows_finished=summary.flows - summary.without_completion,
                flows_total=summary.flows,
                packet_hops=summary.packet_hops,
                elapsed_s=elapsed_s or 0.0,
                done=True,
                kept=elapsed_s is None,
            )
        )


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep has come, and what made that news."""

    total: int
    """All runs of the sweep."""
    kept: int
    """Those that were there before."""
    finished: int
    """Those that were done now, well or not."""
    failed: int
    elapsed_s: float
    left_s: float | None
    """Wall time that the rest will take, if runs go on as they have so far; None while nobody can tell."""
    share: float
    """Share of the runs to do that is done, 0 to 1, with parts of those that are running."""
    run: str
    """The point that this is about."""
    event: Literal["checking", "running", "done", "failed"]
    """`checking` comes before any run: of all specs, `checked` were found right, which is `share`."""
    error: str | None = None
    checked: int = 0


SweepCallback: TypeAlias = Callable[[SweepProgress], None]
"""Called when a run is done and, on this machine, about five times a second for each that is running, and while specs
are checked."""


class Tracker:
    """Keeps count, and tells a callback."""

    def __init__(self, total: int, kept: int, callback: SweepCallback | None) -> None:
        self._total, self._kept = total, kept
        self._finished = self._failed = 0
        self._running: dict[int, float] = {}
        self._callback = callback
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def running(self, run: Run, state: Progress) -> None:
        """Note what share of a run is done."""
        if not state.flows_total:
            return
        with self._lock:
            self._running[run.index] = state.flows_finished / state.flows_total
            self._tell(run, "running")

    def done(self, run: Run, outcome: Outcome) -> None:
        """Note that a run has ended."""
        with self._lock:
            self._running.pop(run.index, None)
            self._finished += 1
            self._failed += outcome.error is not None
            self._tell(run, "done" if outcome.error is None else "failed", outcome.error)

    def _tell(self, run: Run, event: Literal["running", "done", "failed"], error: str | None = None) -> None:
        if self._callback is None:
            return
        todo = self._total - self._kept
        share = min((self._finished + sum(self._running.values())) / todo, 1.0) if todo else 1.0
        elapsed = time.monotonic() - self._start
        self._callback(
            SweepProgress(
                total=self._total,
                kept=self._kept,
                finished=self._finished,
                failed=self._failed,
                elapsed_s=elapsed,
                left_s=elapsed * (1.0 / share - 1.0) if share > 0.01 else None,
                share=share,
                run=run.name,
                event=event,
                error=error,
            )
        )
