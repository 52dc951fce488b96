"""The command line: exit codes, what goes where, and nothing left behind by a mistake."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import factory
from conftest import Outcome, Weft
from weft.cli.app import app
from weft.cli.console import EXIT_NO_SPACE
from weft.cli.tables import print_comparison
from weft.comparison import Comparison
from weft.metrics import chosen

pytestmark = pytest.mark.slow

DISTRIBUTION = {"mean", "p50", "p95", "p99", "p999"}


def assert_refused(outcome: Outcome, folder: Path, *words: str) -> None:
    """Exit code 2, an empty stdout, one message with these words, an untouched folder."""
    assert outcome.code == 2, outcome
    assert outcome.stdout == ""
    for word in words:
        assert word in outcome.stderr
    assert list(folder.iterdir()) == []


def test_version_and_help_work(weft_command: Weft) -> None:
    assert weft_command("--version").stdout.startswith("weft ")
    for arguments in (("--help",), ("compare", "--help")):
        outcome = weft_command(*arguments)
        assert outcome.code == 0 and "weft compare --schemes" in outcome.stdout


def test_what_draws_nothing_does_not_load_what_draws() -> None:
    """Each of these takes as long to load as all the rest of the command, and the Tab key waits for it."""
    heavy = "{'matplotlib', 'numpy', 'polars', 'dask', 'jinja2'}"
    asked = f"import sys, weft.cli.app; print(sorted({heavy} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"


def test_run_prints_a_table_and_writes_nothing_unasked(
    weft_command: Weft, small_options: list[str], tmp_path: Path
) -> None:
    outcome = weft_command("run", *small_options, "--seed", 7)
    assert outcome.code == 0
    assert "mean FCT" in outcome.stdout and "seed 7" in outcome.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_several_commands_set_has_the_same_short_options(weft_command: Weft) -> None:
    short = (
        "--fabric",
        "fat-tree",
        "--workload",
        "data-mining",
        "--load",
        "0.3",
        "--flows",
        "12",
        "--transport",
        "tcp",
    )
    said = (
        "A fat-tree of 8 pods and 16 cores, 128 hosts, 10 Gbit/s; 12 data-mining flows between racks at load 0.3; TCP; "
    )
    for command in (("run",), ("compare", "--schemes", "ecmp"), ("sweep", "--schemes", "ecmp")):
        outcome = weft_command(*command, *short)
        assert outcome.code == 0 and " ".join(outcome.stdout.split()).startswith(said), command
    values = {item["key"]: item["value"] for item in weft_command("explain", *short, "--json").json()["origins"]}
    assert (values["fabric.kind"], values["traffic.flows"], values["transport.name"]) == ("fat-tree", 12, "tcp")


def test_run_writes_a_directory_that_can_be_run_again(
    weft_command: Weft, small_options: list[str], tmp_path: Path
) -> None:
    first = weft_command("run", *small_options, "--seed", 5, "--out", "first", "--json")
    assert first.code == 0
    names = {path.name for path in (tmp_path / "first").iterdir()}
    of_a_run = ("flows", "links", "samples", "deliveries", "paths", "traces", "scheme")
    of_linux_hosts = ("connections", "programs", "subflows", "classes", "pauses", "shared_buffers")
    tables = of_a_run + of_linux_hosts + ("faults", "phases", "drops", "collectives", "critical_path")
    assert names == {"spec.toml", "summary.json", *(f"{name}.parquet" for name in tables)}
    again = weft_command("run", "first/spec.toml", "--out", "again", "--json", own_process=True)
    assert again.code == 0
    for summary in (first.json(), again.json()):
        assert summary["seed"] == 5
    assert first.json()["fct_us"] == again.json()["fct_us"]
    assert (tmp_path / "first" / "flows.parquet").read_bytes() == (tmp_path / "again" / "flows.parquet").read_bytes()


def test_json_is_all_that_stands_on_stdout(weft_command: Weft, small_options: list[str]) -> None:
    outcome = weft_command("compare", "--schemes", "ecmp,rps", *small_options, "--seeds", "2", "--json")
    assert outcome.code == 0
    document = outcome.json()
    assert [(run["scheme"], run["seed"]) for run in document["runs"]] == [
        ("ecmp", 1),
        ("ecmp", 2),
        ("rps", 1),
        ("rps", 2),
    ]
    for run in document["runs"]:
        assert run["fct_us"].keys() == run["slowdown"].keys() == DISTRIBUTION
        for name in ("small", "medium", "large"):
            assert {"flows", "fct_us"} <= run[name].keys()
        assert {
            "flows", "unfinished", "retransmissions", "timeouts", "out_of_order_packets", "packet_hops", "cpu_s",
        } <= run.keys()  # fmt: skip
        assert run["flows"] == 60
    assert "rps seed 2" in outcome.stderr


@pytest.mark.all_formats
def test_compare_writes_everything_it_promises(weft_command: Weft, small_options: list[str], tmp_path: Path) -> None:
    outcome = weft_command("compare", "--schemes", "ecmp,letflow:gap=50us", *small_options, "--out", "deep/out")
    assert outcome.code == 0, outcome.stderr
    assert "lowest mean FCT" in outcome.stdout
    out = tmp_path / "deep" / "out"
    assert sorted(path.name for path in out.parent.iterdir()) == [".weft", "out"]
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    figures = {f"figures/{name}.{kind}" for name in ("fct-by-size", "slowdown-cdf", "waits") for kind in ("png", "pdf")}
    runs = {
        f"runs/{name}-seed1/{file}" for name in ("ecmp", "letflow-gap-50us") for file in ("spec.toml", "summary.json")
    }
    assert {"compare.json", "table.csv", "table.parquet", "report.html"} | figures | runs <= files
    assert all((out / name).stat().st_size > 5_000 for name in figures)
    assert json.loads((out / "compare.json").read_text(encoding="utf-8"))["command"].startswith(
        "weft compare --schemes"
    )
    report = weft_command("report", "deep/out", "--out", "copy.html")
    assert report.code == 0
    assert (tmp_path / "copy.html").read_text(encoding="utf-8") == (out / "report.html").read_text(encoding="utf-8")


def test_an_existing_directory_needs_force(weft_command: Weft, small_options: list[str], tmp_path: Path) -> None:
    command = ("run", *small_options, "--out", "out")
    assert weft_command(*command).code == 0
    before = (tmp_path / "out" / "summary.json").read_bytes()
    refused = weft_command(*command)
    assert refused.code == 2 and "--force" in refused.stderr
    assert (tmp_path / "out" / "summary.json").read_bytes() == before
    assert weft_command(*command, "--force").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("command", [("run",), ("compare", "--schemes", "ecmp")])
def test_a_wrong_key_is_named_and_nothing_is_written(
    weft_command: Weft, tmp_path: Path, command: tuple[str, ...]
) -> None:
    outcome = weft_command(*command, "--set", "fabrc.leaves=4", "--out", "out")
    assert_refused(outcome, tmp_path, "error:", "fabrc", "fabric")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--schemes", "ecmp,drll"), 'did you mean "drill"'),
        (("--schemes", ","), "no scheme"),
        (("--schemes", "ecmp", "--seeds", "x"), "--seeds"),
        (("--schemes", "ecmp", "--set", "nonsense"), "key=value"),
        (("--schemes", "ecmp", "--load", "lots"), "load"),
        (("--schemes", "ecmp", "--flows", "-5"), "flows"),
        (("--schemes", "ecmp", "--transport", "dctpc"), "dctcp"),
        (("missing.toml", "--schemes", "ecmp"), "no such spec file"),
        (("--schemes", "ecmp", "--jobs", "0"), "--jobs"),
        (("--schemes", "ecmp", "--frobnicate"), "--frobnicate"),
    ],
)
def test_other_mistakes_of_compare_are_answered(
    weft_command: Weft, tmp_path: Path, options: tuple[str, ...], word: str
) -> None:
    assert_refused(weft_command("compare", *options, "--out", "out"), tmp_path, word)


@pytest.mark.skipif(
    os.geteuid() == 0 and not Path("/proc/self").exists(), reason="needs a place that cannot be written to"
)
def test_a_place_that_cannot_be_written_to_is_named(
    weft_command: Weft, small_options: list[str], tmp_path: Path
) -> None:
    outcome = weft_command("compare", "--schemes", "ecmp", *small_options, "--out", "/proc/weft/out")
    assert_refused(outcome, tmp_path, "/proc/weft")


def test_a_full_disk_leaves_nothing_but_a_store_without_runs(
    weft_command: Weft, small_options: list[str], tmp_path: Path
) -> None:
    # A limit on file size makes every larger write fail, as a full disk does.
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); from weft.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "compare", "--schemes", "ecmp", *small_options, "--out", "out"],
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == EXIT_NO_SPACE, done.stderr
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [".weft"]
    assert not list(tmp_path.rglob("provenance.json")) and not list((tmp_path / ".weft/.part").iterdir())


def test_ctrl_c_stops_within_seconds_and_leaves_nothing_but_a_store_without_runs(
    small_options: list[str], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "compare", "--schemes", "ecmp,rps", "--flows", "3000000", "--out", "out"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert time.monotonic() - asked < 10
    assert stdout == "" and stderr.strip().endswith("stopped")
    assert [path.name for path in tmp_path.iterdir()] == [".weft"]
    assert not list(tmp_path.rglob("provenance.json")) and not list((tmp_path / ".weft/.part").iterdir())


def test_explain_tells_settings_from_defaults(weft_command: Weft, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[fabric]\nleaves = 4\n", encoding="utf-8")
    document = weft_command("explain", "my.toml", "--set", "fabric.spines=3", "--json").json()
    origins = {item["key"]: item for item in document["origins"]}
    assert origins["fabric.leaves"]["origin"] == "spec file"
    assert origins["fabric.spines"]["origin"] == "--set"
    assert origins["fabric.hosts_per_leaf"]["origin"] == "default"
    assert str(origins["fabric.spines"]["value"]) == "3"
    assert "fabric.spines" in weft_command("explain").stdout


@pytest.mark.parametrize("kind", ["schemes", "transports", "workloads", "fabrics", "bins"])
def test_what_there_is_can_be_listed_and_explained(weft_command: Weft, kind: str) -> None:
    entries = weft_command(kind, "--json").json()
    names = [entry["name"] for entry in entries]
    listed = weft_command(kind).stdout
    assert all(name in listed for name in names)
    assert names[0] in weft_command(kind, names[0]).stdout
    unknown = weft_command(kind, names[0] + "x")
    assert unknown.code == 2 and names[0] in unknown.stderr


def test_schema_is_a_json_schema(weft_command: Weft) -> None:
    assert "$schema" in weft_command("schema").json()


def test_a_directory_that_is_no_result_is_refused_by_report(weft_command: Weft, tmp_path: Path) -> None:
    assert_refused(weft_command("report", "."), tmp_path, "not a result")
    (tmp_path / "compare.json").write_text("{}", encoding="utf-8")
    broken = weft_command("report", ".")
    assert broken.code == 2 and "compare.json: runs is missing" in broken.stderr


def test_bench_reports_speed_and_memory(weft_command: Weft) -> None:
    (row,) = weft_command("bench", "--hosts", "128", "--schemes", "ecmp", "--json").json()
    assert (row["hosts"], row["scheme"]) == (128, "ecmp")
    assert row["packet_hops"] > 100_000 and row["packet_hops_per_cpu_s"] > 100_000
    assert 0 < row["memory_bytes_per_host"] < 1_000_000
    assert weft_command("bench", "--hosts", "many").code == 2


@pytest.mark.nightly
def test_bench_measures_memory_of_a_fabric_and_of_flows_that_are_over(weft_command: Weft, tmp_path: Path) -> None:
    memory = ("bench", "--memory", "--hosts", "16")
    (row,) = weft_command(*memory, "--flows", "200000", "--json").json()
    assert (row["hosts"], row["links"], row["flows"], row["scheme"]) == (16, 48, 200_000, "ecmp")
    assert row["setup_cpu_s"] > 0 and row["bytes_per_link"] > 64 and row["bytes_per_active_flow"] > 0
    # So small a fabric may fit into memory that is in use again.
    assert row["peak_rss_bytes"] > row["setup_bytes"] >= 0
    assert_refused(weft_command(*memory, "--flows", "1000"), tmp_path, "200000")
    (row,) = weft_command("bench", "--memory", "--hosts", "1024", "--flows", "0", "--json").json()
    assert row["setup_cpu_s"] > 0 and row["bytes_per_finished_flow"] is None
    assert row["peak_rss_bytes"] > row["setup_bytes"] > 1024 * row["bytes_per_host"] > 0
    assert_refused(weft_command("bench", "--flows", "200000"), tmp_path, "--memory")


@pytest.mark.nightly
def test_bench_lists_what_memory_does_not_hold_and_measures_the_others(weft_command: Weft, tmp_path: Path) -> None:
    largest = ("bench", "--memory", "--hosts", "65536", "--flows", "0", "--schemes")
    hermes, ecmp = weft_command(*largest, "hermes,ecmp", "--json").json()
    assert "the load balancer keeps" in hermes["refused"] and hermes["hosts"] == 65_536
    assert "refused" not in ecmp and ecmp["setup_bytes"] > 0
    assert_refused(weft_command(*largest, "hermes"), tmp_path, "the load balancer keeps")


@pytest.mark.nightly
def test_bench_measures_another_transport_if_asked_to(weft_command: Weft, tmp_path: Path) -> None:
    sixteen = ("bench", "--hosts", "16", "--schemes", "ecmp", "--json")
    (dctcp,) = weft_command(*sixteen).json()
    (mptcp,) = weft_command(*sixteen, "--transport", "mptcp").json()
    assert (dctcp["transport"], mptcp["transport"]) == ("dctcp", "mptcp")
    assert mptcp["packet_hops"] != dctcp["packet_hops"]
    assert_refused(weft_command("bench", "--transport", "mtcp"), tmp_path, "mptcp")


def test_bench_measures_every_scheme_if_asked_to(weft_command: Weft, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def bench(hosts: int, scheme: str, transport: str) -> str:
        measured.append((hosts, scheme, transport))
        return json.dumps({"hosts": hosts, "scheme": scheme, "decisions": 1, "packet_hops": 4, "cpu_s": 1.0})

    monkeypatch.setattr("weft._core.bench", bench)
    outcome = CliRunner().invoke(app, ["bench", "--hosts", "16", "--all-schemes", "--json"])
    names = [scheme["name"] for scheme in weft_command("schemes", "--json").json()]
    assert [row["scheme"] for row in json.loads(outcome.stdout)] == names
    assert measured == [(16, name, "dctcp") for name in names]


def test_bench_says_what_a_decision_costs_beyond_ecmp(weft_command: Weft) -> None:
    rows = weft_command("bench", "--hosts", "16", "--schemes", "ecmp,letflow", "--json").json()
    ecmp, letflow = rows
    assert ecmp["cpu_ns_per_decision_over_ecmp"] == 0.0
    # A packet between racks makes four hops, of which one is a decision; all flows of this benchmark change racks.
    for row in rows:
        assert 0.2 < row["decisions"] / row["packet_hops"] <= 0.26
    assert letflow["state_bytes_per_switch"] > ecmp["state_bytes_per_switch"]


def test_ranges_of_sizes_are_reported_wherever_results_are(
    weft_command: Weft, small_options: list[str], tmp_path: Path
) -> None:
    assert_refused(weft_command("run", *small_options, "--bins", "lbtt", "--out", "out"), tmp_path, "run.bins", "lbt")
    outcome = weft_command("compare", "--schemes", "ecmp,rps", *small_options, "--bins", "lbt", "--out", "out")
    assert outcome.code == 0
    assert "flows of < 100 KB" in outcome.stdout and "flows of ≥ 100 KB" in outcome.stdout
    rows = (tmp_path / "out" / "bins.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + 2 * 2 and rows[0].startswith("scheme,seeds,sizes,flows")
    assert "Flows of ≥ 100 KB" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    one = weft_command("run", *small_options, "--bins", "0-10KB,10KB-", "--json").json()
    assert sum(part["flows"] for part in one["bins"]) == one["flows"] == 60


def legend(found: Comparison, keys: Sequence[str] = ()) -> str:
    """The line below the tables of a comparison: that with a star, sizes or bounds; nothing if there is none."""
    printed = StringIO()
    print_comparison(Console(file=printed, width=300), found, chosen(keys) if keys else None)
    lines = [line for line in printed.getvalue().splitlines() if "100 KB" in line or "best in its column" in line]
    return "".join(lines)


def test_the_legend_explains_what_is_in_the_table() -> None:
    apart = factory.comparison(factory.summary("ecmp", 1, 100.0), factory.summary("rps", 1, 80.0))
    sizes = "small < 100 KB, medium 100 KB - 10 MB, large > 10 MB"
    assert legend(apart) == f"* best in its column; {sizes}"
    assert legend(apart, ["mean_fct_us"]) == "* best in its column"
    assert legend(apart, ["small_mean_fct_us"]) == "* best in its column; small < 100 KB"
    alone = factory.comparison(factory.summary("ecmp", 1, 100.0))
    assert legend(alone) == sizes, "one scheme has no best value"
    assert legend(alone, ["mean_fct_us"]) == ""


def test_columns_are_chosen_by_key(weft_command: Weft, small_options: list[str]) -> None:
    command = ("compare", "--schemes", "ecmp,rps", *small_options)
    shown = weft_command(*command, "--columns", "resent_after_loss,state_bytes_per_switch")
    assert shown.code == 0
    assert "after" in shown.stdout and "state" in shown.stdout and "p50" not in shown.stdout
    wrong = weft_command(*command, "--columns", "resent_after_los")
    assert wrong.code == 2 and "did you mean 'resent_after_loss'" in wrong.stderr


def test_deadlines_are_reported_if_there_are_any(weft_command: Weft, small_options: list[str]) -> None:
    assert "deadlines" not in weft_command("run", *small_options, "--json").json()
    deadlines = ("--set", "traffic.deadlines.fixed=1ps")
    assert weft_command("run", *small_options, *deadlines, "--json").json()["deadlines"]["missed_share"] == 1.0
    assert "deadlines: 100 % of the flows" in weft_command("run", *small_options, *deadlines).stdout
    wrong = weft_command("run", *small_options, "--set", "traffic.deadlines.mean=0ms")
    assert wrong.code == 2 and "traffic.deadlines.mean" in wrong.stderr


def test_a_preset_brings_its_spec_and_its_schemes(weft_command: Weft) -> None:
    document = weft_command("compare", "--preset", "tr-micro", "--flows", "20", "--json").json()
    listed = weft_command("presets", "tr-micro", "--json").json()["schemes"]
    assert [run["scheme"] for run in document["runs"]] == listed
    one = weft_command("run", "--preset", "qall-asymmetric", "--set", "traffic.flows=20", "--json").json()
    assert one["flows"] == 20


def test_a_preset_is_named_rightly_and_stands_alone(weft_command: Weft, tmp_path: Path) -> None:
    unknown = weft_command("compare", "--preset", "tr-mikro")
    assert unknown.code == 2
    assert "did you mean 'tr-micro'" in unknown.stderr
    (tmp_path / "my.toml").write_text("", encoding="utf-8")
    both = weft_command("run", str(tmp_path / "my.toml"), "--preset", "tr-micro")
    assert both.code == 2
    assert "not both" in both.stderr
    neither = weft_command("compare")
    assert neither.code == 2
    assert "--schemes is missing" in neither.stderr


def test_a_spec_of_a_sweep_is_answered_with_the_command_that_takes_it(weft_command: Weft, tmp_path: Path) -> None:
    (tmp_path / "loads.toml").write_text("[traffic]\nload = [0.2, 0.4]\n", encoding="utf-8")
    for command in (("run", "loads.toml"), ("compare", "loads.toml", "--schemes", "ecmp")):
        refused = weft_command(*command)
        assert refused.code == 2 and "traffic.load = a list" in refused.stderr
        assert "weft sweep runs each value of a list" in refused.stderr
    wrong = weft_command("run", "--set", "traffic.load=[0.2,0.4]")
    assert wrong.code == 2 and "weft sweep" not in wrong.stderr
