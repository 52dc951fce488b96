"""In which scenarios claims hold: on a made-up paper whose answer is known, and on the designs by themselves."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from conftest import Weft
from made_paper import CHOICES, CLAIMS, PAPER, write_made
from weft.errors import OutputError, SpecError
from weft.multiverse.design import Factor, chosen_design, single_changes
from weft.multiverse.drawing import drawn
from weft.multiverse.exploring import ProgressListener, asked, explore
from weft.multiverse.guide import write_scenarios
from weft.multiverse.result import Multiverse, Seen, summed, wilson
from weft.multiverse.result_file import other_interpretations
from weft.multiverse.writing import opened, written
from weft.papers.claims import Claim
from weft.papers.declared import paper_names
from weft.papers.guide import rewrite_card, write_parts
from weft.papers.open import Alternative, Choice, open_of_schemes
from weft.papers.reproduction import make_figures
from weft.papers.runs import Plan, cases_of_experiment, cases_of_figure
from weft.papers.scenarios import DEFAULT, Scenario, choices_of_figures, in_scenario, parse_scenario
from weft.papers.verdicts import Judgement, Verdict
from weft.report import render_directory
from weft.statistics import Estimate

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the made-up paper."""
    return write_made(tmp_path / "papers")


def explored(folder: Path, out: Path, budget_cpu_min: float = 10.0, choices: tuple[str, ...] = CHOICES) -> Multiverse:
    """The multiverse of the made-up paper."""
    question = asked("made", choices=choices, folder=folder)
    return explore(question, budget_cpu_min=budget_cpu_min, out=out)


def test_the_nearest_scenario_is_one_whose_changes_hold_up_and_not_the_luck_of_seeds() -> None:
    claim = Claim("c", "a claim", "somewhere")

    def seen(changed: str, verdict: Verdict, mean: float, half_width: float) -> Seen:
        scenario = Scenario(tuple((name, "other") for name in changed))
        return Seen(scenario, {"c": Judgement(claim, verdict, Estimate(mean, half_width, 3), "ratio", (), "")})

    def nearest(*found: Seen) -> tuple[str, bool]:
        [one] = summed([claim], default, found, None, ())
        return "" if one.nearest is None else str(one.nearest).replace("=other", ""), one.nearest_differs

    default = seen("", Verdict.UNDECIDED, 1.0, 0.4)
    wide = seen("a", Verdict.REPRODUCED, 1.3, 0.4)
    lucky = seen("b", Verdict.REPRODUCED, 1.6, 0.2)
    against = seen("be", Verdict.NOT_REPRODUCED, 1.0, 0.1)
    firm = [seen(names, Verdict.REPRODUCED, 1.7, 0.1) for names in ("cd", "cde", "cdf", "cdg")]
    assert nearest(against) == ("", False)
    assert nearest(wide) == ("a", False), "as far as seeds tell it is the default"
    assert nearest(wide, lucky, against, *firm[:3]) == ("b", True), "three of three may be luck, too"
    assert nearest(wide, lucky, against, *firm) == ("c,d", True)


def test_a_claim_that_holds_in_three_of_eight_scenarios_gives_that_answer(folder: Path, tmp_path: Path) -> None:
    """It needs two choices together, of which one is always the same: no single change shows that."""
    found = explored(folder, tmp_path / "out")
    slow, fast, never = found.claims
    assert (slow.share.holds, slow.share.scenarios, slow.share.open) == (3, 8, 0)
    assert (slow.share.low, slow.share.high) == (3 / 8, 3 / 8), (
        "all combinations were judged: nothing is left to chance"
    )
    assert [(one.choice, one.alternative, one.effect, one.alone) for one in slow.deciders] == [
        ("stack", "long", 0.75, False),
        ("host-delay", "long", 0.25, False),
        ("fabric-delay", "long", 0.25, False),
    ]
    assert slow.nearest == Scenario((("host-delay", "long"), ("stack", "long")))
    assert (fast.share.holds, fast.nearest) == (2, DEFAULT)
    assert (never.share.holds, never.nearest) == (0, None)
    assert found.apart == [("slow", "fast")]
    assert len(found.seen) == 8


