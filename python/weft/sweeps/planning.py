"""From the points of a sweep to its runs."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from weft.errors import SpecError, retold
from weft.runs.run import Run, resolved_run
from weft.sweeps.grid import Grid

__all__ = ["plan"]


def plan(grid: Grid, workers: int) -> list[Run]:
    """Resolve every point, so that a mistake in any of them is found before the first run."""
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="weft") as pool:
        points = list(enumerate(grid.places()))
        futures = [pool.submit(_resolve, grid, index, places) for index, places in points]
        try:
            runs = [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    first: dict[str, Run] = {}
    for run in runs:
        if run.spec_hash in first:
            raise SpecError(f"two points are the same run: {first[run.spec_hash].name}; {run.name}")
        first[run.spec_hash] = run
    return runs


def _resolve(grid: Grid, index: int, places: Sequence[int]) -> Run:
    labels = grid.labels_at(places)
    spec = grid.spec
    contender = grid.contender_at(places)
    try:
        return resolved_run(spec, index, labels, overrides=grid.overrides_at(places), contender=contender)
    except SpecError as error:
        # The core is given the values of swept fields as it is given those of --set.
        swept = [axis for axis in grid.axes if error.origin == "--set" and _is_at(error.path, axis.key)]
        origin = error.origin if not swept else "--vary" if swept[0].asked else spec.origin
        raise retold(error, origin=origin, where=_where(labels)) from None


def _is_at(path: str | None, key: str) -> bool:
    """Whether a key of the core is a swept field, or a part of it."""
    dotted = (path or "").replace("[", ".").replace("]", "")
    return dotted == key or dotted.startswith(f"{key}.")


def _where(labels: Mapping[str, str]) -> str:
    return f" (at {', '.join(f'{key} = {label}' for key, label in labels.items())})" if labels else ""
