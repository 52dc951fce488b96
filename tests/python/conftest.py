"""Shared fixtures of test files: a fabric small enough to simulate in a blink, and the command line."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import hypothesis
import pytest

import forked
from weft import figures

# No test asserts a time, and an example on a busy machine may take long.
hypothesis.settings.register_profile("weft", deadline=None)
hypothesis.settings.load_profile("weft")

SMALL = {"fabric.leaves": 2, "fabric.spines": 2, "fabric.hosts_per_leaf": 4, "traffic.flows": 60}


ROOT = Path(__file__).parents[2]

MOST_SECONDS = 240.0
"""Largest time of a command before its test fails, in seconds."""


def _kernel_is_built() -> bool:
    """Whether there is a kernel for Linux hosts; `.ci/run` insists on it."""
    if os.environ.get("WEFT_LINUX_HOSTS") or os.environ.get("WEFT_NEEDS_LINUX_HOSTS"):
        return True
    return subprocess.run([ROOT / "linux-hosts/build", "--find"], capture_output=True, check=False).returncode == 0


_KERNEL_IS_MISSING = pytest.mark.skipif(not _kernel_is_built(), reason="make linux-hosts was not run")
Test = TypeVar("Test", bound=Callable[..., object])


def needs_kernel(test: Test) -> Test:
    """Mark a test of Linux hosts: it is a nightly one, and skips without their kernel."""
    for mark in (pytest.mark.nightly, _KERNEL_IS_MISSING):
        mark(test)
    return test


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command."""

    code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)


Weft = Callable[..., Outcome]


@pytest.fixture
def small() -> dict[str, int]:
    return dict(SMALL)


@pytest.fixture
def small_options() -> list[str]:
    return [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]


ALL_FORMATS = figures.FORMATS
figures.FORMATS = ("png", "svg")


@contextmanager
def all_formats() -> Iterator[None]:
    """Draw PDF, too, in a fixture of a module; tests are marked `all_formats`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "FORMATS", ALL_FORMATS)
        yield


@pytest.fixture(autouse=True)
def formats(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Return the formats of figures in a test: PDF takes the longest and is for tests marked `all_formats`."""
    if request.node.get_closest_marker("all_formats") is not None:
        monkeypatch.setattr(figures, "FORMATS", ALL_FORMATS)
    return figures.FORMATS


@pytest.fixture
def weft_command(tmp_path: Path, formats: tuple[str, ...]) -> Weft:
    """Run the command line in an empty directory, as a user's shell does."""

    def run(*arguments: str | Path, cwd: Path = tmp_path, own_process: bool = False) -> Outcome:
        # Any of the others makes typer print as if to a terminal.
        unwanted = {"COLUMNS", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"}
        environment = {key: value for key, value in os.environ.items() if key not in unwanted} | {"NO_COLOR": "1"}
        if own_process:
            command = [sys.executable, "-m", "weft", *map(str, arguments)]
            done = subprocess.run(
                command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
            )
            outcome = Outcome(done.returncode, done.stdout, done.stderr)
        else:
            outcome = Outcome(*forked.run([*map(str, arguments)], cwd, environment, MOST_SECONDS, formats))
        assert "Traceback" not in outcome.stderr, outcome.stderr
        return outcome

    return run


def flip_a_bit(file: Path) -> None:
    """Do to a file what a bad disk does: its size stays, one bit in the middle does not."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