def test_the_report_counts_the_same_scenarios_and_names_what_is_open(folder: Path, tmp_path: Path) -> None:
    """Check that the report has the data of the table, and that a text of the paper stays text."""
    (folder / "made-claims.toml").write_text(CLAIMS.replace("flows take no time", "<b>no</b> time"))
    question, place = asked("made", choices=CHOICES, folder=folder), tmp_path / "out"
    with opened(place) as directory:
        with pytest.raises(OutputError, match="no result of weft multiverse yet"):
            render_directory(place)
        written(directory, question, explore(question, budget_cpu_min=10.0, out=place))
    page = render_directory(place)
    assert "&lt;b&gt;no&lt;/b&gt; time" in page
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    reproduced = data["kinds"].index("reproduced")
    holds = [tuple(one["at"]) for one in data["scenarios"] if one["verdicts"][0] == reproduced]
    assert sorted(holds) == [(0, 1, 1), (1, 0, 1), (1, 1, 1)]
    assert page.count("made up: ") >= 3
    table = pl.read_parquet(place / "scenarios.parquet")
    assert table.filter(claim="slow", verdict="reproduced").height == 3


def test_runs_that_are_there_are_not_done_again_and_a_small_budget_says_what_it_left_out(
    folder: Path, tmp_path: Path
) -> None:
    """Check that the command resumes."""
    first = explored(folder, tmp_path / "out", budget_cpu_min=1e-9)
    assert [str(scenario) for scenario in first.untried] == ["host-delay=long", "fabric-delay=long", "stack=long"]
    assert first.design is None
    assert {one.share.scenarios for one in first.claims} == {1}
    second = explored(folder, tmp_path / "out")
    assert (second.untried, second.kept, second.runs) == ([], 4, 32)
    third = explored(folder, tmp_path / "out", budget_cpu_min=1e-9)
    assert third.cpu_s == 0.0
    assert not third.untried, "what is there costs nothing"


def test_what_an_experiment_decides_is_not_open(folder: Path) -> None:
    """Nor is what a variant or an axis sets."""
    question = asked("made", folder=folder)
    assert "overhead" not in question.choices
    assert set(CHOICES) | {"drill.memory"} <= set(question.choices)


def test_a_choice_of_one_scheme_changes_its_runs_alone(folder: Path, tmp_path: Path) -> None:
    """How old DRILL's view is concerns DRILL: ECMP's runs are those of the default scenario."""
    found = explored(folder, tmp_path / "out", choices=("drill.age",))
    assert (len(found.seen), found.runs) == (2, 6)
    question = asked("made", folder=folder)
    changed = in_scenario(question.paper, Scenario((("drill.age", "621us"),)))
    plans = [Plan(paper, "quick") for paper in (question.paper, changed)]
    for case in cases_of_figure(question.figures[0], question.paper, "quick"):
        runs = [plan.run(case) for plan in plans]
        assert (runs[0].id == runs[1].id) == (case.variant == "ecmp")


def test_a_choice_of_the_paper_may_be_about_some_load_balancers_alone(folder: Path) -> None:
    """It sets keys of the spec, for variants that run with them; where one has its own, that stays."""
    own = """
[open.gap]
question = "Which pause ends a flowlet?"
schemes = ["letflow", "conga"]
[open.gap.alternatives]
short = { source = "made up" }
long = { source = "made up", set = { "scheme.gap" = "10ms" } }
"""
    text = PAPER.replace('["ecmp", "drill"]', '["ecmp", "letflow", "letflow:gap=1ms", "conga"]') + own
    (folder / "made.toml").write_text(text)
    question = asked("made", folder=folder)
    plan = Plan(in_scenario(question.paper, Scenario((("gap", "long"),))), "quick")
    cases = {case.variant: case for case in cases_of_figure(question.figures[0], question.paper, "quick")}
    gaps = {variant: plan.run(case).spec.table("scheme").get("gap") for variant, case in cases.items()}
    assert gaps == {"ecmp": None, "letflow": "10ms", "letflow:gap=1ms": "1ms", "conga": "10ms"}
    (folder / "made.toml").write_text(text.replace('"conga"]\n[open', '"congo"]\n[open'))
    with pytest.raises(SpecError, match=r"open\.gap: schemes: .*did you mean 'conga'"):
        asked("made", folder=folder)


