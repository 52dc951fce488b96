"""A load balancer of one's own in the place of a paper's: its claims are judged of it."""

from pathlib import Path

import pytest

from conftest import Weft
from weft import SpecError
from weft.multiverse import asked
from weft.papers.declared import load_paper
from weft.papers.drawing.note import note_below
from weft.papers.reproduction import make_figures, planned
from weft.papers.substitute import with_substitute

pytestmark = pytest.mark.slow

PAPER = """
[paper]
name = "letflow"
title = "LetFlow"

[experiment.loads]
spec = { fabric = { leaves = 2, spines = 2, hosts_per_leaf = 2 }, traffic = { workload = "web-search", flows = 20 } }
schemes = ["ecmp", "letflow", "letflow:gap=50us"]
vary = { "traffic.load" = [0.4] }
seeds = 2

[experiment.loads.quick]
set = { "traffic.flows" = 15 }

[figure.1]
title = "FCT"
[[figure.1.panel]]
experiment = "loads"
x = "traffic.load"
measure = { metric = "mean_fct_us" }
"""
CLAIM = """
[[claim]]
id = "less"
text = "LetFlow has shorter completion times than ECMP."
place = "here"
figure = "1"
rule = { kind = "reduction", of = ["letflow"], against = ["ecmp"] }
"""
FIRST = """
import weft

class First(weft.Scheme):
    def choose(self, switch, packet, ports):
        return 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "letflow.toml").write_text(PAPER)
    (papers / "letflow-claims.toml").write_text(CLAIM)
    (tmp_path / "first.py").write_text(FIRST)
    return papers


def test_it_takes_the_place_of_the_papers_scheme_and_of_no_other(folder: Path) -> None:
    scheme = f"{folder.parent / 'first.py'}:First"
    paper = with_substitute(load_paper("letflow", folder), scheme)
    for experiment in (paper.experiments["loads"], paper.experiments["loads"].quick):
        assert experiment is not None
        assert dict(experiment.variants) == {
            "ecmp": {"scheme": "ecmp"},
            "letflow": {"scheme": scheme},
            "letflow:gap=50us": {"scheme": "letflow:gap=50us"},
        }
    assert paper.label("letflow") == scheme
    for wrong, message in (("tcp", "only a load balancer can stand in"), ("first", "there is no scheme")):
        with pytest.raises(SpecError, match=message):
            with_substitute(load_paper("letflow", folder), wrong)
    with pytest.raises(SpecError, match="maxpass: has no load balancer of its own"):
        with_substitute(load_paper("maxpass"), "ecmp")


def test_figures_and_verdicts_are_about_it_and_say_so(folder: Path, tmp_path: Path) -> None:
    scheme = f"{tmp_path / 'first.py'}:First"
    made = make_figures("letflow", scheme=scheme, out=tmp_path / "out", folder=folder)
    assert made.ok and made.runs == 6
    assert made.made[0].data is not None
    rows = made.made[0].data.rows.filter(measure="mean_fct_us")
    means = {key: rows.filter(variant=key)["value"].mean() for key in ("ecmp", "letflow", "letflow:gap=50us")}
    assert len(set(means.values())) == 3
    paper = with_substitute(load_paper("letflow", folder), scheme)
    note = note_below(paper, paper.figure("1"), made.made[0].data.runs)
    assert scheme in note and "LetFlow" in note


def test_scenarios_are_those_of_the_others_without_readings_of_what_it_replaced(folder: Path, tmp_path: Path) -> None:
    own = asked("letflow", folder=folder)
    assert "letflow.gap" in own.choices
    with pytest.raises(SpecError, match="nothing is declared to be open"):
        asked("letflow", scheme=f"{tmp_path / 'first.py'}:First", folder=folder)
    with pytest.raises(SpecError, match="of one paper"):
        planned("all", scheme="ecmp", folder=folder)


def test_the_multiverse_takes_it_on_the_command_line(folder: Path, weft_command: Weft, tmp_path: Path) -> None:
    done = weft_command("multiverse", "lbt", "8", "--list", "--schemes", "first.py:First")
    assert done.code == 0 and "drill.memory" in done.stdout and "lbt." not in done.stdout
    assert "lbt." in weft_command("multiverse", "lbt", "8", "--list").stdout
    done = weft_command("multiverse", "lbt", "8", "--list", "--scheme", "first.py")
    assert done.code == 2 and "as in first.py:Least" in done.stderr
