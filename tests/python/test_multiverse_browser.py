"""The page of a paper's scenarios in a real browser: what is chosen decides which scenarios are counted.

Needs Debian's chromium and Playwright; skips without them, unless WEFT_NEEDS_BROWSER is 1.
"""

import importlib
import os
import shutil
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from made_paper import CHOICES, write_made
from weft.multiverse.exploring import asked, explore
from weft.multiverse.writing import opened, written
from weft.report import render_directory

Page: TypeAlias = Any
"""A page of Playwright, which need not be installed."""

CHROMIUM = shutil.which("chromium")
if os.environ.get("WEFT_NEEDS_BROWSER") != "1":
    if CHROMIUM is None:
        pytest.skip("there is no chromium; on Debian: apt install chromium", allow_module_level=True)
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
playwright = importlib.import_module("playwright.sync_api")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page of the made-up paper's eight scenarios, offline, in a phone's width; it complains of nothing."""
    folder, place = tmp_path_factory.mktemp("papers"), tmp_path_factory.mktemp("scenarios") / "out"
    write_made(folder)
    question = asked("made", choices=CHOICES, folder=folder)
    with opened(place) as directory:
        written(directory, question, explore(question, budget_cpu_min=10.0, out=place))
    (place / "report.html").write_text(render_directory(place), encoding="utf-8")
    complaints: list[str] = []
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 390, "height": 800})
        context.set_offline(True)
        loaded: Page = context.new_page()
        loaded.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        loaded.on("pageerror", lambda error: complaints.append(str(error)))
        loaded.goto((place / "report.html").as_uri())
        yield loaded
        browser.close()
    assert complaints == []


def choose(page: Page, **chosen: str) -> None:
    """Choose an alternative of some choices; the others may be any."""
    page.get_by_role("button", name="any", exact=True).click()
    for name, alternative in chosen.items():
        label = page.locator("label", has_text=name.replace("_", "-"))
        label.locator("select").select_option(label=label.locator("option", has_text=alternative).inner_text())


def told(page: Page) -> tuple[str, list[str]]:
    """Which scenarios are counted, and the share of them in which each claim holds."""
    shares = page.locator("tr[data-claim] .share").all_inner_texts()
    return page.locator("#matching").inner_text(), shares


def test_all_scenarios_are_counted_until_something_is_chosen(page: Page) -> None:
    choose(page)
    assert told(page) == ("8 of 8 scenarios", ["38 %", "25 %", "0 %"])
    assert page.locator("tr[data-claim] .counts").first.inner_text().startswith("3 reproduced")


def test_what_is_chosen_leaves_the_scenarios_that_agree(page: Page) -> None:
    """30 us in the host: three of these four take 44 us or more."""
    choose(page, stack="long")
    assert told(page) == ("4 of 8 scenarios", ["75 %", "0 %", "0 %"])
    choose(page, stack="long", host_delay="short", fabric_delay="short")
    where, shares = told(page)
    assert where == "One scenario: stack=long"
    assert shares == ["0 %", "0 %", "0 %"]
    assert "1 not reproduced; measured: 37.3" in page.locator("tr[data-claim] .counts").first.inner_text()


def test_the_default_and_any_are_a_button_away(page: Page) -> None:
    page.get_by_role("button", name="the default").click()
    assert told(page) == ("One scenario: default", ["0 %", "100 %", "0 %"])
    page.get_by_role("button", name="any", exact=True).focus()
    page.keyboard.press("Enter")
    page.locator("#matching", has_text="8 of 8 scenarios").wait_for()


def test_the_page_fits_a_phone(page: Page) -> None:
    """Tables scroll sideways in their own frames."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
