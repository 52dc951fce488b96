"""A link that fails is seen: in the table, in `compare.json`, in the tables of a run, and in what a spec may say."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

from conftest import Weft
from weft.comparing import compare
from weft.comparison import Comparison, load_comparison
from weft.errors import SpecError
from weft.faults import Fault, parse_fault, with_faults
from weft.figures_over_time import figures_over_time
from weft.output import check_target
from weft.over_time import leaf_to_show, shown
from weft.phases import fault_lines, phases_of, reaction_sentences
from weft.report import render, render_sweep, replay
from weft.report.faults import drops_table
from weft.schemas import LATER_TABLES
from weft.simulation import load
from weft.spec import SpecText
from weft.summary import Summary
from weft.sweeps import load_sweep

pytestmark = pytest.mark.slow

OUTAGE = "leaf1-spine1 down 5ms..9ms"


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("leaf0-spine1 down 2ms..4ms", {"link": "leaf0-spine1", "down": True, "at": "2ms", "until": "4ms"}),
        ("leaf0>spine1.1 rate=1Gbps delay=5us 2.5ms..", {"link": "leaf0>spine1.1", "rate": "1Gbps", "delay": "5us",
                                                          "at": "2.5ms"}),
        ("25% leaf-spine loss=1%", {"share": 0.25, "tier": "leaf-spine", "loss": 0.01}),
        ("10% blackhole=0.1 ..4ms", {"share": 0.1, "blackhole": 0.1, "until": "4ms"}),
    ],
)  # fmt: skip
def test_a_fault_is_written_in_one_line(text: str, table: Mapping[str, Any]) -> None:
    assert parse_fault(text) == table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no cable"),
        ("leaf0-spine1", "does not say what happens to the cable"),
        ("leaf0-spine1 dwon", "'dwon' is none of down, .*; did you mean 'down'"),
        ("leaf0-spine1 down 2..4ms", "'2' is no time with a unit"),
        ("leaf0-spine1 rate=1Gbps rate=2Gbps", "'rate=2Gbps' says again what was said before"),
        ("leaf0-spine1 down 1ms..2ms 3ms..", "'3ms..' says again what was said before"),
        ("leaf0-spine1 loss=few", "'loss=few' has no number from 0 to 1"),
    ],
)
def test_a_fault_that_cannot_be_read_gets_one_message(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=f"--fault .*{message}"):
        parse_fault(text)


def test_up_alone_is_refused_and_lifts_a_fault_before_it() -> None:
    with pytest.raises(SpecError, match=r"--fault 'leaf0-spine1 up': up is of use only after a fault"):
        with_faults(SpecText(""), ["leaf0-spine1 up"])
    [(_, faults)] = with_faults(SpecText(""), ["25% down", "leaf0-spine1 up"])
    assert "down = false" in faults


def test_faults_are_added_to_those_of_the_spec() -> None:
    spec = SpecText("[[fabric.fault]]\nlink = 'leaf0-spine0'\ndown = true\n")
    ((key, value),) = with_faults(spec, ["leaf0-spine1 down"])
    assert key == "fabric.fault" and value.count("link") == 2
    assert with_faults(spec, []) == []


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    set_ = {
        "fabric.leaves": 2, "fabric.spines": 2, "fabric.hosts_per_leaf": 4, "fabric.reroute_after": "300us",
        "traffic.workload": "web-search", "traffic.load": 0.6, "traffic.flows": 60, "run.seed": 2,
        "run.sample_every": "1ms", "run.trace_flows": 3,
    }  # fmt: skip
    overrides = [*((key, str(value)) for key, value in set_.items()), *with_faults(SpecText(""), [OUTAGE])]
    return compare(["ecmp", "rps"], set=overrides, out=tmp_path_factory.mktemp("outage") / "out")


def test_the_comparison_names_the_fault_and_shows_before_during_and_after(outage: Comparison) -> None:
    assert outage.path is not None
    document = json.loads((outage.path / "compare.json").read_text(encoding="utf-8"))
    (fault,) = document["faults"]
    assert fault["fault"] == "leaf1-spine1 down from 5 ms to 9 ms"
    assert (fault["links"], fault["from_us"], fault["until_us"]) == (["leaf1>spine1", "spine1>leaf1"], 5e3, 9e3)
    assert outage.phases == ["before", "during", "after"]
    assert [row["scheme"] for row in document["phases"]] == ["ecmp", "rps"]
    for run, row in zip(outage.runs, document["phases"], strict=True):
        phases = run.summary.phases
        assert sum(one.flows for one in phases) == run.summary.flows
        assert row["during_mean_fct_us"] == phases[1].fct_us.mean
        assert sum(one.lost.total for one in phases) == run.summary.dropped_packets
        assert run.drops.get_column("packets").sum() == run.summary.dropped_packets
        assert run.phases.get_column("name").to_list() == ["before", "during", "after"]
        assert run.faults.get_column("lost_packets").sum() == run.summary.faults[0].lost_packets
    first, second = ([(one.phase, one.flows) for one in run.summary.phases] for run in outage.runs)
    assert first == second, "the same flows for every scheme"
    check_target(outage.path, force=True)  # all that is there is known as Weft's
    assert (outage.path / "phases.csv").read_text(encoding="utf-8") == outage.phases_table.write_csv()


def test_it_is_known_when_each_scheme_had_moved_away(outage: Comparison) -> None:
    """The link's own switch moves at once; the other leaf sends to the spine that has no way until it learns of it."""
    (found,) = outage.reactions
    for label, one in found.items():
        (run,) = outage.groups[label]
        lost = run.drops.filter((pl.col("phase") == 1) & pl.col("cause").is_in(["down", "no-route"]))
        assert one.lost_packets == lost.get_column("packets").sum() > 0
        assert set(lost.get_column("place")) <= {"leaf1>spine1", "spine1>leaf1", "spine1"}
        facts = run.summary.faults[0].reaction
        assert facts is not None and (one.hit_flows, one.moved_flows) == (facts.hit_flows, facts.moved_flows)
        assert 0 < one.moved_flows <= one.hit_flows and not one.to_the_end
        # Evidence is a packet that was sent while the fault lasted, and not the silence after the last loss.
        assert one.moved_away_us is not None and 0.0 < one.moved_away_us < 4e3
        assert one.ended and (one.used_again_us is None or one.used_again_us >= 0.0)
    (sentence,) = reaction_sentences(outage.faults, outage.summaries)
    assert sentence.startswith("Moved away from leaf1-spine1 (down from 5 ms to 9 ms): ecmp only 1 of 2 ")


