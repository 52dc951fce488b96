"""Figures of sweeps and comparisons that are asked for in words: all that was measured is in them, and readable."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from typer.testing import CliRunner

import weft
from conftest import SMALL, all_formats
from factory import comparison, summary
from sweeping import SPEC, made, tree
from weft.cli.app import app
from weft.drawing.asked import Fields, read_asked, usual
from weft.drawing.names import field_names
from weft.drawing.runs import draw_runs, views_of_runs
from weft.drawing.view import estimates
from weft.durable import DurableDirectory
from weft.figures import rendered
from weft.metrics import ALL_METRICS
from weft.spec import SpecText
from weft.sweeps.grid import read_grid

pytestmark = pytest.mark.all_formats

LOADS = ("0.2", "0.4", "0.8")
SCHEMES = ("ecmp", "letflow:gap=50us", "letflow:gap=500us", "drill")


def usual_sweep(**more: tuple[str, ...]) -> weft.Sweep:
    swept = {"traffic.load": LOADS, **{key.replace("__", "."): values for key, values in more.items()}}
    return made({**swept, "scheme": SCHEMES}, lambda labels, seed: 100.0 * float(labels["traffic.load"]) + seed)


@settings(max_examples=25)
@given(
    means=st.lists(st.floats(1.0, 1e7), min_size=24, max_size=24),
    metric=st.sampled_from(["mean_fct_us", "p99_fct_us", "mean_slowdown", "goodput_mbps"]),
    spines=st.sampled_from([(), ("2",), ("2", "4")]),
)
def test_every_point_of_the_table_is_in_the_figure(means: list[float], metric: str, spines: tuple[str, ...]) -> None:
    swept = {"traffic.load": LOADS, "fabric.spines": spines, "scheme": ("ecmp", "drill")}
    swept = {key: values for key, values in swept.items() if values}
    left = iter(means * 3)
    found = made(swept, lambda _, __: next(left))
    (asked,) = read_asked([f"{metric} over load by scheme"], Fields(swept))
    views = views_of_runs(found.to_draw(), asked)
    drawn = {(view.title, variant, x): value for view in views for (variant, _, x), value in estimates(view).items()}
    assert len(drawn) == found.table.height
    for row in found.table.to_dicts():
        title = f"spines = {row['fabric.spines']}" if len(spines) > 1 else ""
        value = drawn[title, row["scheme"], f"{row['traffic.load']:g}"]
        assert (value.mean, value.half_width) == (row[metric], row[f"{metric}_ci95"])


def test_the_usual_figures_are_three_lines_over_the_numeric_field_with_a_panel_for_each_of_the_others() -> None:
    found = usual_sweep(fabric__spines=("2", "4"))
    asked = usual(found.to_draw().fields)
    assert [one.text for one in asked] == [
        f"{title} over load by scheme" for title in ("mean FCT", "p99 FCT", "mean slowdown")
    ]
    views = views_of_runs(found.to_draw(), asked[0])
    assert [view.title for view in views] == ["spines = 2", "spines = 4"]
    assert {view.plot for view in views} == {"lines"}
    assert [one.text for one in read_asked((one.text for one in asked), found.to_draw().fields)] == [
        one.text for one in asked
    ]


def test_where_no_axis_is_a_number_bars_are_drawn() -> None:
    found = made({"fabric.fault": ("[]", "[down]"), "scheme": SCHEMES}, lambda _, seed: 5.0 + seed)
    (view,) = views_of_runs(found.to_draw(), usual(found.to_draw().fields)[0])
    assert view.plot == "bars"
    assert len(draw_runs(found.to_draw(), usual(found.to_draw().fields)[0]).axes[0].patches) == 2 * len(SCHEMES)


def test_without_variants_another_field_has_the_lines() -> None:
    found = made({"traffic.load": LOADS, "fabric.spines": ("2", "4")}, lambda _, seed: 5.0 + seed)
    figure = draw_runs(found.to_draw(), usual(found.to_draw().fields)[0])
    assert legend(figure) == ["spines = 2", "spines = 4"]
    alone = made({"traffic.load": LOADS}, lambda _, seed: 5.0 + seed)
    assert draw_runs(alone.to_draw(), usual(alone.to_draw().fields)[0]).legends == []


@pytest.mark.parametrize(
    ("labels", "numeric"),
    [
        (("0.2", "0.4"), True),
        (("50us", "1ms", "2 s"), True),
        (("100KB", "1MB"), True),
        (("10Gbps", "400Mbps"), True),
        (("50us", "1MB"), False),
        (("50us", "1"), False),
        (("nan", "1"), False),
        (("ecmp", "drill"), False),
    ],
)
def test_values_of_one_kind_are_an_axis(labels: tuple[str, ...], *, numeric: bool) -> None:
    assert Fields({"a.key": labels}).is_numeric("a.key") is numeric
    assert Fields({"a.key": labels}).numeric == ("a.key" if numeric else None)


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    "words", ["mean FCT over load by scheme", "slowdown by size", "p99 FCT by scheme", "CDF of FCT by scheme"]
)
def test_texts_are_within_the_picture_and_the_legend_covers_no_data(words: str, flows: weft.Sweep) -> None:
    figure = flows.plot(words)
    figure.draw_without_rendering()
    assert legend(figure) == ["ecmp", "letflow:gap=50us", "letflow:gap=500us"]
    above = figure.legends[0].get_window_extent()
    assert all(above.y0 >= axes.get_window_extent().y1 for axes in figure.axes if axes.has_data())
    whole = figure.bbox
    for axes in figure.axes:
        low, high = axes.get_xlim()
        ticks = [text for text in axes.get_xticklabels() if low <= text.get_position()[0] <= high]
        for text in (axes.xaxis.label, axes.yaxis.label, *ticks):
            place = text.get_window_extent()
            inside = place.x0 >= whole.x0 - 1 and place.x1 <= whole.x1 + 1 and place.y0 >= whole.y0 - 1
            assert not text.get_text() or inside, text.get_text()


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> weft.Sweep:
    with all_formats():
        return weft.sweep(SPEC, tmp_path_factory.mktemp("sweep") / "out", figures="usual")


def test_figures_are_files_of_three_kinds_and_those_of_another_command_go(flows: weft.Sweep, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = tree(weft.sweep(SPEC, out, figures=["slowdown by size"], store=flows.path.parent / ".weft").path)
    names = [f"figures/slowdown-by-size.{kind}" for kind in ("pdf", "png", "svg")]
    assert sorted(name for name in first if name.startswith("figures/")) == names
    assert tree(weft.sweep(SPEC, out, figures="usual").path) == tree(flows.path), "as if nothing else had been drawn"


def test_a_sweep_that_is_cut_off_among_its_figures_ends_with_the_same_bytes(
    flows: weft.Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = DurableDirectory.put
    left = 4

    def cut(directory: DurableDirectory, target: Path, content: bytes) -> None:
        nonlocal left
        left -= target.parent.name == "figures"
        if left == 0:
            raise KeyboardInterrupt
        put(directory, target, content)

    out, store = tmp_path / "out", flows.path.parent / ".weft"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(DurableDirectory, "put", cut)
        weft.sweep(SPEC, out, figures="usual", store=store)
    there = tree(out)
    assert 0 < len([name for name in there if name.startswith("figures/")]) < 9
    assert tree(weft.sweep(SPEC, out, figures="usual", store=store).path) == tree(flows.path)


def test_a_distribution_has_the_flows_of_all_seeds(flows: weft.Sweep) -> None:
    source = flows.to_draw()
    (asked,) = read_asked(["CDF of fct_us by scheme"], source.fields)
    views = views_of_runs(source, asked)
    assert [view.title for view in views] == ["load = 0.3", "load = 0.6"]
    everything = flows.frame("flows").filter(pl.col("traffic.load") == 0.6, pl.col("scheme") == "ecmp")
    own = views[1].curves.filter(pl.col("variant") == "ecmp")
    assert own["value"].to_list() == sorted(everything["fct_us"].drop_nulls().to_list())
    assert own["share"][-1] == pytest.approx(1.0 - everything["fct_us"].null_count() / everything.height)


def test_a_comparison_draws_what_is_asked_for() -> None:
    found = comparison(*(summary(label, seed, 50.0 + seed) for label in ("ecmp", "rps") for seed in (1, 2)))
    bars = found.plot("mean FCT by scheme").axes[0].patches
    assert [bar.get_height() for bar in bars] == pytest.approx([51.5, 51.5])  # type: ignore[attr-defined]
    assert found.plot("slowdown by size").axes[0].get_xlabel() == "flow size"
    assert found.plot("CDF of fct_us").axes[0].get_xlabel() == "FCT (µs)"
    figure = found.plot("p99_fct_us over scheme")
    assert rendered(figure, "svg") == rendered(found.plot("p99_fct_us over scheme"), "svg")


@pytest.mark.parametrize("metric", [metric.key for metric in ALL_METRICS])
def test_every_metric_can_be_drawn(metric: str) -> None:
    comparison(summary("ecmp"), summary("drill")).plot(f"{metric} by scheme").draw_without_rendering()


WRONG = [
    ("mean FTC over load", "there is no metric 'mean FTC'; did you mean 'mean FCT'?"),
    (
        "mean FCT over lod by scheme",
        "'lod' is not swept; did you mean 'traffic.load'? (there are traffic.load, ",
    ),
    ("mean FCT over load by fabric.spines", "'fabric.spines' is not swept"),
    ("CDF of fct by schme", "'schme' is not swept; did you mean 'scheme'?"),
    ("CDF of slowdwn", "flows have no column 'slowdwn'; did you mean 'slowdown'?"),
    ("CDF of fct_us over load", "a distribution has values along its axis"),
    ("timeouts by size", "timeouts is not told by size"),
    ("mean FCT over load by size", "sizes stand along the axis"),
    ("mean FCT over load by load", "traffic.load is named twice"),
    ("  ", "expected METRIC over KEY by KEY"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_a_mistake_is_answered_with_the_nearest_name_before_any_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text(SPEC, encoding="utf-8")
    outcome = CliRunner().invoke(app, ["sweep", "my.toml", "--figure", "mean FCT", "--figure", words, "--out", "out"])
    assert outcome.exit_code == 2 and outcome.stdout == ""
    assert outcome.stderr.count("\n") == 1 and message in outcome.stderr, outcome.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my.toml"]


def test_small_multiples_have_a_limit_that_is_told() -> None:
    grid = read_grid(SpecText(""), (), {"fabric.spines": list(range(2, 40)), "traffic.load": [0.1, 0.2]}, None, None)
    fields = Fields({axis.key: axis.labels for axis in grid.axes})
    assert fields.axis == "traffic.load", "the load comes first"
    assert usual(fields) == []
    with pytest.raises(weft.SpecError, match=r"38 panels, one for each value of fabric\.spines; .* at most 24"):
        read_asked(["mean FCT over load"], fields)
    with pytest.raises(weft.SpecError, match="asked for twice"):
        read_asked(["mean FCT over load by spines"] * 2, fields)


def test_compare_draws_beside_its_own_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    command = ["compare", "--schemes", "ecmp,drill", *settings, "--figure"]
    for words, rest, message in (
        ("mean FCT over load", ["--out", "out"], "'load' is not swept"),
        ("p99 FCT by schem", ["--out", "out"], "did you mean 'scheme'?"),
        ("slowdown by size", [], "say where to with --out"),
    ):
        outcome = CliRunner().invoke(app, [*command, words, *rest])
        assert outcome.exit_code == 2 and message in outcome.stderr, outcome.stderr
        assert list(tmp_path.iterdir()) == []
    outcome = CliRunner().invoke(app, [*command, "slowdown by size", "--out", "out"])
    assert outcome.exit_code == 0, outcome.stderr
    names = {path.name for path in Path("out/figures").iterdir()}
    assert "waits.png" in names
    assert names == {f"{Path(name).stem}.{kind}" for name in names for kind in ("png", "pdf", "svg")}


def test_the_name_of_a_transport_is_called_by_its_table() -> None:
    assert field_names(["transport.name", "traffic.load"]) == {"transport.name": "transport", "traffic.load": "load"}
