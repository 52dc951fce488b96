"""Getting a spec, however it was given, to the core: paths, TOML text, dictionaries and `--set`."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from weft.errors import SpecError

__all__ = [
    "SpecLike",
    "SpecText",
    "load_spec",
    "parse_assignment",
    "parse_assignments",
    "parse_document",
    "to_toml",
    "to_toml_value",
]

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
    if isinstance(spec, str) and _is_text(spec):
        return SpecText(spec)
    return _read(Path(spec))


def _is_text(spec: str) -> bool:
    if not spec.strip() or "\n" in spec:
        return True
    # Path.is_file raises for a name that is longer than the system allows; os.path.isfile says no.
    return "=" in spec and not os.path.isfile(spec)  # noqa: PTH113


def _read(path: Path) -> SpecText:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SpecError(f"{path}: there is no such spec file") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a text file (a spec is TOML in UTF-8)") from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
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

    Tables become `[tables]`, lists of dictionaries become `[[arrays of tables]]`, keys whose value is None are
    left out. Raises `SpecError` for a value that TOML does not have.
    """
    lines: list[str] = []
    _write_table(document, (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def to_toml_value(value: object, key: str) -> str:
    """Write one value as TOML, tables inline; `key` is what an error calls it."""
    return _value(value, (key,))


def _write_table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    nested: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, Mapping) or _is_table_array(value):
            nested.append((key, value))
        elif value is not None:
            lines.append(f"{_key(key)} = {_value(value, (*path, key))}")
    for key, value in nested:
        name = ".".join(_key(part) for part in (*path, key))
        for item in [value] if isinstance(value, Mapping) else value:
            lines.append(f"\n[{name}]" if isinstance(value, Mapping) else f"\n[[{name}]]")
            _write_table(item, (*path, key), lines)


def _is_table_array(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise SpecError(f"a spec's keys are strings, not {key!r}")
    bare = key and all(char.isascii() and (char.isalnum() or char in "-_") for char in key)
    return key if bare else _string(key)


def _value(value: object, path: tuple[str, ...]) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)
        case str():
            return _string(value)
        case os.PathLike():
            return _string(os.fspath(value))
        case list() | tuple():
            return "[" + ", ".join(_value(item, path) for item in value) + "]"
        case Mapping():
            return "{" + ", ".join(f"{_key(k)} = {_value(v, path)}" for k, v in value.items()) + "}"
        case _:
            raise SpecError(f"{'.'.join(path)}: a {type(value).__name__} cannot stand in a spec")


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def _string(text: str) -> str:
    escaped = "".join(
        _ESCAPES.get(char, char if char >= " " and char != "\x7f" else f"\\u{ord(char):04x}") for char in text
    )
    return f'"{escaped}"'
