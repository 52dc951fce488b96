"""Tables of a TOML file, key by key: what is not known, or of another type, is answered with the nearest right name."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from weft.errors import SpecError

__all__ = ["Section", "nearest", "read_toml"]

Kind = TypeVar("Kind")

_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table", list: "a list"}


def read_toml(path: Path) -> "Section":
    """Read a file whole; raises `SpecError` if it is not there or no TOML."""
    try:
        return Section(tomllib.loads(path.read_text(encoding="utf-8")), path.name)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path.name}: not valid TOML: {error}") from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None


def nearest(kind: str, name: str, known: Iterable[str]) -> SpecError:
    """Say that there is no such thing, and which name is nearest."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return SpecError(f"there is no {kind} {name!r}{hint} (known: {', '.join(names)})")


class Section:
    """One table of a file. Each key is taken once; `end` refuses those that are left."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self.values = values
        self._taken: list[str] = []
        self.place = place
        """The file and the table, as an error says it: `meet.toml: figure.6`."""

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def take(self, key: str, kind: type[Kind], default: Kind) -> Kind:
        """Take a value, or the default where there is none."""
        self._taken.append(key)
        return self._checked(key, self.values[key], kind) if key in self.values else default

    def need(self, key: str, kind: type[Kind]) -> Kind:
        """Take a value that must be there."""
        self._taken.append(key)
        if key not in self.values:
            raise self.error(f"{key} is missing")
        return self._checked(key, self.values[key], kind)

    def maybe(self, key: str, kind: type[Kind]) -> Kind | None:
        """Take a value, or None where there is none."""
        self._taken.append(key)
        return self._checked(key, self.values[key], kind) if key in self.values else None

    def any(self, key: str, default: Any = None) -> Any:
        """Take a value of any type."""
        self._taken.append(key)
        return self.values.get(key, default)

    def choice(self, key: str, allowed: Sequence[str], default: str) -> str:
        """Take one of several words."""
        value = self.take(key, str, default)
        if value not in allowed:
            near = get_close_matches(value, allowed, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise self.error(f"{key} = {value!r}{hint} (allowed: {', '.join(allowed)})")
        return value

    def texts(self, key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        """Take a list of texts."""
        values = self.take(key, list, list(default))
        if not all(isinstance(value, str) for value in values):
            raise self.error(f"{key}: expected a list of texts, not {values!r}")
        return tuple(values)

    def section(self, key: str) -> "Section":
        """Take a table; an empty one where there is none."""
        return Section(self.take(key, dict, {}), self._inner(key))

    def sections(self, key: str) -> dict[str, "Section"]:
        """Take a table of tables."""
        outer = self.take(key, dict, {})
        for name, values in outer.items():
            if not isinstance(values, dict):
                raise self.error(f"{key}.{name}: expected a table, not {values!r}")
        return {name: Section(values, self._inner(f"{key}.{name}")) for name, values in outer.items()}

    def listed(self, key: str) -> list["Section"]:
        """Take an array of tables."""
        values = self.take(key, list, [])
        if not all(isinstance(value, dict) for value in values):
            raise self.error(f"{key}: expected [[tables]]")
        return [Section(value, self._inner(f"{key}[{place}]")) for place, value in enumerate(values)]

    def end(self) -> None:
        """Refuse keys that nobody took."""
        for key in self.values:
            if key not in self._taken:
                near = get_close_matches(key, self._taken, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise self.error(f"unknown key {key!r}{hint} (known: {', '.join(self._taken)})")

    def error(self, message: str) -> SpecError:
        """Make an error that says where."""
        return SpecError(f"{self.place}: {message}")

    def _inner(self, key: str) -> str:
        return f"{self.place}.{key}" if ": " in self.place else f"{self.place}: {key}"

    def _checked(self, key: str, value: Any, kind: type[Kind]) -> Kind:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)  # type: ignore[return-value]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(f"{key} = {value!r}: expected {_NAMES.get(kind, kind.__name__)}")
        return value
