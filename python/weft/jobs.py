"""Running many simulations side by side, in threads: the core does not hold Python's lock."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeAlias

from weft._core import Progress
from weft.errors import Stopped
from weft.simulation import Result, run_text
from weft.spec import SpecText
from weft.variant import Variant

__all__ = ["Job", "JobsCallback", "RunProgress", "default_jobs", "run_jobs"]


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a comparison."""

    index: int
    variant: Variant
    seed: int | None
    spec: SpecText
    overrides: tuple[tuple[str, str], ...]


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

    @property
    def fraction(self) -> float:
        """Share of the flows that have finished, 0 to 1."""
        return self.flows_finished / self.flows_total if self.flows_total else float(self.done)


JobsCallback: TypeAlias = Callable[[RunProgress], None]
"""Called about five times a second for each run, from that run's thread."""

Keep: TypeAlias = Callable[[Job, Result], Result]


def default_jobs() -> int:
    """Return how many runs to do at a time: one for each CPU that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(jobs: Sequence[Job], *, workers: int, keep: Keep, progress: JobsCallback | None = None) -> list[Result]:
    """Run every job, at most `workers` at a time, and return the results in the order of the jobs.

    `keep` takes each result as it comes and returns what shall be kept of it. The first error, or Ctrl-C, stops
    all of them: running simulations end at their next progress report.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="weft") as pool:
        try:
            futures = [pool.submit(_run_job, job, stop, keep, progress) for job in jobs]
            _wait(futures)
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures]


def _wait(futures: Sequence[Future[Result]]) -> None:
    # A wait without a time limit would keep Ctrl-C from being seen on some platforms.
    pending: set[Future[Result]] = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()


def _run_job(job: Job, stop: threading.Event, keep: Keep, progress: JobsCallback | None) -> Result:
    start = time.monotonic()
    label = job.variant.label

    def report(state: Progress) -> None:
        if stop.is_set():
            raise Stopped
        if progress is not None:
            progress(
                RunProgress(
                    index=job.index,
                    label=label,
                    seed=job.seed,
                    simulated_us=state.simulated_us,
                    flows_finished=state.flows_finished,
                    flows_total=state.flows_total,
                    packet_hops=state.packet_hops,
                    elapsed_s=time.monotonic() - start,
                )
            )

    if stop.is_set():
        raise Stopped
    balancer = job.variant.factory() if job.variant.factory is not None else None
    contender = job.variant.contender
    result = run_text(
        job.spec, overrides=job.overrides, seed=job.seed, contender=contender, balancer=balancer, progress=report
    )
    if progress is not None:
        summary = result.summary
        progress(
            RunProgress(
                index=job.index,
                label=label,
                seed=summary.seed,
                simulated_us=summary.simulated_us,
                flows_finished=summary.flows - summary.unfinished,
                flows_total=summary.flows,
                packet_hops=summary.packet_hops,
                elapsed_s=time.monotonic() - start,
                done=True,
            )
        )
    return keep(job, result)
