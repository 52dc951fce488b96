"""A directory that is written over a long time: its files are whole or not there, and one process at a time writes.

Every file is written under another name, brought to the disk and then renamed, so that whatever interrupts this leaves
nothing half written.
"""

import contextlib
import errno
import fcntl
import logging
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Set
from hashlib import file_digest, sha256
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from weft.errors import OutputError
from weft.output import check_place

__all__ = ["DurableDirectory", "copy_file", "damaged", "digest", "goes_on", "sync", "write_file"]

_LOG = logging.getLogger(__name__)

_LOCK = ".lock"
_PARTS = ".part"

_CANNOT_SHARE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
"""Errors of a system that cannot copy by itself: between file systems, or on some of them."""


class DurableDirectory:
    """An open directory. Use it in a `with` block; only one process at a time gets in."""

    def __init__(self, path: Path, manifest: str, own: Set[str], kind: str) -> None:
        """Take the names of what Weft writes there; a directory that is not empty must have the `manifest`.

        `kind` is what such a directory is called in messages: "sweep".
        """
        self.path = path
        self._manifest = manifest
        self._own = {*own, manifest, _LOCK, _PARTS}
        self._kind = kind
        self._lock = -1
        self._known: set[Path] = set()

    def __enter__(self) -> Self:
        check_place(self.path)
        with self.explained():
            if self.path.exists():
                self._check_contents()  # before there is a lock in a directory of somebody else
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked(self.path / _LOCK)
        try:
            with self.explained():
                shutil.rmtree(self.path / _PARTS, ignore_errors=True)  # of a process that was killed
                self._check_contents()
                (self.path / _PARTS).mkdir()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the next process in."""
        shutil.rmtree(self.path / _PARTS, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.ftruncate(self._lock, 0)
        os.close(self._lock)

    def clear(self) -> None:
        """Remove everything that Weft wrote there."""
        # The manifest last: it says that the rest may be removed.
        for name in [*sorted(self._own - {_LOCK, _PARTS, self._manifest}), self._manifest]:
            _remove(self.path / name)

    def put(self, target: Path, content: bytes) -> None:
        """Write a file below the directory, whole or not at all; replaces an older one."""
        self._make(target.parent)
        part = self.path / _PARTS / "file"
        write_file(part, content)
        self._enter(part, target)

    def put_copy(self, target: Path, source: Path) -> None:
        """Copy a file to a place below the directory, whole or not at all; replaces an older one."""
        self._make(target.parent)
        part = self.path / _PARTS / "file"
        copy_file(source, part)
        self._enter(part, target)

    def _enter(self, part: Path, target: Path) -> None:
        part.replace(target)
        sync(target.parent)

    def take_away(self, target: Path) -> None:
        """Remove a file, if it is there."""
        if target.exists():
            target.unlink()
            sync(target.parent)

    def explained(self) -> contextlib.AbstractContextManager[None]:
        """Turn what the system says into a message that says what to do."""
        return goes_on(self.path)

    def _make(self, directory: Path) -> None:
        if directory in self._known or directory == self.path:
            return
        self._make(directory.parent)
        if not directory.is_dir():
            directory.mkdir()
            sync(directory.parent)
        self._known.add(directory)

    def _check_contents(self) -> None:
        """Refuse a directory that holds something else: neither going on nor beginning anew may touch it."""
        names = {path.name for path in self.path.iterdir()}
        if names <= {_LOCK, _PARTS}:
            return
        if self._manifest not in names:
            raise OutputError(f"{self.path}: is neither empty nor an earlier {self._kind}; choose another --out")
        if strangers := sorted(names - self._own):
            raise OutputError(f"{self.path}: holds {strangers[0]!r}, which weft did not write; choose another --out")

    def _locked(self, file: Path) -> int:
        """Open the lock. The system lets go of it when the process ends, however it ends."""
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise OutputError(f"{self.path}: another {self._kind} is writing to it ({holder})") from None
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}\n".encode())
        return handle


@contextlib.contextmanager
def goes_on(path: Path) -> Iterator[None]:
    """Turn what the system says of a place where runs are kept into a message that says what to do."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written: {error.strerror or error}; runs that are finished are kept, and "
            "the same command goes on from there"
        ) from error


def write_file(target: Path, content: bytes) -> None:
    """Write a file and bring it to the disk."""
    with target.open("wb") as stream:
        stream.write(content)
        _bring(stream)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file and bring it to the disk. A file system that can share what is equal does."""
    with source.open("rb") as reader, target.open("wb") as writer:
        try:
            left = os.fstat(reader.fileno()).st_size
            while left and (copied := os.copy_file_range(reader.fileno(), writer.fileno(), left)):
                left -= copied
        except (AttributeError, OSError) as error:  # not every system has it
            if isinstance(error, OSError) and error.errno not in _CANNOT_SHARE:
                raise
            reader.seek(0)
            writer.seek(0)
            shutil.copyfileobj(reader, writer)
        _bring(writer)


def _bring(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def sync(directory: Path) -> None:
    """Bring the names in a directory to the disk."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(content: bytes) -> str:
    """Return what a file with this content must have: its SHA-256."""
    return sha256(content).hexdigest()


def damaged(files: Mapping[Path, str], then: str = "its run is done again") -> bool:
    """Whether a file is not there, or not what its digest says; the first one is said in a line, and what follows.

    Disks and copies flip bits: a file of the right size is not yet the one that was written.
    """
    for file, expected in files.items():
        try:
            with file.open("rb") as stream:
                found = file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            _LOG.warning("%s: %s; %s", file, error.strerror or error, then)
            return True
        if found != expected:
            _LOG.warning("%s: is damaged; %s", file, then)
            return True
    return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
