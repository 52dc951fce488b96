"""The papers' declarations: what comes with Weft is right, and a mistake in a file is answered with where and what."""

from pathlib import Path

import pytest

from weft.errors import SpecError
from weft.papers.declared import Paper, load_paper, paper_names

SMALL = """
[paper]
name = "small"

[experiment.one]
spec = { fabric = { leaves = 2, spines = 2, hosts_per_leaf = 2 }, traffic = { flows = 20 } }
schemes = ["ecmp", "letflow:gap=50us"]
variants = { RPS = { "scheme.name" = "rps" } }
vary.buffers = [{ label = "100KB", set = { "fabric.switch_queue.buffer" = "100KB" } }]
vary."traffic.load" = [0.3, 0.6]
seeds = 3

[experiment.one.quick]
vary = { "traffic.load" = [0.3] }
seeds = 2

[figure.1]
title = "FCT"

[[figure.1.panel]]
experiment = "one"
x = "traffic.load"
measure = { metric = "mean_fct_us" }
"""


def read(folder: Path, text: str) -> Paper:
    (folder / "small.toml").write_text(text, encoding="utf-8")
    return load_paper("small", folder)


@pytest.mark.parametrize("name", paper_names())
def test_the_papers_that_come_with_weft_are_right(name: str) -> None:
    paper = load_paper(name)
    assert paper.figures and paper.title


def test_quick_scale_differs_in_what_it_says_and_in_nothing_else(tmp_path: Path) -> None:
    experiment = read(tmp_path, SMALL).experiments["one"]
    paper, quick = experiment.at("paper"), experiment.at("quick")
    assert (paper.seeds, quick.seeds) == (3, 2)
    assert [value.label for value in paper.vary["traffic.load"]] == ["0.3", "0.6"]
    assert [value.label for value in quick.vary["traffic.load"]] == ["0.3"]
    assert quick.vary["buffers"] == paper.vary["buffers"] and paper.vary["buffers"][0].number == 100e3
    assert list(quick.variants) == list(paper.variants) == ["ecmp", "letflow:gap=50us", "RPS"]


def test_labels_fall_back_to_the_schemes_name_in_capitals(tmp_path: Path) -> None:
    paper = read(tmp_path, SMALL.replace('"small"', '"small"\nlabels = { letflow = "LetFlow" }'))
    labels = [paper.label(key) for key in ("ecmp", "letflow", "letflow:gap=50us", "MPTCP r=0", "degree 3")]
    assert labels == ["ECMP", "LetFlow", "LetFlow:gap=50us", "MPTCP r=0", "degree 3"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = 3", "seed = 3", "small.toml: experiment.one: unknown key 'seed'; did you mean 'seeds'?"),
        ("seeds = 3", 'set = { "scheme.gap" = "1ms" }', "scheme.gap would be lost"),
        ("seeds = 3", "seeds = 11", "seeds = 11: expected 1 to 10"),
        ("seeds = 3", "seeds = 'x'", "small.toml: experiment.one: seeds = 'x': expected a whole number"),
        ("mean_fct_us", "mean_ftc_us", "no metric 'mean_ftc_us'; did you mean 'mean_fct_us'?"),
        ('x = "traffic.load"', 'x = "traffic.laod"', "did you mean 'traffic.load'?"),
        ('x = "traffic.load"', 'where = { "traffic.load" = 0.6 }', "no value of traffic.load at quick scale '0.6'"),
        ('x = "traffic.load"', "", "traffic.load is varied at paper scale: make it x"),
        ('x = "traffic.load"', 'x = "traffic.load"\nvariants = ["rps"]', "no variant at quick scale 'rps'"),
        ('x = "traffic.load"', 'x = "traffic.load"\nplot = "line"', "plot = 'line'; did you mean 'lines'?"),
        ('x = "traffic.load"', 'x = "traffic.load"\nplot = "cdf"', "a cdf plot needs a table and a column"),
        ('experiment = "one"', 'experiment = "won"', "no experiment 'won'; did you mean 'one'?"),
        ('metric = "mean_fct_us"', 'table = "flows", column = "fct_us"', "statistic"),
        ('"letflow:gap=50us"', '"letflwo"', 'no scheme "letflwo"; did you mean "letflow"?'),
        ("0.3, 0.6", "0.3, 0.3", "traffic.load has a value twice"),
        ('title = "FCT"', 'title = "FCT"\nreason = "lost"', "needs panels, or special, or the reason"),
        ('name = "small"', 'name = "large"', "the file is called small.toml"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_with_where_and_what(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(SpecError) as caught:
        read(tmp_path, SMALL.replace(old, new, 1))
    assert message in str(caught.value)


def test_an_unknown_paper_or_figure_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean 'small'"):
        read(tmp_path, SMALL) and load_paper("smal", tmp_path)
    with pytest.raises(SpecError, match="no figure of small '2'"):
        read(tmp_path, SMALL).figure("2")
