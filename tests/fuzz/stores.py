"""Stores that are disturbed: processes killed, bits flipped, disks full. In the end, all is as it would be without."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

__all__ = ["rounds"]

_SPEC = """
[run]
seed = [1, 2, 3, 4]

[fabric]
leaves = 2
spines = 2
hosts_per_leaf = 2

[traffic]
workload = "web-search"
flows = 30
load = [0.3, 0.6]
"""
_SWEEP = [sys.executable, "-m", "weft", "sweep", "spec.toml", "--out", "out", "--jobs", "2"]
_DISTURBANCES = 4


def rounds(first: int, number: int) -> Iterator[tuple[int, str | None]]:
    """Disturb so many stores, each several times; yield its number and what is wrong in the end."""
    with tempfile.TemporaryDirectory(prefix="weft-fuzz-") as name:
        whole = _finished(Path(name))
    assert isinstance(whole, dict), whole
    for place in range(first, first + number):
        with tempfile.TemporaryDirectory(prefix="weft-fuzz-") as name:
            yield place, _round(Path(name), Random(place), whole)


def _round(folder: Path, random: Random, whole: dict[str, str]) -> str | None:
    (folder / "spec.toml").write_text(_SPEC, encoding="utf-8")
    done = []
    for _ in range(_DISTURBANCES):
        disturb = random.choice((_kill, _terminate, _fill_the_disk, _flip_a_bit, _cut_a_file))
        done.append(disturb.__name__)
        disturb(folder, random)
    found = _finished(folder)
    if found == whole:
        return None
    if isinstance(found, str):
        return f"after {', '.join(done)}: {found}"
    apart = sorted(name for name in found.keys() | whole.keys() if found.get(name) != whole.get(name))
    return f"after {', '.join(done)}: another {apart[0]}"


def _finished(folder: Path) -> dict[str, str] | str:
    """Let the sweep come to its end; return the digest of each file but the provenance, or what was said."""
    (folder / "spec.toml").write_text(_SPEC, encoding="utf-8")
    done = subprocess.run(_SWEEP, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0 or "Traceback" in done.stderr:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    out = folder / "out"
    files = [path for path in out.rglob("*") if path.is_file()]
    digests = {str(path.relative_to(out)): sha256(path.read_bytes()).hexdigest() for path in files}
    return {name: digest for name, digest in digests.items() if not name.startswith(("provenance/", ".lock"))}


def _kill(folder: Path, random: Random) -> None:
    _end(folder, random, signal.SIGKILL)


def _terminate(folder: Path, random: Random) -> None:
    _end(folder, random, random.choice((signal.SIGTERM, signal.SIGINT)))


def _end(folder: Path, random: Random, number: signal.Signals) -> None:
    """End the sweep at any moment from its first file to its last."""
    process = subprocess.Popen(_SWEEP, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    files = random.randint(0, 40)
    while process.poll() is None and _written(folder / "out") < files:
        time.sleep(0.005)
    process.send_signal(number)
    process.wait(timeout=60)


def _written(folder: Path) -> int:
    """How much is in a folder that somebody is at work in: what goes while it is looked at is not counted."""
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


def _fill_the_disk(folder: Path, random: Random) -> None:
    """Let every write beyond a size fail, as a full disk does."""
    most = random.choice((0, 500, 3_000, 6_000, 20_000))

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    subprocess.run(_SWEEP, cwd=folder, capture_output=True, check=False, timeout=300, preexec_fn=limit)


def _flip_a_bit(folder: Path, random: Random) -> None:
    """Do to a file what a bad disk does."""
    if (table := _any_file(folder, random)) is not None:
        content = bytearray(table.read_bytes())
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        table.write_bytes(content)


def _any_file(folder: Path, random: Random) -> Path | None:
    """A file of the sweep's directory, or of the store that it is a view of."""
    own = sorted((folder / "out").rglob("run.parquet"))
    shared = [file for file in sorted(folder.glob(".weft/??/*/*")) if file.stat().st_size]
    places = [files for files in (own, shared) if files]
    return random.choice(random.choice(places)) if places else None


def _cut_a_file(folder: Path, random: Random) -> None:
    """Do to a file what a lost machine does."""
    if (table := _any_file(folder, random)) is not None:
        os.truncate(table, random.randrange(table.stat().st_size))
