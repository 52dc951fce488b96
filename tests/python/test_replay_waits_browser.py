"""The replay in a real browser: it draws what was paused in each frame, the critical path, and a deadlock.

Needs what `test_report_browser.py` needs, and skips as it does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weft
from test_collectives import EXAMPLES, FABRIC, LOSSLESS, SMALL
from test_report_browser import CHROMIUM, Opened, Scheme, playwright
from weft.comparison import Comparison
from weft.report import render

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAUSED = {"light": (0x7A, 0x2F, 0xB5), "dark": (0xC7, 0x9B, 0xFF)}
CRITICAL = {"light": (0x00, 0x79, 0x6B), "dark": (0x4F, 0xE3, 0xC8)}
STUCK = {"light": (0xC0, 0x14, 0x2F), "dark": (0xFF, 0x7A, 0x8A)}
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


@pytest.fixture(scope="module")
def chromium() -> "Iterator[Browser]":
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def incast() -> Comparison:
    """Two bursts that pause links, with rest between them."""
    flows = [{"senders": 6, "size": "400KB", "period": "200us", "repeats": 2}]
    pausing: dict[str, Any] = {"fabric.pause.xoff": "50KB", "transport.name": "roce", "transport.dcqcn": False}
    changes = FABRIC | LOSSLESS | pausing | {"traffic.incast": flows, "run.sample_every": "10us"}
    return weft.compare(["ecmp"], set=changes, progress=False)


def page_of(found: Comparison, folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(render(found), encoding="utf-8")
    return path


def coloured(opened: Opened, colour: tuple[int, int, int], canvas: str = "#stage-0") -> int:
    """How many pixels of a canvas have this colour."""
    counting = """([canvas, colour]) => {
      const found = document.querySelector(canvas);
      const { data } = found.getContext("2d").getImageData(0, 0, found.width, found.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) count += colour.every((value, part) => data[at + part] === value);
      return count;
    }"""
    return int(opened.page.evaluate(counting, [canvas, list(colour)]))


def label(opened: Opened) -> str:
    return opened.page.get_attribute("#stage-0", "aria-label") or ""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_links_are_dashed_in_the_frames_in_which_they_were_paused_and_in_no_other(
    chromium: "Browser", incast: Comparison, tmp_path: Path, scheme: Scheme
) -> None:
    series = incast.runs[0].series
    frames = [frame for _, frame in series.links().group_by("time_us", maintain_order=True)]
    paused = [int((frame["paused_us"] > 0.0).sum()) for frame in frames]
    shares = [float(frame["paused_us"].sum()) for frame in frames]
    first = next(at for at, links in enumerate(paused) if links)
    between = next(at for at, links in enumerate(paused) if not links and at > first)
    assert any(paused[between:]), "between the first and the last pause of a run there are frames without"
    opened = Opened(chromium, page_of(incast, tmp_path), scheme=scheme)
    assert opened.page.input_value("#instant") == str(shares.index(max(shares))), "it begins where most is paused"
    assert coloured(opened, PAUSED[scheme]) > 100
    assert "paused for " in opened.page.inner_text("#busy") and "because of" in opened.page.inner_text("#busy")
    for frame in (first, between):
        opened.page.fill("#instant", str(frame))
        assert f"{paused[frame]} links are paused" in label(opened)
        assert (coloured(opened, PAUSED[scheme]) > 0) == (paused[frame] > 0)
    assert coloured(opened, CRITICAL[scheme]) == 0 and not opened.page.is_visible("#path-0")
    opened.context.close()
    assert opened.complaints == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_critical_path_is_followed_flow_by_flow_and_its_strip_leads_there(
    chromium: "Browser", tmp_path: Path, scheme: Scheme
) -> None:
    found = weft.compare(["ecmp"], set=SMALL | {"run.sample_every": "2us"}, progress=False)
    path = found.runs[0].critical_path.filter(found.runs[0].critical_path["collective"] == 0)
    opened = Opened(chromium, page_of(found, tmp_path), scheme=scheme)
    page = opened.page
    assert coloured(opened, CRITICAL[scheme]) > 100 and coloured(opened, PAUSED[scheme]) == 0
    assert coloured(opened, (0x8C, 0x8C, 0x8C), "#path-0 canvas") > 500, "transmission takes most of it"
    said = set()
    strip = page.locator("#path-0 canvas")
    box = strip.bounding_box()
    assert box is not None
    for part in (0.05, 0.5, 0.9):
        strip.click(position={"x": part * box["width"], "y": box["height"] / 2})
        text = page.inner_text("#waits-note")
        assert "propagation and serialisation" in text
        said.add(text.split("flow ")[1].split(" ")[0])
    assert len(said) == 3 and said <= {str(flow) for flow in path["flow"]}
    page.focus("#stage-0")
    page.keyboard.press("End")
    assert "critical path" not in page.inner_text("#waits-note"), "at its end nobody waits any more"
    opened.context.close()
    assert opened.complaints == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_deadlock_is_what_a_replay_begins_with(chromium: "Browser", tmp_path: Path, scheme: Scheme) -> None:
    found = weft.compare(["ecmp"], spec=EXAMPLES / "deadlock.toml", progress=False)
    opened = Opened(chromium, page_of(found, tmp_path), scheme=scheme)
    page = opened.page
    assert page.input_value("#instant") == page.get_attribute("#instant", "max")
    assert coloured(opened, STUCK[scheme]) > 2_000 and "deadlock: ring0>ring1" in label(opened)
    assert "deadlock: ring0>ring1" in page.inner_text("#waits-note")
    # The cables of hosts wait, too, but are on no circle.
    assert "10 links are paused" in label(opened) and coloured(opened, PAUSED[scheme]) > 100
    page.focus("#stage-0")
    page.keyboard.press("Home")
    assert coloured(opened, STUCK[scheme]) == 0 and page.inner_text("#waits-note") == ""
    opened.context.close()
    assert opened.complaints == []
