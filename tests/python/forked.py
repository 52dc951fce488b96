"""The command line in a process that need not load it: a copy of one that has, and does nothing else.

To load `weft` takes longer than most commands of the tests. What the tests see is what a shell sees: standard streams,
exit code, files. Only hashes of texts are alike in all commands that one process of pytest runs: a test that compares
the bytes of two asks for a process of its own.
"""

import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from weft import figures

# What starts no thread: a copy of a process has only the one that copied it. Polars starts some.
_LOADED = [
    "forked",
    "weft.cli.app",
    "weft.comparison",
    "weft.figures",
    "weft.report",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
]


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    return context


def run(
    arguments: list[str],
    place: Path,
    environment: Mapping[str, str],
    seconds: float,
    formats: tuple[str, ...],
) -> tuple[int, str, str]:
    """Run `weft` with these arguments in this directory; returns the exit code and what it printed on both streams.

    Figures are drawn in these formats.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "stdout", Path(folder) / "stderr"
        given = (arguments, str(place), dict(environment), str(out), str(err), formats)
        process = _context().Process(target=_command, args=given)
        # The other process is to load nothing of this one. Numpy starts threads where it is loaded, unless told.
        with (
            patch.dict(sys.modules, {"__main__": ModuleType("__main__")}),
            patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"),
        ):
            process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"weft {' '.join(arguments)}: not done in {seconds:g} s")
        return process.exitcode, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")


def _command(
    arguments: list[str], place: str, environment: dict[str, str], out: str, err: str, formats: tuple[str, ...]
) -> None:
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate((os.devnull, out, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    figures.FORMATS = formats
    sys.argv[1:] = arguments
    runpy.run_module("weft", run_name="__main__", alter_sys=True)
