"""Making a failing case small: changes are taken back as long as it fails in the same way."""

import time
from collections.abc import Callable, Iterator

from fuzz.specs import Case

__all__ = ["shrunk"]


def shrunk(case: Case, fails: Callable[[Case], bool], seconds: float) -> Case:
    """Return the case with as few changes as fail, or what was reached in this time."""
    deadline = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(case):
            if time.monotonic() > deadline:
                return case
            if fails(smaller):
                case, progress = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases with one change less, then with one item of a list, or key of a table, less."""
    for place in range(len(case.tweaks)):
        yield case.changed((*case.tweaks[:place], *case.tweaks[place + 1 :]))
    for place, (path, value) in enumerate(case.tweaks):
        for less in _less(value):
            yield case.changed((*case.tweaks[:place], (path, less), *case.tweaks[place + 1 :]))


def _less(value: object) -> Iterator[object]:
    if isinstance(value, list):
        if len(value) > 1:
            for place in range(len(value)):
                yield [*value[:place], *value[place + 1 :]]
        for place, item in enumerate(value):
            for less in _less(item):
                yield [*value[:place], less, *value[place + 1 :]]
    elif isinstance(value, dict):
        for key in value:
            yield {other: item for other, item in value.items() if other != key}
