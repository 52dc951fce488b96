"""From the points of a sweep to its runs."""

import time
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from weft.conditions import Condition, notes_of
from weft.errors import SpecError, retold
from weft.runs.progress import SweepCallback, SweepProgress
from weft.runs.run import Run, resolved_run
from weft.sweeps.grid import Grid

__all__ = ["notes_of_grid", "plan"]

_BETWEEN_S = 0.2


def plan(grid: Grid, workers: int, callback: SweepCallback | None = None) -> list[Run]:
    """Resolve every point, so that a mistake in any of them is found before the first run.

    Points that differ in nothing but the seed are checked once. `callback` is told how far it is.
    """
    checked: set[Hashable] = set()
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="weft") as pool:
        points = list(enumerate(grid.places()))
        futures = [pool.submit(_resolve, grid, index, places, checked) for index, places in points]
        runs: list[Run] = []
        told = _Checking(len(points), callback)
        try:
            for future in futures:
                runs.append(future.result())
                told(len(runs))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    first: dict[str, Run] = {}
    for run in runs:
        if run.spec_hash in first:
            raise SpecError(f"two points are the same run: {first[run.spec_hash].name}; {run.name}")
        first[run.spec_hash] = run
    return runs


def notes_of_grid(grid: Grid, runs: Sequence[Run], variant: str | None) -> list[str]:
    """Say in what variants compete under unequal conditions; what is swept beside them was asked for."""
    first = {run.labels.get(variant or "", ""): run for run in reversed(runs)}
    swept = {axis.key for axis in grid.axes}

    def asked(run: Run) -> list[Condition]:
        return [one for one in run.conditions if f"transport.{one.key}" not in swept]

    return notes_of((label, run.notes, asked(run)) for label, run in reversed(first.items()))


class _Checking:
    """Tells how many specs are checked, a few times a second."""

    def __init__(self, total: int, callback: SweepCallback | None) -> None:
        self._total, self._callback = total, callback
        self._start = self._told = time.monotonic()

    def __call__(self, checked: int) -> None:
        now = time.monotonic()
        if self._callback is None or now - self._told < _BETWEEN_S:
            return
        self._told = now
        elapsed = now - self._start
        self._callback(
            SweepProgress(
                total=self._total,
                kept=0,
                finished=0,
                failed=0,
                elapsed_s=elapsed,
                left_s=elapsed * (self._total / checked - 1.0),
                share=checked / self._total,
                run="",
                event="checking",
                checked=checked,
            )
        )


def _resolve(grid: Grid, index: int, places: Sequence[int], checked: set[Hashable]) -> Run:
    labels = grid.labels_at(places)
    spec = grid.spec
    variant = grid.variant_at(places)
    try:
        overrides = grid.overrides_at(places)
        return resolved_run(spec, index, labels, overrides=overrides, variant=variant, checked=checked)
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
