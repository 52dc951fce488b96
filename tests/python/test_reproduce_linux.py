"""`weft reproduce --hosts linux`: a figure of the same flows with both kinds of hosts, and their verdicts side by side.

What the hosts of a preset are is the preset's; here it is mostly one without Linux hosts, which needs no kernel.
"""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest import Weft, needs_kernel
from tiny_paper import TINY, write_tiny
from weft.cli.reproduce_progress import Shown
from weft.cli.reproduce_tables import print_made
from weft.errors import SpecError
from weft.papers.declared import LINUX_SCALES, load_paper
from weft.papers.reproduction import Reproduction, make_figures, planned
from weft.papers.runs import Plan, cases_of_experiment
from weft.papers.scorecard import SIGNS

LINUX = """
[experiment.loads.linux]
preset = "qall-symmetric"
set = { "traffic.flows" = 10 }
vary = { "traffic.load" = [0.7] }
"""
CLAIM = """
[[claim]]
id = "letflow"
text = "LetFlow is faster"
place = "section 1"
figure = "1"
panel = 0
rule = { kind = "reduction", of = "letflow:gap=50us", against = ["ecmp"], over = "best", expected = 0.5 }
"""


def papers(folder: Path, linux: str = LINUX) -> Path:
    write_tiny(folder, TINY.replace("[figure.1]", linux + "\n[figure.1]", 1))
    (folder / "tiny-claims.toml").write_text(CLAIM, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    place = tmp_path_factory.mktemp("tiny")
    return make_figures("tiny", hosts="linux", folder=papers(place / "papers"), out=place / "out")


def test_a_figure_is_made_with_both_kinds_of_hosts_from_runs_of_the_same_numbers(made: Reproduction) -> None:
    beside = made.beside
    assert beside is not None and made.ok
    for one, folder in ((made, "linux"), (beside, "simulated")):
        assert one.path.name == folder and one.runs == 2 * 2, "variants, seeds of quick scale"
        assert (one.path / "tiny/1/figure.png").is_file()
        assert [figure.figure.name for figure in one.made] == ["1", "2"]
    data = [one.made[0].data for one in (made, beside)]
    assert all(found is not None and found.runs.flows == (10,) for found in data)
    assert set(made.to_dict()["beside"]) == set(made.to_dict()) - {"beside"}


def test_a_figure_without_a_set_up_for_linux_hosts_is_not_made_and_says_why(made: Reproduction) -> None:
    reasons = {figure.name: figure.reason for figure in made.not_made}
    assert reasons == {"3": "it shows a testbed", "4": "there is no set-up for it with Linux hosts"}


def test_beside_linux_hosts_simulated_ones_have_the_experiment_s_own_set_up(tmp_path: Path) -> None:
    paper = load_paper("tiny", papers(tmp_path))
    experiment = paper.experiments["loads"]
    for scale, hosts_per_leaf in zip(LINUX_SCALES, (2, 16), strict=True):
        case = next(cases_of_experiment(experiment.at(scale)))
        assert f"hosts_per_leaf = {hosts_per_leaf}" in Plan(paper, scale).run(case).spec.text


def test_the_verdicts_stand_side_by_side_and_say_which_command_made_them(made: Reproduction) -> None:
    said = StringIO()
    print_made(Console(file=said, width=200), made)
    lines = said.getvalue().splitlines()
    (head,) = [line for line in lines if "simulated hosts" in line]
    assert head.index("Linux hosts") < head.index("simulated hosts")
    (row,) = [line for line in lines if "LetFlow is faster" in line]
    assert sum(row.count(f"{sign} {verdict}") for verdict, sign in SIGNS.items()) == 2
    for one in (made, made.beside):
        assert one is not None
        (card,) = one.scorecards
        assert card.commands == ["weft reproduce tiny 1 2 --hosts linux"]
    figures = made.scorecards[0].figures
    assert figures["1"].text.startswith("Linux hosts, 4 runs (10 flows, 2 seeds)")


def test_no_time_is_told_for_runs_whose_processes_nobody_timed(made: Reproduction) -> None:
    said: list[str] = []

    class Console:
        def say(self, line: str) -> None:
            said.append(line)

    show: Any = Console()
    assert made.beside is not None
    for one in (made, made.beside):
        Shown(show).made(one.made[0])
    assert said[0] == "tiny 1: made" and "two quiet cores" in said[1]


@pytest.mark.parametrize(
    ("linux", "said"),
    [
        ("[experiment.loads.linux]\n", "preset is missing"),
        (LINUX + "flows = 3\n", "unknown key 'flows'"),
        (LINUX.replace("traffic.load", "traffic.seed"), "traffic.seed is not varied at quick scale"),
    ],
)
def test_a_mistake_in_the_declaration_is_told(tmp_path: Path, linux: str, said: str) -> None:
    with pytest.raises(SpecError, match=rf"experiment\.loads\.linux: .*{said}"):
        load_paper("tiny", papers(tmp_path, linux))


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--hosts", "mininet"), "no kind of hosts 'mininet'"), (("--hosts", "linux", "--scale", "paper"), "one scale")],
)
def test_what_there_is_not_is_refused(weft_command: Weft, options: tuple[str, ...], said: str) -> None:
    done = weft_command("reproduce", "qall", "10", *options)
    assert done.code == 2
    assert said in done.stderr


@needs_kernel
def test_qall_s_figure_10_has_a_set_up_with_linux_hosts_and_all_its_runs_resolve() -> None:
    for scale in LINUX_SCALES:
        (one,) = planned("qall", ["10"], scale=scale)
        assert one.figure.reason is None and len(one.cases) == 63
        kinds = {'kind = "linux"' in one.plan.run(case).spec.text for case in one.cases}
        assert kinds == {scale == "linux"}
