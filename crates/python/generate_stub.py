"""Writes python/weft/_core.pyi from the signatures and doc comments of the extension module.

`python crates/python/generate_stub.py` builds the module, if it is not built, reads what pyo3 noted in it, and writes
the stub. With `--check` it writes nothing, and exits 1 if the stub is not what the module says. Needs maturin and ruff,
and `weft` of the same source installed.
"""

import argparse
import inspect
import subprocess
import sys
import tempfile
from pathlib import Path

from weft import _core

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "python" / "weft" / "_core.pyi"
BIN = Path(sys.executable).parent
_INCOMPLETE = "def __getattr__(name: str) -> Incomplete: ...\n"


def main() -> int:
    """Write the stub, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the stub is out of date")
    check = parser.parse_args().check
    text = _formatted(_complete(_introspected()))
    if not check:
        STUB.write_text(text, encoding="utf-8")
        return 0
    if STUB.read_text(encoding="utf-8") == text:
        return 0
    print(f"{STUB.name} is out of date: run python crates/python/generate_stub.py", file=sys.stderr)
    return 1


def _introspected() -> str:
    """Return the stub that maturin writes from the pieces that pyo3 has put into the module."""
    with tempfile.TemporaryDirectory() as folder:
        command = [BIN / "maturin", "generate-stubs", "--quiet", "--locked", "--out", folder]
        subprocess.run(command, check=True, cwd=ROOT)
        return (Path(folder) / "weft" / "_core.pyi").read_text(encoding="utf-8")


_PARTS = dict.fromkeys(("path", "found", "allowed", "nearest", "origin"), "str") | {"line": "int"}
"""The attributes of an error of a spec."""


def _complete(text: str) -> str:
    """Add what pyo3 does not note: exceptions, and the modules that annotations of our own name."""
    if _INCOMPLETE not in text:
        raise SystemExit("maturin writes complete stubs now: this step is no longer needed")
    text = text.replace(_INCOMPLETE, "").replace("from _typeshed import Incomplete\n", "import collections.abc\n")
    for name, thing in inspect.getmembers(_core, inspect.isclass):
        if issubclass(thing, BaseException):
            text += f'\nclass {name}({thing.__base__.__name__}):\n    """{thing.__doc__}"""\n'
            text += "".join(f"\n    {part}: {kind} | None" for part, kind in _PARTS.items()) + "\n"
    return text


def _formatted(text: str) -> str:
    """Return the text as the linter wants it: annotations without quotes, doc strings on their first line."""
    name = ["--stdin-filename", str(STUB)]
    fixed = [BIN / "ruff", "check", "--quiet", "--fix-only", "--unsafe-fixes", "--extend-select", "UP037", *name, "-"]
    for command in (fixed, [BIN / "ruff", "format", "--quiet", *name, "-"]):
        text = subprocess.run(command, check=True, cwd=ROOT, input=text, capture_output=True, text=True).stdout
    return text


if __name__ == "__main__":
    sys.exit(main())
