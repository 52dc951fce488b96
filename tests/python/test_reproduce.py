"""`weft reproduce`: what is measured is what the runs have, runs are shared and kept, and what fails is told."""

import json
from pathlib import Path

import polars as pl
import pytest

import weft
from conftest import Weft, all_formats
from tiny_paper import TINY, runs_done, stored_runs, tree, write_tiny
from weft.errors import OutputError, SpecError
from weft.figures import rendered
from weft.papers.costs import paper_cpu_s
from weft.papers.declared import load_paper
from weft.papers.drawing.note import note_below, numbers_of
from weft.papers.making import Made
from weft.papers.measured import CORES, FigureData, RunsUsed
from weft.papers.reproduction import ProgressListener, Reproduction, make_figures, planned
from weft.papers.times import read_times, times_text
from weft.simulation import run_text
from weft.spec import SpecText

pytestmark = pytest.mark.slow

SPEC = {
    "fabric": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    "traffic": {"workload": "web-search", "flows": 30},
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    place = tmp_path_factory.mktemp("tiny")
    with all_formats():
        return make_figures("tiny", folder=write_tiny(place / "papers"), out=place / "out")


def test_a_figure_is_drawn_again_by_its_key(made: Reproduction) -> None:
    for one in made.made:
        figure = made.plot(one.figure.key)
        assert rendered(figure, "png") == (made.path / f"tiny/{one.figure.name}/figure.png").read_bytes()
    with pytest.raises(weft.SpecError, match="there is no figure 'tiny 5'; did you mean 'tiny 4'"):
        made.plot("tiny 5")
    with pytest.raises(weft.SpecError, match="known: tiny 1, tiny 2, tiny 4"):
        made.plot()


def data_of(made: Reproduction, figure: str) -> FigureData:
    data = next(one.data for one in made.made if one.figure.name == figure)
    assert data is not None
    return data


def one_run(scheme: str, load: float, seed: int) -> weft.Result:
    name, *rest = scheme.split(":")
    table = {"name": name} | dict(part.split("=") for part in rest)
    return weft.run(SPEC | {"scheme": table}, set={"traffic.load": load}, seed=seed)


def test_every_figure_is_written_with_its_data(made: Reproduction) -> None:
    assert [one.figure.name for one in made.made] == ["1", "2", "4"] and made.ok
    assert [one.name for one in made.not_made] == ["3"]
    for one in made.made:
        names = {path.name for path in one.files}
        assert {"figure.png", "figure.pdf", "figure.svg", "data.parquet", "data.csv", "verdicts.json"} <= names
        assert all(path.stat().st_size > 0 for path in one.files)
        assert one.data is not None
        assert pl.read_parquet(made.path / f"tiny/{one.figure.name}/data.parquet").equals(one.data.rows)
    assert (made.path / "tiny/2/curves.parquet").exists()
    assert not (made.path / "tiny/3").exists()


def test_a_value_is_that_of_the_run_with_these_settings(made: Reproduction) -> None:
    rows = data_of(made, "1").rows.filter(pl.col("panel") == 0)
    assert rows.height == 2 * 2 * 2, "variants, loads, seeds"
    for scheme, load, seed in (("ecmp", 0.7, 2), ("letflow:gap=50us", 0.3, 1)):
        where = (pl.col("variant") == scheme) & (pl.col("x") == str(load)) & (pl.col("seed") == seed)
        (row,) = rows.filter(where).to_dicts()
        assert row["value"] == one_run(scheme, load, seed).summary.fct_us.mean
        assert row["x_number"] == load and row["measure"] == "mean_fct_us"


def test_a_relative_value_is_divided_by_that_of_the_same_seed_and_place(made: Reproduction) -> None:
    rows = data_of(made, "1").rows.filter(pl.col("panel") == 1)
    assert set(rows.filter(pl.col("variant") == "ecmp")["value"]) == {1.0}
    where = (pl.col("variant") == "letflow:gap=50us") & (pl.col("x") == "0.7") & (pl.col("seed") == 1)
    own, base = (one_run(scheme, 0.7, 1).summary.fct_us.p99 for scheme in ("letflow:gap=50us", "ecmp"))
    assert own is not None and base is not None
    assert rows.filter(where)["value"].item() == pytest.approx(own / base)


def test_a_distribution_pools_the_seeds_and_keeps_to_its_rows(made: Reproduction) -> None:
    data = data_of(made, "2")
    curve = data.curves.filter((pl.col("panel") == 0) & (pl.col("variant") == "ecmp"))
    flows = pl.concat([one_run("ecmp", 0.7, seed).flows for seed in (1, 2)]).filter(pl.col("size_bytes") < 100_000)
    assert curve["value"].to_list() == sorted(flows["fct_us"])
    assert curve["share"].to_list() == [(rank + 1) / flows.height for rank in range(flows.height)]
    assert set(curve["seed"]) == {-1}
    of_seed = (pl.col("variant") == "ecmp") & (pl.col("panel") == 0) & (pl.col("seed") == 1)
    numbers = dict(data.rows.filter(of_seed).select("measure", "value").iter_rows())
    times = one_run("ecmp", 0.7, 1).flows.filter(pl.col("size_bytes") < 100_000)["fct_us"]
    assert numbers["p99"] == pytest.approx(times.quantile(0.99, "linear")), "as in every table"


def test_a_box_has_its_quantiles_and_its_mean(made: Reproduction) -> None:
    curves = data_of(made, "2").curves
    box = curves.filter((pl.col("panel") == 1) & (pl.col("variant") == "ecmp"))
    assert box["share"].to_list() == [0.05, 0.25, 0.5, 0.75, 0.95, None]
    goodput = pl.concat([one_run("ecmp", 0.7, seed).flows for seed in (1, 2)])["goodput_mbps"]
    assert box["value"][2] == pytest.approx(goodput.median()) and box["value"][5] == pytest.approx(goodput.mean())


def test_a_curve_over_time_is_the_statistic_over_all_links_at_each_time(made: Reproduction) -> None:
    data = data_of(made, "4")
    settings = {"traffic.load": 0.5, "run.sample_every": "1ms"}
    links = weft.run(SPEC | {"scheme": {"name": "ecmp"}}, set=settings, seed=1).series.links("leaf")
    times = links.group_by("time_us", maintain_order=True).agg(pl.col("utilisation").mean())
    assert data.curves["value"].to_list() == times["time_us"].to_list()
    assert data.curves["share"].to_list() == pytest.approx(times["utilisation"].to_list())
    assert data.rows["value"].to_list() == [pytest.approx(times["utilisation"].mean())]


def test_measures_side_by_side_have_their_labels(made: Reproduction) -> None:
    rows = data_of(made, "2").rows.filter((pl.col("panel") == 2) & (pl.col("variant") == "ecmp"))
    slowdown = one_run("ecmp", 0.7, 1).flows["slowdown"]
    values = dict(rows.filter(pl.col("seed") == 1).select("measure", "value").iter_rows())
    assert values == {"mean": pytest.approx(slowdown.mean()), "largest": pytest.approx(slowdown.max())}


def test_runs_that_figures_share_are_done_once(made: Reproduction) -> None:
    assert made.runs == 9 == runs_done(made.path) and made.kept == 0
    stored = weft.load(next(place for place in stored_runs(made.path) if (place / "flows.parquet").exists()))
    assert stored.flows.height == 30, "a run of the store is a result directory"


def test_what_is_there_is_not_run_again_and_a_table_that_is_missing_is_added(tmp_path: Path) -> None:
    folder, out = write_tiny(tmp_path / "papers"), tmp_path / "out"
    first = make_figures("tiny", ["1"], folder=folder, out=out)
    assert (first.runs, first.kept) == (8, 0)
    again = make_figures("tiny", ["1"], folder=folder, out=out)
    assert (again.runs, again.kept) == (8, 8) and data_of(again, "1").runs.reused == 8
    other = make_figures("tiny", ["2"], folder=folder, out=out)
    assert (other.runs, other.kept) == (4, 0), "they have no table of flows yet"
    assert make_figures("tiny", ["1", "2"], folder=folder, out=out).kept == 8
    assert make_figures("tiny", ["1"], folder=folder, out=out, force=True).kept == 0


def test_scales_share_the_runs_that_are_the_same(tmp_path: Path) -> None:
    text = TINY.replace('set = { "traffic.flows" = 30 }', "")
    folder, out = write_tiny(tmp_path / "papers", text), tmp_path / "out"
    quick = make_figures("tiny", ["1"], folder=folder, out=out)
    paper = make_figures("tiny", ["1"], folder=folder, out=out, scale="paper")
    assert (quick.runs, paper.runs, paper.kept) == (8, 18, 8)
    assert data_of(paper, "1").runs.scale == "paper"


def test_fewer_seeds_are_the_first_of_all_and_are_told(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "papers")
    few = make_figures("tiny", ["1"], seeds=1, folder=folder, out=tmp_path / "out")
    assert data_of(few, "1").rows["seed"].unique().to_list() == [1] and few.runs == 4
    (card,) = few.scorecards
    assert card.commands == ["weft reproduce tiny 1 --scale quick --seeds 1"]
    assert "1 of 2 seeds" in card.markdown()
    whole = make_figures("tiny", ["1"], folder=folder, out=tmp_path / "out")
    assert whole.kept == 4 and whole.runs == 8
    assert whole.scorecards[0].commands == ["weft reproduce tiny 1 --scale quick"]
    many = make_figures("tiny", ["1"], seeds=9, folder=folder, out=tmp_path / "out")
    assert many.kept == many.runs == 8 and "of 2 seeds" not in many.scorecards[0].markdown()
    with pytest.raises(SpecError, match="at least one is needed, not 0"):
        planned("tiny", seeds=0, folder=folder)


def test_fewer_flows_are_told_and_are_no_more_than_are_declared(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "papers")
    few = make_figures("tiny", ["1"], scale="paper", flows=40, folder=folder, out=tmp_path / "out")
    used = data_of(few, "1").runs
    assert (used.flows, used.declared_flows) == ((40,), 60)
    (card,) = few.scorecards
    assert card.commands == ["weft reproduce tiny 1 --scale paper --flows 40"]
    assert "40 of 60 flows at most" in card.markdown()
    many = make_figures("tiny", ["1"], flows=40, folder=folder, out=tmp_path / "quick")
    assert data_of(many, "1").runs.flows == (30,) and "at most" not in many.scorecards[0].markdown()
    assert many.scorecards[0].commands == ["weft reproduce tiny 1 --scale quick"]
    with pytest.raises(SpecError, match="flows: at least one is needed, not 0"):
        planned("tiny", flows=0, folder=folder)


def test_what_the_papers_scale_takes_is_foretold_by_flows_and_runs_that_are_shared_count_once(tmp_path: Path) -> None:
    paper = load_paper("tiny", write_tiny(tmp_path / "papers"))
    one, other, without_runs = paper.figures["1"], paper.figures["2"], paper.figures["3"]
    # Quick: 2 schemes, 2 loads, 2 seeds of 30 flows. The paper: 3 loads and 3 seeds of 60.
    larger = (2 * 3 * 3 * 60) / (2 * 2 * 2 * 30)
    assert paper_cpu_s(paper, [one], {"1": 7.0}) == pytest.approx(7.0 * CORES * larger)
    assert paper_cpu_s(paper, [one, other], {"1": 7.0, "2": 3.0}) == paper_cpu_s(paper, [one], {"1": 7.0})
    assert paper_cpu_s(paper, [one, other], {"1": 7.0}) is None, "nobody has measured the other one"
    assert paper_cpu_s(paper, [without_runs], {"3": 1.0}) is None


def test_flows_that_did_not_finish_are_told(tmp_path: Path) -> None:
    text = TINY.replace("spec = { fabric", 'spec = { run = { time_limit = "50us" }, fabric')
    folder = write_tiny(tmp_path / "papers", text)
    made = make_figures("tiny", ["1"], folder=folder, out=tmp_path / "out")
    runs = [json.loads((path / "summary.json").read_text()) for path in stored_runs(made.path)]
    unfinished = sum(run["unfinished"] for run in runs)
    assert unfinished > 0 and data_of(made, "1").runs.unfinished == unfinished
    assert f" {unfinished} flows" in made.scorecards[0].markdown()
    paper = load_paper("tiny", folder)
    told = note_below(paper, paper.figure("1"), data_of(made, "1").runs)
    assert f"{unfinished} flows did not finish: what they leave open is not drawn." in told


def test_runs_in_no_steady_state_are_told(tmp_path: Path) -> None:
    """At a load that the fabric hardly carries slowdowns rise to the end; at a small one they do not."""
    text = TINY.replace('"traffic.flows" = 30', '"traffic.flows" = 500').replace("= [0.3, 0.7]", "= [0.1, 0.7, 0.99]")
    folder = write_tiny(tmp_path / "papers", text)
    made = make_figures("tiny", ["1"], folder=folder, out=tmp_path / "out")
    runs = [json.loads((path / "summary.json").read_text()) for path in stored_runs(made.path)]
    unsteady = sum("in no steady state" in " ".join(run["warnings"]) for run in runs)
    assert 0 < unsteady <= 8 and data_of(made, "1").runs.unsteady == unsteady
    assert f"{unsteady} of 12 runs" in made.scorecards[0].markdown()
    paper = load_paper("tiny", folder)
    assert f"{unsteady} of 12 runs" in note_below(paper, paper.figure("1"), data_of(made, "1").runs)


def test_a_run_that_fails_is_told_and_leaves_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_once(spec: SpecText, **options: object) -> weft.Result:
        if 'name = "ecmp"' in spec.text and "seed = 2" in spec.text and "load = 0.7" in spec.text:
            raise RuntimeError("no more paper")
        return run_text(spec, **options)  # type: ignore[arg-type]

    folder, out = write_tiny(tmp_path / "papers"), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("weft.runs.run.run_text", fails_once)
        broken = make_figures("tiny", ["1"], folder=folder, out=out)
    (name,) = broken.failed
    assert "variant = ecmp" in name and "seed = 2" in name and "no more paper" in broken.failed[name]
    assert not broken.ok and broken.made[0].error is None and data_of(broken, "1").runs.failed == 1
    rows = data_of(broken, "1").rows
    gaps = rows.filter(pl.col("value").is_null())
    assert gaps.rows() and set(gaps["seed"]) == {2} and set(gaps["x"]) == {"0.7"}
    mended = make_figures("tiny", ["1"], folder=folder, out=out)
    assert mended.ok and mended.kept == 7
    assert tree(out) == tree(make_figures("tiny", ["1"], folder=folder, out=tmp_path / "fresh").path)


def test_a_figure_that_cannot_be_made_does_not_stop_the_others(tmp_path: Path) -> None:
    folder, out = write_tiny(tmp_path / "papers"), tmp_path / "out"
    assert make_figures("tiny", folder=folder, out=out).ok
    write_tiny(folder, TINY.replace('column = "goodput_mbps"', 'column = "godput_mbps"'))
    found = make_figures("tiny", folder=folder, out=out)
    errors = {made.figure.name: made.error for made in found.made}
    assert errors["1"] is None and errors["2"] is not None and "did you mean 'goodput_mbps'" in errors["2"]
    assert not found.ok and found.kept == 9
    assert not (out / "tiny/2/verdicts.json").exists(), "what it was before does not count"


def test_a_watcher_is_told_of_the_beginning_of_runs_and_of_figures(tmp_path: Path) -> None:
    told: list[str] = []

    class Writes(ProgressListener):
        def begins(self, figures: int, runs: int, kept: int) -> None:
            told.append(f"{figures} figures, {runs} runs, {kept} there")

        def made(self, made: Made) -> None:
            told.append(made.figure.key)

    make_figures("tiny", folder=write_tiny(tmp_path / "papers"), out=tmp_path / "out", jobs=1, watch=Writes())
    assert told == ["3 figures, 9 runs, 0 there", "tiny 1", "tiny 2", "tiny 4"]


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="neither empty nor an earlier reproduction"):
        make_figures("tiny", folder=write_tiny(tmp_path / "papers"), out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["papers", "thesis.tex"]


def test_nothing_is_run_where_a_spec_has_a_mistake(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "papers", TINY.replace("0.5, 0.7", "1.5, 0.7"))
    with pytest.raises(SpecError, match=r"1\.5.*\(at paper scale, experiment = tiny loads, .*traffic.load = 1.5"):
        make_figures("tiny", folder=folder, out=tmp_path / "out", scale="paper")
    assert not (tmp_path / "out").exists()


def test_times_are_kept_beside_those_of_other_figures(tmp_path: Path, made: Reproduction) -> None:
    file = tmp_path / "times.toml"
    file.write_text('[quick.tiny]\n"9" = 70\n[paper.tiny]\n"1" = 8000\n', encoding="utf-8")
    file.write_text(times_text(read_times(file), "quick", made.made), encoding="utf-8")
    times = read_times(file)
    assert times["paper"] == {"tiny": {"1": 8000.0}} and set(times["quick"]["tiny"]) == {"1", "2", "4", "9"}
    assert times["quick"]["tiny"]["9"] == 70.0 and times["quick"]["tiny"]["1"] >= 1.0


def test_a_figure_needs_the_places_that_it_shows_and_no_others(tmp_path: Path) -> None:
    one, two, *_ = planned("tiny", folder=write_tiny(tmp_path / "papers"), scale="paper")
    assert len(one.cases) == 2 * 3 * 3
    assert {case.label("traffic.load") for case in two.cases} == {"0.7"} and len(two.cases) == 2 * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mete", "6"], "there is no paper 'mete'; did you mean 'meet'?"),
        (["meet", "66"], "there is no figure of meet '66'; did you mean '6'?"),
        (["meet", "6", "--scale", "quik"], "there is no scale 'quik'; did you mean 'quick'?"),
        (["all", "6"], "name a paper to choose '6' of it"),
        ([], "which paper?"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(weft_command: Weft, arguments: list[str], message: str) -> None:
    done = weft_command("reproduce", *arguments)
    assert done.code == 2 and message in done.stderr and done.stdout == ""


def test_the_list_has_every_figure_of_every_paper(weft_command: Weft) -> None:
    listed = weft_command("reproduce", "--list", "--json").json()
    expected = [(name, key) for name in ("lbt", "maxpass", "meet", "qall", "tr") for key in load_paper(name).figures]
    assert set(expected) <= {(row["paper"], row["figure"]) for row in listed}
    shown = weft_command("reproduce", "meet", "--list").stdout
    assert "meet 6" in shown and "tr 7" not in shown
    linux = [(row["paper"], row["figure"]) for row in listed if row["linux_hosts"]]
    assert linux == [("qall", "10"), ("qall", "22"), ("qall", "23")], "those of symmetric web search"


def test_the_list_for_linux_hosts_has_those_with_a_set_up_for_them(weft_command: Weft) -> None:
    rows = weft_command("reproduce", "qall", "--list", "--hosts", "linux", "--json").json()
    assert [row["figure"] for row in rows] == ["10", "22", "23"]
    assert all(row["not_made"] is None and row["runs"] > 0 for row in rows)


@pytest.mark.all_formats
def test_the_command_writes_a_figure_and_says_what_it_did(weft_command: Weft, tmp_path: Path) -> None:
    done = weft_command("reproduce", "tr", "6", "--out", "out", "--json")
    assert done.code == 0, done.stderr
    assert "1 figure from 0 runs" in done.stderr
    (figure,) = done.json()["figures"]
    assert figure["figure"] == "tr 6" and (tmp_path / "out/tr/6/figure.pdf").exists()
    assert json.loads((tmp_path / "out/tr/6/verdicts.json").read_text())["scale"] == "quick"


def test_the_note_counts_values_of_a_field_that_is_a_plural_already() -> None:
    runs = RunsUsed("quick", 8, seeds=2, flows=(30,), points={"fabric.spines": 4, "traffic.load": 2, "run.bins": 1})
    assert numbers_of(runs) == "30 flows, 4 numbers of spines, 2 loads, 2 seeds"