def test_where_every_cable_is_hit_there_is_nothing_to_move_to(outage: Comparison) -> None:
    (fault,) = outage.faults
    everywhere = replace(fault, link=None, share=1.0)
    assert reaction_sentences([everywhere], outage.summaries) == []
    assert reaction_sentences([replace(everywhere, share=0.5)], outage.summaries)


def test_figures_over_time_shade_it_and_show_the_leaf_that_it_hits(outage: Comparison) -> None:
    assert leaf_to_show(shown(outage.groups).values()) == "leaf1"
    drawn = figures_over_time(outage.groups)
    assert drawn
    for name, figure in drawn.items():
        for axes in (one for one in figure.axes if one.axison):
            shaded = axes.patches[-1]
            extent = shaded.get_extents().transformed(axes.transData.inverted())
            assert (round(extent.x0, 6), round(extent.x1, 6)) == (5.0, 9.0), name
        assert [text.get_text() for text in figure.texts] == ["Shaded: leaf1-spine1 down from 5 ms to 9 ms."], name
    labels = {text.get_text() for text in drawn["uplink-utilisation"].legends[0].get_texts()}
    assert labels == {"leaf1>spine0", "leaf1>spine1 (fault)"}


def test_the_report_marks_the_cable_and_tells_where_packets_were_lost(outage: Comparison) -> None:
    html = render(outage)
    assert html.count('class="cut"><title>') == 1
    assert "leaf1 – spine1: down from 5 ms to 9 ms" in html
    table = drops_table(outage)
    assert table is not None
    told = {(row.label, *row.fields): int(row.cells[0].value) for row in table.rows}
    for label, (run,) in outage.groups.items():
        assert told[label, "spine1", "no way to go"] == run.summary.unroutable_packets > 0
        assert sum(number for (one, *_), number in told.items() if one == label) == run.summary.dropped_packets
    data = replay.payload(outage)
    assert data is not None
    for run, one in zip(outage.runs, data["schemes"], strict=True):
        rows = np.frombuffer(base64.b64decode(one["drops"]), "<u2").reshape(-1, 3)
        assert rows[:, 2].sum() == run.links.get_column("dropped_packets").sum()
        names = [node[0] for node in data["nodes"]]
        at_nodes = {(names[node], why): packets for node, packets, _, _, why in one["lost"]}
        assert at_nodes == {("spine1", "no way to go"): run.summary.unroutable_packets}
        assert all(5e3 <= first <= last <= 5.31e3 for _, _, first, last, _ in one["lost"])


