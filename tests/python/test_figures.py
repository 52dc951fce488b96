"""Figures can be drawn from any comparison, and hold every scheme."""

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from factory import comparison, summary
from weft import figures
from weft.comparison import Comparison
from weft.figures import curve_style
from weft.palette import looks


@pytest.fixture
def three() -> Comparison:
    return comparison(*(summary(label, seed, 50.0 + seed) for label in ("ecmp", "rps", "drb") for seed in (1, 2)))


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_scheme_is_in_the_legend(three: Comparison) -> None:
    assert legend(three.plot_fct()) == ["ecmp", "rps", "drb"]
    assert legend(three.plot_slowdown()) == ["ecmp", "rps", "drb"]


def test_axes_say_what_they_show_and_in_which_unit(three: Comparison) -> None:
    assert three.plot_fct().axes[0].get_ylabel() == "flow completion time (µs)"
    assert three.plot_slowdown().axes[0].get_xlabel() == "slowdown (FCT / ideal FCT)"
    assert three.plot_waits().axes[0].get_xlabel() == "mean wait per data packet (µs)"


def test_bins_without_flows_take_no_room(three: Comparison) -> None:
    assert [tick.get_text() for tick in three.plot_fct().axes[0].get_xticklabels()] == [
        "all flows",
        "< 100 KB",
        "0.1–10 MB",
    ]


def test_stacked_waits_add_up(three: Comparison) -> None:
    bars = three.plot_waits().axes[0].patches
    assert sum(bar.get_width() for bar in bars) == pytest.approx(3 * (1.0 + 5.0 + 2.0 + 3.0))  # type: ignore[attr-defined]


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files_are_written(three: Comparison, tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / f"f.{suffix}"
    for figure in (three.plot_fct(), three.plot_slowdown(), three.plot_waits()):
        figures.save(figure, path)
        content = path.read_bytes()
        assert content.startswith(magic) and len(content) > 5_000


def test_a_pdf_brings_the_letters_of_its_own_fonts_and_others_for_what_they_lack(three: Comparison) -> None:
    figure = three.plot_slowdown()
    fonts = set(re.findall(rb"/FontName /[A-Z]+\+([\w-]+)", figures.rendered(figure, "pdf")))
    assert fonts == {b"WeftSans", b"WeftSans-Bold"}
    figure.axes[0].set_xlabel("замедление")
    fonts = set(re.findall(rb"/FontName /[A-Z]+\+([\w-]+)", figures.rendered(figure, "pdf")))
    assert fonts == {b"WeftSans", b"WeftSans-Bold", b"DejaVuSans"}


@pytest.mark.parametrize("kind", figures.FORMATS)
def test_equal_figures_have_equal_bytes(three: Comparison, kind: str) -> None:
    for draw in (three.plot_fct, three.plot_slowdown, three.plot_waits):
        assert figures.rendered(draw(), kind) == figures.rendered(draw(), kind)


def test_a_comparison_in_which_no_flow_finished_can_still_be_drawn(tmp_path: Path) -> None:
    nothing = comparison(summary("ecmp", 1, None))
    for figure in (nothing.plot_fct(), nothing.plot_slowdown(), nothing.plot_waits()):
        figures.save(figure, tmp_path / "f.png")


def test_a_scheme_keeps_its_colour_and_no_two_look_alike() -> None:
    labels = ["ecmp", *(f"scheme{number}" for number in range(12))]
    found = looks(labels)
    assert len({(look.colour, look.dash) for look in found.values()}) == len(labels)
    assert looks(labels[:3])["scheme1"] == found["scheme1"]


def test_a_scheme_has_its_marker_on_every_curve_of_many_points(three: Comparison) -> None:
    wanted = {label: look.marker for label, look in looks(["ecmp", "rps", "drb"]).items()}
    for axes in three.plot_slowdown().axes:
        assert {str(line.get_label()): line.get_marker() for line in axes.lines} == wanted
    first, second = (
        curve_style(look, 700, turn, wanted)["markevery"] for turn, look in enumerate(looks("ab").values())
    )
    assert (first, second) == ((0, 100), (33, 100)), "seven on each, and not at the same points"
