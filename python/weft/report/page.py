"""Putting a page together: a template, sections, data and scripts in one file."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

from weft import _core

__all__ = ["SCRIPTS", "Page", "script_json"]

_SLOT = re.compile(r"<!--slot:([a-z-]+)-->|/\*slot:([a-z-]+)\*/")

SCRIPTS = ("base", "controls", "table", "fct", "curves", "why", "overhead")
"""The scripts of every page, in this order; the last one of a page, `main`, starts it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A report. Plain texts are escaped here; sections are HTML that is escaped already."""

    title: str
    kind: str
    """What it is a report of, in a few words."""
    heading: str
    subtitle: str
    sections: Sequence[str]
    """HTML, in order."""
    data: dict[str, Any]
    """What the scripts read."""
    scripts: Sequence[str] = SCRIPTS

    def render(self) -> str:
        """Return the page as text."""
        slots = {
            "title": escape(self.title),
            "kind": escape(self.kind),
            "heading": escape(self.heading),
            "subtitle": escape(self.subtitle),
            "sections": "\n".join(self.sections),
            "version": escape(_core.version()),
            "data": script_json(self.data),
            "style": _resource("report.css") + _resource("assets/replay.css"),
            "script": _script((*self.scripts, "main")),
            "charts": _resource("vendor/echarts/echarts.common.min.js"),
        }
        # One pass, so that a filled slot is never searched for further slots.
        return _SLOT.sub(lambda match: slots[match[1] or match[2]], _resource("assets/template.html"))


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element: no text in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _script(names: Sequence[str]) -> str:
    """Join the modules in one scope that nothing else sees."""
    parts = "\n".join(f"// {name}.js\n{_resource(f'assets/{name}.js')}" for name in names)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _resource(name: str) -> str:
    return resources.files("weft.report").joinpath(name).read_text(encoding="utf-8")