def test_a_scenario_of_which_no_run_can_be_made_is_left_out_with_the_reason(folder: Path, tmp_path: Path) -> None:
    """As where links cannot carry the load."""
    text = PAPER.replace('"fabric.stack_delay" = "15us"', '"traffic.load" = 3.0').replace("load = 0.001", "load = 0.5")
    (folder / "made.toml").write_text(text)
    found = explored(folder, tmp_path / "out")
    assert [str(scenario) for scenario in found.impossible] == ["stack=long"]
    assert all("traffic.load" in why for why in found.impossible.values())
    assert {one.share.scenarios for one in found.claims} == {4}


def test_a_scenario_is_written_as_it_is_read(folder: Path) -> None:
    """Check that the order is that of the choices, and that an unknown name is reported with the nearest one."""
    choices = asked("made", folder=folder).choices
    scenario = parse_scenario("stack=long, host-delay=long", choices)
    assert str(scenario) == "host-delay=long,stack=long"
    assert parse_scenario("stack=nothing", choices) == DEFAULT
    for text, message in [
        ("stac=long", "did you mean 'stack'"),
        ("stack=lang", "did you mean 'long'"),
        ("stack", "expected CHOICE=ALTERNATIVE"),
        ("stack=long,stack=long", "twice"),
    ]:
        with pytest.raises(SpecError, match=message):
            parse_scenario(text, choices)


def test_a_choice_needs_a_default_and_an_alternative_with_sources(folder: Path) -> None:
    """Check that a wrong declaration is reported with its place."""
    for old, new, message in [
        (
            'stack.alternatives]\nnothing = { source = "made up" }\n',
            "stack.alternatives]\n",
            "two alternatives or more",
        ),
        ('nothing = { source = "made up" }', "nothing = { }", "source is missing"),
        ('nothing = { source = "made up" }', '"a b" = { source = "made up" }', "no space"),
    ]:
        (folder / "made.toml").write_text(PAPER.replace(old, new))
        with pytest.raises(SpecError, match=message):
            asked("made", folder=folder)


@pytest.mark.parametrize("paper", paper_names())
@pytest.mark.nightly
def test_every_alternative_of_every_paper_makes_runs_and_changes_some(paper: str) -> None:
    """Or none of the figures that it is open in can be made in it, for want of capacity alone."""
    question = asked(paper)
    assert question.choices
    base = Plan(in_scenario(question.paper), "quick")
    for scenario in single_changes(question.choices):
        plan = Plan(in_scenario(question.paper, scenario), "quick")
        changed = 0
        for figure in question.figures:
            changed += plan.paper.figure(figure.name).options != figure.options
            places = cases_of_figure(figure, question.paper, "quick")
            for name in figure.set_ups:
                places += cases_of_experiment(question.paper.experiments[name].at("quick"))
            firsts = {case.variant: case for case in reversed(places)}
            for case in firsts.values():
                try:
                    changed += plan.run(case).id != base.run(case).id
                except SpecError as error:
                    # No public code has CLOVE at a switch.
                    assert re.search("largest load|steers is routes", str(error))
        assert changed, f"{scenario} changes nothing"


def test_choices_of_schemes_are_parameters_that_there_are() -> None:
    """Each has a question that ends as one, and sources."""
    for choice in open_of_schemes().values():
        assert choice.question.endswith("?")
        assert all(one.source for one in choice.alternatives.values())


