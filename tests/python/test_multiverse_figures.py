"""Scenarios change figures that are made by a function of their own as they change panels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weft.errors import SpecError
from weft.multiverse.exploring import asked, explore
from weft.multiverse.judging import Explorer
from weft.multiverse.parts import Part
from weft.multiverse.result import Multiverse
from weft.papers.declared import load_paper
from weft.papers.reproduction import make_figures
from weft.papers.runs import Plan, cases_of_figure
from weft.papers.scenarios import DEFAULT, Scenario, choices_of, in_scenario, parse_scenario
from weft.papers.special import tr_model
from weft.runs.execution import Executor
from weft.runs.store import place_of_store

FABRIC = '{ kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2 }'
HEAD = """
[paper]
name = "made"
title = "MADE: a paper of which all is known"

[open.host-delay]
question = "How long are the cables of hosts?"
[open.host-delay.alternatives]
short = { source = "made up" }
long = { source = "made up", set = { "fabric.host_delay" = "200us" } }
"""
SHARING = f"""
{HEAD}
[open.slot]
question = "How long is a slot?"
[open.slot.alternatives]
short = {{ source = "made up" }}
long = {{ source = "made up", options = {{ slot = {{ quick = 0.004 }} }} }}

[experiment.e]
schemes = ["ecmp", "drill"]
added = ["rps"]
seeds = 2
set = {{ "run.sample_every" = "500us" }}
tables = ["flows", "links", "samples"]
[experiment.e.spec]
fabric = {FABRIC}
traffic = {{ size = "300KB", load = 0.6, flows = 100 }}
transport = {{ name = "tcp" }}

[figure.1]
title = "Load sharing"
special = "qall-load-sharing"
experiments = ["e"]
options = {{ slot = {{ quick = 0.002 }} }}

[figure.2]
title = "Completion times over those of ECMP, which is not shown"
[[figure.2.panel]]
experiment = "e"
plot = "bars"
variants = ["drill"]
measure = {{ metric = "mean_fct_us" }}
relative_to = "ecmp"

[figure.3]
title = "Sizes"
special = "workload-cdf"
options = {{ workloads = ["web-search"], bins = "qall" }}

[figure.4]
title = "Costs"
special = "scheme-costs"
experiments = ["e"]
"""


def claims(*rules: tuple[str, int, str]) -> str:
    """A claim for each figure, panel and rule, called by its place."""
    return "".join(
        f"""
[[claim]]
id = "c{place}"
text = "made up"
place = "everywhere"
figure = "{figure}"
panel = {panel}
rule = {{ {rule} }}
"""
        for place, (figure, panel, rule) in enumerate(rules)
    )


def write(folder: Path, paper: str, own_claims: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "made.toml").write_text(paper)
    (folder / "made-claims.toml").write_text(own_claims)
    return folder


def explored(folder: Path, out: Path, *choices: str) -> Multiverse:
    return explore(asked("made", choices=choices, folder=folder), budget_cpu_min=10.0, out=out)


def reproduced(folder: Path, out: Path, figure: str, scenario: Scenario) -> Mapping[str, Any]:
    """Return the values that `weft reproduce --scenario` measures for each claim of a figure."""
    text = None if not scenario.changed else str(scenario)
    (made,) = make_figures("made", [figure], scenario=text, out=out, folder=folder).made
    assert made.error is None
    return {own["id"]: own["measured"] and own["measured"]["text"] for own in made.verdicts}


@pytest.fixture
def sharing(tmp_path: Path) -> Path:
    rules = (
        ("1", 1, 'kind = "at-most", of = "ecmp", against = "drill", bound = 1.0'),
        ("1", 1, 'kind = "value", of = "ecmp", expected = 0.1'),
        ("2", 0, 'kind = "value", of = "drill", expected = 1.0'),
    )
    return write(tmp_path / "papers", SHARING, claims(*rules))


@pytest.mark.nightly
def test_a_special_figure_is_in_each_scenario_what_reproduce_makes_of_it(sharing: Path, tmp_path: Path) -> None:
    """A choice of the fabric, one of a scheme, and an option of the figure, in all combinations."""
    found = explored(sharing, tmp_path / "out", "host-delay", "drill.age", "slot")
    assert len(found.seen) == 8
    told = set()
    for one in found.seen:
        again = reproduced(sharing, tmp_path / "again", "1", one.scenario)
        own = {name: judgement.measured_text for name, judgement in one.judgements.items() if name in again}
        assert own == again
        told.add(own["c1"])
    assert len(told) == 4, "two delays and two slots: each changes what ECMP shares, and what DRILL knows does not"


def test_scenarios_share_the_runs_of_a_special_figure_that_they_do_not_change(sharing: Path, tmp_path: Path) -> None:
    """Two variants and two seeds, and two runs more of DRILL. RPS is not the paper's: no claim needs its runs."""
    found = explored(sharing, tmp_path / "out", "drill.age", "slot")
    assert (len(found.seen), found.runs) == (4, 6)
    again = explored(sharing, tmp_path / "out", "drill.age", "slot")
    assert (again.kept, again.cpu_s) == (6, 0.0)


