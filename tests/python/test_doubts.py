"""Warnings of a run about itself: flowlets that never end, queues that do not fit, flows that are locked out."""

import pytest

from weft.comparing import compare
from weft.simulation import run_text
from weft.spec import load_spec

SMALL: dict[str, object] = {"fabric.leaves": 2, "fabric.spines": 2, "fabric.hosts_per_leaf": 4, "traffic.flows": 60}


def warnings(**more: object) -> list[str]:
    settings = SMALL | {key.replace("__", "."): value for key, value in more.items()}
    return list(run_text(load_spec(""), overrides=settings).summary.warnings)


def test_a_scheme_whose_gap_no_flow_exceeds_is_as_good_as_ecmp() -> None:
    [said] = [one for one in warnings(scheme="letflow:gap=5ms") if "moved" in one]
    assert said.startswith("letflow moved no flow: its gap of 5 ms is ")
    assert said.endswith(
        " round trips; it never changed a path, so it is ECMP with other random paths; "
        "its difference from ecmp is chance"
    )


@pytest.mark.parametrize("scheme", ["conga", "hula", "clove", "meet", "ar:mode=flowlet", "qall:granularity=flowlet"])
def test_so_is_one_that_chooses_the_first_path_with_care(scheme: str) -> None:
    [said] = [one for one in warnings(scheme=f"{scheme}:gap=5ms") if "moved" in one]
    assert said.startswith(f"{scheme.split(':')[0]} moved no flow: its gap of 5 ms is ")
    assert said.endswith(" round trips; every flow stayed on its first path")


@pytest.mark.parametrize("scheme", ["letflow:gap=1us", "rps", "ar", "ecmp"])
def test_one_that_moves_flows_or_knows_no_flowlets_is_not_named(scheme: str) -> None:
    assert not [one for one in warnings(scheme=scheme) if "moved" in one]


def test_a_flow_whose_first_path_loses_everything_is_not_said_to_have_stayed_on_it() -> None:
    lost = '[{ link = "spine1-leaf1", at = "1ms", down = true }]'
    settings = {"fabric__fault": lost, "fabric__reroute_after": "7s", "run__time_limit": "2s"}
    assert not [one for one in warnings(scheme="letflow", **settings) if "moved" in one]
    assert [one for one in warnings(scheme="letflow") if "moved" in one]


def test_without_a_choice_of_paths_nothing_could_move() -> None:
    assert not [one for one in warnings(scheme="letflow:gap=5ms", fabric__spines=1) if "moved" in one]


def test_a_comparison_says_each_warning_once() -> None:
    fast: dict[str, object] = {
        "fabric.host_rate": "100Gbps",
        "fabric.fabric_rate": "100Gbps",
        "fabric.host_queue.mark": "never",
        "fabric.switch_queue.buffer": "4MB",  # nothing is lost, so that it is known which flows moved
    }
    found = compare(["ecmp", "letflow:gap=5ms"], set=SMALL | fast, seeds=2, progress=False)
    assert found.verdict is not None
    for text in ("fabric.switch_queue.mark = 97.5 KB", "letflow moved no flow"):
        assert sum(text in sentence for sentence in found.verdict.sentences) == 1


def test_the_flow_that_a_drop_tail_queue_locks_out_is_named_with_what_to_change() -> None:
    incast = '[{ senders = 2, size = "4MB", receiver = 2 }]'
    one_rack: dict[str, object] = {
        "fabric.leaves": 1,
        "fabric.spines": 1,
        "fabric.hosts_per_leaf": 3,
        "traffic.incast": incast,
    }
    tcp: dict[str, object] = {"transport.name": "tcp", "transport.sack": True}

    def said(**more: object) -> list[str]:
        settings = one_rack | tcp | {key.replace("__", "."): value for key, value in more.items()}
        run = run_text(load_spec(""), overrides=settings)
        return [one for one in run.summary.warnings if one.startswith("drop-tail lock-out")]

    [warning] = said()
    assert "of 2 equal flows to host 2" in warning and "fabric.switch_queue.red" in warning
    assert "fabric.switch_queue.mark" not in warning, "the queue marks already"
    assert warning.endswith(
        "none. A transport that uses ECN hears the marks of the queue; "
        "one that drops at random (fabric.switch_queue.red) takes packets of both"
    )
    [unmarked] = said(fabric__switch_queue__mark="never")
    assert (
        "A queue that marks (fabric.switch_queue.mark, with a transport that uses ECN) or drops at random" in unmarked
    )
    [hears] = said(fabric__switch_queue__mark="never", transport__ecn="classic")
    assert hears.endswith(
        "none. A queue that marks (fabric.switch_queue.mark or fabric.switch_queue.red) takes packets of both"
    )
    several = {
        "transport": [{"name": "dctcp"}, {"name": "tcp", "sack": True}],
        "traffic__incast": "[{ senders = 2, size = '4MB', receiver = 2, transport = 'tcp' },"
        " { senders = 1, size = '1KB', receiver = 1, transport = 'dctcp' }]",
    }
    del tcp["transport.name"], tcp["transport.sack"]
    [other] = said(fabric__switch_queue__mark="never", **several)
    assert "with a transport that uses ECN" in other, "the first of several transports is not that of these flows"
    assert not said(fabric__switch_queue__red='{ min = "30KB", max = "300KB", probability = 0.1 }')
