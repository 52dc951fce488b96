"""Result directories and files that are either complete or not there."""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from weft.errors import OutputError
from weft.schemas import TABLES

__all__ = ["check_file", "check_place", "check_target", "staged_directory", "write_file"]

# A directory that holds one of these was written by Weft ...
_MARKERS = frozenset({"compare.json", "summary.json"})
# ... and --force replaces it if it holds nothing but what Weft writes.
_OWN = _MARKERS | {
    *(f"{table}.parquet" for table in (*TABLES, "table")),
    *("spec.toml", "runs", "figures", "table.csv", "bins.csv", "phases.csv", "report.html", "windows.svg"),
}


def check_target(target: Path, *, force: bool) -> None:
    """Raise `OutputError` unless a result directory may be put at `target`. Writes nothing.

    With `force`, only an empty directory or an earlier result, without files of somebody else, may be replaced: a
    slip of the keyboard must not delete anybody's work.
    """
    check_place(target)
    if target.exists():
        # Also without --force: nobody is told to try what would be refused.
        _check_replaceable(target)
        if not force:
            raise OutputError(f"{target}: exists already; --force replaces it")
        _check_writable(target, target.absolute().parent)


def check_place(target: Path) -> None:
    """Raise `OutputError` unless a directory at `target` can be written to, or made there. Writes nothing."""
    if target.is_symlink():
        raise OutputError(f"{target}: is a symbolic link; name the directory itself")
    if target.exists() and not target.is_dir():
        raise OutputError(f"{target}: exists and is not a directory")
    _check_writable(target, _nearest_existing(target.absolute()))


def check_file(target: Path, *, force: bool, option: str = "--out") -> None:
    """Raise `OutputError` unless a file may be put at `target`, which `option` names. Writes nothing."""
    if target.is_dir():
        raise OutputError(f"{target}: is a directory; {option} names a file")
    if target.exists() and not force:
        raise OutputError(f"{target}: exists already; --force replaces it")
    _check_writable(target, target.absolute().parent)


def _check_writable(target: Path, directory: Path) -> None:
    if not directory.is_dir() or not os.access(directory, os.W_OK | os.X_OK):
        raise OutputError(f"{target}: {directory} is not a directory that can be written to")


def _check_replaceable(target: Path) -> None:
    try:
        names = {path.name for path in target.iterdir()}
    except OSError as error:
        raise OutputError(f"{target}: cannot be read: {error.strerror or error}") from error
    if names and not names & _MARKERS:
        raise OutputError(f"{target}: is not an earlier result of weft, and nothing replaces it; choose another --out")
    if strangers := sorted(names - _OWN):
        raise OutputError(
            f"{target}: holds {strangers[0]!r}, which weft did not write, and nothing replaces it; choose another --out"
        )


@contextlib.contextmanager
def staged_directory(target: Path, *, force: bool) -> Iterator[Path]:
    """Yield an empty directory beside `target`; rename it to `target` if the block ends well, else remove it.

    What processes left there that were killed is removed, too.
    """
    check_target(target, force=force)
    target = target.absolute()
    # Known before anything is made: a signal may come between any two steps.
    missing = _missing_parents(target.parent)
    staging = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_empty, missing)
        stack.callback(shutil.rmtree, staging, ignore_errors=True)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_dead(target)
            stack.callback(os.close, _make_own(staging))
            yield staging
            _swap(staging, target)
        except OSError as error:
            raise _cannot_write(target, error) from error


def _make_own(staging: Path) -> int:
    """Make a directory, and lock it: the system lets go of the lock when the process ends, however it ends."""
    while True:
        staging.mkdir()
        handle = os.open(staging, os.O_RDONLY)
        with contextlib.suppress(OSError):  # some network file systems lock no directories: then it is left if killed
            fcntl.flock(handle, fcntl.LOCK_EX)
        if staging.exists():  # nobody took it for one of a dead process before it was locked
            return handle
        os.close(handle)


def _remove_dead(target: Path) -> None:
    """Remove directories in the making that nobody holds any more."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.part")
    for left in [path for path in target.parent.iterdir() if name.fullmatch(path.name) and path.is_dir()]:
        with contextlib.suppress(OSError):
            handle = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(handle)


def write_file(target: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, a text in UTF-8; replaces an older one."""
    target = target.absolute()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise _cannot_write(target, error) from error
    staging = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
        staging.chmod(0o666 & ~_umask())
        staging.replace(target)
    except OSError as error:
        raise _cannot_write(target, error) from error
    finally:
        staging.unlink(missing_ok=True)


def _swap(staging: Path, target: Path) -> None:
    """Put `staging` in the place of `target`, which may hold an older result."""
    if not target.exists():
        staging.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    target.replace(old)
    try:
        staging.rename(target)
    except OSError:
        old.replace(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _nearest_existing(path: Path) -> Path:
    # A name that leads nowhere, such as a broken link, is there all the same.
    while not (path.exists() or path.is_symlink()) and path != path.parent:
        path = path.parent
    return path


def _missing_parents(parent: Path) -> list[Path]:
    """List the missing directories above the target, deepest first."""
    missing: list[Path] = []
    path = parent
    while not path.exists():
        missing.append(path)
        path = path.parent
    return missing


def _remove_empty(directories: list[Path]) -> None:
    for directory in directories:
        with contextlib.suppress(OSError):
            directory.rmdir()


def _cannot_write(target: Path, error: OSError) -> OutputError:
    return OutputError(f"{target}: cannot be written: {error.strerror or error}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