def factors(count: int) -> list[Factor]:
    """So many choices of two alternatives that several variants share."""
    made = []
    for number in range(count):
        pair = {name: Alternative(name, "made up", {}) for name in ("no", "yes")}
        made.append(Factor(Choice(f"c{number}", "?", pair, "paper"), ("no", "yes"), shared=True, place=number))
    return made


@pytest.mark.parametrize("count", [5, 6, 7, 8])
def test_a_fraction_keeps_effects_apart(count: int) -> None:
    """Columns are balanced; none is another one, and none is the product of two others."""
    design = chosen_design(factors(count), lambda design: len(design.rows) <= 16)
    assert design is not None
    assert (len(design.factors), len(design.rows), design.fraction) == (count, 16, True)
    columns = [[1 if name == "yes" else -1 for name in column] for column in zip(*design.rows, strict=True)]
    assert all(sum(column) == 0 for column in columns)
    for one, other in itertools.combinations(columns, 2):
        assert sum(a * b for a, b in zip(one, other, strict=True)) == 0
    for one, other, third in itertools.combinations(columns, 3):
        assert sum(a * b * c for a, b, c in zip(one, other, third, strict=True)) == 0


def test_a_design_has_as_many_of_the_choices_that_matter_most_as_one_can_afford() -> None:
    """All combinations if they can be paid for; nothing if not even two choices can."""
    design = chosen_design(factors(3), lambda design: len(design.rows) <= 8)
    assert design is not None
    assert ([one.choice.name for one in design.factors], design.fraction) == (["c0", "c1", "c2"], False)
    assert chosen_design(factors(6), lambda design: len(design.rows) <= 2) is None


def test_a_choice_that_is_too_dear_makes_way_for_a_cheap_one_behind_it() -> None:
    """One that concerns a single variant adds no combinations of what all share."""
    dear, cheap = factors(3), replace(factors(4)[3], shared=False)
    design = chosen_design([*dear, cheap], lambda design: len(design.rows) <= 4)
    assert design is not None
    assert [one.choice.name for one in design.factors] == ["c0", "c1", "c3"]
    assert (len(design.rows), design.size) == (4, 8)


def test_wilsons_interval_is_that_of_the_textbook() -> None:
    """Wilson 1927: for 2 of 10, 5.7 to 51.0 %; none of n is below z^2 / (n + z^2)."""
    low, high = wilson(0.2, 10)
    assert (round(low, 3), round(high, 3)) == (0.057, 0.51)
    assert wilson(0.0, 10)[0] == 0.0
    assert wilson(0.0, 10)[1] == pytest.approx(1.96**2 / (10 + 1.96**2), rel=1e-4)


