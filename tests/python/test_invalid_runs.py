"""Runs that answer nothing: said in red, with an exit code of their own; what is printed stays whole."""

import pytest

from conftest import Weft

pytestmark = pytest.mark.slow

INVALID = 4
FABRIC = ("--set", "fabric.leaves=2", "--set", "fabric.hosts_per_leaf=4")
NO_ROUTE = ("--set", "fabric.spines=1", "--fault", "leaf0-spine0 down")
BETWEEN_RACKS = ("--set", "traffic={ size = '100KB', load = 0.3, flows = 8 }")
INCAST = ("--set", "traffic={ incast = [{ senders = 3, size = '1MB', receiver = 0 }] }")
CUT_SHORT = ("--set", "run.time_limit=1us")


def test_a_run_whose_packets_find_no_route_is_told(weft_command: Weft) -> None:
    outcome = weft_command("run", *FABRIC, *BETWEEN_RACKS, *NO_ROUTE, "--set", "run.time_limit=100ms")
    assert outcome.code == INVALID
    assert "packets found no route to their host" in outcome.stderr
    assert (
        "before any of its flows of finite size finished (run.time_limit = 100ms after the last start)"
        in outcome.stderr
    )
    assert "mean FCT" in outcome.stdout and "no route" not in outcome.stdout


def test_a_run_in_which_no_flow_finishes_leaves_its_json_whole(weft_command: Weft) -> None:
    outcome = weft_command("run", *FABRIC, *INCAST, *CUT_SHORT, "--json")
    assert outcome.code == INVALID
    [reason] = outcome.json()["invalid"]
    assert reason in outcome.stderr and "run.time_limit = 1us" in reason


def test_comparisons_and_sweeps_name_the_runs_that_answer_nothing(weft_command: Weft) -> None:
    compared = weft_command("compare", *FABRIC, *INCAST, *CUT_SHORT, "--schemes", "ecmp,drill")
    assert compared.code == INVALID
    assert "ecmp, seed 1: the results answer nothing" in compared.stderr and "drill, seed 1: " in compared.stderr
    swept = ("--vary", "run.time_limit=1us,1s", "--out", "swept")
    for _ in range(2):  # the second time from the store
        sweep = weft_command("sweep", *FABRIC, *INCAST, *swept, "--force")
        assert sweep.code == INVALID
        assert "run.time_limit = 1us: the results answer nothing" in sweep.stderr
        assert "run.time_limit = 1s:" not in sweep.stderr


@pytest.mark.parametrize(
    "traffic",
    [
        pytest.param("{ size = '1MB', load = 0.5, flows = 20 }", id="some flows unfinished"),
        pytest.param("{ long_lived = [{ src = 0, dst = 5 }] }", id="only flows that never end"),
    ],
)
def test_unfinished_flows_alone_make_no_run_invalid(traffic: str, weft_command: Weft) -> None:
    options = ("--set", f"traffic={traffic}", "--set", "run.time_limit=100us")
    outcome = weft_command("run", *FABRIC, *options, "--json")
    assert outcome.code == 0, outcome.stderr
    found = outcome.json()
    assert "invalid" not in found and (found["unfinished"] > 0 or found["background"] is not None)
