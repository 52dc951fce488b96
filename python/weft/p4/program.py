"""Compiles a program of `p4/`."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from weft.errors import OutputError

__all__ = ["SIZES", "compile_program", "compile_replay", "compile_with_entries"]

SIZES = (8, 16, 32)
"""How many ports a program may have."""


def _run(compiler: str, source: Path, to: Path, options: list[str]) -> Path:
    command = [compiler, "--std", "p4-16", *options, "-o", str(to), str(source)]
    # The compiler runs a preprocessor, and leaves its messages on stderr.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        # Warnings may come first.
        errors = next((place for place, line in enumerate(said) if "error:" in line), 0)
        said = said[errors:]
        raise OutputError(f"{source}: the P4 compiler refuses it: {' / '.join(said[:6])}")
    return to


def compile_program(compiler: str, source: Path, to: Path, macros: Mapping[str, int | str]) -> Path:
    """Compile a program for a switch, with these macros. Raises `OutputError` with what the compiler said."""
    return _run(compiler, source, to, [f"-D{name}={value}" for name, value in macros.items()])


def compile_with_entries(
    compiler: str, source: Path, folder: Path, macros: Mapping[str, int | str], entries: Mapping[str, str]
) -> Path:
    """Compile a program with the entries of its tables, by table, in a folder of its own."""
    for table, text in entries.items():
        (folder / f"{table}.entries").write_text(text, encoding="ascii")
    listed = [f"-D{name}={value}" for name, value in macros.items()]
    return _run(compiler, source, folder / "program.json", ["-DWITH_ENTRIES", f"-I{folder}", *listed])


def compile_replay(
    compiler: str, source: Path, folder: Path, macros: Mapping[str, int | str], entries: Mapping[str, str]
) -> Path:
    """Compile a program for a replay, in the same way."""
    return compile_with_entries(compiler, source, folder, {**macros, "REPLAY": 1}, entries)
