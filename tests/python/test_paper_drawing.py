"""A paper's figures can be drawn from any data, say what they show, and are the same bytes each time."""

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from papering import Curve, Row, data, figure, grid, panel, paper
from weft.drawing.figure import write
from weft.palette import looks
from weft.papers.declared import PLOTS, Measure, load_paper, paper_names
from weft.papers.drawing import draw
from weft.papers.drawing.views import unit_of

pytestmark = pytest.mark.slow

SCHEMES = ("ecmp", "letflow", "drill", "conga", "clove", "hermes", "meet", "meet:probes=4")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, None)

present = st.one_of(st.just(0.0), st.floats(1e-3, 1e9))
values = st.one_of(st.none(), present)
schemes = st.lists(st.sampled_from(SCHEMES), min_size=1, max_size=8, unique=True)
scales = st.sampled_from(("linear", "log"))


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Any rows: of one variant or of many, at no point or at several, named or numbered, with values missing."""
    own, numbered = draw(schemes), draw(st.booleans())
    xs = draw(st.lists(present, max_size=4, unique=True))
    return [
        (0, variant, f"{x:g}", x if numbered else None, seed, "", draw(values))
        for variant in own
        for x in xs
        for seed in range(1, draw(st.integers(1, 3)) + 1)
    ]


@st.composite
def curves(draw: st.DrawFn) -> list[Curve]:
    """Any curves: pooled or by seed, empty, of one point, at one x or at two."""
    found: list[Curve] = []
    for variant in draw(schemes):
        for x in draw(st.sampled_from((("",), ("0.3", "0.9")))):
            seed = draw(st.sampled_from((-1, 1)))
            own = sorted(draw(st.lists(present, max_size=4)))
            found += [(0, variant, x, seed, at, value, (at + 1) / len(own)) for at, value in enumerate(own)]
    return found


@st.composite
def boxes(draw: st.DrawFn) -> list[Curve]:
    """Any boxes: some quantiles may be equal, and a box may be missing."""
    found: list[Curve] = []
    for variant in draw(schemes):
        for x in draw(st.sampled_from(((), ("",), ("0.3", "0.9")))):
            own = sorted(draw(st.lists(present, min_size=6, max_size=6)))
            found += [(0, variant, x, -1, at, own[at], share) for at, share in enumerate(QUANTILES)]
    return found


@settings(max_examples=20)
@given(plot=st.sampled_from(("lines", "bars", "table")), found=rows(), x_scale=scales, y_scale=scales)
def test_rows_of_any_kind_are_drawn_without_a_warning(plot: str, found: list[Row], x_scale: str, y_scale: str) -> None:
    draw(paper(), figure(panel(plot, x_scale=x_scale, y_scale=y_scale)), data(found)).draw_without_rendering()


@settings(max_examples=15)
@given(plot=st.sampled_from(("cdf", "over-time")), found=curves(), x_scale=scales)
def test_curves_of_any_kind_are_drawn_without_a_warning(plot: str, found: list[Curve], x_scale: str) -> None:
    draw(paper(), figure(panel(plot, x_scale=x_scale)), data((), found)).draw_without_rendering()


@settings(max_examples=15)
@given(found=boxes(), y_scale=scales)
def test_boxes_of_any_kind_are_drawn_without_a_warning(found: list[Curve], y_scale: str) -> None:
    draw(paper(), figure(panel("box", y_scale=y_scale)), data((), found)).draw_without_rendering()


@pytest.mark.parametrize("plot", PLOTS)
def test_a_panel_without_data_says_so(plot: str) -> None:
    texts = [text.get_text() for text in draw(paper(), figure(panel(plot)), data()).axes[0].texts]
    assert texts == ["no data"]


def usual(plot: str) -> Figure:
    """Six schemes at nine loads in four panels, as the papers have it."""
    found = grid(
        SCHEMES[:6], [place / 10 for place in range(1, 10)], lambda _, x, seed: 100 / (1.02 - x) + seed, panels=4
    )
    return draw(
        paper(), figure(*(panel(plot, title=f"({name}) Flows below 100 KB") for name in "abcd")), data(found, seeds=3)
    )


@pytest.mark.parametrize("plot", ["lines", "bars"])
def test_no_text_stands_on_another(plot: str) -> None:
    drawn = usual(plot)
    drawn.draw_without_rendering()
    boxes: list[tuple[str, Bbox]] = [
        (text.get_text(), text.get_window_extent())
        for text in [
            *drawn.texts,
            *drawn.legends[0].get_texts(),
            *(text for axes in drawn.axes for text in (axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels())),
        ]
        if text.get_text()
    ]
    boxes += [(axes.get_title("left"), axes.title.get_window_extent()) for axes in drawn.axes]
    overlapping = [
        (one, other)
        for (one, mine), (other, yours) in combinations(boxes, 2)
        if mine.width > 0 and yours.width > 0 and Bbox.intersection(mine, yours) is not None
    ]
    assert overlapping == []


def test_the_axes_and_the_note_say_what_is_shown() -> None:
    drawn = usual("lines")
    assert drawn.axes[0].get_xlabel() == "load"
    assert drawn.axes[0].get_ylabel() == "FCT (µs)"
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [
        "ECMP",
        "LetFlow",
        "DRILL",
        "CONGA",
        "CLOVE",
        "HERMES",
    ]
    note = drawn.texts[0].get_text()
    assert all(fact in note for fact in ("MEET", "6", "What it shows", "400 flows", "2 loads", "3 seeds"))


def test_a_missing_value_leaves_a_gap() -> None:
    found = grid(["meet"], [0.1, 0.5, 0.9], lambda _, x, __: None if x == 0.5 else x, seeds=1)
    line = draw(paper(), figure(panel("lines")), data(found)).axes[0].lines[0]
    assert [value == value for value in line.get_ydata()] == [True, False, True]  # type: ignore[union-attr]


def test_curves_over_time_are_means_over_seeds() -> None:
    points: list[Curve] = [(0, "meet", "", seed, at, 1e3 * at, at + seed) for seed in (1, 2, 3) for at in range(4)]
    points.append((0, "meet", "", 1, 4, 4e3, 0.0))  # one seed took longer: no mean over all
    (line,) = draw(paper(), figure(panel("over-time", y_label="x")), data((), points, seeds=3)).axes[0].lines
    assert list(line.get_ydata()) == pytest.approx([200.0, 300.0, 400.0, 500.0])  # type: ignore[arg-type]


def test_bars_are_as_high_as_the_means_over_seeds() -> None:
    found = grid(["ecmp", "meet"], [0.3, 0.9], lambda scheme, _, seed: seed + 10.0 * (scheme == "meet"))
    bars = draw(paper(), figure(panel("bars")), data(found)).axes[0].patches
    assert [bar.get_height() for bar in bars] == pytest.approx([2.0, 2.0, 12.0, 12.0])  # type: ignore[attr-defined]


def test_a_scheme_has_one_colour_whatever_stands_beside_it() -> None:
    every = looks(SCHEMES)
    for size in (1, 2, 3):
        for own in combinations(SCHEMES[:-1], size):
            assert all(look == every[scheme] for scheme, look in looks(own).items())


def test_no_two_schemes_look_alike() -> None:
    found = looks([*SCHEMES, *(f"other{place}" for place in range(10))])
    assert len({(look.colour, look.dash) for look in found.values()}) == len(found)


@pytest.mark.parametrize(
    ("measure", "unit"),
    [
        (Measure(metric="mean_fct_us"), "us"),
        (Measure(metric="overhead_bytes"), "bytes"),
        (Measure(metric="goodput_mbps", bin=1), "mbps"),
        (Measure(table="flows", column="fct_us", statistic="p99"), "us"),
        (Measure(table="flows", column="retransmissions", statistic="share"), "share"),
        (Measure(table="flows", column="fct_us", statistic="p99", unit="count"), "count"),
    ],
)
def test_the_unit_is_that_of_the_measure(measure: Measure, unit: str) -> None:
    assert unit_of(measure) == unit


@pytest.mark.all_formats
def test_the_same_figure_is_the_same_bytes(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("first", "second")]
    for place in places:
        place.mkdir()
        write(usual("bars"), place)
    for suffix in ("png", "pdf"):
        first, second = ((place / f"figure.{suffix}").read_bytes() for place in places)
        assert first == second
        assert b"CreationDate" not in first


def test_a_paper_is_called_as_its_title_writes_it() -> None:
    names = {name: load_paper(name).short for name in paper_names()}
    assert names == {"lbt": "LBT", "maxpass": "MaxPass", "meet": "MEET", "qall": "QALL", "tr": "TR"}


@pytest.mark.parametrize("name", paper_names())
def test_labels_leave_the_unit_to_the_drawing(name: str) -> None:
    """The drawing chooses between Mbit/s and Gbit/s, and writes what it chose."""
    panels = [panel for figure in load_paper(name).figures.values() for panel in figure.panels]
    labels = [label for panel in panels for label in (panel.x_label, panel.y_label) if label is not None]
    assert [label for label in labels if label.endswith(("bit/s)", "(ms)", "(us)", "(µs)", "(%)", "B)"))] == []
