"""The process of a command: its streams, its arguments and the signals that end it."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from weft.errors import SpecError

__all__ = ["Terminated", "abandon_output", "check_arguments", "ready_streams", "stop_on_signals"]

_ENDING = (signal.SIGTERM, signal.SIGHUP)
"""A batch system sends the first before it kills, a terminal the second when it goes away."""


class Terminated(KeyboardInterrupt):
    """Somebody asked the process to end: what was begun is put away, as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number
        """Exit code that a shell reports for a process that a signal ended."""


def stop_on_signals() -> None:
    """Let the signals that ask a process to end raise `Terminated`; one that is ignored (`nohup`) stays ignored."""
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    raise Terminated(number)


def ready_streams() -> None:
    """Make sure that anything can be printed.

    A stream that was closed before we began takes what it gets and drops it, so that no file that is opened later
    gets its number. What the locale has no character for is printed as a question mark, or escaped among messages.
    """
    for name, errors in (("stdout", "replace"), ("stderr", "backslashreplace")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def abandon_output() -> None:
    """Say nothing more, not even at exit: the reader of our output has gone away, as `head` does."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError, OSError, ValueError):
            stream.flush()
            continue
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())


def check_arguments(arguments: Sequence[str]) -> None:
    """Raise `SpecError` for an argument that is no text: nothing that it could name or set can be passed on."""
    for argument in arguments:
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            encoding = sys.getfilesystemencoding()
            raise SpecError(f"argument {argument!r}: is not text in this locale's encoding, {encoding}") from None
