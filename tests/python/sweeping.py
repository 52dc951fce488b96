"""Shared code of the tests of sweeps: a small spec with lists in it, and the bytes of a directory."""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import product
from pathlib import Path

from factory import summary
from weft.sweeps import Sweep, SweepRun
from weft.sweeps.grid import SEED

SPEC = """
[run]
seed = [1, 2, 3]

[fabric]
leaves = 2
spines = 2
hosts_per_leaf = 2

[traffic]
workload = "web-search"
flows = 40
load = [0.3, 0.6]

[[scheme]]
name = "ecmp"

[[scheme]]
name = "letflow"
gap = ["50us", "500us"]
"""
POINTS = 2 * 3 * 3


def _without_command(file: Path) -> bytes:
    if file.name != "sweep.json":
        return file.read_bytes()
    manifest = json.loads(file.read_bytes())
    manifest.pop("command", None)
    return json.dumps(manifest).encode()


def tree(directory: Path) -> dict[str, str]:
    """Every file of a sweep, by what it holds; but for the provenance and the command: when, where and how."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    found = {str(path.relative_to(directory)): sha256(_without_command(path)).hexdigest() for path in files}
    return {name: digest for name, digest in found.items() if not name.startswith("provenance/")}


def rows_done(directory: Path) -> int:
    return sum(1 for _ in (directory / "provenance").rglob("run.parquet"))


def made(swept: Mapping[str, Sequence[str]], mean_us: Callable[[Mapping[str, str], int], float | None]) -> Sweep:
    """A sweep that was never run: three seeds, and at each place the mean FCT that is told."""
    whole = {**swept, SEED: ("1", "2", "3")}
    runs = []
    for values in product(*whole.values()):
        labels = dict(zip(whole, values, strict=True))
        seed = int(labels[SEED])
        label = labels.get("scheme", "ecmp")
        of = summary(label, seed, mean_us(labels, seed), scheme=label.split(":")[0])
        runs.append(SweepRun(labels, of, None))
    return Sweep(Path("nowhere"), whole, runs)