def test_where_combinations_are_drawn_each_counts_for_the_interval(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two delays and three memories are six scenarios, of which four are drawn: two with each delay."""
    monkeypatch.setattr("weft.multiverse.design.MOST_SCENARIOS", 4)
    found = explored(folder, tmp_path / "out", choices=("host-delay", "drill.memory"))
    fast = found.claims[1].share
    assert (fast.scenarios, fast.open, fast.exact) == (4, 0, False)
    assert (fast.low, fast.high) == wilson(fast.holds / 4, 4)


def test_a_choice_of_one_scheme_is_its_own_in_several_figures_too(folder: Path, tmp_path: Path) -> None:
    """So all of its alternatives are combined with everything, and not only the one that matters most."""
    figure = PAPER[PAPER.index("[figure.1]") : PAPER.index("[open.host-delay]")]
    (folder / "made.toml").write_text(PAPER + figure.replace("figure.1", "figure.2"))
    (folder / "made-claims.toml").write_text(CLAIMS + CLAIMS.replace('id = "', 'id = "again-').replace('"1"', '"2"'))
    found = explored(folder, tmp_path / "out", choices=("host-delay", "drill.memory"))
    assert found.design is not None and found.design.size == 6
    assert {factor.choice.name: factor.shared for factor in found.design.factors} == {
        "host-delay": True,
        "drill.memory": False,
    }


def test_choices_of_a_preset_are_open_in_its_experiments_alone() -> None:
    """TR's large fabric has its own; its small one has those of schemes."""
    question = asked("tr")
    by_name = {figure.name: choices_of_figures([figure], question.paper, "quick") for figure in question.figures}
    assert "marking" in by_name["12"]
    assert all("marking" not in found for name, found in by_name.items() if name in ("2", "3", "7"))


def test_the_command_lists_what_is_open_and_answers_mistakes(weft_command: Weft, tmp_path: Path) -> None:
    """Before anything is run."""
    told = weft_command("multiverse", "lbt", "8", "--list", "--json").json()
    assert {"window", "lbt.short-time"} <= {one["name"] for one in told["choices"]}
    for arguments, message in [
        (["multiverse"], "which paper"),
        (["multiverse", "lbd"], "did you mean 'lbt'"),
        (["multiverse", "lbt", "88"], "did you mean '8'"),
        (["multiverse", "lbt", "--claims", "web-search-men"], "did you mean 'web-search-mean'"),
        (["multiverse", "lbt", "--choices", "windo"], "did you mean 'window'"),
        (["multiverse", "lbt", "8", "--budget", "0"], "budget"),
        (["reproduce", "lbt", "8", "--scenario", "windw=64KB"], "did you mean 'window'"),
    ]:
        outcome = weft_command(*arguments)
        assert (outcome.code, outcome.stdout) == (2, ""), arguments
        assert message in outcome.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_claim_that_holds_in_another_scenario_gets_a_verdict_that_names_it(folder: Path, tmp_path: Path) -> None:
    """In the scorecard of figures that are made beside it, and in the guide; one that holds nowhere stays as it is."""
    question, place = asked("made", choices=CHOICES, folder=folder), tmp_path / "scenarios"
    with opened(place) as directory:
        written(directory, question, explore(question, budget_cpu_min=10.0, out=place))
    made = make_figures("made", out=tmp_path / "figures", folder=folder, others=other_interpretations([place]))
    verdicts = {entry.claim.id: entry.verdict for entry in made.scorecards[0].entries}
    assert verdicts == {
        "slow": Verdict.OTHER_INTERPRETATION,
        "fast": Verdict.REPRODUCED,
        "never": Verdict.UNREACHABLE,
    }
    slow = made.scorecards[0].entries[0]
    assert "in the scenario host-delay=long,stack=long, and reproduced in 3 of 8 scenarios" in slow.sentence
    assert slow.judged.verdict is Verdict.NOT_REPRODUCED, "what it is by default stays"

    guide = tmp_path / "guide"
    kept = write_scenarios(question.paper, [place], guide)
    assert [one.name for one in kept] == [f"scenarios-1-of-{'-'.join(CHOICES)}.json"]
    assert write_parts(question.paper, [tmp_path / "figures"], guide).counts[Verdict.NOT_REPRODUCED] == 1
    card = rewrite_card(question.paper, guide, other_interpretations(kept)["made"])
    assert card.counts[Verdict.OTHER_INTERPRETATION] == 1
    assert (
        "1 holds by default, 1 only under another interpretation, and 1 in none of 8 scenarios"
        in (guide / "made" / "scenarios.md").read_text()
    )
    with pytest.raises(OutputError, match="holds no result"):
        other_interpretations([tmp_path])


def test_a_paper_s_own_reading_of_a_scheme_is_its_default(folder: Path) -> None:
    """The scheme's default is then an alternative; a reading of what is not open is told with the nearest name."""
    read = PAPER + '\n[reads."drill.memory"]\nalternative = "rack"\nwhy = "the code that ran"\n'
    (folder / "made.toml").write_text(read)
    question = asked("made", folder=folder)
    memory = question.choices["drill.memory"]
    assert (memory.default, memory.others) == ("rack", ("switch", "host"))
    assert memory.alternatives["rack"].source.startswith("the code that ran; ")
    default, switch = (
        Plan(in_scenario(question.paper, scenario), "quick")
        for scenario in (DEFAULT, Scenario((("drill.memory", "switch"),)))
    )
    for case in cases_of_figure(question.figures[0], question.paper, "quick"):
        texts = [plan.run(case).spec.text for plan in (default, switch)]
        assert ['memory = "rack"' in text for text in texts] == [case.variant == "drill", False]
    (folder / "made.toml").write_text(read.replace("drill.memory", "drill.memori"))
    with pytest.raises(SpecError, match=r"did you mean 'drill\.memory'"):
        asked("made", folder=folder)


def test_what_is_there_costs_nothing_so_that_a_small_budget_goes_on_to_the_same_answer(
    folder: Path, tmp_path: Path
) -> None:
    """The runs of a design that were done before are found: what was begun with a large budget ends with any."""
    first = explored(folder, tmp_path / "out")
    again = explored(folder, tmp_path / "out", budget_cpu_min=1e-9)
    assert first.design is not None and again.design is not None
    assert (again.kept, again.cpu_s) == (first.runs, 0.0), "nothing is run again"
    assert again.design.words == first.design.words
    assert [claim.share for claim in again.claims] == [claim.share for claim in first.claims]
    assert again.all_cpu_s == first.all_cpu_s == pytest.approx(first.cpu_s), "each counts once"
    few = explored(folder, tmp_path / "elsewhere" / "out", budget_cpu_min=1e-9)
    assert few.design is None and len(few.seen) < len(first.seen), "where nothing is there, the budget holds"


def test_single_changes_leave_half_of_a_budget_to_combinations(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that changes to one scheme's runs alone, which cost less, come first, wherever they are listed."""
    tried: list[str] = []

    class Listening(ProgressListener):
        def says(self, text: str) -> None:
            tried.append(text)

    question = asked("made", choices=[*CHOICES, "drill.memory"], folder=folder)
    found = explore(question, out=tmp_path / "out", told=Listening())
    singles = [text.rpartition(" ")[2] for text in tried if text.startswith("one choice at a time")]
    assert singles == ["drill.memory=rack", "drill.memory=host", *(f"{name}=long" for name in CHOICES)]
    assert [str(one.scenario) for one in found.single] == [*(f"{name}=long" for name in CHOICES), *singles[:2]]
    half_s = 30.0 * found.all_cpu_s
    monkeypatch.setattr(
        "weft.multiverse.exploring.cost_of", lambda _, scenario: 0.1 * half_s if "drill" in str(scenario) else half_s
    )
    less = explore(question, out=tmp_path / "less" / "out", budget_cpu_min=found.all_cpu_s)
    assert [str(scenario) for scenario in less.untried] == [f"{name}=long" for name in CHOICES]


def test_what_is_kept_names_the_command_that_does_all_of_it(folder: Path, tmp_path: Path) -> None:
    """With the choices, claims and seeds that were asked for, and the budget if more than usual is needed."""
    question = asked("made", ["1"], choices=["stack"], claims=["slow", "never"], seeds=1, folder=folder)
    found = explore(question, out=tmp_path / "out")
    with opened(tmp_path / "kept") as directory:
        one = written(directory, question, found)
        two = written(directory, question, replace(found, all_cpu_s=3_601.0))
    assert one.command == "weft multiverse made 1 --claims slow,never --choices stack --seeds 1"
    assert two.command == one.command + " --budget 61"
    assert (one.runs, one.cpu_min) == (4, 0.0)


@pytest.mark.all_formats
def test_the_figure_has_the_same_bytes_each_time(folder: Path, tmp_path: Path) -> None:
    question = asked("made", ["1"], choices=["stack"], claims=["slow"], seeds=1, folder=folder)
    found = explore(question, out=tmp_path / "out")
    files = drawn(question, found)
    assert set(files) == {"figure.png", "figure.pdf", "figure.svg"}
    assert files == drawn(question, found)
