"""The Tab key in a real bash, zsh and fish: set up as a user sets it up, pressed as a user presses it.

Each shell's test skips where the shell is missing; all do without pexpect.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pexpect: Any = pytest.importorskip("pexpect", reason="pexpect is not installed: pip install pexpect")

pytestmark = pytest.mark.nightly

WEFT = Path(sys.executable).parent / "weft"
PATIENCE_S = 120
"""A completion takes half a second; a machine that tests on all of its cores, more."""

CASES = {
    "weft comp": "weft compare",
    "weft compare --transp": "weft compare --transport",
    "weft compare --schemes letf": "weft compare --schemes letflow",
    "weft compare --schemes ecmp,letf": "weft compare --schemes ecmp,letflow",
    "weft compare --transport dct": "weft compare --transport dctcp",
    "weft sweep --preset tr-mi": "weft sweep --preset tr-micro",
    "weft reproduce mee": "weft reproduce meet",
    "weft explain --set traffic.load_": "weft explain --set traffic.load_of=",
}
"""Text before the Tab key, and the completed text."""

SHELLS = {
    "bash": ["--noprofile", "-i"],
    "zsh": ["-i"],
    "fish": ["-i"],
}


def started(shell: str, home: Path) -> Any:
    """Start a shell for somebody who has nothing but Weft on the path."""
    environment = {
        "HOME": str(home),
        "PATH": f"{WEFT.parent}:{os.environ['PATH']}",
        "TERM": "dumb" if shell == "bash" else "xterm",
        "LANG": "C.UTF-8",
        "SHELL": shutil.which(shell) or "",
    }
    spawned = pexpect.spawn(
        shell, SHELLS[shell], env=environment, encoding="utf-8", dimensions=(40, 200), timeout=PATIENCE_S, cwd=str(home)
    )
    spawned.delaybeforesend = 0.2
    # It is ready when it runs something.
    spawned.sendline("echo ready $((20 + 3))" if shell != "fish" else "echo ready (math 20 + 3)")
    spawned.expect("ready 23")
    return spawned


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Any]":
    """A new shell, after `weft --install-completion` in the one before."""
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    if not WEFT.is_file():
        pytest.skip("weft is not installed as a command")
    home = tmp_path_factory.mktemp(name)
    # An empty file keeps zsh from asking a new user what to do.
    (home / ".zshrc").touch()
    first = started(name, home)
    first.sendline("weft --install-completion")
    first.expect("completion installed in")
    first.close(force=True)
    again = started(name, home)
    yield again
    again.close(force=True)


@pytest.mark.parametrize("typed", CASES)
def test_the_tab_key_completes(shell: Any, typed: str) -> None:
    # Then the line is not run but shown: "echo" goes before it, and a mark behind.
    shell.send(f"{typed}\t")
    shell.send("\x01echo \x05 .end")
    shell.send("\r")
    shell.expect(r"\n[^\n]*?(weft [^\r\n]*?) *\.end\r?\n")
    assert shell.match[1].strip() == CASES[typed]
