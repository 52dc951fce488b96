"""Looks at every page of the built guide, at the widths of a laptop and of a phone: nothing is wider than the page.

`python docs/check_widths.py site` exits 1 and names what is cut off, or makes a page scroll sideways; a table that scrolls in a
box of its own is as it should be. At the width of a laptop a table that the program prints, of up to 104 columns, does not even scroll. Needs Debian's chromium; without it nothing is looked at, unless WEFT_NEEDS_BROWSER is 1.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

WIDTHS = (1280, 390)

WIDER = """() => {
  const page = document.documentElement, found = [];
  for (const one of document.querySelectorAll(".md-content *")) {
    const right = one.getBoundingClientRect().right;
    for (let box = one.parentElement; box; box = box.parentElement) {
      const overflow = box === page ? "visible" : getComputedStyle(box).overflowX;
      if (overflow === "auto" || overflow === "scroll") break;
      const edge = box === page ? page.clientWidth : box.getBoundingClientRect().right;
      if ((box === page || overflow !== "visible") && right > edge + 1) {
        found.push(`${one.tagName.toLowerCase()}: ${one.textContent.trim().slice(0, 60)}`);
        break;
      }
      // What ends within the page needs no look at all of its boxes but those that cut.
      if (box.classList.contains("md-content") && right <= page.clientWidth + 1) break;
    }
  }
  for (const code of page.clientWidth < 1000 ? [] : document.querySelectorAll(".md-content pre > code")) {
    const rules = code.textContent.split("\\n").filter((line) => /^[ ─┼]*───/.test(line)).map((line) => line.length);
    if (!rules.length || Math.max(...rules) > 104) continue;
    const { paddingLeft, paddingRight, font } = getComputedStyle(code);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = font;
    const room = code.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    const needed = Math.max(...rules) * pen.measureText("─").width;
    if (needed > room + 1) found.push(`a printed table of ${Math.max(...rules)} columns: ${Math.round(needed)} of ${Math.round(room)}`);
  }
  return found.concat(page.scrollWidth > page.clientWidth ? [`the page is ${page.scrollWidth} wide`] : []);
}"""


def main(site: Path) -> int:
    """Look at all pages."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not there: nobody looked whether pages fit", file=sys.stderr)
        return int(os.environ.get("WEFT_NEEDS_BROWSER") == "1")
    complaints = list(wider(sorted(site.resolve().rglob("*.html")), chromium))
    print(*complaints, sep="\n", end="\n" if complaints else "", file=sys.stderr)
    return 1 if complaints else 0


def wider(pages: list[Path], chromium: str) -> Iterator[str]:
    """Yield the elements that are wider than their page, at each width."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        for page in pages:
            tab.goto(page.as_uri())
            # What the theme moves when the width changes is there at once.
            tab.add_style_tag(content="* { transition: none !important }")
            for width in WIDTHS:
                tab.set_viewport_size({"width": width, "height": 900})
                for what in tab.evaluate(WIDER)[:3]:
                    yield f"{page.name} at {width}: {what}"
        browser.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
