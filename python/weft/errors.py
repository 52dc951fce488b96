"""The errors that Weft raises on purpose. Their messages are meant to be read by a user."""

import errno

from weft._core import SpecError

__all__ = ["ClusterError", "OutputError", "SchemeError", "SpecError", "Stopped", "no_space", "retold", "unreadable"]

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""A full disk, a quota that is used up, a file at the limit of its size."""


class ClusterError(Exception):
    """A cluster cannot be reached or does not fit: the message says what to do."""


class OutputError(Exception):
    """Results cannot be written or read: the message says where and what to do."""


class SchemeError(SpecError):
    """A load balancer in a file raised an exception, or gave no answer: the message has the line of the file."""


class Stopped(Exception):
    """A run was stopped from outside, from another thread."""


def no_space(error: BaseException | None) -> bool:
    """Whether an error, or what it follows from, is that there is no space left to write to."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            return True
        error = error.__cause__
    return False


def unreadable() -> tuple[type[BaseException], ...]:
    """Return what reading a table raises where the file is not there, or damaged: Polars panics at some bits."""
    import polars as pl

    return (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


def retold(error: SpecError, *, origin: str | None, where: str = "", short: str = "") -> SpecError:
    """Return the same mistake as one of another origin, with `where` behind its message.

    `short` is the begin of the key that the message can do without.
    """
    place = "" if origin is None else f"{origin}: "
    # What the core puts before its sentence is made of these two.
    line = "" if error.line is None else f":{error.line}"
    before = "" if error.origin is None else f"{error.origin}{line}: "
    kept = place if origin != error.origin else before
    sentence = str(error).removeprefix(before).removeprefix(short)
    found = SpecError(f"{kept}{sentence}{where}")
    for part in ("path", "found", "allowed", "nearest"):
        setattr(found, part, getattr(error, part))
    found.origin, found.line = origin, error.line if origin == error.origin else None
    return found
