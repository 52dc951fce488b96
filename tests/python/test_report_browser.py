"""The report in a real browser: it runs without an error, and what is chosen changes what is drawn.

Needs Debian's chromium and Playwright; skips without them, unless WEFT_NEEDS_BROWSER is 1.
"""

import csv
import importlib
import os
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import pytest

import weft
from conftest import SMALL
from factory import comparison, summary
from test_collectives import SMALL as COLLECTIVES
from weft.palette import looks
from weft.report import render, render_sweep
from weft.report.payload import SYMBOLS
from weft.summary import BINS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("WEFT_NEEDS_BROWSER") == "1"
if not REQUIRED:
    if CHROMIUM is None:
        pytest.skip("there is no chromium; on Debian: apt install chromium", allow_module_level=True)
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
playwright = importlib.import_module("playwright.sync_api")

Scheme: TypeAlias = Literal["light", "dark"]
EVIL = "<script>document.title='taken'</script>"
SAMPLED = {**SMALL, "run.sample_every": "20us", "run.trace_flows": 5, "traffic.load": 0.6}


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compared") / "report.html"
    found = weft.compare(["ecmp", "rps", "drill"], set=SAMPLED, seeds=2, jobs=1)
    path.write_text(render(found), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("failed") / "report.html"
    fault = [{"link": "leaf1-spine1", "down": True, "at": "5ms", "until": "9ms"}]
    shape = {**SMALL, "traffic.workload": "web-search", "traffic.load": 0.6, "fabric.reroute_after": "300us"}
    changes = {**shape, "run.seed": 2, "run.sample_every": "1ms", "fabric.fault": fault}
    path.write_text(render(weft.compare(["ecmp", "rps"], set=changes, jobs=1)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    vary: dict[str, list[float]] = {"traffic.load": [0.3, 0.8], "fabric.spines": [1, 2]}
    shape = {key: value for key, value in SMALL.items() if key != "fabric.spines"}
    sweep = weft.sweep("", folder / "sweep", set=shape, vary=vary, schemes=["ecmp", "rps"], seeds=2, jobs=1)
    path = folder / "report.html"
    path.write_text(render_sweep(sweep), encoding="utf-8")
    return path


class Opened:
    """A page, and what it complained of."""

    def __init__(self, browser: "Browser", path: Path, width: int = 1200, scheme: Scheme = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        # Not even by mistake.
        self.context.set_offline(True)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda asked: self.complaints.append(asked.url) if path.name not in asked.url else None)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#fct svg")

    def drawn(self, key: str) -> str:
        """Return the contents of a chart."""
        return self.page.inner_html(f"#{key}")

    def pixels(self, stage: int = 0) -> str:
        """Return the pixels on a canvas of the replay."""
        return str(self.page.evaluate(f"document.getElementById('stage-{stage}').toDataURL()"))

    def moves_on_from(self, instant: str) -> None:
        """Wait until the replay shows another instant. The page's policy forbids what Playwright would wait with."""
        for _ in range(200):
            if self.page.input_value("#instant") != instant:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"the replay stands still at {instant}")

    def choose(self, key: str, text: str) -> None:
        self.page.click(f"[data-choice={key}] button:text-is('{text}')")


@pytest.fixture
def opened(browser: "Browser", compared: Path) -> Iterator[Opened]:
    found = Opened(browser, compared)
    yield found
    found.context.close()
    assert found.complaints == []


@pytest.fixture
def opened_sweep(browser: "Browser", swept: Path) -> Iterator[Opened]:
    found = Opened(browser, swept)
    yield found
    found.context.close()
    assert found.complaints == []


CHARTS = ("fct", "curves", "bysize", "why", "overhead", "series", "uplinks")


def test_it_loads_without_an_error_and_draws_every_chart(opened: Opened) -> None:
    for key in CHARTS:
        assert "<path" in opened.drawn(key), key
    blank = opened.page.evaluate(
        "(() => { const c = document.createElement('canvas'), s = document.getElementById('stage-0');"
        "c.width = s.width; c.height = s.height; return c.toDataURL(); })()"
    )
    assert opened.pixels() != blank


def test_a_scheme_that_is_left_out_leaves_every_chart(opened: Opened) -> None:
    before = {key: opened.drawn(key) for key in CHARTS if key != "uplinks"}
    opened.page.click("#schemes button:text-is('rps')")
    assert opened.page.get_attribute("#schemes button:text-is('rps')", "aria-pressed") == "false"
    assert [key for key, drawn in before.items() if opened.drawn(key) == drawn] == []
    opened.page.click("#schemes button:text-is('rps')")
    assert "rps" in opened.drawn("why")


def test_the_flow_size_changes_what_depends_on_it(opened: Opened) -> None:
    before = {key: opened.drawn(key) for key in ("curves", "why")}
    opened.page.select_option("#size", label="< 100 KB")
    assert [key for key, drawn in before.items() if opened.drawn(key) == drawn] == []


@pytest.mark.parametrize(
    ("choice", "text", "chart"),
    [
        ("quantity", "slowdown", "fct"),
        ("statistic", "99th percentile", "fct"),
        ("curveOf", "slowdown", "curves"),
        ("curve", "tail", "curves"),
        ("bySize", "mean", "bysize"),
        ("why", "share", "why"),
        ("why", "waits of a packet", "why"),
        ("measure", "Throughput, all receivers", "series"),
        ("uplinks", "drill", "uplinks"),
    ],
)
def test_each_choice_of_a_chart_changes_it(opened: Opened, choice: str, text: str, chart: str) -> None:
    before = opened.drawn(chart)
    opened.choose(choice, text)
    assert opened.drawn(chart) != before
    assert opened.page.get_attribute(f"[data-choice={choice}] button:text-is('{text}')", "aria-pressed") == "true"


def test_a_heading_sorts_its_table_both_ways(opened: Opened) -> None:
    def schemes() -> list[str]:
        return opened.page.locator("#summary-section table >> nth=0").locator("tbody th").all_inner_texts()

    heading = opened.page.locator("#summary-section thead button", has_text="scheme").first
    heading.click()
    assert schemes() == ["drill", "ecmp", "rps"]
    heading.click()
    assert schemes() == ["rps", "ecmp", "drill"]


def test_the_replay_plays_pauses_and_follows_the_slider(opened: Opened) -> None:
    page = opened.page
    first, at = opened.pixels(), page.input_value("#instant")
    page.select_option("#speed", "4")
    page.click("#play")
    opened.moves_on_from(at)
    assert opened.pixels() != first
    page.click("#play")
    assert page.inner_text("#play") == "Play"
    paused = page.input_value("#instant")
    page.wait_for_timeout(300)
    assert page.input_value("#instant") == paused
    page.fill("#instant", "0")
    assert page.get_attribute("#instant", "aria-valuetext") == page.inner_text("#clock")
    assert page.input_value("#instant") == "0" and opened.pixels() != first


def test_a_link_that_fails_is_marked_where_the_fabric_and_time_are_drawn(browser: "Browser", failed: Path) -> None:
    opened = Opened(browser, failed)
    page = opened.page
    assert page.locator("svg.fabric path.cut").count() == 1
    assert page.inner_text("#uplinks-title") == "Each uplink of leaf1"

    def red() -> int:
        """How many pixels of the replay have the colour of a cut cable."""
        return int(
            page.evaluate(
                """() => {
                  const canvas = document.getElementById("stage-0");
                  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                  let found = 0;
                  for (let at = 0; at < data.length; at += 4) {
                    found += data[at] === 192 && data[at + 1] === 20 && data[at + 2] === 47;
                  }
                  return found;
                }"""
            )
        )

    def label() -> str:
        return page.get_attribute("#stage-0", "aria-label") or ""

    assert page.input_value("#instant") == "7", "it begins in the middle of the outage"
    assert red() > 200 and "leaf1-spine1 down from 5 ms to 9 ms" in label()
    page.fill("#instant", "0")
    assert red() == 0 and "down" not in label()
    page.fill("#instant", "6")  # from 6 to 7 ms: all have learned of it
    assert "spine1 lost" not in label()
    without = red()
    page.fill("#instant", "5")
    assert "spine1 lost " in label() and "no way to go" in label()
    assert red() > without + 20, "a cross stands on the switch that knew no way"
    page.fill("#instant", "6")
    assert red() > 200 and "leaf1-spine1 down from 5 ms to 9 ms" in label()
    strip = page.locator("#outages i.cut")
    slider = page.locator("#instant").bounding_box()
    box = strip.bounding_box()
    assert box is not None and slider is not None and slider["x"] < box["x"] and box["width"] > 5
    for chart in ("series", "uplinks"):
        assert "leaf1-spine1 down" in opened.drawn(chart) and "rgb(192,20,47)" in opened.drawn(chart).lower().replace(
            "#c0142f", "rgb(192,20,47)"
        )
    assert "spine1" in page.inner_text("#drops-section") and "no way to go" in page.inner_text("#drops-section")
    assert "Moved away from leaf1-spine1" in page.inner_text("#faults-section")
    opened.context.close()
    assert opened.complaints == []


def test_the_replay_is_worked_with_the_keyboard(opened: Opened) -> None:
    page = opened.page
    page.focus("#stage-0")
    page.keyboard.press("Home")
    assert page.input_value("#instant") == "0"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.input_value("#instant") == "2"
    page.keyboard.press("ArrowLeft")
    assert page.input_value("#instant") == "1"
    page.keyboard.press("Space")
    opened.moves_on_from("1")
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    page.focus("#instant")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.input_value("#instant") == "1"


def test_a_traced_flow_is_drawn_on_its_path_and_described(opened: Opened) -> None:
    page = opened.page
    plain = opened.pixels()
    assert page.locator("#traced option").count() == 1 + 5
    page.select_option("#traced", index=1)
    assert opened.pixels() != plain
    assert "host" in page.inner_text("#flow-note") and "took" in page.inner_text("#flow-note")
    page.select_option("#traced", index=0)
    assert page.inner_text("#flow-note") == ""


def test_two_schemes_stand_beside_each_other(opened: Opened) -> None:
    assert opened.page.is_hidden("#stage-1")
    opened.choose("beside", "drill")
    assert opened.page.is_visible("#stage-1")
    for stage in (0, 1):
        ratio = "(one) => one.width / one.clientWidth / (window.devicePixelRatio || 1)"
        assert opened.page.eval_on_selector(f"#stage-{stage}", ratio) == pytest.approx(1.0, abs=0.01), "not squeezed"
    opened.choose("replayed", "ecmp")
    assert opened.pixels(0) != opened.pixels(1)
    label = opened.page.get_attribute("#stage-1", "aria-label")
    assert label is not None and label.startswith("drill at ")


def test_pointing_at_a_link_says_what_it_does(opened: Opened) -> None:
    canvas = opened.page.locator("#stage-0")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    for step in range(40):
        opened.page.mouse.move(box["x"] + box["width"] * (0.1 + 0.02 * step), box["y"] + box["height"] * 0.4)
        if "Gbit/s" in opened.page.inner_text("#pointed"):
            break
    assert " → " in opened.page.inner_text("#pointed")


def test_light_and_dark_follow_the_system_and_the_button(browser: "Browser", compared: Path) -> None:
    def background(page: "Page") -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    dark = Opened(browser, compared, scheme="dark")
    light = Opened(browser, compared)
    assert background(dark.page) != background(light.page)
    before = light.pixels()
    light.page.click("#theme")
    assert background(light.page) == background(dark.page)
    assert light.pixels() != before
    dark.page.click("#theme")
    assert background(dark.page) == "rgb(255, 255, 255)"
    assert dark.complaints == light.complaints == []
    dark.context.close()
    light.context.close()


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_screen(browser: "Browser", compared: Path, swept: Path, width: int) -> None:
    for path in (compared, swept):
        found = Opened(browser, path, width=width)
        assert found.page.evaluate("document.documentElement.scrollWidth") <= width
        found.context.close()


def test_every_control_can_be_reached_with_the_tabulator_in_order(opened: Opened) -> None:
    page = opened.page
    reached = []
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        if reached[-1] == "traced":
            break
    order = ["theme", "ecmp", "size", "99th percentile", "stage-0", "play", "instant", "speed", "traced"]
    assert [name for name in order if name in reached] == order
    assert [reached.index(name) for name in order] == sorted(reached.index(name) for name in order)


def test_the_arrow_keys_move_between_the_buttons_of_a_group(opened: Opened) -> None:
    page = opened.page
    page.focus("[data-choice=statistic] button >> nth=0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.get_attribute("[data-choice=statistic] button:text-is('median')", "aria-pressed") == "true"


def test_the_text_of_a_user_stays_text(browser: "Browser", tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    runs = (summary(EVIL, 1, 5.0, scheme="rps", sizes=[EVIL]), summary("ecmp", sizes=[EVIL]))
    path.write_text(render(comparison(*runs, command=EVIL, spec=f"# {EVIL}\n")), encoding="utf-8")
    found = Opened(browser, path)
    assert EVIL in found.page.inner_text("h1")
    assert found.page.title() != "taken"
    found.page.hover("#why")
    assert EVIL in found.page.inner_text("#schemes")
    assert found.complaints == []
    found.context.close()


def test_a_sweep_is_drawn_against_each_of_its_fields(opened_sweep: Opened) -> None:
    page = opened_sweep.page
    assert "traffic.load" in opened_sweep.drawn("against")
    opened_sweep.choose("x", "fabric.spines")
    assert "fabric.spines" in opened_sweep.drawn("against")
    for choice, text in (("scale", "logarithmic"), ("quantity", "slowdown"), ("statistic", "median")):
        before = opened_sweep.drawn("against")
        opened_sweep.choose(choice, text)
        assert opened_sweep.drawn("against") != before, choice
    assert page.locator("#points-section tbody tr").count() >= 8


def test_a_sweep_of_collectives_is_drawn_by_what_these_took(browser: "Browser", tmp_path: Path) -> None:
    vary = {"fabric.spines": [1, 2]}
    shape = {key: value for key, value in COLLECTIVES.items() if key != "fabric.spines"}
    sweep = weft.sweep("", tmp_path / "out", set=shape, vary=vary, schemes=["ecmp", "oblivious"], seeds=2, jobs=1)
    path = tmp_path / "report.html"
    path.write_text(render_sweep(sweep), encoding="utf-8")
    found = Opened(browser, path)
    assert "completion time of collectives" in found.drawn("waiting").lower()
    for choice, text in (("collective", "longest collective"), ("scale", "logarithmic")):
        before = found.drawn("waiting")
        found.choose(choice, text)
        assert found.drawn("waiting") != before, choice
    rows = csv.DictReader(_downloaded(found.page, "waiting", "csv", tmp_path).decode().splitlines())
    drawn = {(row["scheme"], row["fabric.spines"]): float(row["longest collective (us)"]) for row in rows}
    for point in sweep.points:
        longest = point.estimates["longest_collective_us"]
        assert longest is not None
        place = (point.labels["scheme"], point.labels["fabric.spines"])
        assert drawn[place] == pytest.approx(longest.mean, rel=1e-4), place
    found.context.close()
    assert found.complaints == []


def test_the_value_of_a_swept_field_changes_the_charts(opened_sweep: Opened) -> None:
    before = {key: opened_sweep.drawn(key) for key in ("fct", "curves", "bysize", "why")}
    opened_sweep.page.select_option("[data-field] >> nth=0", index=1)
    assert [key for key, drawn in before.items() if opened_sweep.drawn(key) == drawn] == []


def test_a_scheme_has_its_marker_beside_its_name_and_on_every_curve(opened: Opened) -> None:
    """Whoever sees no colours tells curves apart by what tells points apart."""
    wanted = {label: SYMBOLS[look.marker] for label, look in looks(["ecmp", "rps", "drill"]).items()}
    for label, symbol in wanted.items():
        for place in (f"#schemes button:has-text('{label}')", f"th[data-value='{label}'] >> nth=0"):
            drawn = opened.page.get_attribute(f"{place} >> .swatch path", "d")
            assert drawn == symbol.removeprefix("path://"), (label, place)
    for chart in ("curves", "series"):
        found = opened.page.evaluate(
            f"echarts.getInstanceByDom(document.getElementById('{chart}')).getOption().series.map((one) =>"
            "[one.name, one.symbol, one.data.filter((point) => !point.symbol).length])"
        )
        assert {name: symbol for name, symbol, _ in found} == wanted, chart
        assert all(3 <= markers <= 15 for *_, markers in found), chart


@pytest.mark.parametrize("report", ["compared", "swept"])
def test_every_chart_can_be_had_as_svg_png_and_csv(
    browser: "Browser", report: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A chart by itself says which line is whose, and the numbers are those of the schemes that are shown."""
    opened = Opened(browser, request.getfixturevalue(report))
    page = opened.page
    page.click("#schemes button:has-text('rps')")
    names = page.eval_on_selector_all("[data-downloads]", "every => every.map((one) => one.dataset.downloads)")
    charts = page.eval_on_selector_all(".chart", "every => every.map((one) => one.id)")
    assert names == charts, "each chart has its buttons"
    for name in names:
        files = {kind: _downloaded(page, name, kind, tmp_path) for kind in ("svg", "png", "csv")}
        svg = files["svg"].decode()
        assert svg.startswith("<svg") and svg.count("<path") > 3, name
        assert files["png"].startswith(b"\x89PNG") and len(files["png"]) > 3_000, name
        heads, *rows = list(csv.reader(files["csv"].decode().splitlines()))
        assert rows and all(len(row) == len(heads) for row in rows), name
        assert all(head.strip() for head in heads), name
        if heads[0] == "scheme":
            assert "ecmp" in svg, f"{name}: a chart by itself has a legend"
            assert "rps" not in {row[0] for row in rows}, f"{name}: it is not shown"
        if heads[0] == "uplink":
            assert all(escape(row[0]) in svg for row in rows), f"{name}: every line has its name"
    assert not [said for said in opened.complaints if not said.startswith(("data:", "blob:"))]
    opened.context.close()


def test_the_numbers_of_a_chart_are_those_of_the_result(browser: "Browser", tmp_path: Path) -> None:
    found = weft.compare(["ecmp", "rps"], set=SMALL, seeds=1, jobs=1)
    path = tmp_path / "report.html"
    path.write_text(render(found), encoding="utf-8")
    opened = Opened(browser, path)
    rows = list(csv.DictReader(_downloaded(opened.page, "fct", "csv", tmp_path).decode().splitlines()))
    for run in found.runs:
        (row,) = [row for row in rows if (row["scheme"], row["flow size"]) == (run.summary.label, BINS["all"])]
        mean = run.summary.bins["all"].fct_us.mean
        assert mean is not None
        assert float(row["mean completion time (us)"]) == pytest.approx(mean, rel=1e-3)
    opened.context.close()


def _downloaded(page: "Page", name: str, kind: str, folder: Path) -> bytes:
    page.wait_for_timeout(120)  # chromium drops what is more than ten downloads a second
    with page.expect_download() as waiting:
        page.click(f"[data-downloads='{name}'] button[data-kind='{kind}']")
    assert waiting.value.suggested_filename == f"weft-{name}.{kind}"
    target = folder / f"{name}.{kind}"
    waiting.value.save_as(target)
    return target.read_bytes()
