"""The report of a sweep has a cell for every point and variant, says what failed, and keeps users' texts as text."""

import json
from pathlib import Path

import pytest

import weft
from conftest import SMALL, Weft
from test_report import EVIL, Page
from weft.report import render_directory, render_sweep
from weft.sweeps import Sweep, SweepRun

pytestmark = pytest.mark.slow

SHAPE = {key: value for key, value in SMALL.items() if key != "fabric.spines"}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    vary: dict[str, list[float]] = {"traffic.load": [0.3, 0.8], "fabric.spines": [1, 2]}
    folder = tmp_path_factory.mktemp("sweep") / "out"
    return weft.sweep("", folder, set=SHAPE, vary=vary, schemes=["ecmp", "rps"], seeds=2, jobs=1)


def test_every_point_has_a_cell_for_each_variant_with_the_mean_over_its_seeds(sweep: Sweep) -> None:
    data = json.loads(Page(render_sweep(sweep)).data)
    assert [field["key"] for field in data["fields"]] == ["traffic.load", "fabric.spines"]
    assert data["fields"][0]["numbers"] == [0.3, 0.8]
    assert [scheme["label"] for scheme in data["schemes"]] == ["ecmp", "rps"]
    assert sorted(point["at"] for point in data["points"]) == [[0, 0], [0, 1], [1, 0], [1, 1]]
    for point in data["points"]:
        load, spines = (field["values"][at] for field, at in zip(data["fields"], point["at"], strict=True))
        for scheme, cell in zip(("ecmp", "rps"), point["cells"], strict=True):
            labels = {"traffic.load": load, "fabric.spines": spines, "scheme": scheme}
            (found,) = (one for one in sweep.points if one.labels == labels)
            mean = found.estimates["mean_fct_us"]
            assert mean is not None
            assert cell["fct"]["mean"][0][0] == pytest.approx(mean.mean, rel=1e-4)
            shares = cell["curves"]["fct"][0][1]
            assert shares == sorted(shares) and shares[-1] == 1.0


def test_the_flows_of_a_point_are_those_of_its_runs_alone(sweep: Sweep) -> None:
    point = sweep.points[0]
    flows = sweep.table_at("flows", point)
    assert flows.height == 2 * SMALL["traffic.flows"]
    assert {key: str(flows.item(0, key)) for key in point.labels} == dict(point.labels)


def test_a_sweep_of_seeds_alone_has_one_point_and_nothing_to_draw_it_against(tmp_path: Path) -> None:
    found = weft.sweep("", tmp_path / "out", set=dict(SMALL), seeds=2, jobs=1)
    page = Page(render_sweep(found))
    data = json.loads(page.data)
    assert (len(data["points"]), data["fields"]) == (1, [])
    assert [scheme["label"] for scheme in data["schemes"]] == ["all runs"]
    assert "against" not in {attributes.get("id") for _, attributes in page.tags}


def test_headings_stand_over_texts_as_the_texts_do(sweep: Sweep) -> None:
    table = render_sweep(sweep).split('aria-label="All points"')[1].split("</thead>")[0]
    heads = table.split("<th ")[1:]
    assert [head.startswith('scope="col" class="field"') for head in heads[:4]] == [True, True, True, False]
    assert ">scheme<" in heads[2]


def test_the_report_has_the_command_that_made_it(sweep: Sweep, tmp_path: Path, weft_command: Weft) -> None:
    assert "The whole sweep:" not in render_sweep(sweep), "no command made it"
    options = ("--vary", "traffic.load=0.3,0.5", "--flows", "10", "--out", "my sweep")
    assert weft_command("sweep", *options).code == 0
    page = Page(render_directory(tmp_path / "my sweep"))
    assert "How to reproduce" in page.text
    assert "weft sweep --vary traffic.load=0.3,0.5 --flows 10 --out 'my sweep'" in page.text


def test_failures_are_listed_and_texts_of_users_stay_text() -> None:
    def page(text: str) -> Page:
        runs = [SweepRun({"traffic.workload": text, "scheme": text}, None, text)]
        return Page(render_sweep(Sweep(Path("out"), {"traffic.workload": [text], "scheme": [text]}, runs)))

    evil, plain = page(EVIL), page("x")
    assert [tag for tag, _ in evil.tags] == [tag for tag, _ in plain.tags]
    assert "1 run failed" in evil.text and evil.text.count(EVIL) >= 3
    assert json.loads(evil.data)["points"] == [{"at": [0], "cells": [None]}]


def test_the_command_writes_the_report_of_a_sweep(sweep: Sweep, weft_command: Weft) -> None:
    done = weft_command("report", sweep.path)
    assert done.code == 0 and "report.html" in done.stderr
    assert (sweep.path / "report.html").read_text(encoding="utf-8") == render_directory(sweep.path)
