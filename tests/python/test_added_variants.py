"""A figure may show schemes that its paper does not have: it says so, and no claim of the paper changes its meaning."""

import random
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from papering import data, grid
from weft.papers.claims import load_claims
from weft.papers.declared import FigureSpec, PanelSpec, Paper, load_paper
from weft.papers.drawing.note import note_below
from weft.papers.measured import FigureData, RunsUsed
from weft.papers.measuring import measure_name
from weft.papers.runs import Plan, cases_of_figure
from weft.papers.scorecard import figure_verdicts, judged
from weft.papers.verdicts import Verdict

PAPER = """
[paper]
name = "made"
title = "MADE"
labels = { rps = "Random" }

[experiment.e]
spec = { fabric = { leaves = 2, spines = 2, hosts_per_leaf = 2 }, traffic = { workload = "web-search", flows = 30 } }
schemes = ["ecmp", "drill"]
added = ["rps"]
vary = { "traffic.load" = [0.3, 0.6] }
seeds = 3

[experiment.e.quick]
set = { "traffic.flows" = 10 }

[figure.1]
title = "Times"
[[figure.1.panel]]
experiment = "e"
x = "traffic.load"
measure = { metric = "mean_fct_us" }
"""
LEVELS = {"ecmp": 100.0, "drill": 50.0, "rps": 10.0}


def declared(folder: Path, rule: str, text: str = PAPER) -> Paper:
    (folder / "made.toml").write_text(text)
    claim = f'[[claim]]\nid = "c"\ntext = "t"\nplace = "p"\nfigure = "1"\nrule = {{ {rule} }}\n'
    (folder / "made-claims.toml").write_text(claim)
    return load_paper("made", folder)


def times(*schemes: str, rising: str = "") -> FigureData:
    """Each scheme at its own level at both loads; one may rise with the load."""
    rows = grid(
        schemes, (0.3, 0.6), lambda one, x, _: LEVELS[one] * (x**3 if one == rising else 1.0), measure="mean_fct_us"
    )
    return data(rows, seeds=3)


def verdict(paper: Paper, found: FigureData) -> Verdict:
    (one,) = judged(paper, paper.figures["1"], found, load_claims(paper))
    return one.verdict


@pytest.mark.parametrize(
    ("rule", "rising"),
    [
        ('kind = "at-least", bound = 40.0', ""),
        ('kind = "slope", trend = "flat"', "rps"),
    ],
)
def test_all_others_of_a_claim_are_all_of_the_paper(tmp_path: Path, rule: str, rising: str) -> None:
    """Check that data which reproduce the claim speak against it if the added scheme is one of the paper's own."""
    every = times("ecmp", "drill", "rps", rising=rising)
    assert verdict(declared(tmp_path, rule), every) is Verdict.REPRODUCED
    own = PAPER.replace('"drill"]\nadded = ["rps"]', '"drill", "rps"]')
    assert verdict(declared(tmp_path, rule, own), every) is not Verdict.REPRODUCED


def test_a_claim_that_names_an_added_scheme_is_about_it(tmp_path: Path) -> None:
    paper = declared(tmp_path, 'kind = "reduction", of = "drill", against = "rps", over = "mean"')
    assert verdict(paper, times("ecmp", "drill", "rps")) is Verdict.NOT_REPRODUCED


def test_the_note_of_a_figure_says_what_is_added(tmp_path: Path) -> None:
    paper = declared(tmp_path, 'kind = "zero"')
    runs = RunsUsed("quick", runs=1)
    assert "Random" in note_below(paper, paper.figures["1"], runs)
    (panel,) = paper.figures["1"].panels
    without = replace(paper.figures["1"], panels=(replace(panel, variants=("ecmp", "drill")),))
    assert "Random" not in note_below(paper, without, runs)


def test_an_added_scheme_runs_as_the_others_do_at_both_scales(tmp_path: Path) -> None:
    """Check that the schemes of a scale replace those of the paper's scale, added ones too."""
    paper = declared(tmp_path, 'kind = "zero"')
    for scale, flows in (("paper", 30), ("quick", 10)):
        plan = Plan(paper, scale)  # type: ignore[arg-type]
        cases = cases_of_figure(paper.figures["1"], paper, plan.scale)
        assert [case.variant for case in cases if case.seed == 1][::2] == ["ecmp", "drill", "rps"]
        assert {plan.run(case).spec.table("traffic")["flows"] for case in cases} == {flows}
    other = declared(tmp_path, 'kind = "zero"', PAPER.replace("= 10 }", '= 10 }\nschemes = ["letflow"]'))
    assert list(other.experiments["e"].at("quick").variants) == ["letflow"]
    assert other.added_to(other.figures["1"], "quick") == ()


def compared(paper: Paper) -> list[FigureSpec]:
    return [one for one in paper.figures.values() if "rps" in paper.added_to(one, "quick")]


def test_no_verdict_on_qall_depends_on_random_spraying() -> None:
    """Whatever comes out: values at random, with and without the rows of RPS."""
    paper = load_paper("qall")
    names = {one.name for one in compared(paper)}
    assert {"9", "10", "11", "12", "13", "14", "15", "19", "20", "27", "table-3"} <= names
    tested = 0
    for figure in compared(paper):
        draw = random.Random(figure.name)
        rows = []
        panels: list[PanelSpec | None] = [*figure.panels] or [None] * 3  # a special figure has no more
        for place, panel in enumerate(panels):
            grid_ = paper.experiments[panel.experiment if panel else figure.experiments[0]].at("quick")
            points = [(value.label, value.number) for value in grid_.vary.get("traffic.load", ())] or [("", None)]
            labels = [measure_name(one) for one in panel.measures] if panel else ["mean"]
            rows += [
                (place, one, label, number, seed, measure, draw.uniform(0.01, 100.0))
                for one in grid_.variants
                for label, number in points
                for measure in labels
                for seed in (1, 2, 3)
            ]
        every = data(rows, seeds=3)
        without = replace(every, rows=every.rows.filter(pl.col("variant") != "rps"))
        assert every.rows.height > without.rows.height
        found = [figure_verdicts(paper, figure, one)["claims"] for one in (every, without)]
        assert found[0] == found[1]
        tested += len(found[0])
    assert tested > 80
