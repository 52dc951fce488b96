"""The `weft` command and its list of subcommands."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from typer._click.exceptions import ClickException
from typer.core import TyperGroup

from weft.cli import (
    bench,
    catalog,
    compare,
    convert,
    explain,
    fit,
    flow,
    gaps,
    model,
    multiverse,
    new_scheme,
    p4,
    packets,
    report,
    reproduce,
    run,
    schema,
    store,
    sweep,
    validate,
)
from weft.cli.completion import complete_at_once
from weft.cli.console import EXIT_BAD_INPUT, EXIT_NO_READER, Sayings, answer_system, fail, stopped
from weft.cli.process import abandon_output, check_arguments, ready_streams, stop_on_signals
from weft.errors import SpecError
from weft.untrusted import one_line

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    """The commands. What Typer says of an argument that does not fit holds no order to the terminal."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the arguments, as Typer does."""
        with _harmless():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, as Typer does."""
        with _harmless():
            return super().invoke(ctx)


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except ClickException as error:
        error.message = one_line(error.message)
        raise


app = typer.Typer(
    name="weft",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""A packet-level laboratory for load balancing in datacenter fabrics.

    Describe a fabric, a traffic mix and a transport; Weft runs load balancers on exactly the same flows,
    packet by packet, and tells which one wins, by how much, and why.

    **First steps**

    - `weft compare --schemes ecmp,letflow,drill` - compare three schemes on the default fabric
    - `weft sweep --vary traffic.load=0.4,0.8 --schemes ecmp,drill` - run all combinations
    - `weft reproduce meet 6` - make a paper's figure again; `weft reproduce --list` shows all of them
    - `weft multiverse lbt 8` - in which worlds a paper's claims hold, and what decides
    - `weft schemes` - list the load balancers; `weft schemes letflow` explains one
    - `weft new-scheme mine` - begin a load balancer of your own, in Python
    - `weft explain` - show every setting, its value and where the value came from

    Data goes to stdout, progress and messages to stderr. Exit code: 0 done, 2 something is wrong with what
    you gave (nothing is written), 3 some runs failed, 4 a run answers nothing (no flow finished, or most
    packets had no route), 28 no space is left to write to, 130 stopped with Ctrl-C,
    141 nobody read the output any more (`weft schemes | head -1`), 143 by SIGTERM.
    """,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from weft import __version__, _core

        typer.echo(f"weft {__version__} ({_core.build()} build, results {_core.results_version()})")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


for module in (
    run,
    compare,
    sweep,
    reproduce,
    multiverse,
    store,
    fit,
    flow,
    gaps,
    explain,
    convert,
    catalog,
    new_scheme,
    model,
    p4,
    packets,
    report,
    bench,
    schema,
    validate,
):
    module.register(app)


def main() -> None:
    """Run the command line; whatever happens, the user sees no traceback."""
    ready_streams()
    stop_on_signals()
    complete_at_once()
    logging.getLogger("weft").addHandler(Sayings())
    try:
        check_arguments(sys.argv[1:])
        app(prog_name="weft")
    except SpecError as error:
        fail("error", str(error))
        sys.exit(EXIT_BAD_INPUT)
    except KeyboardInterrupt as stop:
        sys.exit(stopped(stop))
    except BrokenPipeError:
        _leave_quietly()
    except OSError as error:  # of what is no command, as --install-completion in a home that cannot be written to
        sys.exit(answer_system(error))
    except SystemExit as end:
        # Click and rich end a command by themselves whose reader has gone.
        if end.code == 1 and isinstance(end.__context__, BrokenPipeError):
            _leave_quietly()
        _flush()
        raise
    _flush()


def _flush() -> None:
    """Print what is left now: at exit nobody could answer that the reader has gone, or that the disk is full."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_quietly()
    except OSError as error:
        code = answer_system(error)
        abandon_output()
        sys.exit(code)


def _leave_quietly() -> NoReturn:
    """End as other programs do whose reader has gone away, as `head` does: by SIGPIPE, in a shell's words."""
    abandon_output()
    sys.exit(EXIT_NO_READER)
