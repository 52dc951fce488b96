"""Variants compete under equal conditions: a transport keeps the spec's keys, and what is unequal unasked is noted."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import weft
from conftest import SMALL, Weft
from weft import SpecError
from weft.papers.declared import load_paper
from weft.papers.runs import Plan, cases_of_experiment
from weft.papers.scenarios import Scenario, in_scenario
from weft.sweeps import sweep

TCP = """
[run]
time_limit = "2s"
[fabric]
leaves = 2
spines = 2
hosts_per_leaf = 2
[traffic]
flows = 20
[transport]
name = "tcp"
min_rto = "200ms"
initial_rto = "200ms"
"""
ROCE = TCP.partition("[transport]")[0] + "[transport]\nname = 'roce'\nmtu = '4KiB'\nwindow = '64KiB'\n"


def transport(spec: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(spec)["transport"]
    return found


def test_a_variant_is_the_run_of_that_transport_alone_in_comparisons_in_python_and_in_sweeps(tmp_path: Path) -> None:
    alone = weft.run(TCP, set={"transport.name": "dctcp"}, progress=False)
    assert transport(alone.spec)["min_rto"] == "200ms"
    compared = weft.compare(["tcp", "dctcp"], spec=TCP, progress=False)
    hashes = {label: runs[0].summary.spec_hash for label, runs in compared.groups.items()}
    assert hashes["dctcp"] == alone.summary.spec_hash
    assert weft.run(TCP, scheme="dctcp", progress=False).summary.spec_hash == alone.summary.spec_hash
    for how in ({"schemes": ["tcp", "dctcp"]}, {"vary": {"transport": ["tcp", "dctcp"]}}):
        swept = sweep(TCP, tmp_path / "swept", progress=False, force=True, **how)
        assert {run.labels["transport"]: run.summary.spec_hash for run in swept.runs if run.summary} == hashes
        assert swept.notes == ()
    assert compared.notes == []


def test_what_a_variant_does_not_take_and_what_is_unequal_unasked_is_noted_everywhere(
    weft_command: Weft, tmp_path: Path
) -> None:
    (tmp_path / "my.toml").write_text(ROCE, encoding="utf-8")
    done = weft_command("compare", "my.toml", "--schemes", "roce,irn", "--seeds", "2", "--out", "out")
    assert done.code == 0, done.stderr
    ignored = "irn has no key `window`; ignored"
    timeout = "unequal minimum timeout, which no variant sets: 67.1 ms (roce); 100 µs (irn)"
    said = [line for line in done.stdout.replace("\n", " ").split("note: ")[1:] if line]
    assert [one.startswith(note) for one, note in zip(said, (ignored, timeout), strict=True)] == [True, True], said
    loaded = weft.load_comparison(tmp_path / "out")
    assert loaded.notes[0] == ignored and loaded.notes[1].startswith(timeout)
    assert json.loads((tmp_path / "out" / "compare.json").read_text())["notes"] == list(loaded.notes)
    assert "irn has no key `window`; ignored" in (tmp_path / "out" / "report.html").read_text()
    swept = weft_command("sweep", "my.toml", "--schemes", "roce,irn", "--json", "--out", "swept").json()
    assert swept["notes"] == list(loaded.notes)


def test_what_a_variant_asks_for_itself_or_what_is_swept_is_no_note() -> None:
    same = "mptcp:min_rto=1ms:header=60B:mss=1KB:initial_window=3"
    assert weft.compare(["dctcp", same], spec={"fabric": {"leaves": 2}, "traffic": {"flows": 5}}).notes == []
    unequal = weft.compare(["roce:mtu=4KiB", "irn", "swift"], set=SMALL, progress=False).notes
    assert not any("packet size" in note for note in unequal)


def test_a_key_that_a_spec_sweeps_stays_with_transports_that_are_compared(tmp_path: Path) -> None:
    spec = ROCE.replace("'4KiB'", "['1KiB', '4KiB']").replace("window", "nack_interval").replace("'64KiB'", "'1us'")
    found = sweep(spec, tmp_path / "out", schemes=["roce", "irn"], progress=False)
    assert {(run.labels["transport"], run.labels["transport.mtu"]) for run in found.runs} == {
        (name, mtu) for name in ("roce", "irn") for mtu in ("1KiB", "4KiB")
    }
    assert not any("packet size" in note for note in found.notes)


def test_a_scenario_of_a_paper_changes_what_its_choice_says_and_keeps_the_rest() -> None:
    paper = in_scenario(load_paper("qall"), Scenario((("ecn", "dctcp"),)))
    experiment = next(iter(paper.experiments.values())).at("quick")
    run = Plan(paper, "quick").run(next(cases_of_experiment(experiment)))
    changed = transport(run.spec.text)
    assert changed["name"] == "dctcp"
    assert (changed["min_rto"], changed["initial_rto"], changed["max_window"]) == ("200ms", "1s", "128KiB")


def test_transports_of_a_comparison_are_explained_side_by_side(weft_command: Weft, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(ROCE, encoding="utf-8")
    done = weft_command("explain", "my.toml", "--schemes", "roce,irn:mtu=1KiB")
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert rows["mtu*"] == ["4KiB", "1KiB"] and rows["header"] == ["62B", "62B"]
    assert rows["window*"] == ["64KiB", "-"]
    assert "note: irn has no key `window`; ignored" in done.stdout
    answer = weft_command("explain", "my.toml", "--schemes", "roce,irn", "--json").json()
    assert answer["transports"]["irn"]["mtu"] == "4KiB" and answer["notes"][0].startswith("irn has no key")


def test_a_mistake_in_the_transport_that_is_replaced_is_answered() -> None:
    with pytest.raises(SpecError, match=r"transport\.min_rtoo is not a key"):
        weft.compare(["dctcp", "mptcp"], spec=TCP.replace("min_rto ", "min_rtoo "), progress=False)
