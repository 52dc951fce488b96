"""The errors that Weft raises on purpose. Their messages are meant to be read by a user."""

from weft._core import SpecError

__all__ = ["ClusterError", "OutputError", "SpecError", "Stopped"]


class ClusterError(Exception):
    """A cluster cannot be reached or does not fit: the message says what to do."""


class OutputError(Exception):
    """Results cannot be written or read: the message says where and what to do."""


class Stopped(Exception):
    """A run was stopped from outside, from another thread."""
