"""Shared code of all commands: where output goes, and how an error reaches the user."""

import functools
import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text as AnyText

from weft.cli.process import Terminated
from weft.errors import ClusterError, OutputError, SpecError, no_space
from weft.untrusted import one_line

__all__ = [
    "EXIT_BAD_INPUT",
    "EXIT_INTERNAL",
    "EXIT_INVALID",
    "EXIT_NO_READER",
    "EXIT_NO_SPACE",
    "EXIT_SOME_FAILED",
    "EXIT_STOPPED",
    "Sayings",
    "Text",
    "answer_system",
    "answers",
    "data",
    "exit_code",
    "fail",
    "harmless",
    "log",
    "one_line",
    "print_json",
    "stopped",
]

EXIT_INTERNAL = 1
EXIT_BAD_INPUT = 2
EXIT_SOME_FAILED = 3
EXIT_INVALID = 4
"""Runs are done, and their results answer nothing."""
EXIT_NO_SPACE = 28
"""The number that the system gives this error: ENOSPC."""
EXIT_STOPPED = 130
EXIT_NO_READER = 141
"""Exit code that a shell reports for a program that SIGPIPE ended."""

_WIDTH_WITHOUT_TERMINAL = 200

_OBEYED = re.compile(r"[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of writing."""

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def data() -> Console:
    """Console for what the user asked for: stdout. Wide when it is not a terminal, so that nothing is folded."""
    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Console(highlight=False, markup=False, emoji=False, width=None if narrow else _WIDTH_WITHOUT_TERMINAL)


def log() -> Console:
    """Console for progress and messages: stderr."""
    return _Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def harmless(text: str) -> str:
    """Escape control characters but line breaks, which only Weft's own layout has: headings and parts of tables."""
    return text if text.isprintable() else "\n".join(map(one_line, text.split("\n")))


class Text(AnyText):
    """A text in one line: a label or a file's name may hold line breaks and orders to the terminal."""

    def __init__(self, text: str = "", style: str = "") -> None:
        super().__init__(one_line(text), style)


class _Console(Console):
    """A console that sends a terminal no control characters but its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render, as `rich.console.Console.render` does."""
        shown = one_line(renderable) if isinstance(renderable, str) else renderable
        for segment in super().render(shown, options):
            if segment.control is None and not segment.text.isprintable():
                yield Segment(harmless(segment.text), segment.style)
            else:
                yield segment

    def render_str(self, text: str, **options: Any) -> AnyText:
        """Make a text of a string, as `rich.console.Console.render_str` does."""
        return super().render_str(one_line(text), **options)


def print_json(value: Any) -> None:
    """Print one JSON document to stdout, as it is: no colours, no folding. Escaped where it could not be printed."""
    escaped = not (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(value, indent=2, ensure_ascii=escaped)
    # JSON leaves DEL and the control characters above it as they are, and a terminal obeys them.
    typer.echo(_OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def answers(command: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Turn the errors of a command into one message on stderr and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            return command(*args, **kwargs)
        except (SpecError, OutputError, ClusterError) as error:
            fail("error", str(error))
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt as stop:
            raise typer.Exit(stopped(stop)) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except OSError as error:
            raise typer.Exit(answer_system(error)) from None
        except BaseException as error:
            # A panic of Rust code is no Exception.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            if os.environ.get("WEFT_DEBUG"):
                traceback.print_exc()
            fail("internal error", f"{type(error).__name__}: {error} (WEFT_DEBUG=1 shows more)")
            raise typer.Exit(EXIT_INTERNAL) from None

    return wrapped


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error that is no defect of Weft."""
    return EXIT_NO_SPACE if no_space(error) else EXIT_BAD_INPUT


def answer_system(error: OSError) -> int:
    """Say what the system answered, and return the exit code."""
    where = f"{error.filename}: " if error.filename else ""
    fail("error", f"{where}{error.strerror or error}")
    return exit_code(error)


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
