"""What all commands share: where output goes, and how an error reaches the user."""

import functools
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console

from weft.cli.process import Terminated
from weft.errors import ClusterError, OutputError, SpecError

__all__ = [
    "EXIT_BAD_INPUT",
    "EXIT_INTERNAL",
    "EXIT_NO_READER",
    "EXIT_SOME_FAILED",
    "EXIT_STOPPED",
    "Sayings",
    "answers",
    "data",
    "fail",
    "log",
    "one_line",
    "print_json",
    "stopped",
]

EXIT_INTERNAL = 1
EXIT_BAD_INPUT = 2
EXIT_SOME_FAILED = 3
EXIT_STOPPED = 130
EXIT_NO_READER = 141
"""What a shell says of a program that SIGPIPE ended."""

_WIDTH_WITHOUT_TERMINAL = 200

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def data() -> Console:
    """Console for what the user asked for: stdout. Wide when it is not a terminal, so that nothing is folded."""
    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, markup=False, emoji=False, width=None if narrow else _WIDTH_WITHOUT_TERMINAL)


def log() -> Console:
    """Console for progress and messages: stderr."""
    return _Log(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


class _Log(Console):
    """A console on which a message stays in its line, whatever a user's value in it holds."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, as `rich.console.Console.print` does."""
        super().print(*(one_line(text) if isinstance(text, str) else text for text in objects), **options)


def one_line(text: str) -> str:
    r"""Escape line breaks and other control characters: a line feed becomes `\n`."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def print_json(value: Any) -> None:
    """Print one JSON document to stdout, as it is: no colours, no folding. Escaped where it could not be printed."""
    escaped = not (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(json.dumps(value, indent=2, ensure_ascii=escaped))


def answers(command: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Turn the errors of a command into one message on stderr and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            return command(*args, **kwargs)
        except (SpecError, OutputError, ClusterError) as error:
            fail("error", str(error))
            raise typer.Exit(EXIT_BAD_INPUT) from None
        except KeyboardInterrupt as stop:
            raise typer.Exit(stopped(stop)) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            fail("error", f"{where}{error.strerror or error}")
            raise typer.Exit(EXIT_BAD_INPUT) from None
        except BaseException as error:
            # A panic of Rust code is no Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            if os.environ.get("WEFT_DEBUG"):
                traceback.print_exc()
            fail("internal error", f"{type(error).__name__}: {error} (WEFT_DEBUG=1 shows more)")
            raise typer.Exit(EXIT_INTERNAL) from None

    return wrapped


class Sayings(logging.Handler):
    """Says what the package warns of, each in a line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line to stderr."""
        log().print(record.getMessage())


def stopped(reason: KeyboardInterrupt) -> int:
    """Say that the command was stopped, and return its exit code."""
    log().print("stopped")
    return reason.exit_code if isinstance(reason, Terminated) else EXIT_STOPPED


def fail(kind: str, message: str) -> None:
    """Say in one line what is wrong."""
    console = log()
    console.print(f"{kind}:", style="bold red", end=" ")
    console.print(message)
