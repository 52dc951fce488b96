"""The page of papers in a real browser: pictures are there, verdicts can be chosen, and it fits a phone.

Needs Debian's chromium and Playwright; skips without them, unless WEFT_NEEDS_BROWSER is 1.
"""

import importlib
import os
import shutil
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from test_paper_scorecard import declared, run
from weft.report.paper import write_paper_report

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
    """The page of one paper, offline, in a phone's width; it complains of nothing."""
    folder = tmp_path_factory.mktemp("paper")
    directory = run(declared(folder), folder / "out")
    write_paper_report(directory, directory / "report.html", folder)
    complaints: list[str] = []
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 390, "height": 800})
        context.set_offline(True)
        opened: Page = context.new_page()
        opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.goto((directory / "report.html").as_uri())
        yield opened
        browser.close()
    assert complaints == []


def shown(page: Page) -> list[str]:
    """The verdicts of the rows that can be seen."""
    rows = page.locator("tr[data-verdict]").all()
    return [row.get_attribute("data-verdict") or "" for row in rows if row.is_visible()]


def test_pictures_are_there(page: Page) -> None:
    page.locator("figure img").scroll_into_view_if_needed()
    page.locator("figure img").evaluate("image => image.decode()")
    assert page.locator("figure img").evaluate("image => image.naturalWidth") > 500


def test_verdicts_are_chosen_with_the_keyboard(page: Page) -> None:
    every = ["reproduced", "not run", "not testable here"]
    assert shown(page) == every
    button = page.locator('button[value="reproduced"]')
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert shown(page) == every[1:]
    page.keyboard.press("Space")
    assert shown(page) == every


def test_the_page_fits_a_phone(page: Page) -> None:
    """Only the table scrolls sideways, in its own frame."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
