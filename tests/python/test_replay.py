"""The replay shows the fabric as it is built, and what the samples hold."""

import base64
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

import weft
from conftest import SMALL
from weft.report import render, replay
from weft.report.fabric_drawing import place_nodes

SAMPLED = {**SMALL, "run.sample_every": "5us", "run.trace_flows": 3, "traffic.load": 0.6}


def links(*pairs: tuple[str, str]) -> pl.DataFrame:
    """Both directions of each cable; a host's name begins with h."""
    both = [pair for start, end in pairs for pair in ((start, end), (end, start))]
    rows = [(f"{start}>{end}", start, end, "host" if start[0] == "h" else "leaf") for start, end in both]
    return pl.DataFrame(rows, schema=["link", "from", "to", "tier"], orient="row")


def fabric(kind: str, **shape: int) -> pl.DataFrame:
    settings = {f"fabric.{key}": value for key, value in shape.items()}
    return weft.run("", set={"fabric.kind": kind, "traffic.flows": 1, **settings}).links


def test_a_leaf_stands_above_the_middle_of_its_hosts_and_spines_have_even_room() -> None:
    nodes = {node.name: node for node in place_nodes(fabric("leaf-spine", leaves=3, spines=2, hosts_per_leaf=4))}
    assert [nodes[name].level for name in ("host0", "leaf0", "spine0")] == [0, 1, 2]
    for leaf in range(3):
        own = [nodes[f"host{4 * leaf + host}"].x for host in range(4)]
        assert own == sorted(own)
        assert nodes[f"leaf{leaf}"].x == pytest.approx(sum(own) / 4)
    assert (nodes["host0"].x, nodes["host11"].x) == (0.0, 1.0)
    assert [nodes[f"spine{spine}"].x for spine in range(2)] == pytest.approx([0.25, 0.75])


def test_the_pods_of_a_fat_tree_stand_side_by_side() -> None:
    nodes = place_nodes(fabric("fat-tree", k=4))
    assert sorted({node.level for node in nodes}) == [0, 1, 2, 3]

    def places(level: int) -> Sequence[float]:
        return [node.x for node in nodes if node.level == level]

    for level in (0, 1, 2, 3):
        assert list(places(level)) == sorted(set(places(level))), "nobody stands on another"
    for pod in range(4):
        hosts = places(0)[4 * pod : 4 * pod + 4]
        for x in (*places(1)[2 * pod : 2 * pod + 2], *places(2)[2 * pod : 2 * pod + 2]):
            assert hosts[0] <= x <= hosts[-1]


@pytest.mark.parametrize(
    "pairs",
    [
        [("h0", "s0"), ("h1", "s0")],
        [("h0", "s0"), ("s0", "s1"), ("s1", "h1"), ("s0", "s2"), ("s2", "s1")],
        [("h0", "s0"), ("s0", "s1"), ("s1", "s2"), ("s2", "s3"), ("s3", "h1")],
    ],
)
def test_every_node_of_any_graph_has_a_place_of_its_own(pairs: list[tuple[str, str]]) -> None:
    nodes = place_nodes(links(*pairs))
    assert {node.name for node in nodes} == {name for pair in pairs for name in pair}
    assert all(0.0 <= node.x <= 1.0 for node in nodes)
    assert len({(node.level, node.x) for node in nodes}) == len(nodes)


def test_frames_hold_the_utilisation_and_the_longest_queues_of_the_samples() -> None:
    found = weft.compare(["ecmp"], set=SAMPLED)
    data = replay.payload(found)
    assert data is not None
    (one,) = data["schemes"]
    series = found.runs[0].series.coarser(one["interval"]).links()
    used = np.frombuffer(base64.b64decode(one["used"]), np.uint8) / data["full"]
    assert len(used) == one["frames"] * len(data["links"])
    # A step is 1 / 250, rounded to the nearest.
    assert np.abs(used - series.get_column("utilisation").to_numpy()).max() <= 0.5 / 250 + 1e-9
    numbers = np.frombuffer(base64.b64decode(one["queues"]), np.uint8).astype(float)
    least, steps = data["queue"]
    held = np.where(numbers > 0, least * 2.0 ** ((numbers - 1) / steps), 0.0)
    wanted = series.get_column("largest_backlog_bytes").to_numpy().astype(float)
    assert ((wanted > 0) == (held > 0)).all()
    shown = wanted >= least
    # Half a step up or down is a factor of 2^(1/24): 3 %.
    assert np.abs(held[shown] / wanted[shown] - 1.0).max() <= 2 ** (1 / 24) - 1 + 1e-9


def test_a_long_run_is_shown_in_longer_intervals() -> None:
    found = weft.compare(["ecmp", "rps"], set={**SAMPLED, "run.sample_every": "1us", "traffic.flows": 100})
    data = replay.payload(found)
    assert data is not None
    assert found.runs[0].series.intervals.height > 600
    for one in data["schemes"]:
        assert 1 < one["frames"] <= 600
        assert one["interval"] == pytest.approx(round(one["interval"]))
    assert data["schemes"][0]["interval"] == data["schemes"][1]["interval"]


def test_a_traced_flow_has_its_links_and_where_its_time_went() -> None:
    found = weft.compare(["rps"], set=SAMPLED)
    data = replay.payload(found)
    assert data is not None
    flows = data["schemes"][0]["flows"]
    sizes = found.runs[0].flows.get_column("size_bytes").sort(descending=True).head(3).to_list()
    assert [flow["size"] for flow in flows] == sizes
    names = [node[0] for node in data["nodes"]]
    for flow in flows:
        rows = np.frombuffer(base64.b64decode(flow["path"]), "<u2").reshape(-1, 3)
        traces = found.runs[0].traces.filter(pl.col("flow") == flow["id"])
        assert rows[:, 2].sum() == traces.get_column("packets").sum()
        ends = {names[data["links"][link][1]] for link in rows[:, 1]}
        assert flow["dst"] in ends and flow["src"] not in ends
        assert sum(flow["breakdown"]) == pytest.approx(flow["fct"], rel=1e-3)


def test_runs_without_samples_have_no_replay_and_those_without_traces_no_flows() -> None:
    plain = weft.compare(["ecmp"], set=SMALL)
    assert replay.payload(plain) is None and 'id="player"' not in render(plain)
    untraced = weft.compare(["ecmp"], set={**SMALL, "run.sample_every": "50us"})
    data = replay.payload(untraced)
    assert data is not None and data["schemes"][0]["flows"] == []
    assert "--trace-flows" in render(untraced) and 'id="player"' in render(untraced)
