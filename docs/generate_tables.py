"""Writes the tables and lists of the guide that the program can make: columns, parameters, and what there is.

`python docs/generate_tables.py` writes what stands between a mark and `<!-- end -->`, in all pages:

- `<!-- table flows -->`: the columns of a table of a result; `<!-- table * -->`: the files of all tables;
- `<!-- parameters letflow -->`: the parameters of a load balancer;
- `<!-- inventory -->`: what there is of everything, with links;
- `<!-- orders -->`: load balancers by what they do to the order of a flow;
- `<!-- thumbnails -->`: the pictures of the page, small, each a link to its section.

What stands between `<!-- every schemes -->` and `<!-- end -->` is written by hand, and has to name every one.

With `--check` it writes nothing, and exits 1 if a page is not what the program says.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from weft.catalog import Entry, Kind, Parameter, entries, entry

DOCS = Path(__file__).resolve().parent
README = DOCS.parent / "README.md"
PART = re.compile(
    r"<!-- (?P<mark>(?P<kind>table|parameters|inventory|orders|thumbnails|every)(?: (?P<name>\S+))?) -->\n(?P<body>.*?)<!-- end -->",
    re.DOTALL,
)

PICTURE = re.compile(r"!\[(?P<alt>[^]]*)\]\((?P<file>[^)]*)\)")

INVENTORY: Sequence[tuple[str, Kind, str | None]] = (
    ("[load balancers](schemes/index.md) in switches", "schemes", "switch"),
    ("at hosts, or of a controller", "schemes", "host"),
    ("reference, no scheme: a perfect per-packet choice", "schemes", "reference"),
    ("[transports](transport.md)", "transports", None),
    ("[kinds of fabric](model.md)", "fabrics", None),
    ("[distributions of flow sizes](traffic.md#workloads)", "workloads", None),
    ("[set-ups of papers](cli.md#weft-presets)", "presets", None),
)
"""The rows of the inventory: what they are called, their kind, and their place if the kind has several."""

ORDERS = {
    "keeps": "a flow has one path at a time, and no packet overtakes another one where it is moved",
    "moves": "a flow is moved now and then, or with care: few packets are overtaken",
    "sprays": "each packet is chosen for anew: packets of a flow are on several paths at once, and overtake each other",
}
"""Effects of a load balancer on the order of a flow, in words."""


@dataclass
class Guide:
    """The pages, and what the program has to say."""

    pages: dict[Path, str]
    complaints: list[str]

    def written(self) -> dict[Path, str]:
        """All pages as they should be."""
        return {path: PART.sub(partial(self._part, path), text) for path, text in self.pages.items()}

    def check_parts(self) -> None:
        """Complain of what no page has a part for."""
        marks = [part["mark"] for text in self.pages.values() for part in PART.finditer(text)]
        wanted = [f"table {item.name}" for item in entries("tables")]
        wanted += [f"parameters {item.name}" for item in entries("schemes")]
        self.complaints += [f"no page has the part <!-- {mark} -->" for mark in wanted if mark not in marks]

    def _part(self, path: Path, part: re.Match[str]) -> str:
        name = part["name"] or ""
        match part["kind"]:
            case "table":
                lines = list(_files() if name == "*" else _columns(entry("tables", name)))
            case "parameters":
                lines = list(_parameters(entry("schemes", name).parameters))
            case "inventory":
                lines = list(self._inventory())
            case "orders":
                lines = list(self._orders(path))
            case "thumbnails":
                lines = list(_thumbnails(self.pages[path]))
            case _:
                self._check_names(path, name, part["body"])
                return part[0]
        return f"<!-- {part['mark']} -->\n\n" + "\n".join(lines) + "\n\n<!-- end -->"

    def _check_names(self, path: Path, kind: str, body: str) -> None:
        """Complain of names that a list leaves out; capitals do not matter."""
        missing = [
            item.name
            for item in entries(kind)
            if not re.search(rf"(?i)(?<![-\w]){re.escape(item.name)}(?![-\w])", body)
        ]
        if missing:
            self.complaints.append(f"{path.name} leaves out of its {kind}: {', '.join(missing)}")

    def _inventory(self) -> Iterator[str]:
        yield "| what there is | its names |"
        yield "|---|---|"
        for title, kind, place in INVENTORY:
            found = [item for item in entries(kind) if place in (None, item.details.get("place"))]
            yield f"| **{len(found)}** {title} | {', '.join(self._linked(kind, item.name) for item in found)} |"

    def _orders(self, path: Path) -> Iterator[str]:
        yield "| `order` | what it does | load balancers |"
        yield "|---|---|---|"
        for order, what in ORDERS.items():
            found = [item.name for item in entries("schemes") if item.raw["order"] == order]
            yield f"| `{order}` | {what} | {', '.join(self._linked('schemes', name, path.parent) for name in found)} |"

    def _linked(self, kind: Kind, name: str, folder: Path = DOCS) -> str:
        page = self._page_of(kind, name)
        return f"`{name}`" if page is None else f"[`{name}`]({page.relative_to(folder).as_posix()})"

    def _page_of(self, kind: Kind, name: str) -> Path | None:
        """The page of its own that something has, if any: that with its parameters, or the one that is called as it is."""
        marked = (path for path, text in self.pages.items() if f"<!-- parameters {name} -->" in text)
        own = DOCS / f"{name}.md"
        return next(marked, None) if kind == "schemes" else own if own in self.pages else None


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a page is out of date")
    check = parser.parse_args().check
    paths = [README, *sorted(DOCS.rglob("*.md"))]
    guide = Guide({path: path.read_text(encoding="utf-8") for path in paths}, [])
    guide.check_parts()
    written = guide.written()
    stale = [path for path, text in written.items() if text != guide.pages[path]]
    if check:
        guide.complaints += [f"{path.name} is out of date: run python docs/generate_tables.py" for path in stale]
    else:
        for path in stale:
            path.write_text(written[path], encoding="utf-8")
    print(*guide.complaints, sep="\n", end="\n" if guide.complaints else "", file=sys.stderr)
    return 1 if guide.complaints else 0


def _columns(table: Entry) -> Iterator[str]:
    yield "| column | type | unit | meaning | null if |"
    yield "|---|---|---|---|---|"
    for column in table.raw["columns"]:
        meaning = f"{column['doc']}; only {column['only']}" if column["only"] else column["doc"]
        yield _row(f"`{column['name']}`", column["type"], column["unit"], meaning, column["null"] or "")


def _files() -> Iterator[str]:
    yield "| file | what it holds | rows |"
    yield "|---|---|---|"
    for table in entries("tables"):
        asked = f"if `{table.raw['asked_by']}` asks for them" if table.raw["asked_by"] else "always"
        yield _row(f"[`{table.source}`](#{table.source.replace('.', '')})", table.title, asked)


def _parameters(parameters: Sequence[Parameter]) -> Iterator[str]:
    if not parameters:
        yield "None."
        return
    yield "| parameter | default | value | what it does | source |"
    yield "|---|---|---|---|---|"
    for one in parameters:
        yield _row(f"`{one.key}`", _default(one), _value(one), _doc(one), one.source)
    units = {one.type.split(" | ")[0]: one.unit for one in parameters if one.unit}
    if units:
        yield ""
        yield " ".join(f"A {kind} has a unit: {_listed(unit)}." for kind, unit in sorted(units.items(), reverse=True))


def _default(parameter: Parameter) -> str:
    """A value as it is given; what a doc says in words stays in words."""
    stated = f"Default: {parameter.default}" in parameter.doc
    return parameter.default if stated or not parameter.default else f"`{parameter.default}`"


def _doc(parameter: Parameter) -> str:
    """Return the description of a parameter without the parts that other columns have."""
    rest = parameter.doc.removesuffix(f"Default: {parameter.default}.").strip()
    return re.sub(r" \((time|size)\)", "", rest)


def _value(parameter: Parameter) -> str:
    """Return the values that a parameter may have: a kind, or words that are written as they are."""
    kinds = {"time", "size", "rate", "packet rate", "integer", "number", "boolean", "string", "array", "packets"}
    named = {"integer": "whole number", "boolean": "`true` or `false`", "string": "text", "array": "list"}
    words = [named.get(word, word) if word in kinds else f"`{word}`" for word in parameter.type.split(" | ")]
    return " or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} or {words[-1]}"


def _listed(units: str) -> str:
    words = [f"`{unit}`" for unit in units.split(", ")]
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _thumbnails(page: str) -> Iterator[str]:
    section = ""
    yield '<div class="gallery">'
    for line in page.splitlines():
        if line.startswith("## "):
            section = re.sub(r"[^a-z0-9]+", "-", line.removeprefix("## ").lower()).strip("-")
        elif picture := PICTURE.fullmatch(line):
            image = f'<img src="{picture["file"]}" alt="{picture["alt"]}" title="{picture["alt"]}" loading="lazy">'
            yield f'<a href="#{section}">{image}</a>'
    yield "</div>"


def _row(*cells: str) -> str:
    """A row of a table. A bar is the one character that would end a cell."""
    joined = " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells)
    return f"| {joined} |"


if __name__ == "__main__":
    sys.exit(main())
