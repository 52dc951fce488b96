"""Reading JSON strictly: a key that is missing, or has a value of another type, is an error that says where."""

import re
import threading
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from weft.errors import OutputError

__all__ = ["convert", "decode", "read_json"]

T = TypeVar("T")

_LEARNED: set[type[Any]] = set()
_LEARNING = threading.Lock()


def read_json(path: Path, kind: type[T]) -> T:
    """Read a file; raises `OutputError` if it cannot be read, or is no JSON of this kind."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return decode(content, kind, str(path))


def decode(content: str | bytes, kind: type[T], name: str) -> T:
    """Read JSON; `name` is what an error calls it, most often its file. Raises `OutputError`."""
    _learn(kind)
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise OutputError(f"{name}: {_told(error)}") from None
    except msgspec.DecodeError as error:
        raise OutputError(f"{name}: not valid JSON: {error}") from None
    except UnicodeDecodeError:
        raise OutputError(f"{name}: not valid JSON: not in UTF-8") from None


def convert(raw: Any, kind: type[T], name: str) -> T:
    """Take what was read from JSON already for what it is to be; errors as of `decode`."""
    _learn(kind)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise OutputError(f"{name}: {_told(error)}") from None


def _learn(kind: type[Any]) -> None:
    """Let the library see a type before it is used: two threads that use it for the first time at once end the process.

    The library keeps what it knows of a type while it is still finding it out, and another thread follows pointers
    that are not set yet (msgspec 0.22).
    """
    if kind not in _LEARNED:
        with _LEARNING:
            msgspec.json.Decoder(kind)
            _LEARNED.add(kind)


def _told(error: msgspec.ValidationError) -> str:
    """Say which key is wrong: "small.unfinished is missing", "seed: Expected `int`, got `str`"."""
    message, _, place = str(error).partition(" - at `$")
    path = place.removesuffix("`").removeprefix(".")
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if missing is not None:
        key = f"{path}.{missing[1]}" if path else missing[1]
        return f"{key} is missing: another version of weft wrote it, or it is damaged"
    return f"{path}: {message}" if path else message
