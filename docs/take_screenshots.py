"""Takes the pictures of the report in docs/images: runs a comparison, opens its report in chromium, and looks.

    .venv/bin/python docs/take_screenshots.py

Needs Debian's chromium and the requirements of development.
"""

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import weft
from weft.catalog import preset

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SCHEMES = ("ecmp", "letflow", "presto", "drill")
SPEC = {
    "fabric": {"leaves": 4, "spines": 4, "hosts_per_leaf": 8},
    "traffic": {"workload": "web-search", "load": 0.7, "flows": 400},
    "run": {"sample_every": "100us", "trace_flows": 20},
}


def main() -> None:
    """Write every picture."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("there is no chromium; on Debian: apt install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        page_file = weft.compare(SCHEMES, spec=SPEC).report(Path(folder) / "report.html")
        browser = engine.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1120, "height": 900}, device_scale_factor=1.5)
        page.goto(page_file.as_uri())
        # What stays at the top of the window would lie over the pictures.
        page.add_style_tag(content=".controls { position: static; }")
        replay(page)
        why(page)
        waits(browser, Path(folder))
        browser.close()


def replay(page: Page) -> None:
    """Two schemes beside each other, and the third largest flow."""
    page.click("[data-choice=beside] button:text-is('drill')")
    page.select_option("#traced", index=3)
    page.add_style_tag(content="#busy, #busy-title, #pointed, #replay-section > .note { display: none; }")
    take(page, "replay", "report-replay.png")


def why(page: Page) -> None:
    """Where the time went."""
    take(page, "why", "report-why.png")


def waits(browser: Browser, folder: Path) -> None:
    """Pauses under two schemes with their critical paths, and a deadlock."""
    spec = preset("ai-allreduce").spec
    pausing = weft.compare(["ecmp", "ar"], spec=spec, set={"fabric.pause.xoff": "100KB"}, progress=False)
    stuck = weft.compare(["ecmp"], spec=ROOT / "examples" / "deadlock.toml", progress=False)
    for name, found in {"pauses": pausing, "deadlock": stuck}.items():
        page = browser.new_page(viewport={"width": 1120, "height": 900}, device_scale_factor=1.5)
        page.goto(found.report(folder / f"{name}.html").as_uri())
        hidden = "#busy, #busy-title, #pointed, #replay-section > .note { display: none; }"
        page.add_style_tag(content=f".controls {{ position: static; }} {hidden}")
        if name == "pauses":
            page.click("[data-choice=beside] button:text-is('ar')")
        take(page, "replay", f"report-{name}.png")


def take(page: Page, section: str, name: str) -> None:
    """Write the picture of a section."""
    write(page.locator(f"#{section}-section").screenshot(), IMAGES / name)


def write(picture: bytes, file: Path) -> None:
    """Write a picture with a palette, whose colours cover those of legends: a fifth of the bytes of all shades at the edges of lines."""
    with Image.open(io.BytesIO(picture)) as taken:
        palette = taken.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        palette.save(file, optimize=True)


if __name__ == "__main__":
    main()
