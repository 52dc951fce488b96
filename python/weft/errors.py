"""The errors that Weft raises on purpose. Their messages are meant to be read by a user."""

from weft._core import SpecError

__all__ = ["OutputError", "SpecError", "Stopped"]


class OutputError(Exception):
    """Results cannot be written or read: the message says where and what to do."""


class Stopped(Exception):
    """A run was stopped from outside, from another thread."""
