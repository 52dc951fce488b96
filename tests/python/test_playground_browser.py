"""The playground in a real browser: it runs without an error, gives the command line's bytes, does what it is told.

Needs Debian's chromium, Playwright and the engine (`make playground`); skips without them, unless
WEFT_NEEDS_PLAYGROUND is 1.
"""

import hashlib
import importlib
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import weft
from weft import _core
from weft.palette import looks

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPTS = DOCS / "javascripts" / "playground"
CHROMIUM = shutil.which("chromium")
if os.environ.get("WEFT_NEEDS_PLAYGROUND") != "1":
    if CHROMIUM is None:
        pytest.skip("there is no chromium; on Debian: apt install chromium", allow_module_level=True)
    if not (SCRIPTS / "engine.js").is_file():
        pytest.skip("the engine is not built: make playground", allow_module_level=True)
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
playwright = importlib.import_module("playwright.sync_api")

SMALL = "leaves=2&spines=2&hosts=2&flows=12&seed=5&b=drill"
FINISH = "Playground.player.seek(Number.MAX_SAFE_INTEGER)"
OVER = "() => Playground.player.ended"


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as the guide has it, with the theme and a page before and after it: opened from a disk."""
    folder = tmp_path_factory.mktemp("playground")
    pages = folder / "docs"
    for part in ("javascripts", "stylesheets"):
        shutil.copytree(DOCS / part, pages / part)
    shutil.copyfile(DOCS / "playground.md", pages / "playground.md")
    for name in ("index", "last"):
        (pages / f"{name}.md").write_text("# Another page\n")
    (folder / "mkdocs.yml").write_text(
        "site_name: Guide\nuse_directory_urls: false\ntheme:\n  name: material\n  font: false\nplugins: [offline]\n"
        f"hooks: [{DOCS / 'offline.py'}]\nextra_css: [stylesheets/guide.css, stylesheets/playground.css]\n"
        "nav: [index.md, playground.md, last.md]\n"
    )
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=folder, check=True)
    return folder / "site" / "playground.html"


@pytest.fixture
def opened(browser: "Browser", page_file: Path) -> "Iterator[Any]":
    """Opens the page with a set-up. In the end, nothing may have gone wrong, nor been asked of a network."""
    errors: list[str] = []
    asked: list[str] = []
    tabs: list[Page] = []

    def open_page(setup: str, width: int = 1280) -> "Page":
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tabs.append(tab)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(f"{page_file.as_uri()}#{setup}")
        tab.wait_for_selector(".pg[data-ready]")
        return tab

    yield open_page
    for tab in tabs:
        tab.close()
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def spec_of(tab: "Page") -> str:
    return str(tab.evaluate("Playground.setup.toSpec(Playground.state.setup)"))


ARROW = {pl.UInt16: "UInt16", pl.UInt32: "UInt32", pl.UInt64: "UInt64", pl.Float64: "Float64"} | {
    pl.Boolean: "Boolean", pl.String: "Utf8"
}  # fmt: skip
PACKED = {"UInt16": "<H", "UInt32": "<I", "UInt64": "<Q", "Float64": "<d", "Boolean": "<?"}
TABLES = ("flows", "links", "samples", "deliveries", "paths", "traces", "scheme")


def fingerprint(spec: str, scheme: str, folder: Path = DOCS) -> str:
    """Return the fingerprint of a run here, made of its tables as `crates/lab/src/results/fingerprint.rs` says."""
    result = _core.run(spec, variant=scheme, base_dir=str(folder))
    whole = hashlib.sha256()
    for name in TABLES:
        table = pl.DataFrame(result.table(name))
        content = hashlib.sha256()
        for column in table.get_columns():
            kind = ARROW[type(column.dtype)]
            content.update(f"{kind}\n".encode())
            for value in column:
                content.update(bytes([value is not None]))
                if value is not None:
                    content.update(packed(kind, value))
        whole.update(content.digest()[:8].hex().encode())
    return whole.digest()[:8].hex()


def packed(kind: str, value: Any) -> bytes:
    if kind == "Utf8":
        text = str(value).encode()
        return struct.pack("<Q", len(text)) + text
    return struct.pack(PACKED[kind], value)


def links_used(tab: "Page", since: float) -> set[str]:
    """Names of links between switches that carried more bytes at the end than at `since`, under B."""
    tab.evaluate(f"Playground.player.seek({since})")
    tab.wait_for_function("() => Playground.player.goal === null")
    look = """() => { const { fabric } = Playground.player.runs[1].description;
      return fabric.links.map((link, at) => [link.name, Playground.player.seen[1].links[at * 6 + 3]]); }"""
    before = dict(tab.evaluate(look))
    tab.evaluate(FINISH)
    tab.wait_for_function(OVER)
    after = dict(tab.evaluate(look))
    return {name for name, sent in after.items() if sent > before[name] and "host" not in name}


def test_same_spec_and_seed_give_the_command_lines_bytes(opened: Any) -> None:
    """A cable is cut and mended, too: the faults of the page are those of its spec."""
    tab = opened(f"{SMALL}&faults=cut~leaf0-spine0~200000000~900000000;slow~leaf1-spine1~0~")
    tab.evaluate(FINISH)
    tab.wait_for_function(OVER)
    found = tab.evaluate("Playground.player.runs.map((run) => run.result.fingerprint)")
    assert found == [fingerprint(spec_of(tab), scheme) for scheme in ("ecmp", "drill")]
    assert found[0] in tab.inner_text("#pg-result")


def test_cutting_a_cable_changes_paths(opened: Any) -> None:
    tab = opened(SMALL)
    assert "leaf0>spine0" in links_used(tab, 300e6), "it is used while nothing is cut"
    tab.click("#pg-again")
    tab.wait_for_function("() => Playground.player.time === 0")
    tab.evaluate("Playground.player.seek(300e6)")
    tab.wait_for_function("() => Playground.player.time >= 300e6 && Playground.player.goal === null")
    tab.select_option("#pg-cable", "leaf0-spine0")
    tab.click("#pg-cut")
    tab.wait_for_function("() => Playground.player.runs[0].description.faults.length === 2")
    assert "cut~leaf0-spine0~300000000~" in tab.evaluate("decodeURIComponent(location.hash)")
    tab.wait_for_function("() => Playground.player.time >= 300e6 && Playground.player.goal === null")
    assert not {"leaf0>spine0", "spine0>leaf0"} & links_used(tab, 310e6)


def test_a_click_on_a_cable_chooses_it(opened: Any) -> None:
    tab = opened(SMALL)
    place = tab.evaluate(
        """() => { const canvas = document.getElementById("pg-picture-a");
        const box = canvas.getBoundingClientRect();
        const { fabric } = Playground.player.runs[0].description;
        const places = Playground.layout(fabric);
        const node = (name) => places[fabric.names.indexOf(name)];
        const [a, b] = [node("leaf1"), node("spine1")];
        return [box.left + box.width * (0.7 * a.x + 0.3 * b.x), box.top + box.height * (0.7 * a.y + 0.3 * b.y)]; }"""
    )
    tab.mouse.click(*place)
    assert tab.input_value("#pg-cable") == "leaf1-spine1"
    tab.click('#pg-popup [data-act="slow"]')
    tab.wait_for_selector("#pg-faults li")
    assert "leaf1-spine1 slowed" in tab.inner_text("#pg-faults")
    tab.mouse.click(*place)
    assert tab.inner_text("#pg-popup").split() == ["leaf1-spine1", "Mend"]


def test_the_link_restores_the_set_up(opened: Any) -> None:
    tab = opened("")
    tab.select_option('[name="b"]', "conga")
    tab.select_option('[name="transport"]', "tcp")
    tab.fill('[name="flows"]', "30")
    tab.press('[name="flows"]', "Tab")
    tab.wait_for_function("() => Playground.player.runs[0].description.flows.length === 30")
    again = opened(tab.evaluate("location.hash.slice(1)"))
    assert spec_of(again) == spec_of(tab)
    assert again.input_value('[name="b"]') == "conga"
    assert again.input_value('[name="flows"]') == "30"


def test_the_link_restores_what_is_looked_at(opened: Any) -> None:
    tab = opened(SMALL)
    tab.evaluate("Playground.player.seek(300e6)")
    tab.wait_for_function("() => Playground.player.goal === null")
    tab.evaluate("Playground.follow(3)")
    tab.fill("#pg-speed", "20")
    tab.wait_for_function("() => Playground.player.time >= 300e6")
    tab.click("#pg-copy-link")
    again = opened(tab.evaluate("location.hash.slice(1)"))
    again.wait_for_function("() => Playground.player.time >= 300e6 && Playground.player.goal === null")
    assert again.evaluate("Playground.player.time") == 300e6
    assert again.input_value("#pg-flow") == "3"
    assert again.inner_text("#pg-speed-text") == tab.inner_text("#pg-speed-text")


def test_a_followed_flow_is_explained(opened: Any) -> None:
    tab = opened("leaves=2&spines=4&hosts=4&flows=20&seed=3&b=letflow")
    flow = tab.evaluate(
        """() => { const { flows, fabric } = Playground.player.runs[0].description;
        return flows.findIndex(([, from, to]) => fabric.racks[from] !== fabric.racks[to]); }"""
    )
    tab.select_option("#pg-flow", str(flow))
    tab.evaluate(FINISH)
    tab.wait_for_function(OVER)
    assert re.search(r"hash [0-9a-f]{8} falls on next hop \d of 4, always → spine\d", tab.inner_text("#pg-why-a"))
    assert re.search(r"gap \S+ µs <= 500.* µs, the flowlet stays on its port → spine\d", tab.inner_text("#pg-why-b"))


def test_a_flow_that_is_over_is_explained(opened: Any) -> None:
    """As one has it who clicks a dot under "Flow by flow", where all flows are over."""
    tab = opened("leaves=2&spines=4&hosts=4&flows=20&seed=3")
    tab.evaluate(FINISH)
    tab.wait_for_function(OVER)
    told = tab.inner_text("#pg-result")
    flow = tab.evaluate(
        """() => { const { flows, fabric } = Playground.player.runs[0].description;
        return flows.findIndex(([, from, to]) => fabric.racks[from] !== fabric.racks[to]); }"""
    )
    tab.select_option("#pg-flow", str(flow))
    tab.wait_for_function("() => document.getElementById('pg-why-a').innerText.includes('falls on next hop')")
    tab.wait_for_function(OVER)
    assert tab.inner_text("#pg-result") == told, "the same runs"


def test_a_fabric_can_be_drawn_and_its_run_is_the_command_lines(opened: Any, tmp_path: Path) -> None:
    """A cable more and two hosts more, by the lists and buttons that keys reach."""
    tab = opened("fabric=graph&flows=12&b=letflow")
    before = tab.evaluate("Playground.player.runs[0].description.fabric.links.length")
    tab.select_option("#pg-switch", "4")
    tab.click("#pg-more-hosts")
    tab.click("#pg-more-hosts")
    tab.select_option("#pg-connect", "5")
    wait = "(links) => Playground.player.runs[0].description.fabric.links.length === links"
    tab.wait_for_function(wait, arg=before + 6)
    tab.evaluate(FINISH)
    tab.wait_for_function(OVER)
    (tmp_path / "drawn.toml").write_text(tab.evaluate("Playground.drawing.toFile(Playground.state.setup.drawing)"))
    found = tab.evaluate("Playground.player.runs[1].result.fingerprint")
    assert found == fingerprint(spec_of(tab), "letflow", tmp_path)


def test_space_plays_a_full_stop_steps_and_a_mistake_is_told(opened: Any) -> None:
    tab = opened(SMALL)
    tab.keyboard.press(".")
    tab.wait_for_function("() => Playground.player.time === 1.2e6")
    tab.keyboard.press(" ")
    tab.wait_for_function("() => Playground.player.isPlaying && Playground.player.time > 2e6")
    tab.keyboard.press(" ")
    assert tab.inner_text("#pg-play") == "Play"
    tab.focus("#pg-play")
    tab.keyboard.press(".")
    tab.wait_for_function("() => Playground.player.goal === null")
    tab.wait_for_timeout(300)
    assert tab.url.split("#")[0].endswith("/playground.html"), "a full stop turns no page here"
    tab.evaluate("Playground.change({ hosts: 32, leaves: 16 })")
    tab.wait_for_selector("#pg-message:not([hidden])")
    assert "512 hosts: the playground draws up to 64" in tab.inner_text("#pg-message")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(opened: Any, width: int) -> None:
    tab = opened(SMALL, width)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_engine_does_a_million_packet_hops_a_second(opened: Any) -> None:
    """A tenth of that is enough here: the machine of a test may be slow and busy. `docs/playground.md` has a figure."""
    tab = opened("flows=150")
    rate = tab.evaluate('Playground.measure(Playground.setup.toSpec(Playground.state.setup), "ecmp")')
    print(f"{rate:,.0f} packet-hops a second")
    assert rate > 1e5


def test_a_scheme_has_the_colour_that_it_has_in_every_figure(opened: Any) -> None:
    found = opened(SMALL).evaluate("Playground.SCHEME_COLOURS")
    names = [entry.name for entry in weft.schemes()]
    assert set(found) == set(names)
    for name in names:
        look = looks([name])[name]
        assert found[name] == [look.colour, look.dark_colour], name
