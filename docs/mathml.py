"""Formulas as MathML, made when the guide is built, so that no page loads a script from a network.

A hook of MkDocs (`hooks:` in mkdocs.yml). Arithmatex finds the formulas, latex2mathml translates them.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\s*(?:\\\((?P<inline>.*?)\\\)|\\\[(?P<block>.*?)\\\])\s*</\1>', re.DOTALL
)


def on_page_content(page_html: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return _FORMULA.sub(_mathml, page_html)


def _mathml(found: re.Match[str]) -> str:
    block = found["block"]
    source = html.unescape(block if block is not None else found["inline"]).strip()
    # The names of settings stand in \text with \_, which latex2mathml leaves as it is.
    formula = convert(source, display="inline" if block is None else "block").replace("\\_", "_")
    # In a box of its own, which scrolls where a page is narrow.
    return formula if block is None else f'<div class="arithmatex">{formula}</div>'
