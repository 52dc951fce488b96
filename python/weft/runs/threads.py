"""Doing runs on this machine, in threads: the core does not hold Python's lock."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from weft.runs.cores import CoreShares
from weft.runs.run import Outcome, Run, Watch, simulate

__all__ = ["run_in_threads"]


def run_in_threads(
    runs: Sequence[Run], *, cores: int, done: Callable[[Run, Outcome], None], watch: Watch | None = None
) -> None:
    """Do all runs on so many cores, which they share; `done` takes each as it comes, one at a time, in this thread.

    An error of `done`, or Ctrl-C, stops the rest: running simulations end at their next progress report.
    """
    stop = threading.Event()
    shares = CoreShares(cores, len(runs))

    def work(run: Run) -> Outcome:
        with shares.share(run, stop) as share:
            return simulate(run, watch, stop, share)

    with ThreadPoolExecutor(max_workers=cores, thread_name_prefix="weft") as pool:
        waiting: dict[Future[Outcome], Run] = {}
        rest = iter(runs)
        try:
            while True:
                # No more than are needed to keep the threads busy: outcomes that wait to be written take memory.
                while len(waiting) < 2 * cores and (run := next(rest, None)) is not None:
                    waiting[pool.submit(work, run)] = run
                if not waiting:
                    return
                # A wait without a time limit would keep Ctrl-C from being seen on some platforms.
                finished, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    done(waiting.pop(future), future.result())
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
