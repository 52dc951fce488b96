"""Runs that a special figure does itself, beyond those of experiments: kept in the store as any other."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from weft.runs.execution import Done, Executor
from weft.runs.run import Outcome, Run, resolved_run
from weft.runs.store import Stored
from weft.simulation import Result
from weft.spec import SpecText

__all__ = ["OwnRuns"]


@dataclass(slots=True)
class OwnRuns:
    """Does them, and tells whoever makes the figure."""

    executor: Executor
    found: Callable[[Stored], None]
    """Is told of a run that was done before."""
    done: Done
    """Is told of a run as it ends."""
    cpu_s: float = 0.0
    """CPU time of all runs in seconds, whenever they were done."""
    simulating_s: float = 0.0
    """CPU time of this process meanwhile, which is no time of the making."""
    asked: int = 0
    """How many there were."""
    _there: dict[str, Stored] = field(default_factory=dict)

    def simulate(self, specs: Sequence[SpecText], tables: Iterable[str]) -> list[Result | None]:
        """Do runs, each a whole spec with its seed, and keep the tables named; None for one that failed."""
        began = time.process_time()
        kept = tuple(sorted(tables))
        runs = [resolved_run(spec, number, {"run": str(number)}, tables=kept) for number, spec in enumerate(specs)]
        once = {run.id: run for run in runs}
        self.asked += len(once)
        for run in once.values():
            if (stored := self.executor.find(run)) is not None:
                self._there[run.id] = stored
                self.found(stored)
        self.executor.do([run for run in once.values() if run.id not in self._there], self._note)
        self.cpu_s += sum(self._there[run_id].record.measured.cpu_s for run_id in once if run_id in self._there)
        self.simulating_s += time.process_time() - began
        return [None if (stored := self._there.get(run.id)) is None else stored.result for run in runs]

    def _note(self, run: Run, outcome: Outcome, stored: Stored | None) -> None:
        if stored is not None:
            self._there[run.id] = stored
        self.done(run, outcome, stored)
