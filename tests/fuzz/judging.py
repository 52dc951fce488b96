"""Judging a case: run it, hold its tables against each other and its run against others, and give it bad input."""

import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from fuzz.bad import spoiled
from fuzz.relations import RELATIONS
from fuzz.specs import Case, resolved
from fuzz.tables import mistakes
from weft._core import Progress
from weft.errors import SpecError
from weft.simulation import Result, run_text
from weft.spec import SpecText

__all__ = ["Judge", "TooLong"]

_ALWAYS = "the_resolved_spec_gives_the_same_bytes_on_other_threads"
_MORE_RELATIONS = 1


class TooLong(Exception):
    """A run took longer than a case is given."""


class Judge:
    """Judges cases whose files are in one folder."""

    def __init__(self, folder: Path, seconds: float) -> None:
        """Give each run this many seconds."""
        self._folder, self._seconds = folder, seconds
        self.runs = 0

    def problems(self, case: Case, number: int, only: str | None = None) -> list[str]:
        """List what is wrong, each with the name of the check in front; `only` that check where one is told."""
        random = Random(number)
        try:
            return self._problems(case.document, case.toml, random, only)
        except (TooLong, KeyboardInterrupt):
            raise
        except SpecError as error:
            return [f"refused_late: resolved, and refused by the run: {error}"]
        except BaseException as error:  # a panic of the core is no Exception
            return [f"{type(error).__name__}: {error}"]

    def _problems(self, document: Mapping[str, Any], toml: str, random: Random, only: str | None) -> list[str]:
        try:
            spec = resolved(toml, self._folder)["spec"]
        except SpecError as error:
            return [] if "\n" not in str(error) else [f"message: {error}"]
        result = self._run(toml)
        found = mistakes(result, spec)
        more = random.sample(sorted(RELATIONS.keys() - {_ALWAYS}), _MORE_RELATIONS)
        chosen = [_ALWAYS, *more] if only is None else [only]
        for name in chosen:
            if name in RELATIONS:
                found += [f"{name}: {doubt}" for doubt in RELATIONS[name](result, document, self._run)]
        if only is None:
            found += self._after_bad_input(document, random)
        return found

    def _after_bad_input(self, document: Mapping[str, Any], random: Random) -> list[str]:
        """Spoil one value: that is answered in one line, or taken."""
        text, what = spoiled(document, random)
        try:
            self._run(text)
        except SpecError as error:
            return [f"message of more than a line: {what}: {error}"] if "\n" in str(error) else []
        except TooLong:
            return []  # a large number where a small one stood is no mistake
        except Exception as error:
            return [f"bad_input: {what}: {type(error).__name__}: {error}"]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return [f"bad_input: {what}: panic: {error}"]
        return []

    def _run(self, toml: str) -> Result:
        """Run a spec; what does not end is ended."""
        began = time.monotonic()

        def watch(state: Progress) -> None:
            taken = time.monotonic() - began
            if taken > self._seconds:
                raise TooLong(f"{state.simulated_us:.0f} us and {state.packet_hops} packet-hops in {taken:.0f} s")

        self.runs += 1
        return run_text(SpecText(toml, base_dir=str(self._folder)), progress=watch)
