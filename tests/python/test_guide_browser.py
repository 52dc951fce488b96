"""The guide in a browser: it is searched from a disk and without a network, and what is wider than a page is told.

Needs Debian's chromium and Playwright; skips without them, unless WEFT_NEEDS_BROWSER is 1.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
if os.environ.get("WEFT_NEEDS_BROWSER") != "1":
    if CHROMIUM is None:
        pytest.skip("there is no chromium; on Debian: apt install chromium", allow_module_level=True)
    pytest.importorskip("playwright.sync_api")
    pytest.importorskip("material")

DOCS = Path(__file__).resolve().parents[2] / "docs"
_SPEC = importlib.util.spec_from_file_location("check_widths", DOCS / "check_widths.py")
assert _SPEC is not None and _SPEC.loader is not None
check_widths = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(check_widths)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A guide of two pages, one of them in a folder, with the hook and the script of Weft's guide."""
    place = tmp_path_factory.mktemp("guide")
    pages = place / "docs"
    (pages / "schemes").mkdir(parents=True)
    (pages / "index.md").write_text("# A guide\n\nIt begins here.\n")
    (pages / "schemes" / "one.md").write_text("# One scheme\n\nIt moves every flowlet.\n")
    shutil.copytree(DOCS / "javascripts", pages / "javascripts")
    (place / "mkdocs.yml").write_text(
        "site_name: Guide\nuse_directory_urls: false\ntheme:\n  name: material\n  font: false\n"
        f"plugins: [search, offline]\nhooks: [{DOCS / 'offline.py'}]\n"
    )
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"], cwd=place, check=True)
    return place / "site"


@pytest.mark.parametrize("page", ["index.html", "schemes/one.html"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_search_finds_a_page_from_a_disk(site: Path, page: str, width: int) -> None:
    """At every width, and whatever page it is begun on; nothing is asked of a network."""
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": 800})
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto((site / page).as_uri() + "?q=flowlet")
        found = tab.locator(".md-search-result__item a").first
        found.wait_for()
        assert "One scheme" in found.inner_text()
        found.click()
        tab.wait_for_url("**/schemes/one.html*")
        browser.close()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_what_is_cut_off_or_makes_a_page_scroll_is_told(tmp_path: Path) -> None:
    wide = '<table style="width: 600px"><tr><td>wide</td></tr></table>'
    boxes = {"fits": wide.replace("600", "300"), "scrolls": f'<div style="overflow-x: auto">{wide}</div>'}
    boxes |= {"cut": f'<div style="overflow: hidden">{wide}</div>', "sideways": wide}
    code = '<pre style="max-width: 700px"><code style="display: block; overflow: auto; font: 12px monospace">'
    boxes |= {"printed": f"{code} mean\n {'─' * 103}</code></pre>", "short": f"{code} mean\n {'─' * 50}</code></pre>"}
    for name, box in boxes.items():
        (tmp_path / f"{name}.html").write_text(
            f'<!doctype html><meta charset="utf-8"><div class="md-content">{box}</div>'
        )
    assert CHROMIUM is not None
    told = list(check_widths.wider(sorted(tmp_path.glob("*.html")), CHROMIUM))
    assert {one.split(":")[0] for one in told} == {
        "cut.html at 390",
        "printed.html at 1280",
        "sideways.html at 390",
    }
