"""Whatever an argument holds and whatever becomes of the streams, a command answers in one line."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from rich.panel import Panel
from rich.progress import Progress, TextColumn
from rich.text import Text

from conftest import Weft
from weft.cli.console import EXIT_NO_SPACE, data, log, print_json
from weft.cli.layout import new_table
from weft.errors import SpecError
from weft.simulation import load, run
from weft.spec import load_spec, to_toml
from weft.untrusted import one_line

pytestmark = pytest.mark.slow

WEFT = [sys.executable, "-m", "weft"]
ASCII = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}


def weft(
    *arguments: str | bytes, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, bytes, str]:
    done = subprocess.run(
        [*WEFT, *arguments],
        env=os.environ | {"NO_COLOR": "1"} | dict(environment or {}),
        cwd=cwd,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize("value", [":x:", "[red]x[/red]", "[/]", ":warning:[bold]"])
def test_markup_and_names_of_pictures_in_a_value_are_printed_as_they_are(value: str) -> None:
    code, _, stderr = weft("explain", "--set", f"scheme.name={value}")
    assert code == 2 and f'"{value}"' in stderr


def test_no_console_reads_markup_in_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    data().print("[bold]a[/bold] :x:")
    log().print("[bold]a[/bold] :x:\nb\x1b[31m")
    printed = capsys.readouterr()
    assert printed.out == "[bold]a[/bold] :x:\n"
    assert printed.err == "[bold]a[/bold] :x:\\nb\\x1b[31m\n", "and messages stay in their line"
    assert one_line("µ ± ✓") == "µ ± ✓"


HOSTILE = "\x1b]0;OWNED\x07\x1b[31mX\x9b2J\u202e"
"""Sets the title of a terminal, turns its text red, clears it, and turns the direction of writing."""


def assert_harmless(printed: str) -> None:
    assert "OWNED" in printed and printed.replace("\n", "").isprintable(), repr(printed)


def test_no_console_sends_a_terminal_orders_that_a_text_holds(capsys: pytest.CaptureFixture[str]) -> None:
    table = new_table("name", HOSTILE, left=("name",))
    table.add_row(HOSTILE, Text(HOSTILE, style="bold"))
    for console in (data(), log()):
        console.print(HOSTILE, Text(HOSTILE))
        console.print(table)
        console.print(Panel(HOSTILE))
        with Progress(TextColumn("{task.description}", markup=False), console=console) as bars:
            bars.add_task(HOSTILE, total=1.0)
    print_json({"label": HOSTILE})
    printed = capsys.readouterr()
    assert_harmless(printed.out)
    assert_harmless(printed.err)
    assert json.loads(printed.out[printed.out.index("{") :]) == {"label": HOSTILE}
    rows = [line for line in printed.out.splitlines() if "OWNED" in line and "name" not in line]
    assert rows[1].count("\\u202e") == 2, "no cell is cut: columns are as wide as what is printed"


def test_labels_and_names_of_files_of_strangers_are_printed_as_text(
    tmp_path: Path, small: Mapping[str, int], weft_command: Weft
) -> None:
    collective = {"kind": "all-reduce", "size": "10KB", "label": HOSTILE}
    fabric = {key.split(".")[1]: value for key, value in small.items() if key.startswith("fabric.")}
    spec = {"fabric": fabric, "traffic": {"collective": [collective]}}
    (tmp_path / f"{HOSTILE}.toml").write_text(to_toml(spec), encoding="utf-8")
    (tmp_path / f"{HOSTILE}.csv").write_text("no numbers", encoding="utf-8")
    files = {"traffic.workload": f"{HOSTILE}.csv", "fabric.file": f"{HOSTILE}.none"}
    (tmp_path / "wrong.toml").write_text(
        to_toml({"traffic": {"workload": files["traffic.workload"]}}), encoding="utf-8"
    )
    graph = {"fabric": {"kind": "graph", "file": files["fabric.file"]}}
    (tmp_path / "graph.toml").write_text(to_toml(graph), encoding="utf-8")
    for wanted, arguments in (
        (0, ["run", f"{HOSTILE}.toml", "--out", HOSTILE]),
        (0, ["compare", f"{HOSTILE}.toml", "--schemes", "ecmp,drill", "--sample-every", "10us"]),
        (0, ["explain", f"{HOSTILE}.toml"]),
        (0, ["explain", f"{HOSTILE}.toml", "--json"]),
        (2, ["run", "wrong.toml"]),
        (2, ["run", "graph.toml", "--set", "run.threads=1"]),
        (2, ["run", f"{HOSTILE}.none"]),
        (2, ["run", "wrong.toml", f"{HOSTILE}.toml"]),
        (2, [HOSTILE]),
        (2, ["explain", "--set", f"scheme.name={HOSTILE}"]),
        (2, ["compare", "--schemes", HOSTILE]),
        (2, ["report", HOSTILE + "x"]),
    ):
        outcome = weft_command(*arguments)
        assert outcome.code == wanted, (arguments, outcome.stderr)
        assert_harmless(outcome.stdout + outcome.stderr)
    loaded = load(tmp_path / HOSTILE)
    assert repr(loaded).isprintable()


def test_a_full_disk_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*WEFT, "schemes"], stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
    assert (done.returncode, done.stderr.decode()) == (EXIT_NO_SPACE, "error: No space left on device\n")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    for arguments in (
        ["run", "--flows", "20", "--out", "out"],
        ["compare", "--schemes", "ecmp,drill", "--flows", "20", "--out", "out"],
        ["sweep", "--schemes", "ecmp,drill", "--flows", "20", "--out", "out"],
    ):
        done = subprocess.run(
            [*WEFT, *arguments], cwd=tmp_path, preexec_fn=limit, capture_output=True, timeout=120, check=False
        )
        message = done.stderr.decode().splitlines()[-1]
        assert done.returncode == EXIT_NO_SPACE and message.startswith("error: "), (arguments, done.stderr)


@pytest.mark.parametrize("arguments", [["run", "no\nsuch.toml"], ["explain", "--set", "scheme.name='a\nb'"]])
def test_a_line_break_in_an_argument_does_not_break_the_message(arguments: Sequence[str]) -> None:
    code, _, stderr = weft(*arguments)
    assert code == 2 and len(stderr.splitlines()) == 1, stderr


def test_an_argument_that_is_no_text_is_answered() -> None:
    code, stdout, stderr = weft("explain", "--set", b"scheme.name=a\xff")
    assert (code, stdout) == (2, b"")
    assert stderr.startswith("error: argument 'scheme.name=a\\udcff': is not text") and len(stderr.splitlines()) == 1


@pytest.mark.parametrize("spec", ["fabric.kind = '\ud800'", {"fabric": {"kind": "\ud800"}}, "\udc80.toml", "a\0b.toml"])
def test_half_a_character_in_a_spec_is_answered(spec: str | dict[str, object]) -> None:
    with pytest.raises(SpecError):
        load_spec(spec)
    with pytest.raises(SpecError, match="not text"):
        run({}, set={"fabric.kind": "\ud800"})


def test_a_spec_that_never_ends_is_answered() -> None:
    with pytest.raises(SpecError, match="not a regular file"):
        load_spec(Path("/dev/zero"))


def test_a_locale_without_the_characters_of_a_table_gets_the_table(small_options: list[str]) -> None:
    code, stdout, stderr = weft("run", *small_options, environment=ASCII)
    assert code == 0 and stdout.isascii() and b"slowdown" in stdout, stderr
    code, stdout, _ = weft("transports", "--json", environment=ASCII)
    assert code == 0 and stdout.isascii()


def test_a_stream_that_is_closed_is_no_error() -> None:
    for redirection in (">&-", "2>&-", ">&- 2>&-"):
        done = subprocess.run(["sh", "-c", f'"$@" {redirection}', "sh", *WEFT, "schemes"], check=False, timeout=120)
        assert done.returncode == 0, redirection


@pytest.mark.parametrize("arguments", [["schemes"], ["schemes", "--json"], ["--help"]])
def test_a_reader_that_goes_away_ends_the_command_quietly(arguments: Sequence[str]) -> None:
    done = subprocess.run(
        # What ends at once has gone before the first line is written.
        ["bash", "-c", '"$@" | true; exit ${PIPESTATUS[0]}', "bash", *WEFT, *arguments],
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 141 and done.stderr == b""


def test_a_home_that_cannot_be_written_to_is_answered() -> None:
    home = {"HOME": "/proc/nowhere", "SHELL": "/bin/bash"}
    code, _, stderr = weft("--install-completion", "bash", environment=home)
    assert code == 2 and stderr == "error: /proc/nowhere: No such file or directory\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_that_ends_a_run_leaves_nothing_behind_but_a_store_without_runs(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = subprocess.Popen(
        [*WEFT, "compare", "--schemes", "ecmp,rps", "--flows", "200000", "--out", "out/mine"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests may ignore the signal, as under nohup: then weft would, too.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    try:
        while not list(tmp_path.glob("out/.mine.*.part")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, stderr.strip().splitlines()[-1]) == (code, "stopped")
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.name != ".part"}
    assert left <= {"out", "out/.weft", "out/.weft/.lock", "out/.weft/CACHEDIR.TAG"}, "no .part directory either"
