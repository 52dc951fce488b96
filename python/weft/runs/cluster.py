"""Doing runs on a Dask cluster: one that is there, or one made of batch jobs.

Workers only simulate. What comes out travels to the process that asked for it, which alone writes: no file system
needs to be shared, but for files that the spec names.
"""

import contextlib
import logging
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from weft import _core
from weft.errors import ClusterError
from weft.runs.run import Outcome, Run, failure, simulate_far

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Batch", "Cluster", "check_cluster", "connected", "run_on_cluster"]

_SECONDS_TO_CONNECT = 15.0
_SUBMIT = {"slurm": "sbatch", "pbs": "qsub"}


@dataclass(frozen=True, slots=True)
class Batch:
    """A Dask cluster to be made of batch jobs."""

    system: Literal["slurm", "pbs"]
    jobs: int = 1
    """How many to ask for; each is a worker of its own."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of dask-jobqueue for each job: `cores`, `memory`, `queue`, `walltime` ..."""


Cluster: TypeAlias = str | Batch
"""The address of a Dask scheduler, or batch jobs to make a cluster of."""


def check_cluster(cluster: Cluster) -> None:
    """Raise `ClusterError` for what can be no cluster from here; it asks nobody.

    Dask itself waits half a minute, and shows a traceback, once it was given an address that is none.
    """
    try:
        from distributed.comm.addressing import parse_address, parse_host_port
        from distributed.comm.registry import get_backend
    except ImportError:
        raise ClusterError("Dask is not installed: pip install 'weft[cluster]'") from None
    if isinstance(cluster, Batch):
        command = _SUBMIT[cluster.system]
        if shutil.which(command) is None:
            raise ClusterError(
                f"--{cluster.system}: there is no {command} here; run this where batch jobs are submitted"
            )
        return
    try:
        kind, place = parse_address(cluster)
        get_backend(kind)
        if kind != "inproc":  # within this process, which has no ports
            parse_host_port(place)
    except ValueError as error:
        raise ClusterError(f"{cluster!r}: is no address of a Dask scheduler, as tcp://host:8786 is: {error}") from None


@contextlib.contextmanager
def connected(cluster: Cluster) -> Iterator["Client"]:
    """Connect to a cluster; batch jobs end with the block. Raises `ClusterError` if that cannot be."""
    check_cluster(cluster)
    from distributed import Client

    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        address = cluster if isinstance(cluster, str) else stack.enter_context(_submitted(cluster))
        try:
            client = stack.enter_context(Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False))
        except (OSError, ValueError, TypeError) as error:
            raise ClusterError(f"{address}: no Dask scheduler answers there: {error}") from None
        _check_workers(client)
        yield client


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's own account of a lost connection, with its tracebacks, off the terminal: an error says it once."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.comm")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _submitted(batch: Batch) -> Iterator[Any]:
    try:
        from dask_jobqueue.pbs import PBSCluster
        from dask_jobqueue.slurm import SLURMCluster
    except ImportError:
        raise ClusterError("dask-jobqueue is not installed: pip install 'weft[cluster]'") from None
    make = SLURMCluster if batch.system == "slurm" else PBSCluster
    try:
        cluster: Any = make(**batch.options)
    except (ValueError, TypeError) as error:
        raise ClusterError(
            f"--{batch.system}: {error}; say what a job gets with --batch cores=8 --batch memory=16GB, or in "
            "~/.config/dask/jobqueue.yaml"
        ) from None
    with cluster:
        cluster.scale(jobs=batch.jobs)
        yield cluster


def _check_workers(client: "Client") -> None:
    """Refuse workers that would give other results before anything is run; those that come later fail their runs."""
    own = _core.results_version()
    answers = client.run(_results_here, on_error="return")
    for address, answer in answers.items():
        if isinstance(answer, Exception):
            raise ClusterError(f"the worker at {address} cannot use weft: {answer}")
        if answer != own:
            raise ClusterError(f"the worker at {address} has a weft with the results {answer}, and this one has {own}")


def _results_here() -> str:
    """Return the version of the results of the Weft that is installed where this is called."""
    return _core.results_version()


def run_on_cluster(client: "Client", runs: Sequence[Run], *, done: Callable[[Run, Outcome], None]) -> None:
    """Do all runs; `done` takes each as it comes, one at a time, in this thread.

    Dask does a run again whose worker is lost, on another; one that takes several workers with it has failed.
    """
    from distributed import CancelledError, KilledWorker, as_completed

    mine = uuid.uuid4().hex[:8]
    waiting = {client.submit(simulate_far, run, key=f"weft-{run.id}-{mine}", pure=False): run for run in runs}
    try:
        for future in as_completed(list(waiting), loop=client.loop):
            run = waiting.pop(future)
            try:
                outcome = future.result()
            except CancelledError:
                raise ClusterError(
                    "the Dask scheduler is gone; runs that are finished are kept, and the same command goes on"
                ) from None
            except KilledWorker as error:
                outcome = failure(run, f"every worker that tried it was lost: {error}")
            except Exception as error:
                outcome = failure(run, f"{type(error).__name__}: {error}")
            done(run, outcome)
            future.release()
    finally:
        if waiting:
            with contextlib.suppress(Exception):
                client.cancel(list(waiting), force=True)
