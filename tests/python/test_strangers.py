"""Specs from strangers: `--no-code` refuses all that would run code, before any of it runs."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import typer

from conftest import Weft
from weft.cli.app import app

SCHEME = """
from pathlib import Path

Path("ran").touch()

class Scheme:
    def choose(self, switch, packet, ports):
        return 0
"""
PYTHON = "[scheme]\nname = 'my.py:Scheme'\n"
SPECS = {
    "python": PYTHON,
    "short": "scheme = 'my.py:Scheme'\n",
    "written-out": "[scheme]\nname = 'python'\nfile = 'my.py'\nclass = 'Scheme'\n",
    "linux": "[hosts]\nkind = 'linux'\n[transport]\nname = 'tcp'\n",
    "program": "[hosts]\nkind = 'linux'\n[[traffic.program]]\nhost = 0\ncommand = 'touch ran'\n",
}


@pytest.mark.parametrize("name", SPECS)
def test_code_in_a_spec_is_refused_before_it_runs(weft_command: Weft, tmp_path: Path, name: str) -> None:
    (tmp_path / "my.py").write_text(SCHEME, encoding="utf-8")
    (tmp_path / "spec.toml").write_text(SPECS[name], encoding="utf-8")
    done = weft_command("run", "spec.toml", "--no-code")
    assert (done.code, done.stdout) == (2, "") and "--no-code refuses it" in done.stderr, done.stderr
    assert done.stderr.startswith("error: spec.toml:"), "the line is named"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "spec.toml"],
        ["run", "--set", "scheme=my.py:Scheme"],
        ["compare", "spec.toml", "--schemes", "dctcp,tcp"],
        ["compare", "--schemes", "ecmp,my.py:Scheme"],
        ["sweep", "spec.toml", "--vary", "traffic.load=0.2,0.4"],
        ["sweep", "--schemes", "ecmp,my.py:Scheme"],
        ["explain", "spec.toml"],
        ["packets", "spec.toml", "--at", "host0"],
        ["reproduce", "tr", "6", "--scheme", "my.py:Scheme"],
        ["multiverse", "tr", "6", "--scheme", "my.py:Scheme"],
        ["fit", "qall", "spec.toml"],
    ],
)
def test_every_command_that_takes_a_spec_refuses_code(
    weft_command: Weft, tmp_path: Path, arguments: Sequence[str]
) -> None:
    (tmp_path / "my.py").write_text(SCHEME, encoding="utf-8")
    (tmp_path / "spec.toml").write_text(PYTHON, encoding="utf-8")
    done = weft_command(*arguments, "--no-code")
    assert done.code in (2, 3) and "--no-code refuses it" in done.stderr, (arguments, done.stderr)
    assert not (tmp_path / "ran").exists()


def test_every_command_with_a_spec_has_the_option() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        if {"spec", "SPEC"} & {parameter.name for parameter in command.params} or "--scheme" in options:
            assert "--no-code" in options, name


def test_data_is_no_code(weft_command: Weft, tmp_path: Path, small_options: list[str]) -> None:
    (tmp_path / "sizes.csv").write_text("size_bytes,cumulative_probability\n1000,0\n2000,1\n", encoding="utf-8")
    done = weft_command("run", *small_options, "--workload", "sizes.csv", "--no-code")
    assert done.code == 0, done.stderr
