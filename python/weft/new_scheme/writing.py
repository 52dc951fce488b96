"""New files and new lines, all of them or none."""

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from weft.errors import OutputError, SpecError

__all__ = ["Change", "check_name", "class_name", "filled", "write"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Change:
    """A file and what it shall hold."""

    path: Path
    text: str
    is_new: bool = True
    """Whether there must be no such file yet; else lines are added to one that is there."""


def check_name(name: str) -> None:
    """Raise `SpecError` for what cannot be the name of a scheme."""
    if not _NAME.fullmatch(name):
        raise SpecError(f"{name!r} cannot be the name of a scheme: small letters, digits and hyphens, as in my-scheme")


def class_name(name: str) -> str:
    """Return what the class of a scheme is called: `MyScheme` for `my-scheme`."""
    return "".join(part.capitalize() for part in name.split("-"))


def filled(template: str, **words: str) -> str:
    """Return a template with its words put in."""
    text = files("weft.new_scheme").joinpath("templates", template).read_text(encoding="utf-8")
    return Template(text).substitute(words)


def write(changes: list[Change]) -> None:
    """Write all files; raises `OutputError`, with nothing written, if a new one is there already."""
    for change in changes:
        if change.is_new and (change.path.exists() or change.path.is_symlink()):
            raise OutputError(f"{change.path}: is there already; nothing was written")
    for change in changes:
        try:
            change.path.parent.mkdir(parents=True, exist_ok=True)
            with change.path.open("x" if change.is_new else "w", encoding="utf-8") as stream:
                stream.write(change.text)
        except FileExistsError:
            raise OutputError(f"{change.path}: is there already") from None
        except OSError as error:
            raise OutputError(f"{change.path}: cannot be written: {error.strerror or error}") from None
