"""A directory that is written over a long time: its files are whole or not there, and one process at a time writes.

Every file is written under another name, brought to the disk and then renamed, so that whatever interrupts this leaves
nothing half written.
"""

import contextlib
import fcntl
import logging
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Set
from hashlib import file_digest, sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from weft.errors import OutputError

__all__ = ["DurableDirectory", "damaged", "digest"]

_LOG = logging.getLogger(__name__)

_LOCK = ".lock"
_PARTS = ".part"


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
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_dir()):
            raise OutputError(f"{self.path}: exists and is not a directory")
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
        with part.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
        _sync(target.parent)

    def take_away(self, target: Path) -> None:
        """Remove a file, if it is there."""
        if target.exists():
            target.unlink()
            _sync(target.parent)

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what the system says into a message that says what to do."""
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"{self.path}: cannot be written: {error.strerror or error}; runs that are finished are kept, and "
                "the same command goes on from there"
            ) from error

    def _make(self, directory: Path) -> None:
        if directory in self._known or directory == self.path:
            return
        self._make(directory.parent)
        if not directory.is_dir():
            directory.mkdir()
            _sync(directory.parent)
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


def digest(content: bytes) -> str:
    """Return what a file with this content must have: its SHA-256."""
    return sha256(content).hexdigest()


def damaged(files: Mapping[Path, str]) -> bool:
    """Whether a file is not there, or not what its digest says; the first one is said in a line.

    Disks and copies flip bits: a file of the right size is not yet the one that was written.
    """
    for file, expected in files.items():
        try:
            with file.open("rb") as stream:
                found = file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            _LOG.warning("%s: %s; its run is done again", file, error.strerror or error)
            return True
        if found != expected:
            _LOG.warning("%s: is damaged; its run is done again", file)
            return True
    return False


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
