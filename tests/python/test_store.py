"""One store of runs: what one command ran another finds, what was stopped goes on, nothing stale is used."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft
from conftest import Weft, flip_a_bit
from tiny_paper import write_tiny
from weft import _core
from weft.cli.console import EXIT_NO_SPACE
from weft.errors import OutputError
from weft.papers.reproduction import make_figures
from weft.report import render
from weft.runs.record import Record, read_record, record_text
from weft.runs.run import Outcome, Run, resolved_run, simulate
from weft.runs.store import ENVIRONMENT, RunStore, named_store, place_of_store
from weft.spec import SpecText

pytestmark = pytest.mark.slow

SMALL = {"fabric.leaves": 2, "fabric.spines": 2, "fabric.hosts_per_leaf": 4, "traffic.flows": 40}
OPTIONS = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
MANY = ["compare", "--schemes", "ecmp,rps,drill", "--seeds", "8", *OPTIONS, "--jobs", "1", "--store", ".weft"]
RUNS = 3 * 8


def kept_in(store: Path) -> list[Path]:
    """The runs of a store that are there as a whole."""
    return sorted(file.parent for file in store.glob("??/*/provenance.json"))


def compare(folder: Path, *schemes: str, seeds: int = 2, **more: Any) -> weft.Comparison:
    """Compare with the store of a folder; without an output, no figures are drawn."""
    return weft.compare(schemes or ("ecmp", "drill"), set=SMALL, seeds=seeds, store=folder / ".weft", **more)


def test_a_comparison_and_a_sweep_find_each_others_runs(tmp_path: Path) -> None:
    assert compare(tmp_path).kept == 0
    swept = weft.sweep("", tmp_path / "swept", set=SMALL, schemes=["drill", "rps"], seeds=3)
    assert (swept.kept, len(swept.runs)) == (2, 6), "drill with seeds 1 and 2 was there"
    again = compare(tmp_path, "ecmp", "rps", "drill", seeds=3)
    assert again.kept == 8 and len(again.runs) == 9, "only ecmp with seed 3 was not"
    assert len(kept_in(tmp_path / ".weft")) == 9


def test_a_reproduction_finds_the_runs_of_a_comparison_and_of_a_sweep(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "papers")
    traffic = {"workload": "web-search", "flows": 30}
    spec = {"fabric": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2}, "traffic": traffic}
    weft.compare(["ecmp"], spec=spec, set={"traffic.load": 0.3}, seeds=2, store=tmp_path / ".weft")
    weft.sweep(spec, tmp_path / "swept", set={"traffic.load": 0.7}, schemes=["letflow:gap=50us"], seeds=2)
    made = make_figures("tiny", ["1"], folder=folder, out=tmp_path / "out")
    assert (made.runs, made.kept) == (8, 4) and made.ok
    assert weft.compare(["ecmp"], spec=spec, set={"traffic.load": 0.3}, seeds=2, store=tmp_path / ".weft").kept == 2


def test_two_names_of_one_run_are_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.runs import threads

    done: list[str] = []

    def counted(run: Run, *rest: Any) -> Outcome:
        done.append(run.id)
        return simulate(run, *rest)

    monkeypatch.setattr(threads, "simulate", counted)
    for folder in (None, tmp_path):
        found = weft.compare(["ecmp", "ecmp:hash=per-switch"], set=SMALL, store=folder)
        assert list(found.groups) == ["ecmp", "ecmp:hash=per-switch"]
        assert found.runs[0].flows.equals(found.runs[1].flows)
    assert len(done) == 2 and len(set(done)) == 1


def test_a_run_from_the_store_is_the_run_itself(tmp_path: Path) -> None:
    fresh, again = compare(tmp_path), compare(tmp_path)
    alone = weft.compare(["ecmp", "drill"], set=SMALL, seeds=2)
    assert again.kept == 4 and alone.kept == 0
    for one, other, direct in zip(fresh.runs, again.runs, alone.runs, strict=True):
        assert one.summary.raw == other.summary.raw and one.spec == other.spec == direct.spec
        for table in ("flows", "links", "samples", "deliveries", "paths", "traces", "scheme"):
            assert getattr(other, table).equals(getattr(direct, table))
            assert getattr(other, table).schema == getattr(direct, table).schema
    assert again.table.equals(alone.table)


def test_an_output_directory_is_whole_without_the_store(tmp_path: Path) -> None:
    import shutil

    compare(tmp_path, out=tmp_path / "out")
    weft.sweep("", tmp_path / "swept", set=SMALL, schemes=["ecmp"], seeds=2)
    shutil.rmtree(tmp_path / ".weft")
    moved = [shutil.copytree(tmp_path / name, tmp_path / "elsewhere" / name) for name in ("out", "swept")]
    assert not any(path.is_symlink() for place in moved for path in place.rglob("*"))
    assert [run.flows.height for run in weft.load_comparison(moved[0]).runs] == [40] * 4
    assert weft.load_sweep(moved[1]).frame("flows").height == 80
    run = weft.load(moved[0] / "runs/ecmp-seed1")
    assert {path.name for path in (moved[0] / "runs/ecmp-seed1").iterdir()} == {
        path.name for path in weft.run(run.spec).write(tmp_path / "alone").iterdir()
    }


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_comparison_that_is_stopped_goes_on_and_loses_only_the_run_under_way(
    weft_command: Weft, tmp_path: Path, how: signal.Signals
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", *MANY, "--out", "out"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(kept_in(tmp_path / ".weft")) < 4 and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(how)
    said = process.communicate(timeout=60)[1]
    there = len(kept_in(tmp_path / ".weft"))
    assert 4 <= there < RUNS, "the comparison was to be stopped in the middle"
    if how != signal.SIGKILL:
        assert process.returncode in (130, 143) and said.strip().endswith("stopped")
        assert [path.name for path in tmp_path.iterdir()] == [".weft"], "nothing half written is left"
        assert not list((tmp_path / ".weft/.part").iterdir())
    went_on = weft_command(*MANY)
    assert went_on.code == 0, went_on.stderr
    assert f"{RUNS} runs, {there} of them there before" in went_on.stderr
    assert not list((tmp_path / ".weft/.part").iterdir()), "what was in the making is gone"


def test_a_comparison_that_was_stopped_ends_as_one_that_was_not(weft_command: Weft, tmp_path: Path) -> None:
    first, again = weft_command(*MANY, "--json"), weft_command(*MANY, "--json")
    assert f"{RUNS} of them there before" in again.stderr
    assert [run["fct_us"] for run in again.json()["runs"]] == [run["fct_us"] for run in first.json()["runs"]]
    assert all(again.json()[key] == first.json()[key] for key in ("schemes", "verdict", "bins"))


def test_a_full_disk_is_one_message_and_what_is_kept_is_whole(weft_command: Weft, tmp_path: Path) -> None:
    # A limit on file size makes every larger write fail, as a full disk does.
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); from weft.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *MANY, "--out", "out"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == EXIT_NO_SPACE and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "cannot be written: File too large" in done.stderr and "the same command goes on" in done.stderr
    assert not (tmp_path / "out").exists() and not kept_in(tmp_path / ".weft")
    assert weft_command(*MANY).code == 0


def test_a_build_with_other_results_is_not_taken_for_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(tmp_path)
    monkeypatch.setattr(_core, "results_version", lambda: "0123456789abcdef")
    assert compare(tmp_path).kept == 0
    monkeypatch.undo()
    monkeypatch.setattr(_core, "version", lambda: "9.9.9")
    assert compare(tmp_path).kept == 4, "another release with the same results"


def test_a_run_of_a_build_that_had_fewer_columns_is_done_again_and_can_still_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lossless = {"fabric.switch_queue.lossless": True, "fabric.pause.xoff": "50KB", "run.sample_every": "20us"}
    changes = {**SMALL, **lossless, "transport.name": "roce", "traffic.incast": [{"senders": 6, "size": "1MB"}]}
    store = tmp_path / ".weft"
    monkeypatch.setattr(_core, "results_version", lambda: "0123456789abcdef")
    weft.compare(["ecmp"], set=changes, store=store)
    (old,) = kept_in(store)
    for table, columns in {"flows": ["nacks", "cnps"], "samples": ["paused_us"]}.items():
        file = old / f"{table}.parquet"
        pl.read_parquet(file).drop(columns).write_parquet(file)
    monkeypatch.undo()
    again = weft.compare(["ecmp"], set=changes, store=store)
    (run,) = again.groups["ecmp"]
    assert again.kept == 0 and len(kept_in(store)) == 2
    assert run.samples["paused_us"].sum() > 0.0 and "nacks" in run.flows.columns
    # What it left can be read and drawn as far as it goes.
    page = render(weft.Comparison([weft.load(old)]))
    assert 'id="series"' in page and "Links of hosts that are paused" not in page
    assert weft.load(old).series.pauses()["paused_us"].sum() == 0.0


@pytest.mark.parametrize("name", ["flows.parquet", "summary.json", "spec.toml", "provenance.json"])
def test_a_damaged_file_is_said_and_its_run_is_done_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    compare(tmp_path)
    file = kept_in(tmp_path / ".weft")[0] / name
    flip_a_bit(file)
    assert compare(tmp_path).kept == 3
    assert {record.getMessage() for record in caplog.records} == {f"{file}: is damaged; its run is done again"}
    assert compare(tmp_path).kept == 4, "it was mended"


def test_a_missing_file_is_a_run_that_is_not_there(tmp_path: Path) -> None:
    compare(tmp_path)
    (kept_in(tmp_path / ".weft")[0] / "links.parquet").unlink()
    (kept_in(tmp_path / ".weft")[1] / "provenance.json").unlink()
    assert compare(tmp_path).kept == 2


def test_a_record_is_read_strictly_and_every_byte_of_it_counts(tmp_path: Path) -> None:
    compare(tmp_path)
    content = (kept_in(tmp_path / ".weft")[0] / "provenance.json").read_bytes()
    record = read_record(content, "it")
    assert record_text(record) == content
    for place in range(0, len(content), 7):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        with pytest.raises(OutputError, match=r"^it: "):
            read_record(changed, "it")
    parts = json.loads(content)["record"]
    for key in Record.__struct_fields__:
        text = json.dumps({name: value for name, value in parts.items() if name != key}).encode()
        signed = b'{"sha256": "%s", "record": %s}' % (_digest(text), text)
        with pytest.raises(OutputError, match=f"it: {key} is missing"):
            read_record(signed, "it")


def _digest(text: bytes) -> bytes:
    from hashlib import sha256

    return sha256(text).hexdigest().encode()


def test_tables_that_one_command_asked_for_stay_when_another_asks_for_more(tmp_path: Path) -> None:
    few, other, both = (
        resolved_run(SpecText(""), 0, {}, overrides=SMALL, tables=tables)
        for tables in (("flows",), ("links",), ("flows", "links"))
    )
    with RunStore(tmp_path / "store") as store:
        store.keep(few, simulate(few))
        assert store.get(few) is not None and store.get(other) is None
        store.keep(other, simulate(other))
    with RunStore(tmp_path / "store") as store:
        assert store.get(few) is not None and store.get(other) is not None
        stored = store.get(both)
        assert stored is not None and (stored.result.flows.height, stored.result.samples.height) == (40, 0)


def test_without_an_output_nothing_is_written_unless_a_store_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.chdir(tmp_path)
    weft.compare(["ecmp"], set=SMALL)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "mine"))
    assert [weft.compare(["ecmp"], set=SMALL).kept for _ in range(2)] == [0, 1]
    assert len(kept_in(tmp_path / "mine")) == 1


def test_a_store_is_named_by_an_option_the_environment_or_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert place_of_store(tmp_path / "out") == tmp_path / ".weft" and named_store() is None
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "all"))
    assert place_of_store(tmp_path / "out") == tmp_path / "all"
    assert place_of_store(tmp_path / "out", tmp_path / "this") == tmp_path / "this"


def test_a_balancer_from_python_is_run_each_time(tmp_path: Path) -> None:
    class First(weft.SwitchChooser):
        def choose(self, switch: object, packet: object, ports: object) -> int:
            return 0

    results = [weft.compare([First, "ecmp"], set=SMALL, store=tmp_path / "store") for _ in range(2)]
    assert [result.kept for result in results] == [0, 1], "its spec does not say what it does"
    assert [run.flows.height for run in results[1].runs] == [40, 40]
    with pytest.raises(weft.SpecError, match="this program made runs on this machine only"):
        weft.compare([First], set=SMALL, store=tmp_path / "store", cluster="tcp://127.0.0.1:1")


def test_several_processes_may_put_the_same_runs_into_a_store(tmp_path: Path) -> None:
    command = [sys.executable, "-c", f"import weft; weft.compare(['ecmp', 'rps'], seeds=4, set={SMALL!r})"]
    environment = os.environ | {ENVIRONMENT: str(tmp_path / "store")}
    processes = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert len(kept_in(tmp_path / "store")) == 8
    again = weft.compare(["ecmp", "rps"], seeds=4, set=SMALL, store=tmp_path / "store")
    assert again.kept == 8


def test_a_process_reads_a_run_while_others_write_it_again(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom weft.runs.run import Outcome, Run, resolved_run, simulate\n"
        "from weft.runs.store import RunStore\nfrom weft.spec import SpecText\n"
        f"run = resolved_run(SpecText(''), 0, {{}}, overrides={SMALL!r})\n"
        "with RunStore(Path(sys.argv[1])) as store:\n"
        "    outcome = simulate(run)\n"
        "    for _ in range(100):\n"
        "        store.keep(run, outcome)\n"
    )
    run = resolved_run(SpecText(""), 0, {}, overrides=SMALL)
    with RunStore(tmp_path / "store") as store:
        store.keep(run, simulate(run))
    writers = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "store")]) for _ in range(2)]
    seen = 0
    while any(writer.poll() is None for writer in writers):
        with RunStore(tmp_path / "store") as store:
            stored = store.get(run)
            assert stored is not None, "every file is whole at every instant, and the same whoever writes it"
            assert stored.result.flows.height == SMALL["traffic.flows"]
            seen += 1
    assert [writer.wait() for writer in writers] == [0, 0] and seen > 10


def test_a_directory_that_holds_something_else_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("", encoding="utf-8")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(OutputError, match=r"mine: holds 'thesis.tex' and is no store of runs"):
        weft.compare(["ecmp"], set=SMALL, out=tmp_path / "out", store=tmp_path / "mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match=r"link: is a symbolic link; name the directory itself"):
        weft.compare(["ecmp"], set=SMALL, out=tmp_path / "out", store=tmp_path / "link")
    # Not even root makes a directory there.
    with pytest.raises(OutputError, match=r"store: cannot be written: .*; choose another --store") as refused:
        weft.compare(["ecmp"], set=SMALL, out=tmp_path / "out", store="/proc/store")
    assert "runs that are finished" not in str(refused.value)
    with pytest.raises(OutputError, match=r"file: exists and is not a directory"):
        weft.compare(["ecmp"], set=SMALL, out=tmp_path / "out", store=tmp_path / "file")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"] and not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["explain", "compare", "sweep"])
def test_what_a_run_refuses_every_command_refuses_before_anything_runs(
    weft_command: Weft, tmp_path: Path, command: str
) -> None:
    misfit = ("--set", "scheme.probe_interval=1us")
    words = "scheme.probe_interval is 1us"
    assert words in weft_command("run", "--set", "scheme.name=hermes", *misfit).stderr
    scheme = ("--set", "scheme.name=hermes") if command == "explain" else ("--schemes", "hermes")
    out = () if command == "explain" else ("--out", "out/there")
    refused = weft_command(command, *scheme, *misfit, *out)
    assert refused.code == 2 and words in refused.stderr, refused.stderr
    assert not list(tmp_path.iterdir())


def test_the_size_of_a_store_is_shown_and_it_can_be_emptied(
    weft_command: Weft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "there is no store of runs" in weft_command("store", ".weft").stderr
    monkeypatch.setattr(_core, "results_version", lambda: "0123456789abcdef")
    compare(tmp_path, "ecmp")
    monkeypatch.undo()
    compare(tmp_path, "ecmp", "rps")
    shown = weft_command("store", ".weft", "--json").json()
    size = sum(file.stat().st_size for place in kept_in(tmp_path / ".weft") for file in place.iterdir())
    assert (shown["runs"], shown["other_runs"]) == (4, 2) and shown["bytes"] + shown["other_bytes"] == size
    assert ".weft: 4 runs, " in weft_command("store", ".weft").stdout
    assert "2 runs removed" in weft_command("store", ".weft", "--clear", "other").stderr
    assert compare(tmp_path, "ecmp", "rps").kept == 4
    with RunStore(tmp_path / ".weft") as used:
        refused = weft_command("store", ".weft", "--clear", "all")
        assert refused.code == 2 and "another command is using it; nothing was removed" in refused.stderr
        assert len(list(used.entries())) == 4
    assert weft_command("store", ".weft", "--clear", "all").stdout == ".weft: 0 runs, 0.0 KB\n"
    assert compare(tmp_path, "ecmp").kept == 0
