"""A new scheme in Python: its file, its test and its page, anywhere."""

import sys
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

from weft.errors import SpecError
from weft.new_scheme.writing import Change, check_name, class_name, filled

__all__ = ["python_scheme"]

_PARAMETERS = """| name | meaning |
|---|---|
| `tolerance` | ports whose waiting times differ by no more than this are equal |"""


def python_scheme(name: str, folder: Path) -> list[Change]:
    """Return the files of a scheme of this name; raises `SpecError` for a name that cannot be."""
    check_name(name)
    module = name.replace("-", "_")
    if word := next((word for word in (module, class_name(name)) if iskeyword(word)), None):
        raise SpecError(f"{name}: {word} is a word of Python's own, and nothing can be called so; choose another name")
    words = {"name": name, "Class": class_name(name), "module": module, "file": f"{module}.py"}
    found = [
        Change(folder / f"{module}.py", filled("scheme.py.txt", **words)),
        Change(folder / f"test_{module}.py", filled("test_scheme.py.txt", **words)),
        Change(
            folder / f"{module}.md",
            filled("page.md.txt", **words, choose=f"{words['Class']}.choose", parameters=_PARAMETERS),
        ),
    ]
    # A file of the folder would stand in the way of the module wherever Python is started there.
    if not found[0].path.exists() and (module in sys.stdlib_module_names or find_spec(module) is not None):
        raise SpecError(
            f"{name}: Python has a module {module}, which a file {module}.py would hide; choose another name"
        )
    return found
