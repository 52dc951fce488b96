"""Curves, figures and the report's section over time: there with samples, and only then."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

import weft
from conftest import SMALL, Weft
from weft import figures
from weft.comparison import Comparison
from weft.figures_over_time import figures_over_time, throughput, uplink_utilisation
from weft.over_time import MEASURES, PAUSES, POINTS, SHARED_BUFFER, busiest_leaf, shown, uplink_curves
from weft.report import render

pytestmark = pytest.mark.slow

NAMES = {"queues", "throughput", "uplink-spread", "uplink-utilisation"}


@pytest.fixture(scope="module")
def sampled() -> Comparison:
    changes = {**SMALL, "run.sample_every": "20us", "traffic.classes.short_below": "100KB"}
    return weft.compare(["ecmp", "rps"], set=changes, seeds=2)


@pytest.fixture(scope="module")
def plain() -> Comparison:
    return weft.compare(["ecmp"], set=SMALL)


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes if axes.axison]


def test_all_curves_have_the_same_few_intervals_and_keep_the_sums(sampled: Comparison) -> None:
    runs = shown(sampled.groups)
    assert list(runs) == ["ecmp", "rps"]
    assert len({one.curves.interval_us for one in runs.values()}) == 1
    for label, one in runs.items():
        assert one.run.end_us == sampled.groups[label][0].summary.simulated_us, "the first seed"
        for measure in MEASURES.values():
            curve = measure.read(one)
            assert 0 < len(curve.values) <= POINTS
            assert len(curve.time_us) == len(curve.values)
            assert curve.time_us[-1] == one.run.end_us
        delivered = one.curves.throughput()["payload_bytes"].sum()
        assert delivered == one.run.deliveries["payload_bytes"].sum()


def test_the_mean_queue_of_a_curve_weighs_every_look() -> None:
    result = weft.run("", set={**SMALL, "run.sample_every": "5us"})
    one = shown({"ecmp": [result]})["ecmp"]
    assert one.curves.interval_us > one.run.interval_us, "the run is longer than the points of a curve"
    curve = MEASURES["queue_mean"].read(one)
    lengths = one.curves.intervals["interval_us"].to_list()
    mean = sum(value * length for value, length in zip(curve.values, lengths, strict=True)) / one.run.end_us
    uplinks = one.run.queue_tiers().filter(pl.col("tier") == "leaf")
    assert mean * 1e3 == pytest.approx(uplinks["backlog_mean_bytes"].item(), rel=1e-9)


def test_each_uplink_of_the_busiest_leaf_has_a_curve(sampled: Comparison) -> None:
    one = shown(sampled.groups)["ecmp"]
    leaf = busiest_leaf(one.run)
    assert leaf in {"leaf0", "leaf1"}
    assert list(uplink_curves(one, leaf)) == [f"{leaf}>spine0", f"{leaf}>spine1"]


def test_figures_hold_every_scheme_and_name_their_units(sampled: Comparison, tmp_path: Path) -> None:
    drawn = figures_over_time(sampled.groups)
    assert drawn.keys() == NAMES
    assert titles(uplink_utilisation(sampled.groups)) == ["ecmp", "rps"]
    assert titles(throughput(sampled.groups))[2:] == ["Throughput, long", "Throughput, short"]
    for name, figure in drawn.items():
        legend = [text.get_text() for text in figure.legends[0].get_texts()]
        assert legend == ["ecmp", "rps"] or name == "uplink-utilisation"
        assert re.search(r"\((KB|Gbit/s)\)|utilisation", figure.axes[0].get_ylabel())
        assert re.fullmatch(r"time \((s|ms|µs)\)", figure.axes[0].get_xlabel())
        figures.save(figure, tmp_path / f"{name}.png")


def test_without_samples_there_is_no_figure_and_no_section_over_time(plain: Comparison) -> None:
    assert plain.plot_over_time() == {}
    page = render(plain)
    assert 'id="series"' not in page and '"time":null' in page


def test_the_report_has_the_curves_and_the_numbers(sampled: Comparison) -> None:
    page = render(sampled)
    data = json.loads(page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])
    assert (
        data["time"]["measures"].keys() == data["time"]["curves"].keys() == MEASURES.keys() - {*PAUSES, *SHARED_BUFFER}
    )
    assert all(len(curves) == 2 and curves[0][0] for curves in data["time"]["curves"].values())
    assert [len(uplinks) for uplinks in data["time"]["uplinks"]] == [2, 2]
    section = page.partition('id="series-title"')[2].partition("</section>")[0]
    assert section.count("<tr>") == 3 and "±" in section and "first seed" in section


def test_pauses_are_drawn_where_something_was_paused_and_are_the_totals() -> None:
    incast = {"traffic.incast": [{"senders": 3, "size": "1MB"}], "transport.name": "roce", "transport.dcqcn": False}
    lossless = {"fabric.switch_queue.lossless": True, "fabric.pause.xoff": "50KB", "run.sample_every": "3us"}
    pausing = weft.compare(["ecmp", "rps"], set={**SMALL, **incast, **lossless})
    for runs in pausing.groups.values():
        run = runs[0]
        assert run.summary.lossless is not None and run.summary.lossless.pauses > 0
        assert run.samples["paused_us"].sum() == pytest.approx(run.summary.lossless.paused_us, rel=1e-9)
        both = run.pauses.group_by("link").agg(pl.col("paused_us").sum())
        both = both.join(run.samples.group_by("link").agg(own=pl.col("paused_us").sum()), on="link", how="left")
        assert both.filter((pl.col("paused_us") - pl.col("own")).abs() > 1e-6).is_empty()
        assert run.series.pauses()["paused_us"].sum() == pytest.approx(run.summary.lossless.paused_us, rel=1e-9)
        one = shown({"it": [run]})["it"]
        assert one.curves.interval_us > one.run.interval_us
        lengths = one.curves.intervals["interval_us"].to_list()
        curves = [MEASURES[key].read(one) for key in PAUSES]
        total = sum(value * length for curve in curves for value, length in zip(curve.values, lengths, strict=True))
        assert total == pytest.approx(run.summary.lossless.paused_us, rel=1e-9)
    figure = figures_over_time(pausing.groups)["pauses"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == [MEASURES[key].title for key in PAUSES]
    page = render(pausing)
    data = json.loads(page.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])
    assert data["time"]["measures"].keys() == MEASURES.keys()
    assert "paused in several classes" in page


def test_lossless_classes_without_a_pause_have_no_curves_of_pauses() -> None:
    lossless = {"fabric.switch_queue.lossless": True, "run.sample_every": "20us"}
    quiet = weft.compare(["ecmp"], set={**SMALL, **lossless, "traffic.load": 0.1, "traffic.flows": 5})
    run = quiet.groups["ecmp"][0]
    assert run.pauses.is_empty() and run.samples["paused_us"].sum() == 0.0
    assert "pauses" not in figures_over_time(quiet.groups)
    assert "paused in several classes" not in render(quiet)


def test_the_command_line_samples_when_asked(weft_command: Weft, small_options: list[str], tmp_path: Path) -> None:
    options = [*small_options, "--sample-every", "50us"]
    assert weft_command("compare", "--schemes", "ecmp,rps", *options, "--out", "both").code == 0
    written = {path.stem for path in (tmp_path / "both" / "figures").iterdir()}
    assert written == NAMES | {"fct-by-size", "slowdown-cdf", "waits", "link-load-cdf"}
    one = weft_command("run", *options, "--json")
    assert one.json()["sample_interval_us"] == 50.0
    refused = weft_command("run", *small_options, "--sample-every", "fast")
    assert refused.code == 2 and "run.sample_every" in refused.stderr
