"""Linux hosts from the command line: without a kernel, with one, and when it goes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from conftest import Weft, needs_kernel

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples/linux.toml"


def test_without_a_kernel_there_is_one_message_that_says_how_to_get_one(
    weft_command: Weft, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WEFT_LINUX_HOSTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    done = weft_command("run", EXAMPLE, "--set", "hosts=linux", "--out", "out")
    assert done.code == 2
    assert "make linux-hosts" in done.stderr and len(done.stderr.strip().splitlines()) <= 3, done.stderr
    assert not (tmp_path / "out").exists()
    assert weft_command("run", EXAMPLE).code == 0, "everything else works"


@pytest.mark.parametrize(
    "command",
    [
        ("compare", EXAMPLE, "--schemes", "ecmp,linux+ecmp", "--out", "out"),
        ("sweep", EXAMPLE, "--vary", "hosts=simulated,linux", "--out", "out"),
        ("reproduce", "qall", "10", "--hosts", "linux", "--out", "out"),
    ],
    ids=["compare", "sweep", "reproduce"],
)
def test_without_a_kernel_many_runs_do_not_begin(
    weft_command: Weft, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: tuple[str | Path, ...]
) -> None:
    monkeypatch.delenv("WEFT_LINUX_HOSTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    done = weft_command(*command)
    assert done.code == 2, done.stderr
    assert "make linux-hosts" in done.stderr and len(done.stderr.strip().splitlines()) <= 3, done.stderr
    assert not (tmp_path / "out").exists(), "nothing was run, and nothing is left behind"


def test_explain_says_that_the_kernel_is_missing(
    weft_command: Weft, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WEFT_LINUX_HOSTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    done = weft_command("explain", EXAMPLE, "--set", "hosts=linux")
    assert done.code == 0 and "make linux-hosts" in done.stdout
    assert weft_command("explain", EXAMPLE, "--json").json()["missing"] is None


def test_what_is_no_kernel_is_told_in_one_message(weft_command: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    for image, expected in [("/nonexistent", "does not start"), ("/bin/true", "ended at 0 us")]:
        monkeypatch.setenv("WEFT_LINUX_HOSTS", image)
        done = weft_command("run", EXAMPLE, "--set", "hosts=linux")
        assert done.code == 2 and expected in done.stderr, done.stderr


@needs_kernel
def test_real_hosts_stand_beside_simulated_ones_on_the_same_flows(weft_command: Weft, tmp_path: Path) -> None:
    changes = ["--set", "traffic.flows=15"]
    done = weft_command("compare", EXAMPLE, *changes, "--schemes", "letflow,linux+letflow", "--out", "out")
    assert done.code == 0, done.stderr
    tables = {path.parent.name: pl.read_parquet(path) for path in (tmp_path / "out").rglob("flows.parquet")}
    simulated, real = (next(t for name, t in tables.items() if ("linux" in name) is real) for real in (False, True))
    same = ["src", "dst", "size_bytes", "start_us"]
    assert simulated.select(same).equals(real.select(same))
    assert "kernel_fct_us" in real.columns and "kernel_fct_us" not in simulated.columns
    assert (real["kernel_fct_us"] >= real["fct_us"]).all()


@needs_kernel
def test_validate_says_where_real_and_simulated_flows_differ(weft_command: Weft, tmp_path: Path) -> None:
    # Without the kernel's rules: with them the furthest flow of these may send the same packets to its end.
    changes = ["--set", "traffic.flows=15", "--set", "transport.profile=rfc"]
    done = weft_command("validate", EXAMPLE, *changes, "--schemes", "letflow", "--json", "--out", "out")
    assert done.code == 0, done.stderr
    assert (tmp_path / "out/windows.svg").exists()
    told = done.json()
    whole, *bins = told["fct"]
    assert whole["bin"] == "all" and whole["flows"] == sum(row["flows"] for row in bins) == 15
    difference = whole["simulated_us"] / whole["linux_us"] - 1.0
    assert whole["difference"] == pytest.approx(difference)
    for kind in ("simulated", "linux"):
        parts = sum(row[f"{kind}_us"] for row in told["breakdown"])
        assert parts == pytest.approx(whole[f"{kind}_us"]), "the parts of the time are all of it"
    assert {row["hosts"] for row in told["counts"]} == {"simulated", "linux"}
    (parting,) = told["partings"]
    assert parting["simulated"] != parting["linux"]
    assert {row["hosts"] for row in parting["congestion"]} == {"simulated", "linux"}
    first = parting["windows"][0]
    assert first["simulated_cwnd"] >= 10.0 and first["linux_cwnd"] >= 10.0, "both begin with ten segments"

    again = ("--no-partings", "--out", "out", "--force")
    printed = weft_command("validate", EXAMPLE, *changes, "--schemes", "letflow", *again)
    assert printed.code == 0 and not (tmp_path / "out/windows.svg").exists(), printed.stderr
    assert "Mean FCT" in printed.stdout and "Where the time went" in printed.stdout


def test_a_figure_of_windows_has_a_known_kind_and_needs_its_runs(weft_command: Weft) -> None:
    done = weft_command("validate", EXAMPLE, "--figure", "windows.txt")
    assert done.code == 2 and ".png, .pdf, .svg" in done.stderr, done.stderr
    done = weft_command("validate", EXAMPLE, "--figure", "windows.svg", "--no-partings")
    assert done.code == 2 and "--no-partings" in done.stderr, done.stderr


def test_validate_needs_a_kernel(weft_command: Weft, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WEFT_LINUX_HOSTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    done = weft_command("validate", EXAMPLE, "--set", "traffic.flows=5")
    assert done.code == 2 and "make linux-hosts" in done.stderr, done.stderr


def children_of(pid: int) -> list[int]:
    """The processes that a process started, and those that these did."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += [int(path.parent.name), *children_of(int(path.parent.name))]
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(holds: Callable[[], object], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


@needs_kernel
@pytest.mark.parametrize("whom", ["kernel", "weft"])
def test_when_either_is_killed_the_other_ends_and_nothing_is_left(tmp_path: Path, whom: str) -> None:
    long = ["--set", "hosts=linux", "--set", "traffic.flows=100000", "--out", "out"]
    command = [sys.executable, "-m", "weft", "run", str(EXAMPLE), *long]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert until(lambda: children_of(process.pid)), "the kernel starts"
    time.sleep(1)
    guests = children_of(process.pid)
    os.kill(guests[0] if whom == "kernel" else process.pid, signal.SIGKILL)
    _, told = process.communicate(timeout=60)
    if whom == "kernel":
        assert process.returncode == 2
        assert "the kernel of the Linux hosts ended at" in told, told
    else:
        assert process.returncode == -signal.SIGKILL
    assert until(lambda: not any(is_alive(pid) for pid in guests)), "the guests end"
    assert list(tmp_path.iterdir()) == [], "no result, no file"


def test_packets_of_simulated_hosts_are_a_table_or_a_file(weft_command: Weft, tmp_path: Path) -> None:
    changes = ["--set", "traffic.flows=10"]
    printed = weft_command("packets", EXAMPLE, *changes, "--at", "host0")
    assert printed.code == 0 and "host0>leaf0" in printed.stdout, printed.stderr
    for name in ("a.pcapng", "a.parquet", "a.csv"):
        done = weft_command("packets", EXAMPLE, *changes, "--at", "leaf0", "--out", name)
        assert done.code == 0, done.stderr
    assert (tmp_path / "a.pcapng").read_bytes()[:4] == bytes.fromhex("0a0d0d0a")
    table = pl.read_parquet(tmp_path / "a.parquet")
    assert table.height > 0 and table["time_us"].is_sorted()
    assert pl.read_csv(tmp_path / "a.csv").height == table.height
    for arguments, expected in [
        (["--at", "hots0"], "did you mean"),
        ([], "--at is missing"),
        (["--at", "host0", "--out", "a.txt"], ".pcapng"),
        (["--at", "host0", "--out", "a.csv"], "--force"),
    ]:
        refused = weft_command("packets", EXAMPLE, *changes, *arguments)
        assert refused.code == 2 and expected in refused.stderr, refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.parquet", "a.pcapng"]


@needs_kernel
def test_packets_of_linux_hosts_are_the_kernels_own(weft_command: Weft, tmp_path: Path) -> None:
    changes = ["--set", "traffic.flows=3", "--scheme", "linux+ecmp"]
    done = weft_command("packets", EXAMPLE, *changes, "--at", "hosts", "--out", "real.pcapng")
    assert done.code == 0, done.stderr
    content = (tmp_path / "real.pcapng").read_bytes()
    # A SYN of Linux: a header of 40 bytes, the largest segment of 1,460, SACK permitted, time stamps.
    assert bytes.fromhex("020405b40402080a") in content


def test_another_kernel_is_another_run_and_simulated_hosts_know_of_none(
    weft_command: Weft, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def spec_hash(kernel: str, hosts: str) -> str:
        folder = tmp_path / kernel
        folder.mkdir(exist_ok=True)
        for name in ("linux", "agent"):
            (folder / name).write_text(kernel)
        monkeypatch.setenv("WEFT_LINUX_HOSTS", str(folder / "linux"))
        done = weft_command("explain", EXAMPLE, "--set", f"hosts={hosts}", "--json")
        assert done.code == 0, done.stderr
        return str(json.loads(done.stdout)["spec_hash"])

    assert spec_hash("one", "linux") == spec_hash("one", "linux") != spec_hash("other", "linux")
    assert spec_hash("one", "simulated") == spec_hash("other", "simulated")


@needs_kernel
def test_a_program_that_fails_leaves_results_that_say_so_and_ends_a_comparison(
    weft_command: Weft, tmp_path: Path
) -> None:
    spec = tmp_path / "programs.toml"
    spec.write_text(
        "hosts = 'linux'\n[fabric]\nkind = 'leaf-spine'\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\n"
        "[transport]\nname = 'tcp'\n[[traffic.program]]\nhost = 1\ncommand = '/bin/sh -c \"echo said; exit 4\"'\n"
    )
    done = weft_command("run", spec, "--out", "out")
    assert done.code == 3 and "the results are incomplete: program 0 on host 1" in done.stderr, done.stderr
    assert "exited with 4" in done.stdout and "said" in done.stdout, done.stdout
    programs = pl.read_parquet(tmp_path / "out/programs.parquet")
    assert programs["output"].to_list() == ["said\n"] and programs["failed"].to_list() == [True]
    assert len(json.loads((tmp_path / "out/summary.json").read_text())["incomplete"]) == 1
    done = weft_command("compare", spec, "--schemes", "ecmp", "--out", "both")
    assert done.code != 0 and "exited with 4" in done.stderr, done.stderr