def test_a_variant_that_others_are_divided_by_is_run_though_no_panel_shows_it(sharing: Path, tmp_path: Path) -> None:
    found = explored(sharing, tmp_path / "out", "drill.age")
    measured = found.default.judgements["c2"].measured
    assert measured is not None and measured.mean > 0.0


def test_a_run_that_figures_share_is_counted_once_in_what_their_parts_take(sharing: Path, tmp_path: Path) -> None:
    """Both figures show DRILL, and one divides by ECMP, which the other shows: a design is not estimated twice."""
    asking = asked("made", choices=["drill.age"], folder=sharing)
    with Executor(place_of_store(tmp_path / "out")) as executor:
        explorer = Explorer(
            asking.paper, asking.figures, "quick", asking.claims, asking.choices, executor, tmp_path / "inputs"
        )
        explorer.do([DEFAULT])
    assert len(explorer.concern) == 3
    parts_s = sum(explorer.cpu_of(Part(figure, name, DEFAULT)) for figure, name in explorer.concern)
    assert parts_s == pytest.approx(explorer.cpu_s)


def test_a_figure_that_no_scenario_changes_is_left_out_with_the_reason(sharing: Path) -> None:
    rules = (("3", 0, 'kind = "zero"'), ("4", 1, 'kind = "zero"'), ("1", 1, 'kind = "zero"'))
    write(sharing, SHARING, claims(*rules))
    question = asked("made", folder=sharing)
    assert [one.id for one in question.claims] == ["c2"]
    assert "figure 3" in question.left_out["c0"] and "no run is needed" in question.left_out["c0"]
    assert "figure 4" in question.left_out["c1"] and "CPU time" in question.left_out["c1"]


MODEL = f"""
{HEAD}
[experiment.model]
schemes = ["rps", "tr"]
seeds = 2
[experiment.model.spec]
fabric = {{ kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 10 }}
traffic = {{ size = "1KB", load = 0.1, flows = 10 }}

[figure.1]
title = "A model"
special = "tr-model"
set_ups = ["model"]
"""


def test_runs_that_a_special_figure_does_itself_are_of_the_scenario_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow takes 400 us or more where the cable of either host takes 200 us, and far less by default."""
    monkeypatch.setattr(tr_model, "PANELS", {"size": (tr_model.Point(10, 10),), "flows": (tr_model.Point(10, 10),)})
    rule = 'kind = "at-least", of = "tr", bound = 400.0 }\nwhere = { measure = "simulation"'
    folder = write(tmp_path / "papers", MODEL, claims(("1", 0, rule)))
    found = explored(folder, tmp_path / "out", "host-delay")
    (claim,) = found.claims
    assert (claim.share.holds, claim.share.scenarios, str(claim.nearest)) == (1, 2, "host-delay=long")
    assert found.runs == 2 * 2 * 2, "two schemes with two seeds in two scenarios"
    (_, long) = found.seen
    assert {"c0": long.judgements["c0"].measured_text} == reproduced(folder, tmp_path / "again", "1", long.scenario)
    again = explored(folder, tmp_path / "out", "host-delay")
    assert (again.kept, again.cpu_s) == (8, 0.0)


FIT = f"""
{HEAD}
[open.reading]
question = "What stands for a window?"
[open.reading.alternatives]
latest = {{ source = "made up" }}
mean = {{ source = "made up", options = {{ reading = "mean" }} }}

[experiment.observed]
schemes = ["ecmp"]
seeds = 2
[experiment.observed.spec]
fabric = {{ leaves = 2, spines = 2, hosts_per_leaf = 8, host_rate = "100Mbps", fabric_rate = "100Mbps" }}
traffic = {{ workload = "web-search", load = 0.6, flows = 100 }}
transport = {{ name = "tcp", max_window = "131072B" }}

