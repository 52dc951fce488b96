"""The guide names what there is: what a list leaves out, or a page has no longer, is told."""

import importlib.util
from pathlib import Path

import pytest
import typer.main

import weft
from weft.cli.app import app

DOCS = Path(__file__).resolve().parents[2] / "docs"
_SPEC = importlib.util.spec_from_file_location("generate_tables", DOCS / "generate_tables.py")
_FORMULAS = importlib.util.spec_from_file_location("mathml", DOCS / "mathml.py")
assert _SPEC is not None and _SPEC.loader is not None
generate_tables = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generate_tables)


def test_every_command_has_a_heading_on_the_page_of_the_command_line() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    told = " ".join(line for line in page.splitlines() if line.startswith("## weft ")).replace(",", "").split()
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert [name for name in commands if name not in told] == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    parts = [page for page in pages if page.startswith("papers/") and (page.count("/") > 1 or "summary" in page)]
    assert [page for page in pages if page not in parts and f": {page}\n" not in navigation] == []


def test_the_reference_of_the_package_has_all_that_it_offers() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert [name for name in weft.__all__ if name != "__version__" and f"::: weft.{name}\n" not in page] == []


def test_a_page_gets_the_parameters_of_a_scheme_with_defaults_and_units() -> None:
    page = DOCS / "one.md"
    guide = generate_tables.Guide({page: "<!-- parameters letflow -->\nold\n<!-- end -->\n"}, [])
    lines = guide.written()[page].splitlines()
    assert any(line.startswith("| `gap` | `500us` | time | ") for line in lines)
    assert "A time has a unit: `s`, `ms`, `us`, `ns` or `ps`." in lines
    assert guide.complaints == [] and "old" not in lines


@pytest.mark.parametrize("left_out", ["qall", "qall-poly", "ecmp"])
def test_a_list_that_leaves_a_scheme_out_is_told(left_out: str) -> None:
    named = ", ".join(one.name.upper() for one in weft.schemes() if one.name != left_out)
    guide = generate_tables.Guide({DOCS / "one.md": f"<!-- every schemes -->\n{named}\n<!-- end -->\n"}, [])
    guide.written()
    assert guide.complaints == [f"one.md leaves out of its schemes: {left_out}"]


def test_a_gallery_has_a_small_picture_of_each_large_one() -> None:
    page = DOCS / "one.md"
    text = "<!-- thumbnails -->\n<!-- end -->\n\n## A link fails\n\n![Loads](images/loads.png)\n"
    lines = generate_tables.Guide({page: text}, []).written()[page].splitlines()
    small = '<img src="images/loads.png" alt="Loads" title="Loads" loading="lazy">'
    assert f'<a href="#a-link-fails">{small}</a>' in lines


def test_every_picture_of_the_gallery_is_on_its_page() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    pictures = sorted(path.name for path in (DOCS / "images" / "gallery").iterdir())
    assert [name for name in pictures if f"](images/gallery/{name})" not in page] == []
    assert len(pictures) >= 12


def test_no_formula_shows_a_backslash() -> None:
    pytest.importorskip("latex2mathml", reason="the guide's requirements are not installed")
    assert _FORMULAS is not None and _FORMULAS.loader is not None
    mathml = importlib.util.module_from_spec(_FORMULAS)
    _FORMULAS.loader.exec_module(mathml)
    page = '<div class="arithmatex">\\[T = \\min(\\alpha E, \\text{hold\\_max})\\]</div>'
    shown = mathml.on_page_content(page)
    assert "hold_max" in shown and "\\" not in shown and "<math" in shown
