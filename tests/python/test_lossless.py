"""Pauses, classes and deadlocks as people see them: the pause tree, the table by class, the picture of a deadlock."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import weft
from conftest import Weft
from test_collectives import EXAMPLES, FABRIC, LOSSLESS
from weft import _core
from weft.errors import SpecError
from weft.figures_over_time import _KIND_TITLES
from weft.pause_tree import PauseNode, pause_tree, tree_of
from weft.port_classes import _FLOWS, class_table
from weft.report import render

INCAST: dict[str, Any] = {"traffic.incast": [{"senders": 6, "size": "1MB"}]}
PAUSING: dict[str, Any] = {"fabric.pause.xoff": "50KB", "transport.name": "roce", "transport.dcqcn": False}


def pauses(*rows: tuple[str, str, float, int]) -> pl.DataFrame:
    """A made-up table of pauses, all of one class."""
    links, causes, us, times = zip(*rows, strict=True)
    return pl.DataFrame({"link": links, "class": 1, "because_of": causes, "paused_us": us, "pauses": times})


def outline(nodes: "list[PauseNode] | Any") -> Any:
    return [(node.link, round(node.paused_us, 3), outline(node.below)) for node in nodes]


TREE = (
    ("spine0>leaf0", "leaf0>host0", 10.0, 2),
    ("leaf1>spine0", "spine0>leaf0", 6.0, 3),
    ("leaf2>spine0", "spine0>leaf0", 8.0, 1),
    ("host9>leaf2", "leaf2>spine0", 7.0, 1),
    ("leaf3>spine1", "spine1>leaf1", 1.0, 1),
)


def test_a_pause_tree_hangs_each_link_below_that_for_which_it_was_paused() -> None:
    found = pause_tree(pauses(*TREE))
    assert found is not None and found.left_out == 0 and found.left_out_us == 0.0
    below: list[Any] = [("leaf2>spine0", 8.0, [("host9>leaf2", 7.0, [])]), ("leaf1>spine0", 6.0, [])]
    first = ("leaf0>host0", 10.0, [("spine0>leaf0", 10.0, below)])
    assert outline(found.roots) == [first, ("spine1>leaf1", 1.0, [("leaf3>spine1", 1.0, [])])]


def test_a_large_pause_tree_is_cut_to_its_longest_pauses_and_the_rest_counted() -> None:
    found = pause_tree(pauses(*TREE), most=4)
    assert found is not None
    tree: list[Any] = [
        ("leaf0>host0", 10.0, [("spine0>leaf0", 10.0, [("leaf2>spine0", 8.0, [("host9>leaf2", 7.0, [])])])])
    ]
    assert outline(found.roots) == tree
    assert (found.left_out, found.left_out_us) == (2, 7.0), "leaf1>spine0 and leaf3>spine1"


def test_a_link_that_was_paused_by_several_has_what_hangs_on_it_once() -> None:
    twice = ("leaf2>spine0", "spine1>leaf1", 3.0, 4)
    found = pause_tree(pauses(*TREE, twice), first="spine1>leaf1")
    assert found is not None and [root.link for root in found.roots] == ["spine1>leaf1", "leaf0>host0"]
    (own,) = [one for one in found.roots[0].below if one.link == "leaf2>spine0"]
    assert own.pauses == 4 and not own.again and [one.link for one in own.below] == ["host9>leaf2"]
    (other,) = [one for one in found.roots[1].below[0].below if one.link == "leaf2>spine0"]
    assert other.again and not other.below


def test_a_circle_of_pauses_is_a_tree_from_the_link_that_paused_most_and_ends_where_it_began() -> None:
    found = pause_tree(pauses(("b", "a", 5.0, 1), ("c", "b", 9.0, 1), ("a", "c", 2.0, 1)))
    assert found is not None and outline(found.roots) == [("b", 9.0, [("c", 9.0, [("a", 2.0, [("b", 5.0, [])])])])]
    assert found.roots[0].below[0].below[0].below[0].again
    assert pause_tree(pauses(*TREE).clear()) is None


def test_the_tree_of_a_run_begins_at_the_root_of_its_summary_and_has_all_paused_time() -> None:
    run = weft.run("", set=FABRIC | LOSSLESS | PAUSING | INCAST, progress=False)
    tree = tree_of(run, most=10_000)
    assert tree is not None and run.summary.lossless is not None and tree.left_out == 0
    assert tree.roots[0].link == run.summary.lossless.root

    def total(nodes: "list[PauseNode]") -> float:
        return sum(one.paused_us + total(one.below) for one in nodes)

    whole = sum(total(root.below) for root in tree.roots)
    assert whole == pytest.approx(run.summary.lossless.paused_us, rel=1e-9)


def test_a_run_prints_its_pause_tree_and_its_classes_and_json_stays_as_it_is(
    weft_command: Weft, tmp_path: Path
) -> None:
    run = weft.run("", set=FABRIC | LOSSLESS | PAUSING | INCAST, progress=False)
    spec = tmp_path / "pausing.toml"
    spec.write_text(run.spec, encoding="utf-8")
    said = weft_command("run", str(spec)).stdout
    assert run.summary.lossless is not None
    assert f"pause tree: a link was paused because of the one that it hangs on\n{run.summary.lossless.root}: " in said
    assert "└── " in said and "class at ports of switches" in said and "0: acks" in said and "1: flows" in said
    assert set(json.loads(weft_command("run", str(spec), "--json").stdout)) == set(run.summary.raw)


def names_of_classes() -> list[str]:
    return [one["const"] for one in json.loads(_core.schema())["$defs"]["ClassName"]["oneOf"]]


def test_every_class_of_flows_has_a_name_in_tables_and_figures() -> None:
    assert list(_FLOWS) == list(_KIND_TITLES) == names_of_classes()


def test_eight_tenants_have_a_row_each_with_their_flows() -> None:
    names = names_of_classes()
    ports = {
        "fabric.switch_queue.scheduler": "weighted",
        "fabric.switch_queue.class": [{"holds": [name], "weight": at + 1} for at, name in enumerate(names)],
    }
    senders = [1, 2, 3, 4, 5, 6, 7, 1]
    incasts = [{"senders": senders[at], "size": "20KB", "class": name} for at, name in enumerate(names)]
    spec: dict[str, Any] = FABRIC | ports | {"traffic.incast": incasts}
    run = weft.run({}, set=spec)
    assert run.port_classes["holds"].to_list() == names
    assert run.port_classes["flows"].to_list() == senders
    assert sorted(one.class_name for one in run.summary.classes) == sorted(names)
    found = weft.compare(["ecmp", "rps"], set=spec, progress=False)
    table = class_table(found.groups)
    assert table is not None and [title for label, title, *_ in table.rows if label == "rps"] == [
        f"{at}: {name}" for at, name in enumerate(names)
    ]
    four: dict[str, Any] = {"fabric.switch_queue.class": [{"holds": names[:4]}], "traffic.incast": incasts[6:]}
    with pytest.raises(SpecError, match='no class holds the packets of "tc6" flows'):
        weft.run({}, set=spec | four)


def test_classes_add_up_to_the_table_and_know_their_flows() -> None:
    two = [
        {"holds": ["acks", "short"]},
        {"holds": ["unknown", "long", "best-effort"], "lossless": True},
    ]
    shape = {**FABRIC, "fabric.switch_queue.scheduler": "strict", "fabric.switch_queue.class": two}
    traffic: dict[str, Any] = {
        "traffic.incast": [
            {"senders": 4, "size": "100KB", "class": "short"},
            {"senders": 3, "size": "1MB", "class": "long"},
        ]
    }
    found = weft.compare(["ecmp", "rps"], set=shape | traffic | PAUSING, seeds=2, progress=False)
    run = found.runs[0]
    rows = run.port_classes
    ports = run.classes.join(run.links.select("link", "tier"), on="link").filter(pl.col("tier") != "host")
    assert rows["holds"].to_list() == ["acks, short", "unknown, long, best-effort"]
    assert rows["bytes"].sum() == ports["bytes"].sum() and rows["pauses"].sum() == run.pauses["pauses"].sum()
    assert rows["flows"].to_list() == [4, 3]
    means = {one.class_name: one.slowdown.mean for one in run.summary.classes}
    assert rows["mean_slowdown"].to_list() == pytest.approx([means["short"], means["long"]])
    table = class_table(found.groups)
    assert table is not None and [row[:2] for row in table.rows][::2] == [
        ("ecmp", "0: acks, short"), ("rps", "0: acks, short")
    ]  # fmt: skip
    assert "Classes of the ports of switches" in render(found)


def test_ports_of_one_class_have_no_table_of_classes(small: dict[str, int]) -> None:
    run = weft.run("", set=small, progress=False)
    assert run.port_classes.is_empty() and class_table({"ecmp": [run]}) is None


@pytest.mark.all_formats
def test_a_run_that_ends_by_a_deadlock_leaves_its_picture_and_says_where(weft_command: Weft, tmp_path: Path) -> None:
    out = tmp_path / "stuck"
    said = weft_command("run", str(EXAMPLES / "deadlock.toml"), "--set", "run.seed=1", "--out", str(out)).stdout
    picture = out / "figures" / "deadlock.svg"
    assert f"its picture: {picture}" in said.replace("\n", "") or str(picture) in said.replace("\n", "")
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.startswith("<?xml") and {file.suffix for file in picture.parent.iterdir()} == {".svg", ".png", ".pdf"}
    figure = weft.load(out).plot_deadlock()
    assert figure is not None
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert [text for text in texts if text.startswith("ring")] == [f"ring{at}" for at in range(5)]
    assert sum(text.startswith("paused\n") for text in texts) == 5
    # A result with a picture is one of Weft's own, and may be replaced.
    weft_command("run", str(EXAMPLES / "deadlock.toml"), "--out", str(out), "--force")


def test_a_run_that_ends_well_has_no_picture_of_a_deadlock(small: dict[str, int], tmp_path: Path) -> None:
    run = weft.run("", set=small, progress=False)
    assert run.plot_deadlock() is None
    run.write(tmp_path / "well")
    assert not (tmp_path / "well" / "figures").exists()