def test_a_fault_that_lasts_all_the_time_divides_nothing() -> None:
    def run(*phases: tuple[str, int]) -> Summary:
        from factory import summary

        raw = summary().raw
        empty = dict.fromkeys(("mean", "p50", "p95", "p99", "p999"))
        lost = dict.fromkeys(
            ("queue", "down", "loss", "blackhole", "no_route", "input", "shared_buffer", "headroom"), 0
        )
        told = [
            {"phase": name, "simulated_us": 1.0, "flows": flows, "unfinished": 0, "fct_us": empty, "slowdown": empty,
             "retransmissions": 0, "timeouts": 0, "lost": lost}
            for name, flows in phases
        ]  # fmt: skip
        return Summary.read(raw | {"phases": told})

    assert phases_of({"ecmp": [run(("during", 10))]}) == []
    assert phases_of({"ecmp": [run(("before", 0), ("during", 10))]}) == []
    assert phases_of({"ecmp": [run(("during", 3), ("after", 7))]}) == ["during", "after"]


def test_results_of_before_there_were_such_tables_are_read(outage: Comparison, tmp_path: Path) -> None:
    run = outage.runs[0]
    old = tmp_path / "old"
    run.write(old)
    for name in LATER_TABLES:
        (old / f"{name}.parquet").unlink()
    summary = json.loads((old / "summary.json").read_text(encoding="utf-8"))
    del summary["faults"], summary["phases"]
    (old / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    found = load(old)
    assert all(found._frame(name).is_empty() for name in LATER_TABLES)
    assert found.summary.phases == () and found.flows.equals(run.flows)
    found.write(tmp_path / "copied")
    loaded = load_comparison(tmp_path / "copied")
    assert loaded.phases == [] and reaction_sentences(loaded.faults, loaded.summaries) == []
    loaded.report(tmp_path / "report.html")
    assert "phases" not in loaded.to_dict() or loaded.to_dict()["phases"] == []


def test_the_command_line_shows_it(weft_command: Weft, small_options: list[str]) -> None:
    done = weft_command("compare", "--schemes", "ecmp,rps", *small_options, "--seeds", "2-2", "--fault", OUTAGE)
    text = " ".join(done.stdout.split())
    assert "; leaf1-spine1 down from 5 ms to 9 ms; " in text
    assert "before, during and after the faults: of the flows, " in text
    assert "Moved away from leaf1-spine1 (down from 5 ms to 9 ms): ecmp only 1 of 2 flows" in text


def test_a_refused_fault_is_told_as_it_was_written(weft_command: Weft, tmp_path: Path) -> None:
    spec = tmp_path / "one.toml"
    spec.write_text("[[fabric.fault]]\nlink = 'leaf0-spine0'\nrate = '5Gbps'\n", encoding="utf-8")
    for command in (["run"], ["sweep", "--schemes", "ecmp"], ["compare", "--schemes", "ecmp"]):
        refused = weft_command(*command, "--fault", "leaf0-spine1 dwon")
        assert refused.code == 2 and "did you mean 'down'" in refused.stderr
        given = ["--fault", "leaf0-spine1 down 1ms..", "--fault", "leaf0-spin1 down"]
        refused = weft_command(*command, str(spec), *given)
        told = " ".join(refused.stderr.split())
        assert refused.code == 2, told
        assert '--fault "leaf0-spin1 down": link names "spin1"' in told and 'did you mean "spine1"' in told
        assert "--set" not in told and "fabric.fault" not in told
    spoiled = weft_command("run", str(spec), "--fault", "leaf0-spine1 down", "--set", "fabric.leaves=0")
    assert "--set: fabric.leaves" in " ".join(spoiled.stderr.split()), "what is no fault's stays another's"


def test_of_a_link_that_only_slows_it_is_known_when_each_scheme_had_moved_away() -> None:
    slow = {"link": "leaf0-spine1", "rate": "500Mbps", "at": "2ms", "until": "6ms"}
    shape = {
        "fabric.leaves": 3, "fabric.spines": 3, "fabric.hosts_per_leaf": 4, "fabric.fault": [slow],
        "traffic.workload": "web-search", "traffic.load": 0.5, "traffic.flows": 150,
    }  # fmt: skip
    found = compare(["ecmp", "oracle"], set=shape)
    (reactions,) = found.reactions
    stays, leaves = reactions["ecmp"], reactions["oracle"]
    assert stays.to_the_end and stays.moved_away_us is not None and stays.moved_away_us > 3_900.0
    assert not leaves.to_the_end and (leaves.moved_away_us or 0.0) < 1_000.0
    assert stays.share is not None and leaves.share is not None
    # A twentieth of the rate of each of the two others is 2.4 % of all.
    assert leaves.share.before > 0.1 and leaves.share.during < 0.04
    (sentence,) = reaction_sentences(found.faults, found.summaries)
    assert sentence.startswith(
        "Moved away from leaf0-spine1 (at 500 Mbit/s from 2 ms to 6 ms): ecmp not before it ended ("
    )
    assert " % of the bytes before, " in sentence
    document = json.loads(json.dumps(found.to_dict()))
    assert document["faults"][0]["reactions"]["ecmp"]["share"]["during"] == stays.share.during
    assert document["faults"][0]["slowed"]["share_before"] > 0.0


def test_a_sweep_names_the_fault_and_has_before_during_and_after_at_each_point(
    weft_command: Weft, small_options: list[str], tmp_path: Path
) -> None:
    fault = ("--fault", "leaf1-spine1 down 1ms..3ms", "--set", "fabric.reroute_after=300us")
    command = ("sweep", "--vary", "traffic.load=0.4,0.8", "--schemes", "ecmp,rps", *small_options, "--out", "out")
    told = weft_command(*command, *fault)
    assert told.code == 0, told.stderr
    assert told.stdout.startswith("A leaf-spine of ") and "leaf1-spine1 down from 1 ms to 3 ms" in told.stdout
    sweep = load_sweep(tmp_path / "out")
    table = sweep.phases_table
    assert table.columns[:3] == ["traffic.load", "scheme", "seeds"] and table.height == 4
    assert table.equals(pl.read_parquet(tmp_path / "out/phases.parquet"))
    for row, point in zip(table.iter_rows(named=True), sweep.points, strict=True):
        (run,) = point.runs
        during, (facts,) = run.phase("during"), run.faults
        assert during is not None and row["during_lost_packets"] == during.lost.total
        assert facts.reaction is not None
        moved = facts.reaction.moved_away_us
        assert row["moved_away_us"] == (None if moved is None else moved - 1_000.0)
    assert sum(table.get_column("during_lost_packets").to_list()) > 0
    assert "Before, during and after the faults" in render_sweep(sweep)
    assert weft_command(*command).code == 0
    assert not (tmp_path / "out/phases.csv").exists(), "those without the fault took their place"


def _down(place: int, **changes: Any) -> dict[str, Any]:
    """A fault of one cable that takes packets of ten flows, four of which move, and ends."""
    reaction = {"hit_flows": 10, "moved_flows": 4, "moved_away_us": 30.0, "used_again_us": 250.0}
    fault = {
        "links": [f"leaf{place}>spine0", f"spine0>leaf{place}"], "from_us": 10.0, "until_us": 200.0, "down": True,
        "lost_packets": 5, "last_lost_us": 20.0, "unroutable_packets": 1, "last_unroutable_us": 25.0,
    }  # fmt: skip
    return fault | {"reaction": reaction | changes}


def _with_faults_of(*faults: dict[str, Any]) -> Summary:
    from factory import summary

    return Summary.read(summary().raw | {"faults": list(faults)})


def test_a_reaction_needs_evidence_and_tells_of_the_return() -> None:
    (line,) = fault_lines(_with_faults_of(_down(0)))
    assert line == (
        "fault 0 (leaf0>spine0, spine0>leaf0): 6 packets lost into it; moved away: only 4 of 10 flows "
        "that it hit, the last after 20.0 µs, and back 50.0 µs after it ended"
    )
    (line,) = fault_lines(_with_faults_of(_down(0, moved_flows=0, moved_away_us=None, used_again_us=None)))
    assert line.endswith(
        "moved away: never (none of 10 flows that it hit left it for another path), and not back after it ended"
    )


def test_where_every_flow_moved_late_losses_of_other_packets_count_for_nothing() -> None:
    late = _with_faults_of(_down(0, moved_flows=10) | {"last_lost_us": 199.9})
    assert fault_lines(late)[0].endswith("moved away: after 20.0 µs, and back 50.0 µs after it ended")
    some = _with_faults_of(_down(0) | {"last_lost_us": 199.9})
    assert "moved away: not before it ended" in fault_lines(some)[0]


def test_of_several_seeds_it_is_said_what_is_a_sum_the_latest_and_a_mean() -> None:
    faults = [Fault(link="leaf0-spine0", down=True, at="10us", until="200us")]
    some, every = (_with_faults_of(_down(0, moved_flows=moved)) for moved in (4, 10))
    (sentence,) = reaction_sentences(faults, {"ecmp": [some] * 3, "rps": [every] * 3})
    lost = "with 6 packets lost in the mean"
    assert f"ecmp only 12 of 30 flows of 3 seeds that it hit, the last after 20.0 µs, {lost}" in sentence
    assert f"rps after 20.0 µs (the latest of 3 seeds), {lost}" in sentence


def test_a_flow_that_spreads_over_a_fault_is_told_apart_from_one_that_is_stuck_on_it() -> None:
    lost = {"spread_lost_packets": 3, "spread_arrived_packets": 97, "spread_until_us": 150.0}
    (line,) = fault_lines(_with_faults_of(_down(0, moved_flows=0, moved_away_us=None, spread_flows=9, **lost)))
    assert (
        "moved away: never: 9 of 10 flows that it hit spread over it and lose 3.00 % of their packets while it lasts, "
        "1 stuck on it, and back" in line
    )
    (line,) = fault_lines(_with_faults_of(_down(0, spread_flows=6, **lost)))
    assert "only 4 of 10 flows that it hit, the last after 20.0 µs, 6 spread over it and lose 3.00 %" in line
    assert "stuck" not in line


def test_numbers_about_slowed_links_are_of_the_seeds_that_they_are_said_of() -> None:
    def run(crowded: float | None, others: int, shares: tuple[float | None, ...]) -> Summary:
        keys = ("share_before", "share_during", "share_after")
        slowed = dict(zip(keys, shares, strict=True)) | {"crowded_until_us": crowded, "others_since_bytes": others}
        changes = {"slowed": slowed, "down": None, "rate_bps": 1_000, "lost_packets": 0, "unroutable_packets": 0}
        return _with_faults_of(_down(0) | changes | {"reaction": None})

    faults = [Fault(link="leaf0-spine0", rate="1Kbps", at="10us", until="200us")]
    runs = [run(20.0, 9, (0.5, 0.3, 0.4)), run(40.0, 9, (0.5, 0.1, None)), run(110.0, 0, (0.5, 0.2, 0.4))]
    (sentence,) = reaction_sentences(faults, {"ecmp": [*runs, run(199.9, 9, (None, 0.9, None))]})
    assert sentence.endswith(
        ": ecmp 1 of 4 runs not before it ended, 1 of 4 runs never: nothing was sent by other links after 100 µs, "
        "2 of 4 runs after 30.0 µs at the latest (50.0 % of the bytes before, 20.0 % during it, in the mean)."
    ), sentence


def test_many_faults_are_told_by_kind() -> None:
    slow = {"slowed": {"crowded_until_us": None, "others_since_bytes": 9, "share_before": 0.5, "share_during": 0.4,
            "share_after": None}, "down": None, "rate_bps": 1_000, "lost_packets": 0, "unroutable_packets": 0,
            "reaction": None}  # fmt: skip
    found = _with_faults_of(*(_down(place) for place in range(48)), *(_down(place) | slow for place in range(3)))
    lines = fault_lines(found)
    assert [line.partition(":")[0] for line in lines] == ["48 faults (links down)", "3 faults (lower rate)"]
    assert "moved away: only 192 of 480 flows that it hit, the last after 20.0 µs" in lines[0]
    faults = [Fault(link=f"leaf{place}-spine0", down=True, at="10us", until="200us") for place in range(48)]
    faults += [Fault(link=f"leaf{place}-spine0", rate="1Kbps", at="10us", until="200us") for place in range(3)]
    sentences = reaction_sentences(faults, {"ecmp": [found]})
    assert [one.partition(":")[0] for one in sentences] == [
        "Moved away from 48 faults (links down)",
        "Moved away from 3 faults (lower rate)",
    ]
