"""Getting a spec, however it was given, to the core: paths, TOML text, dictionaries and `--set`."""

import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import tomli_w

from weft.errors import SpecError

__all__ = [
    "SpecLike",
    "SpecText",
    "check_text",
    "load_spec",
    "parse_assignment",
    "parse_assignments",
    "parse_document",
    "to_toml",
    "to_toml_value",
]

_LONGEST = 16 * 1024 * 1024
"""Most characters that are read of a spec: a device never ends."""

SpecLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | SpecText"
"""A path to a TOML file, TOML text, or nested dictionaries."""


@dataclass(frozen=True, slots=True)
class SpecText:
    """TOML text with what the core needs to know about it."""

    text: str
    base_dir: str = "."
    origin: str = "spec"

    def with_table(self, table: str, values: Mapping[str, Any]) -> "SpecText":
        """Return the same spec with one top-level table replaced."""
        document = parse_document(self)
        document[table] = dict(values)
        return replace(self, text=to_toml(document))

    def table(self, table: str) -> dict[str, Any]:
        """Return one top-level table as a dictionary; empty if the spec does not have it."""
        found = parse_document(self).get(table, {})
        return found if isinstance(found, dict) else {}


def load_spec(spec: SpecLike) -> SpecText:
    """Turn whatever the caller has into TOML text.

    A string is TOML text if it holds a line break or an equals sign, or is empty; any other string is a path.
    Raises `SpecError` when the file cannot be read.
    """
    if isinstance(spec, SpecText):
        return spec
    if isinstance(spec, Mapping):
        return SpecText(to_toml(spec), origin="dict")
    check_text(os.fspath(spec))
    if isinstance(spec, str) and _is_text(spec):
        return SpecText(spec)
    return _read(Path(spec))


def check_text(text: str) -> None:
    """Raise `SpecError` for half a character (a lone surrogate), which no file and no core takes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise SpecError(f"{text!r}: is not text: it holds half a character") from None


def _is_text(spec: str) -> bool:
    if not spec.strip() or "\n" in spec:
        return True
    # Path.is_file raises for a name that is longer than the system allows; os.path.isfile says no.
    return "=" in spec and not os.path.isfile(spec)  # noqa: PTH113


def _read(path: Path) -> SpecText:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a device or a pipe may never end
            raise SpecError(f"{path}: is not a regular file")
        with path.open(encoding="utf-8") as stream:
            text = stream.read(_LONGEST + 1)
    except FileNotFoundError:
        raise SpecError(f"{path}: there is no such spec file") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a text file (a spec is TOML in UTF-8)") from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a name with a NUL in it
        raise SpecError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(text) > _LONGEST:
        raise SpecError(f"{path}: longer than {_LONGEST:,} characters: not a spec")
    return SpecText(text, base_dir=str(path.parent), origin=str(path))


def parse_document(spec: SpecText) -> dict[str, Any]:
    """Read the TOML of a spec; `SpecError` says where it is none."""
    try:
        return tomllib.loads(spec.text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{spec.origin}: not valid TOML: {error}") from None


def parse_assignment(text: str) -> tuple[str, str]:
    """Split `key=value` as given to `--set`, for example `fabric.leaves=4`.

    The first equals sign separates; blanks around either side are dropped. What the key may be, and how the
    value is read, is the core's business.
    """
    key, separator, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not separator or not key:
        raise SpecError(f"--set {text!r}: expected key=value, for example --set fabric.leaves=4")
    if not value:
        raise SpecError(f"--set {text!r}: there is no value for {key!r} after the equals sign")
    return key, value


def parse_assignments(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Parse every `--set`, in order; later ones win."""
    return [parse_assignment(text) for text in texts]


def to_toml(document: Mapping[str, Any]) -> str:
    """Write nested dictionaries as TOML.

    Keys whose value is None are left out. Raises `SpecError` for a value that TOML does not have.
    """
    return tomli_w.dumps(_plain(document, ()))


def to_toml_value(value: object, key: str) -> str:
    """Write one value as TOML, in one line; `key` is what an error calls it."""
    # In a list with something that is no table, TOML lets a table stand inline only.
    listed = tomli_w.dumps({"value": [_plain(value, (key,)), 0]}, indent=0)
    # The writer escapes line breaks in strings: those that are there stand between items of lists.
    return listed.replace("\n", "").removeprefix("value = [").removesuffix(",0,]")


def _plain(value: Any, path: tuple[str, ...]) -> Any:
    """Return a value of types that TOML has; None within tables is left out."""
    match value:
        # What is found most comes first: to ask whether something is a path takes longer than all the rest.
        case str():
            check_text(value)
            return value
        case bool() | int() | float():
            return value
        case list() | tuple():
            return [_plain(item, path) for item in value]
        case dict() | Mapping():
            return {_key(key): _plain(item, (*path, key)) for key, item in value.items() if item is not None}
        case os.PathLike():
            return _plain(os.fspath(value), path)
        case _:
            raise SpecError(f"{'.'.join(path)}: a {type(value).__name__} cannot stand in a spec")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise SpecError(f"a spec's keys are strings, not {key!r}")
    check_text(key)
    return key
