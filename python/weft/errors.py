"""The errors that Weft raises on purpose. Their messages are meant to be read by a user."""

from weft._core import SpecError

__all__ = ["ClusterError", "OutputError", "SpecError", "Stopped", "unreadable"]


class ClusterError(Exception):
    """A cluster cannot be reached or does not fit: the message says what to do."""


class OutputError(Exception):
    """Results cannot be written or read: the message says where and what to do."""


class Stopped(Exception):
    """A run was stopped from outside, from another thread."""


def unreadable() -> tuple[type[BaseException], ...]:
    """Return what reading a table raises where the file is not there, or damaged: Polars panics at some bits."""
    import polars as pl

    return (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
