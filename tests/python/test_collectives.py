"""Collectives from the command line to the report: what they are judged by, what is printed, drawn and replayed."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from conftest import Weft
from weft.catalog import preset
from weft.collectives import COMPLETION, CRITICAL_PARTS, collectives_of, completion_of, critical_parts, ideal_us
from weft.comparison import Comparison
from weft.quantity import percent
from weft.report import lossless, render, render_sweep, replay
from weft.spec import to_toml_value
from weft.verdict import judge

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

FABRIC: dict[str, Any] = {
    "fabric.leaves": 2,
    "fabric.spines": 2,
    "fabric.hosts_per_leaf": 4,
    "fabric.host_rate": "400Gbps",
    "fabric.fabric_rate": "400Gbps",
    "fabric.host_delay": "500ns",
    "fabric.fabric_delay": "500ns",
}
LOSSLESS: dict[str, Any] = {
    "fabric.switch_queue.scheduler": "strict",
    "fabric.switch_queue.class": [
        {"holds": ["acks"]},
        {
            "holds": ["unknown", "short", "long", "best-effort"],
            "lossless": True,
            "red": {"min": "60KB", "max": "240KB", "probability": 1.0},
        },
    ],
    "fabric.shared_buffer.size": "64MB",
}
RING: dict[str, Any] = {"traffic.collective": [{"kind": "all-reduce", "size": "1MB", "placement": "random"}]}
SMALL = {**FABRIC, **LOSSLESS, **RING, "transport.name": "uec"}


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return weft.compare(["ecmp", "oblivious"], seeds=2, set=SMALL | {"run.sample_every": "10us"}, progress=False)


def test_collectives_and_not_flows_decide(compared: Comparison) -> None:
    verdict = compared.verdict
    assert verdict is not None and verdict.metric is COMPLETION
    means = {label: [completion_of(run) for run in runs] for label, runs in compared.summaries.items()}
    best = min(means, key=lambda label: sum(value or 0.0 for value in means[label]))
    assert verdict.winner == best
    assert "completion time of collectives" in " ".join(verdict.sentences)
    assert "mean FCT" not in " ".join(verdict.sentences)


def test_runs_without_collectives_are_judged_by_flows_as_ever(small: dict[str, int]) -> None:
    flows = weft.compare(["ecmp", "rps"], set=small, progress=False)
    assert not flows.has_collectives and flows.verdict is not None
    assert flows.verdict.metric.key == "mean_fct_us" and flows.plot_collectives() is None


def test_a_step_counts_and_not_the_all_reduces_in_it() -> None:
    job = {"traffic.job": [{"gradient": "100KB", "steps": 2, "forward": "50us", "backward": "50us"}]}
    run = weft.run("", set=FABRIC | job).summary
    assert {one.kind for one in run.collectives} == {"step", "all-reduce"}
    step = next(one for one in run.collectives if one.kind == "step")
    assert completion_of(run) == step.completion_us.mean


UNLIKE: dict[str, Any] = {
    "traffic.collective": [
        {"kind": "all-reduce", "size": "1MB"},
        {"kind": "all-to-all", "size": "200KB"},
        {"kind": "all-reduce", "size": "100KB", "label": "same"},
        {"kind": "all-reduce", "size": "200KB", "label": "same"},
    ]
}


def test_unlike_collectives_have_a_row_each_and_the_longest_decides(weft_command: Weft, tmp_path: Path) -> None:
    compared = weft.compare(["ecmp", "rps"], set=FABRIC | UNLIKE | {"transport.name": "uec"}, progress=False)
    titles = [named.title for named in collectives_of(compared.summaries)]
    assert titles == [
        "collective[0] (all-reduce, ring)",
        "collective[1] (all-to-all)",
        "same (all-reduce, ring, 100 KB, 8 ranks)",
        "same (all-reduce, ring, 200 KB, 8 ranks)",
    ]
    for run in compared.runs:
        means = [one.completion_us.mean or 0.0 for one in run.summary.collectives]
        assert len(means) == 4 and means[0] == max(means) == completion_of(run.summary)
        assert sum(critical_parts([run.summary]).values()) == pytest.approx(means[0])
    assert compared.verdict is not None and compared.verdict.metric.key == COMPLETION.key
    title = "completion time of collective[0] (all-reduce, ring)"
    assert compared.verdict.metric.title == title and title in " ".join(compared.verdict.sentences)
    out = tmp_path / "out"
    compared.write(out)
    assert json.loads((out / "compare.json").read_text())["verdict"]["title"] == title
    assert f"C{title[1:]}" in (out / "figures" / "collectives.svg").read_text()
    assert all(title in (out / "report.html").read_text() for title in titles)


OF_RUN, OF_KIND = re.compile(r"out of *$", re.MULTILINE), re.compile("bus *$| bus ", re.MULTILINE)
"""Headings of columns: the first is of packets, the second of a kind of collective."""


def test_packets_of_whole_runs_have_a_table_of_their_own_beside_several_kinds(weft_command: Weft) -> None:
    kinds = UNLIKE["traffic.collective"]
    for count in (1, 2):
        setting = f"traffic.collective={to_toml_value(kinds[:count], 'traffic.collective')}"
        fabric = [word for key, value in FABRIC.items() for word in ("--set", f"{key}={value}")]
        printed = weft_command(
            "compare", "--schemes", "ecmp,rps", "--transport", "uec", *fabric, "--set", setting
        ).stdout
        assert len(OF_RUN.findall(printed)) == 1
        assert ("packets of the whole run" in printed) == (count == 2)
    before, after = printed.split("packets of the whole run")
    assert not OF_RUN.search(before) and len(OF_KIND.findall(before)) == 2
    assert not OF_KIND.search(after)


def test_who_is_faster_at_another_collective_is_said(small: dict[str, int]) -> None:
    compared = weft.compare(["ecmp", "rps"], set=FABRIC | UNLIKE | {"transport.name": "uec"}, progress=False)
    runs = {label: own[0] for label, own in compared.summaries.items()}
    first, second = runs["ecmp"], runs["rps"]
    # One takes twice as long for the longest collective, and next to no time for the second.
    means = (2.0 * (first.collectives[0].completion_us.mean or 0.0), 1.0)
    faked = tuple(
        msgspec.structs.replace(one, completion_us=msgspec.structs.replace(one.completion_us, mean=mean))
        for one, mean in zip(first.collectives[:2], means, strict=True)
    )
    loser, winner = msgspec.structs.replace(first, collectives=(*faked, *first.collectives[2:])), second
    verdict = judge({"ecmp": [loser], "rps": [winner]})
    assert verdict is not None and verdict.winner == winner.label
    theirs = winner.collectives[1].completion_us.mean or 0.0
    said = next(sentence for sentence in verdict.sentences if sentence.startswith("Other collectives"))
    share = percent(1.0 - 1.0 / theirs)
    assert f"collective[1] (all-to-all) under {loser.label}: 1.00 µs, {share} less than {winner.label}" in said
    alike = judge({label: [run] for label, run in zip(runs, (first, first), strict=True)})
    assert alike is not None and not any("Other collectives" in sentence for sentence in alike.sentences)


def test_a_notebook_shows_collectives_and_not_their_flows(compared: Comparison) -> None:
    shown = compared._repr_html_()
    assert "bus bandwidth" in shown and "mean FCT" not in shown


def test_a_job_beside_a_longer_collective_is_judged_by_its_step() -> None:
    beside = {
        "traffic.job": [{"gradient": "10KB", "steps": 2, "forward": "1us", "backward": "1us", "count": 4}],
        "traffic.collective": [{"kind": "all-reduce", "size": "4MB", "hosts": ["4-7"]}],
    }
    run = weft.run("", set=FABRIC | beside | {"transport.name": "uec"}).summary
    means = {one.kind if one.part_of is None else "part": one.completion_us.mean or 0.0 for one in run.collectives}
    assert means["step"] < means["all-reduce"] and completion_of(run) == means["step"]


def test_a_run_of_a_schedule_says_what_was_read(weft_command: Weft, tmp_path: Path) -> None:
    (tmp_path / "x.cm").write_text("Nodes 4\n0->1 id 1 start 5 size 1000\n2->3 id 2 start 20.5 size 2000\n")
    spec = tmp_path / "spec.toml"
    spec.write_text("[traffic.schedule]\nfile = 'x.cm'\n")
    refused = weft_command("run", str(spec))
    assert refused.code == 2 and 'start_unit = "us" (5 us' in " ".join(refused.stderr.split())
    said = weft_command("run", str(spec), "--set", "traffic.schedule.start_unit=us").stdout
    expected = (
        "x.cm: 4 ranks, 2 messages, 3.00 KB in all, which start from 5.00 µs to 20.5 µs if the network takes no time."
    )
    assert expected in " ".join(said.split())
    read = weft.run(spec, set={"traffic.schedule.start_unit": "us"}).summary.collectives[0].read
    assert read is not None
    assert (read.ranks, read.messages, read.bytes, read.first_start_us, read.last_start_us) == (4, 2, 3000, 5.0, 20.5)


def test_the_parts_of_critical_paths_are_the_completion_time(compared: Comparison) -> None:
    for runs in compared.summaries.values():
        parts = critical_parts(runs)
        means = [completion_of(run) for run in runs]
        assert set(parts) == set(CRITICAL_PARTS)
        assert sum(parts.values()) == pytest.approx(sum(mean or 0.0 for mean in means) / len(means), rel=1e-6)


def test_bus_bandwidth_is_held_against_the_cable_of_a_host(compared: Comparison) -> None:
    assert compared.line_rate_mbps == 400_000.0
    # A ring of 8: 7/4 of the bytes by 50 GB/s.
    ideal = ideal_us([run.summary for run in compared.runs], compared.line_rate_mbps)
    assert ideal is not None and ideal == pytest.approx(1e6 * 7 / 4 / 50e3)
    assert all((completion_of(run.summary) or 0.0) > ideal for run in compared.runs)


def test_no_sender_of_a_lossless_class_is_forgotten_at_its_card() -> None:
    """A card that asks at the instant at which its cable becomes free asks again: else nobody calls it."""
    ring = {"traffic.collective": [{"kind": "all-reduce", "size": "4MB", "placement": "random"}]}
    run = weft.run("", seed=2, set={**SMALL, **ring, "fabric.spines": 1}).summary
    assert (run.unfinished, run.collectives[0].unfinished) == (0, 0)


def test_the_command_prints_collectives_first_and_flows_if_asked(weft_command: Weft, tmp_path: Path) -> None:
    spec = tmp_path / "ring.toml"
    spec.write_text(weft.run("", set=SMALL).spec)
    said = weft_command("compare", str(spec), "--schemes", "ecmp,oblivious").stdout
    words = " ".join(said.split())
    assert "collective[0] (all-reduce, ring): 1 in each run" in words
    assert "bus bandwidth" in words or "bandwidth" in words
    assert "FCT" not in words and "critical path of" in words
    assert re.search(r"lost the most, [\d.]+ .s, [\d.]+ .s of it by [a-z ]+ at ", words), words
    asked = weft_command("compare", str(spec), "--schemes", "ecmp", "--columns", "mean_fct_us").stdout
    assert "FCT" in asked


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def whole(field: int, number: int) -> bytes:
    return varint(field << 3) + varint(number)


def part(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def chakra(micros: int) -> bytes:
    """A trace of MLCommons Chakra: `GlobalMetadata`, a computation, and an all-reduce of 1 MB after it."""
    computation = whole(1, 1) + whole(3, 4) + whole(7, micros)
    attributes = [
        part(10, part(1, name) + whole(9, value)) for name, value in ((b"comm_type", 0), (b"comm_size", 10**6))
    ]
    collective = whole(1, 2) + whole(3, 7) + whole(5, 1) + b"".join(attributes)
    messages = (part(1, b"0.0.4"), computation, collective)
    return b"".join(varint(len(one)) + one for one in messages)


def test_traces_of_chakra_run_are_hashed_by_their_bytes_and_refused_by_message(
    weft_command: Weft, tmp_path: Path
) -> None:
    spec = tmp_path / "step.toml"
    spec.write_text("[traffic.schedule]\nfile = 'step.{rank}.et'\n")

    def run(micros: int) -> dict[str, Any]:
        for rank in range(4):
            (tmp_path / f"step.{rank}.et").write_bytes(chakra(micros))
        return weft.run(spec, set=FABRIC).summary.raw

    short, long = run(10), run(200)
    kinds = {one["kind"]: one["completion_us"]["mean"] for one in short["collectives"]}
    slower = {one["kind"]: one["completion_us"]["mean"] for one in long["collectives"]}
    assert set(kinds) == {"file", "all-reduce"} and kinds["all-reduce"] == pytest.approx(slower["all-reduce"])
    assert slower["file"] - kinds["file"] == pytest.approx(190.0)
    assert short["spec_hash"] != long["spec_hash"]
    (tmp_path / "step.2.et").write_bytes(chakra(10)[:-1])
    refused = weft_command("run", str(spec))
    assert refused.code == 2 and "step.2.et: message 3 at byte 15: found a message of " in refused.stderr


def test_a_sweep_judges_prints_and_draws_collectives(weft_command: Weft, tmp_path: Path) -> None:
    spec = tmp_path / "ring.toml"
    spec.write_text(weft.run("", set=SMALL).spec)
    out = tmp_path / "out"
    sweep = ("sweep", str(spec), "--vary", "fabric.spines=1,2", "--schemes", "ecmp,oblivious", "--out", str(out))
    said = " ".join(weft_command(*sweep, "--seeds", "2").stdout.split())
    assert "flows wait for each other" in said and "FCT" not in said and "longest" in said
    names = {file.stem for file in (out / "figures").iterdir()}
    assert names == {
        f"{what}-over-spines-by-scheme" for what in ("completion-time-of-collectives", "longest-collective")
    }
    loaded = weft.load_sweep(out)
    assert loaded.verdict is not None and loaded.verdict.metric is COMPLETION
    assert all("FCT" not in sentence for sentence in loaded.verdict.sentences)
    mean = loaded.points[0].estimates["collective_us"]
    assert mean is not None and loaded.table.item(0, "collective_us") == mean.mean
    assert json.loads((out / "verdict.json").read_text())["metric"] == "collective_us"
    page = render_sweep(loaded)
    assert "completion time of collectives" in page and "Flows" in page
    asked = weft_command(*sweep, "--seeds", "2", "--columns", "mean_fct_us").stdout
    assert "FCT" in asked


def test_a_run_says_what_was_paused(weft_command: Weft, tmp_path: Path) -> None:
    incast = {"traffic.incast": [{"senders": 6, "size": "1MB"}]}
    spec = tmp_path / "incast.toml"
    pausing = {"fabric.pause.xoff": "50KB", "transport.name": "roce", "transport.dcqcn": False}
    run = weft.run("", set=FABRIC | LOSSLESS | pausing | incast)
    assert run.summary.lossless is not None and run.summary.lossless.pauses > 0 and run.pauses.height > 0
    spec.write_text(run.spec)
    said = " ".join(weft_command("run", str(spec)).stdout.split())
    assert "pauses: " in said and "of it goes back to leaf" in said
    assert run.summary.raw["lossless"]["pauses"] == run.summary.lossless.pauses


def test_the_figure_has_a_bar_a_scheme_and_the_line_rate(compared: Comparison) -> None:
    figure = compared.plot_collectives()
    assert figure is not None
    left, right = figure.axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["ecmp", "oblivious"]
    assert any(text.get_text() == "line rate" for text in left.texts)
    assert "propagation and serialisation" in right.get_legend_handles_labels()[1]


def test_the_report_has_tables_chart_and_the_critical_path_in_the_replay(compared: Comparison) -> None:
    page = render(compared)
    assert 'id="critical"' in page and 'data-downloads="critical"' in page and "Bus bandwidth as in NCCL" in page
    data = replay.payload(compared)
    assert data is not None
    for shown, runs in zip(data["schemes"], compared.groups.values(), strict=True):
        path = shown["critical"]
        # From the beginning to the end without a gap.
        assert path["links"][-1]["until"] == path["end"]
        assert all(one["until"] == two["from"] for one, two in zip(path["links"], path["links"][1:], strict=False))
        assert len(path["links"]) == runs[0].critical_path.height
        for one in path["links"]:
            assert sum(us for _, us in one["parts"]) == pytest.approx(one["until"] - one["from"], rel=0.01, abs=0.05)
            assert all(us > 0.0 and data["parts"][part]["title"] for part, us in one["parts"])


def test_without_lossless_classes_the_critical_path_has_no_pauses() -> None:
    run = weft.run("", set=FABRIC | RING)
    assert "pause_us" not in run.critical_path.columns
    path = lossless.critical(run)
    assert path is not None
    pauses = list(CRITICAL_PARTS).index("pause")
    assert path["links"] and all(part != pauses for one in path["links"] for part, _ in one["parts"])


def test_a_replay_knows_the_links_that_were_paused_and_because_of_which() -> None:
    incast = {"traffic.incast": [{"senders": 6, "size": "1MB"}]}
    pausing = {"fabric.pause.xoff": "50KB", "transport.name": "roce", "transport.dcqcn": False}
    run = weft.run("", set=FABRIC | LOSSLESS | pausing | incast)
    names = run.links.get_column("link").to_list()
    rows = lossless.pauses(run, {name: at for at, name in enumerate(names)})
    assert len(rows) == run.pauses.height
    paused, cause, us, times = rows[0]
    own = run.pauses.sort("paused_us", descending=True).row(0, named=True)
    assert (names[int(paused)], names[int(cause)], times) == (own["link"], own["because_of"], own["pauses"])
    assert us == pytest.approx(own["paused_us"], rel=1e-3)
    assert lossless.deadlock(run, {}) is None and lossless.critical(run) is None


def test_a_page_on_pauses_alone_has_that_heading_once() -> None:
    incast = {"traffic.incast": [{"senders": 6, "size": "1MB"}]}
    pausing = {"fabric.pause.xoff": "50KB", "transport.name": "roce", "transport.dcqcn": False}
    page = render(weft.compare(["ecmp"], set=FABRIC | LOSSLESS | pausing | incast, progress=False))
    assert len(re.findall(r"<h[23][^>]*>\s*Pauses\s*</h[23]>", page)) == 1


def test_the_collectives_of_runs_are_named_once(compared: Comparison) -> None:
    (named,) = collectives_of(compared.summaries)
    assert named.title == "collective[0] (all-reduce, ring)"


def test_a_deadlock_is_one_sentence_of_the_run_the_comparison_and_the_replay(weft_command: Weft) -> None:
    spec = str(EXAMPLES / "deadlock.toml")
    said = " ".join(weft_command("run", spec).stdout.split())
    sentence = "deadlock: ring0>ring1, which waits for ring1>ring2"
    assert said.count(sentence) == 1 and "warning: deadlock" not in said
    found = weft.compare(["ecmp"], spec=spec, progress=False)
    data = replay.payload(found)
    assert data is not None
    circle = data["schemes"][0]["deadlock"]
    assert [data["names"][link] for link in circle["links"]] == [f"ring{at}>ring{(at + 1) % 5}" for at in range(5)]
    assert sentence in circle["text"] and sentence.replace(">", "&gt;") in render(found)


def test_a_rail_fabric_is_named_by_its_rails() -> None:
    rail = {"fabric.kind": "rail", "fabric.servers": 4, "fabric.gpus": 2, "fabric.servers_per_group": 2}
    found = weft.compare(["ecmp"], set=rail | {"traffic.flows": 5, "traffic.load": 0.1}, progress=False)
    facts = ("2 rails", "2 groups", "8 spines", "8 hosts", "4 servers", "400 Gbit/s")
    assert all(fact in found.description for fact in facts), found.description


def test_packets_that_are_sprayed_fill_every_plane_and_a_flow_only_one(tmp_path: Path) -> None:
    trace = tmp_path / "one.csv"
    trace.write_text("start_us,src,dst,size_bytes\n0,0,1,40000000\n", encoding="utf-8")
    rail = {"fabric.kind": "rail", "fabric.servers": 2, "fabric.gpus": 1, "fabric.planes": 4, "fabric.spines": 1}
    flow = {"traffic.trace": str(trace), "transport.name": "uec"}
    found = weft.compare(["ecmp", "rps"], set=rail | flow, progress=False)
    assert "4 planes" in found.description and "2 servers" in found.description
    fct = {row["scheme"]: row["mean_fct_us"] for row in found.table.iter_rows(named=True)}
    assert 3.5 < fct["ecmp"] / fct["rps"] <= 4


@pytest.mark.nightly
def test_the_preset_of_a_training_cluster_compares_its_schemes_by_where_they_wait(
    weft_command: Weft, tmp_path: Path
) -> None:
    """`ai-allreduce` with four racks of four hosts, two groups of eight, and a threshold at which some pause."""
    group = {"kind": "all-reduce", "label": "gradients", "size": "2MB", "placement": "random"}
    smaller: dict[str, Any] = {
        "fabric.leaves": 4,
        "fabric.spines": 4,
        "fabric.hosts_per_leaf": 4,
        "fabric.pause.xoff": "60KB",
        "traffic.collective": [group | {"hosts": list(range(first, 16, 2))} for first in (0, 1)],
    }
    options = [part for key, value in smaller.items() for part in ("--set", f"{key}={to_toml_value(value, key)}")]
    done = weft_command("compare", "--preset", "ai-allreduce", *options, "--out", "training")
    assert done.code == 0, done.stderr
    schemes = preset("ai-allreduce").schemes
    first_words = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert [word for word in first_words if word in schemes][: len(schemes)] == list(schemes), "a row each"
    (said,) = [line for line in " ".join(done.stdout.split()).split(". ") if "does not spray" in line]
    assert said.startswith("ecmp, letflow, conweave: ")
    assert (tmp_path / "training" / "figures" / "collectives.png").is_file()
    found = weft.load_comparison(tmp_path / "training")
    completion, parts = {}, {}
    for label, runs in found.summaries.items():
        completion[label], parts[label] = completion_of(runs[0]) or 0.0, critical_parts(runs)
        assert completion[label] == pytest.approx(sum(parts[label].values()))
    # Who sprays waits less on its critical path than who does not, and so is done before.
    waiting = {label: sum(own.values()) - own["transmission"] for label, own in parts.items()}
    sprayed = ("ar", "oblivious", "reps")
    for measured in (completion, waiting):
        others = min(value for label, value in measured.items() if label not in sprayed)
        assert max(measured[label] for label in sprayed) < others
    data = replay.payload(found)
    assert data is not None
    paused = [len(shown["pauses"]) for shown in data["schemes"]]
    assert paused == [runs[0].pauses.height for runs in found.groups.values()]
    assert paused[schemes.index("ecmp")] > 0
