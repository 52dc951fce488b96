"""A process that judges cases, and tells of each in a line of JSON: that it begins, and what came of it."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz.judging import Judge, TooLong
from fuzz.shrinking import shrunk
from fuzz.specs import Case, Maker

__all__ = ["judge_one", "work"]

_SECONDS_TO_SHRINK = 20.0


def work(first: int, step: int, seconds: float, *, only_graphs: bool) -> None:
    """Judge every `step`th case from the first one, until the reader goes away."""
    with tempfile.TemporaryDirectory(prefix="weft-fuzz-") as folder:
        maker, judge = Maker(Path(folder), only_graphs=only_graphs), Judge(Path(folder), seconds)
        number = first
        while True:
            _say({"begins": number})
            for told in _judged(maker, judge, number):
                _say(told)
            number += step


def judge_one(number: int, seconds: float, *, only_graphs: bool) -> dict[str, Any]:
    """Judge one case by its number."""
    with tempfile.TemporaryDirectory(prefix="weft-fuzz-") as folder:
        maker = Maker(Path(folder), only_graphs=only_graphs)
        return next(_judged(maker, Judge(Path(folder), seconds), number))


def _judged(maker: Maker, judge: Judge, number: int) -> Iterator[dict[str, Any]]:
    case = maker.case(number)
    before = judge.runs
    told: dict[str, Any] = {"case": number, "pair": list(case.pair)}
    try:
        problems = judge.problems(case, number)
    except TooLong as error:
        known = {"toml": case.toml, "files": case.files}
        yield told | known | {"problems": [], "long": str(error), "runs": judge.runs - before}
        return
    if problems:
        case = shrunk(case, lambda smaller: _fails_alike(judge, smaller, number, problems[0]), _SECONDS_TO_SHRINK)
        told |= {"toml": case.toml, "files": case.files}
    yield told | {"problems": problems, "runs": judge.runs - before}


def _fails_alike(judge: Judge, case: Case, number: int, problem: str) -> bool:
    kind = problem.split(":", 1)[0]
    try:
        found = judge.problems(case, number, only=None if kind == "bad_input" else kind)
    except TooLong:
        return False
    return any(other.split(":", 1)[0] == kind for other in found)


def _say(told: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
