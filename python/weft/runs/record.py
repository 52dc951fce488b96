"""Record of a run in the store: which run, when and where, and the content of each of its files."""

import msgspec

from weft.decoding import decode
from weft.durable import digest
from weft.errors import OutputError
from weft.runs.run import Measured, Provenance

__all__ = ["Record", "read_record", "record_text"]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Record of a run in the store."""

    provenance: Provenance
    measured: Measured
    rows: dict[str, int]
    """The tables that were asked for, and how many rows each has."""
    files: dict[str, str]
    """The SHA-256 of each file, by its name."""


class _Signed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str
    """SHA-256 of the text of the record."""
    record: msgspec.Raw


def record_text(record: Record) -> bytes:
    """Write a record, with a digest that tells whether it is whole."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=1)
    return b'{\n"sha256": "%s",\n"record": %s\n}\n' % (digest(text).encode(), text)


def read_record(content: bytes, name: str) -> Record:
    """Read a record; `name` is what an error calls it. Raises `OutputError` unless every byte is what was written."""
    signed = decode(content, _Signed, name)
    if digest(bytes(signed.record)) != signed.sha256:
        raise OutputError(f"{name}: is damaged")
    return decode(bytes(signed.record), Record, name)
