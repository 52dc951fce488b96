"""Every run of every paper that comes with Weft resolves, at both scales, and every measure reads what there is."""

import tomllib
from pathlib import Path

import pytest

from tiny_paper import TINY, write_tiny
from weft.papers.declared import SCALES, Measure, Scale, load_paper, paper_names
from weft.papers.runs import Plan, cases_of_experiment
from weft.papers.special import find_special
from weft.papers.times import read_times
from weft.papers.values import value_of, values_of
from weft.simulation import Result, run

pytestmark = pytest.mark.slow

PAPERS = paper_names()


@pytest.mark.parametrize(
    "scale", [pytest.param(scale, marks=[] if scale == "quick" else [pytest.mark.nightly]) for scale in SCALES]
)
@pytest.mark.parametrize("name", PAPERS)
def test_every_spec_resolves(name: str, scale: Scale) -> None:
    paper = load_paper(name)
    plan = Plan(paper, scale)
    for experiment in paper.experiments.values():
        # The seeds of a place differ in nothing that could be wrong.
        runs = [plan.run(case) for case in cases_of_experiment(experiment.at(scale)) if case.seed == 1]
        assert len({run.id for run in runs}) == len(runs), f"{experiment.name}: two places are the same run"


@pytest.fixture(scope="module")
def sampled() -> Result:
    settings = {"run.sample_every": "50us", "run.paths_of": "1KB", "run.bins": "tr", "traffic.flows": 60}
    return run("", set={"fabric.leaves": 2, "fabric.spines": 2, "fabric.hosts_per_leaf": 4, **settings})


def measures(name: str) -> list[tuple[str, Measure]]:
    figures = load_paper(name).figures.values()
    found = [(panel.plot, measure) for figure in figures for panel in figure.panels for measure in panel.measures]
    return list({str(one): one for one in found}.values())


@pytest.mark.parametrize("name", PAPERS)
def test_every_measure_reads_columns_that_there_are(name: str, sampled: Result) -> None:
    for plot, measure in measures(name):
        if plot in ("cdf", "box"):
            values_of(sampled, measure)
        elif measure.bin is None or measure.bin < len(sampled.summary.size_bins):
            value_of(sampled, measure)


@pytest.mark.parametrize("name", PAPERS)
def test_every_special_figure_has_its_functions(name: str) -> None:
    for figure in load_paper(name).figures.values():
        if figure.special is not None:
            special = find_special(figure.special)
            assert callable(special.make) and callable(special.draw)


def test_measured_times_are_of_figures_that_there_are_and_within_three_minutes_at_quick_scale() -> None:
    for scale, papers in read_times().items():
        for name, figures in papers.items():
            assert set(figures) <= set(load_paper(name).figures), f"{scale}: {name}"
            assert scale != "quick" or max(figures.values()) <= 180.0


def test_a_variant_keeps_the_keys_of_the_spec_that_it_knows(tmp_path: Path) -> None:
    text = TINY.replace("flows = 60 } }", 'flows = 60 }, transport = { name = "dctcp", min_rto = "7ms" } }')
    text = text.replace('schemes = ["ecmp", "letflow:gap=50us"]', 'schemes = ["dctcp", "mptcp+letflow:gap=50us"]', 1)
    text = text.replace('relative_to = "ecmp"', 'relative_to = "dctcp"')
    paper = load_paper("tiny", write_tiny(tmp_path, text))
    plan = Plan(paper, "quick")
    cases = cases_of_experiment(paper.experiments["loads"].at("quick"))
    specs = {case.variant: tomllib.loads(plan.run(case).spec.text) for case in cases}
    own, other = specs["dctcp"], specs["mptcp+letflow:gap=50us"]
    assert own["transport"]["name"] == "dctcp" and own["transport"]["min_rto"] == "7ms"
    assert other["transport"]["name"] == "mptcp" and other["transport"]["min_rto"] == "7ms"
    assert other["scheme"]["name"] == "letflow" and other["scheme"]["gap"] == "50us"
    assert own["scheme"]["name"] == "ecmp"
