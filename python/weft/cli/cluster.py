"""Which cluster runs are to be done on, by the options of a command."""

from typing import Any, Literal

from weft.errors import SpecError
from weft.runs.cluster import Batch, Cluster

__all__ = ["chosen_cluster"]


def chosen_cluster(
    scheduler: str | None, *, slurm: bool, pbs: bool, workers: int, batch: list[str] | None
) -> Cluster | None:
    """Return the cluster that was asked for; None means this machine."""
    if (scheduler is not None) + slurm + pbs > 1:
        raise SpecError("--scheduler, --slurm and --pbs are three ways to one cluster: give one of them")
    if not slurm and not pbs:
        if workers != 1 or batch:
            raise SpecError(f"{'--batch' if batch else '--workers'} is about batch jobs: it needs --slurm or --pbs")
        return scheduler
    system: Literal["slurm", "pbs"] = "slurm" if slurm else "pbs"
    return Batch(system, workers, dict(_batch_option(text) for text in batch or []))


def _batch_option(text: str) -> tuple[str, Any]:
    key, separator, value = (part.strip() for part in text.partition("="))
    if not separator or not key or not value:
        raise SpecError(f"--batch {text!r}: expected key=value, for example --batch cores=8")
    return key, int(value) if value.isdecimal() else value
