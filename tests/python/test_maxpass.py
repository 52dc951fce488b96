"""MaxPass and its presets from the command line: variants that are transports, warnings and refusals."""

from pathlib import Path

import pytest

from conftest import Weft

FABRIC = ["fabric.kind=fat-tree", "fabric.k=4", "traffic.flows=40", "scheme.name=ecmp", "scheme.hash=symmetric"]


def _set(*assignments: str) -> list[str]:
    return [part for assignment in assignments for part in ("--set", assignment)]


@pytest.mark.parametrize("preset", ["maxpass-medium", "maxpass-large"])
def test_a_preset_compares_transports(weft_command: Weft, preset: str) -> None:
    outcome = weft_command("compare", "--preset", preset, *_set("traffic.flows=40"), "--json")
    assert outcome.code == 0, outcome.stderr
    found = outcome.json()
    assert [row["scheme"] for row in found["schemes"]] == ["mptcp", "expresspass", "maxpass", "dctcp"]
    # The same flows for all, over one load balancer.
    assert {run["scheme"] for run in found["runs"]} == {"ecmp"}
    assert {run["flows"] for run in found["runs"]} == {40}


@pytest.mark.parametrize(
    ("assignments", "words"),
    [
        (["transport.paths=4", "transport.keep=5"], ["keep", "5", "1 to paths, 4"]),
        (["transport.credit_queue=0"], ["credit_queue", "1 credit or more"]),
        (["traffic.pairs=group-to-group", "traffic.sources=[]", "traffic.destinations=[1]"], ["traffic.sources"]),
    ],
)
def test_what_makes_no_sense_is_refused(
    weft_command: Weft, tmp_path: Path, assignments: list[str], words: list[str]
) -> None:
    outcome = weft_command("run", *_set("transport.name=maxpass", *FABRIC, *assignments))
    assert outcome.code == 2 and outcome.stdout == "", outcome
    assert all(word in outcome.stderr for word in words), outcome.stderr
    assert list(tmp_path.iterdir()) == []


def test_more_paths_than_there_are_are_warned_of(weft_command: Weft) -> None:
    outcome = weft_command("run", *_set("transport.name=maxpass", *FABRIC, "transport.paths=9"), "--json")
    assert outcome.code == 0, outcome.stderr
    assert [warning for warning in outcome.json()["warnings"] if "transport.paths is 9" in warning]
