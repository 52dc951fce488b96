"""Specs from strangers: `--no-code` refuses all that would run code, before any of it runs."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer

from conftest import Weft
from weft.cli.app import app
from weft.cli.progress import show_progress
from weft.runs.progress import RunProgress

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


ORDERS = "a\nb\a\b\r\x1b[31m\x7f\x9b31m\u2028\u202e"
"""Line breaks, a bell, a step back, orders of both kinds, and a turn of the direction of writing."""
ESCAPED = r"a\nb\x07\x08\r\x1b[31m\x7f\x9b31m\u2028\u202e"


@pytest.mark.parametrize("command", [["run"], ["compare", "--schemes", "ecmp,rps"], ["explain"]])
def test_labels_are_printed_in_one_line_with_their_orders_escaped(
    weft_command: Weft, tmp_path: Path, small_options: list[str], command: list[str]
) -> None:
    label = json.dumps(ORDERS)
    spec = f"[[traffic.collective]]\nkind = 'all-reduce'\nsize = '10KB'\nlabel = {label}\n"
    (tmp_path / "spec.toml").write_text(spec, encoding="utf-8")
    fabric = [] if command == ["explain"] else [*small_options, "--out", f"out {ORDERS}"]
    done = weft_command(command[0], "spec.toml", *command[1:], *fabric)
    assert done.code == 0 and ESCAPED in done.stdout, done.stderr
    assert command == ["explain"] or f"out {ESCAPED}" in done.stderr
    assert all(line.isprintable() for line in f"{done.stdout}{done.stderr}".split("\n")), done.stderr


def test_labels_of_runs_are_escaped_in_lines_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress(1) as show:
        show(RunProgress(0, ORDERS, 1, 1.0, 2, 2, 10, 1.0, done=True))
    printed = capsys.readouterr().err
    assert printed.startswith(f"[1/1] {ESCAPED} seed 1") and printed.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", f"{ORDERS}.toml"],
        ["run", "--set", f"fabric.leaves={ORDERS}"],
        ["compare", "--schemes", f"ecmp,{ORDERS}"],
        ["compare", "--schemes", "ecmp,rps", "--columns", ORDERS],
        ["report", ORDERS],
    ],
)
def test_errors_take_one_line_with_orders_escaped(weft_command: Weft, arguments: list[str]) -> None:
    done = weft_command(*arguments)
    assert done.code == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.rstrip("\n").isprintable(), done.stderr


def test_names_of_directories_are_no_patterns(weft_command: Weft, small_options: list[str]) -> None:
    """Polars takes brackets in a path for a pattern of names."""
    options = ["--schemes", "ecmp,rps", *small_options]
    assert weft_command("compare", *options, "--out", "a[1]").code == 0
    assert weft_command("sweep", *options, "--seeds", "2", "--out", "b[*?").code == 0
    for out in ("a[1]", "b[*?"):
        assert weft_command("report", out).code == 0
