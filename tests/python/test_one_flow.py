"""One flow of a result: its windows and its packets, from the run made again."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

import weft
from conftest import SMALL, Weft
from weft import _core
from weft.one_flow import flow_packets, flow_pcapng, follow, runs_of_seed, worth_a_look
from weft.quantity import time_us
from weft.summary import FCT_PARTS, PART_WORDS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("flow") / "out"
    weft.compare(["ecmp", "drill"], set=SMALL, seeds=2, out=out)
    return out


def largest(directory: Path) -> int:
    return int(worth_a_look(runs_of_seed(directory)[0])["id"][0])


def test_a_flow_has_the_same_size_and_ends_under_every_scheme_and_its_windows_until_it_ends(compared: Path) -> None:
    runs = runs_of_seed(compared)
    flow = largest(compared)
    found = follow(runs, flow, every="20us")
    assert [row["scheme"] for row in found.outcomes] == ["ecmp", "drill"]
    assert len({(row["size_bytes"], row["src"], row["dst"], row["start_us"]) for row in found.outcomes}) == 1
    for run, row in zip(runs, found.outcomes, strict=True):
        own = found.windows.filter(pl.col("scheme") == row["scheme"])
        assert own["time_us"][0] == 20.0
        took = run.flows.filter(pl.col("id") == flow)["sender_fct_us"][0]
        assert took - 20.0 <= own["time_us"][-1] <= took
    assert found.windows.columns == ["scheme", "time_us", "cwnd", "ssthresh", "outstanding", "rtt_us"]


def test_the_windows_are_drawn_a_panel_a_scheme_over_the_same_time(compared: Path) -> None:
    found = follow(runs_of_seed(compared), largest(compared))
    axes = found.plot().axes
    assert [one.get_title(loc="left") for one in axes] == [f"flow {found.flow}, ecmp", f"flow {found.flow}, drill"]
    assert axes[0].get_xlim() == axes[1].get_xlim() and axes[0].get_ylim() == axes[1].get_ylim()
    # 400 instants in the time that it took where it took longest.
    assert 300 < found.windows.group_by("scheme").len()["len"].max() <= 400  # type: ignore[operator]


def test_the_packets_of_a_flow_are_those_that_its_row_counts(compared: Path) -> None:
    run = runs_of_seed(compared)[1]
    flow = largest(compared)
    listed = flow_packets(run, flow, most=1_000_000)
    row = run.flows.filter(pl.col("id") == flow).to_dicts()[0]
    assert listed["flow"].unique().to_list() == [flow]
    sent = listed.filter((pl.col("kind") == "data") & (pl.col("link").str.starts_with(f"host{row['src']}>")))
    assert sent.height == row["segments_sent"]
    file = flow_pcapng(run, flow, most=1_000_000)
    assert file[:4] == b"\x0a\x0d\x0d\x0a"
    assert file.count(b"leaf") == len([link for link in listed["link"].unique() if "leaf" in link])


def test_flows_that_were_traced_are_those_to_look_at() -> None:
    result = weft.run(set={**SMALL, "run.sample_every": "100us", "run.trace_flows": 3})
    assert sorted(worth_a_look(result)["id"]) == sorted(result.traces["flow"].unique())
    assert worth_a_look(weft.run(set=SMALL)).height == 10


def test_what_cannot_be_made_again_is_refused(compared: Path, tmp_path: Path) -> None:
    class First(weft.SwitchChooser):
        def choose(self, switch: int, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
            return 0

    own = weft.run(set={**SMALL, "traffic.flows": 5}, scheme=First())
    with pytest.raises(weft.SpecError, match="was written in Python"):
        follow([own], 0)
    with pytest.raises(weft.SpecError, match="there is no flow 60: allowed is 0 to 59"):
        follow(runs_of_seed(compared), 60)
    with pytest.raises(weft.SpecError, match=r"--seed 9: .* has 1, 2"):
        runs_of_seed(compared, 9)
    old = weft.run(set=SMALL).write(tmp_path / "old")
    summary = json.loads((old / "summary.json").read_text(encoding="utf-8")) | {"results_version": "0"}
    (old / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    with pytest.raises(weft.OutputError, match=f"here {_core.results_version()}"):
        follow(runs_of_seed(old), 0)


def test_the_command_lists_flows_and_follows_one(weft_command: Weft, compared: Path, tmp_path: Path) -> None:
    listed = weft_command("flow", compared)
    assert listed.code == 0 and "ecmp" in listed.stdout and "host" in listed.stdout
    flow = largest(compared)
    outcome = weft_command("flow", compared, flow, "--figure", "window.svg", "--out", "window.csv", "--json")
    assert outcome.code == 0, outcome.stderr
    found = outcome.json()
    assert [row["scheme"] for row in found["schemes"]] == ["ecmp", "drill"]
    with (tmp_path / "window.csv").open(encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(found["windows"])
    assert "<svg" in (tmp_path / "window.svg").read_text(encoding="utf-8")
    shown = weft_command("flow", compared / "runs" / "drill-seed2", flow, "--out", "flow.pcapng")
    assert shown.code == 0 and f"Flow {flow}: " in shown.stdout and "means over intervals" in shown.stdout
    row = weft.load(compared / "runs" / "drill-seed2").flows.row(int(flow), named=True)
    part = max(FCT_PARTS, key=lambda name: row.get(f"fct_{name}_us") or 0.0)
    longest = f"{PART_WORDS[part]}, {time_us(row[f'fct_{part}_us'])} ("
    assert f"Longest part of its time under drill: {longest}" in " ".join(shown.stdout.split())
    assert (tmp_path / "flow.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "x.csv"], "which flow?"),
        (["0", "--out", "x.txt"], "expected a name that ends in .csv, .parquet, .pcapng"),
        (["0", "--out", "x.pcapng"], "has packets of one run; name one of"),
        (["0", "--every", "soon"], "soon"),
    ],
)
def test_what_the_command_cannot_do_is_said(
    weft_command: Weft, compared: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    outcome = weft_command("flow", compared, *arguments)
    assert outcome.code == 2 and said in outcome.stderr, outcome
    assert list(tmp_path.iterdir()) == []
