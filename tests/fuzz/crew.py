"""The processes that judge cases, and a watch over them: one that dies or stands still is a failure of its case."""

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["told_by_crew"]

_PROGRAM = Path(__file__).resolve().parent


def told_by_crew(
    first: int, specs: int | None, jobs: int, seconds: float, more: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield what came of each case from the first one; of so many, or for ever. Members get more options."""
    said: queue.Queue[tuple[int, dict[str, Any] | None]] = queue.Queue()
    members = [_Member(place, jobs, first + place, [str(seconds), *more], said) for place in range(jobs)]
    last = None if specs is None else first + specs
    # A case is several runs and the shrinking of a failure: beyond this, the core does not come back to Python.
    patience = 10.0 * seconds + 60.0
    try:
        working = set(range(jobs))
        while working:
            try:
                place, told = said.get(timeout=1.0)
            except queue.Empty:
                place, told = -1, {}
            for member in (one for one in members if one.place in working and one.silent_for() > patience):
                yield member.lost("hung: nothing was heard of it", said)
            if place not in working:
                continue
            member = members[place]
            if told is None:
                if member.alive_again():
                    continue
                yield member.lost("crash: the process died", said)
            elif "begins" in told:
                member.number = told["begins"]
                if last is not None and member.number >= last:
                    working.discard(place)
                    member.end()
            elif last is None or told["case"] < last:
                yield told
    finally:
        for member in members:
            member.end()


class _Member:
    """A process with a thread that listens to it."""

    def __init__(self, place: int, step: int, first: int, more: Sequence[str], said: "queue.Queue[Any]") -> None:
        self.place, self.number = place, first
        self._step, self._more = step, more
        self._start(first, said)

    def _start(self, first: int, said: "queue.Queue[Any]") -> None:
        self._heard, self._restarted = time.monotonic(), False
        arguments = ["--worker", str(first), str(self._step), *self._more]
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=self._listen, args=(self._process, said), daemon=True).start()

    def _listen(self, process: "subprocess.Popen[str]", said: "queue.Queue[Any]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._heard = time.monotonic()
            said.put((self.place, json.loads(line)))
        if process is self._process:
            said.put((self.place, None))

    def silent_for(self) -> float:
        """Return for how many seconds nothing was heard."""
        return time.monotonic() - self._heard

    def alive_again(self) -> bool:
        """Whether another process has taken the place of the one that ended."""
        return self._process.poll() is None

    def lost(self, why: str, said: "queue.Queue[Any]") -> dict[str, Any]:
        """Give the case up, and go on with the next one in another process."""
        self.end()
        told = {"case": self.number, "problems": [why], "runs": 1}
        self._start(self.number + self._step, said)
        return told

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