[figure.1]
title = "A fit"
special = "qall-fit"
set_ups = ["observed"]
options = {{ samples = {{ quick = 3000 }}, window = "1ms", ports = "spine", reading = "latest", time_constant = "1ms" }}
"""


def test_observations_are_of_the_scenario_and_count_for_the_budget(tmp_path: Path) -> None:
    """They are in no store: what they take is what the making takes. The reading is an option of the figure."""
    rule = 'kind = "value", of = "degree 2", expected = 0.5 }\nwhere = { measure = "R²"'
    folder = write(tmp_path / "papers", FIT, claims(("1", 0, rule)))
    found = explored(folder, tmp_path / "out", "reading", "host-delay")
    assert (found.runs, found.failed) == (0, {})
    assert found.cpu_s > 0.0
    texts = {str(one.scenario): one.judgements["c0"].measured_text for one in found.seen}
    assert len(texts) == 4 and len(set(texts.values())) == 4
    mean = next(one.scenario for one in found.seen if str(one.scenario) == "reading=mean")
    assert reproduced(folder, tmp_path / "again", "1", mean) == {"c0": texts["reading=mean"]}


def test_a_figure_that_cannot_be_made_in_a_scenario_has_no_value_there(tmp_path: Path) -> None:
    """The reason is told, and other figures of that scenario are judged."""
    rules = (("1", 0, 'kind = "zero", of = "degree 1"'), ("2", 0, 'kind = "value", of = "ecmp", expected = 1.0'))
    paper = FIT.replace('reading = "mean" }', 'reading = "meen" }') + (
        '[figure.2]\ntitle = "Times"\n[[figure.2.panel]]\nexperiment = "observed"\nplot = "bars"\n'
        'measure = { metric = "mean_fct_us" }\n'
    )
    folder = write(tmp_path / "papers", paper, claims(*rules))
    found = explored(folder, tmp_path / "out", "reading")
    assert list(found.failed) == ["figure 1 in scenario reading=mean"]
    assert "did you mean 'mean'" in found.failed["figure 1 in scenario reading=mean"]
    (_, other) = found.seen
    assert other.judgements["c0"].measured is None
    assert other.judgements["c1"].measured == found.default.judgements["c1"].measured


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("options = { slot = { quick = 0.004 } }", "options = { slots = 1 }", "did you mean 'slot'"),
        ("options = { slot = { quick = 0.004 } }", "multiply = { x = 2 }", "needs set"),
        ('"200us" }', '"200us" }, multiply = { "traffic.flows" = 0 }', "a number above 0"),
        ('experiments = ["e"]\noptions', 'experiments = ["e"]\nset_ups = ["f"]\noptions', "set_ups"),
        ('added = ["rps"]', 'added = ["drill"]', "one of the schemes too"),
    ],
)
def test_a_mistake_in_what_is_open_is_answered(sharing: Path, old: str, new: str, message: str) -> None:
    assert SHARING.count(old) == 1
    (sharing / "made.toml").write_text(SHARING.replace(old, new))
    with pytest.raises(SpecError, match=message):
        load_paper("made", sharing)


@pytest.mark.nightly
def test_the_scenario_in_which_qall_is_ahead_can_be_made() -> None:
    """Smaller flows, as many more of them; ports that drain more slowly than their cables; DRILL that sees late."""
    declared = load_paper("qall")
    choices = choices_of(declared)
    scenario = parse_scenario("sizes=32nd,ports=25Kpps,drill.age=621us", choices)
    plan = Plan(in_scenario(declared, scenario), "quick")
    default = Plan(declared, "quick")
    for figure in ("9", "10", "12", "table-3", "15", "18"):
        for case in cases_of_figure(declared.figures[figure], declared, "quick"):
            if case.seed == 1:
                spec, before = (one.run(case).spec for one in (plan, default))
                assert spec.table("traffic")["size_scale"] == 1 / 32
                assert spec.table("traffic")["flows"] == 32 * before.table("traffic")["flows"]
                assert spec.table("fabric")["software_switch"]["port_rate"] == "25000pps"
                scheme = before.table("scheme")
                late = scheme | {"age": "621us"} if case.variant == "drill" else scheme
                assert spec.table("scheme") == late
