"""Writes docs/spec.md, the reference of every key of a spec, from `weft schema`.

`python docs/generate_spec.py` writes the page. With `--check` it writes nothing, and exits 1 if the page is not what
the program says.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Node: TypeAlias = Mapping[str, Any]

PAGE = Path(__file__).with_name("spec.md")
ORDER = ("run", "fabric", "hosts", "traffic", "transport", "scheme")

HEAD = """# Spec reference

<!-- Written by docs/generate_spec.py from `weft schema`; do not edit. -->

Every key that a spec may have. A spec is a TOML file; tables and keys that are absent have their defaults, each by itself:
`[traffic]` with `load = 0.5` alone is the default traffic at that load. Only what you add to a list must say what it is: the
`senders` and `size` of an incast, the `command` of a program. Quantities are strings
with a unit: `"10Gbps"`, `"1us"`, `"375KB"`. An unknown key or a wrong value is answered with one message, and nothing
is run. `weft explain my.toml` shows the value of every key and where it came from; `weft schema` prints this reference
as JSON Schema, for editors.
"""


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    check = parser.parse_args().check
    page = Reference(_schema()).page()
    if not check:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print(f"{PAGE.name} is out of date: run python docs/generate_spec.py", file=sys.stderr)
    return 1


def _schema() -> Node:
    command = [sys.executable, "-m", "weft", "schema"]
    schema: Node = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return schema


class Reference:
    """The page of one schema."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.described: dict[str, str] = {}
        """Where each named table is described: the second place refers to the first."""

    def page(self) -> str:
        """The whole page."""
        lines = [HEAD]
        tables = self.root["properties"]
        for name in [*(name for name in ORDER if name in tables), *(name for name in tables if name not in ORDER)]:
            lines.append(f"## `[{name}]`\n")
            lines += self._section(tables[name], name, level=3)
        return "\n".join(lines).rstrip() + "\n"

    def _section(self, node: Node, path: str, level: int) -> Iterator[str]:
        """The keys of a table, or of each of its variants; tables within come after it."""
        doc = _text(node) or _text(self._resolved(node))
        if doc:
            yield f"{doc}\n"
        variants = self._variants(node)
        if not variants:
            yield from self._keys(self._resolved(node), path, level)
            return
        common = self._common(variants)
        for tag, name, variant in variants:
            title = _first_sentence(_text(variant))
            yield f'{"#" * level} `{path}.{tag} = "{name}"`\n'
            if tag not in self._required(variant):
                yield f"The default, if `{tag}` is not given.\n"
            if title:
                yield f"{title}\n"
            own = {key: value for key, value in self._properties(variant).items() if key not in common and key != tag}
            yield from self._table(own, self._required(variant))
            yield from self._nested(own, path, level + 1)
        if common:
            yield f"{'#' * level} Keys of every `{path}`\n"
            yield from self._table(common, self._required(variants[0][2]))
            yield from self._nested(common, path, level + 1)

    def _keys(self, node: Node, path: str, level: int) -> Iterator[str]:
        keys = self._properties(node)
        yield from self._table(keys, self._required(node))
        yield from self._nested(keys, path, level)

    def _table(self, keys: Node, required: frozenset[str]) -> Iterator[str]:
        if not keys:
            yield "No keys of its own.\n"
            return
        yield "| key | type | default | meaning |\n|---|---|---|---|"
        for key, node in keys.items():
            default = "required" if key in required else self._default(node)
            meaning = _text(node) or _text(self._resolved(node)) or ""
            yield f"| `{key}` | {self._type(node)} | {default} | {_cell(meaning)} |"
        yield ""

    def _nested(self, keys: Node, path: str, level: int) -> Iterator[str]:
        for key, node in keys.items():
            inner = self._table_below(node)
            if inner is None:
                continue
            below, listed = inner
            name = f"[[{path}.{key}]]" if listed else f"[{path}.{key}]"
            yield f"{'#' * min(level, 6)} `{name}`\n"
            title = self._name(node)
            if title in self.described:
                yield f"The keys of `{self.described[title]}`.\n"
                continue
            if title:
                self.described[title] = name
            yield from self._section(below, f"{path}.{key}", min(level + 1, 6))

    def _table_below(self, node: Node) -> tuple[Node, bool] | None:
        """The table that a key holds, and whether it holds a list of them."""
        resolved = self._resolved(node)
        if resolved.get("type") == "array" or "array" in _types(resolved):
            items = self._resolved(resolved.get("items", {}))
            return (items, True) if "properties" in items else None
        return (resolved, False) if "properties" in resolved else None

    def _variants(self, node: Node) -> list[tuple[str, str, Node]]:
        resolved = self._resolved(node)
        found = []
        for variant in resolved.get("oneOf", []) or resolved.get("anyOf", []):
            for key, value in variant.get("properties", {}).items():
                if "const" in value:
                    found.append((key, value["const"], variant))
        return found

    def _common(self, variants: list[tuple[str, str, Node]]) -> dict[str, Any]:
        """Keys that all variants have alike; none if there is one variant."""
        if len(variants) < 2:
            return {}
        tables = [self._properties(variant) for _, _, variant in variants]
        first = tables[0]
        return {key: node for key, node in first.items() if all(table.get(key) == node for table in tables[1:])}

    def _properties(self, node: Node) -> dict[str, Any]:
        found = dict(node.get("properties", {}))
        inner = self._resolved(node)
        if inner is not node:
            found |= {key: value for key, value in inner.get("properties", {}).items() if key not in found}
        return found

    def _required(self, node: Node) -> frozenset[str]:
        return frozenset(node.get("required", [])) | frozenset(self._resolved(node).get("required", []))

    def _resolved(self, node: Node) -> Node:
        """Return the node to which a node refers; `null` beside something else is passed over."""
        while True:
            choices = [part for part in node.get("anyOf", []) if part.get("type") != "null"]
            if "$ref" in node:
                node = self._definition(node["$ref"])
            elif len(choices) == 1:
                node = choices[0]
            elif len(node.get("allOf", [])) == 1:
                node = node["allOf"][0]
            else:
                return node

    def _definition(self, link: str) -> Node:
        node: Any = self.root
        for part in link.removeprefix("#/").split("/"):
            node = node[part]
        definition: Node = node
        return definition

    def _type(self, node: Node) -> str:
        resolved = self._resolved(node)
        names = _names(resolved)
        if names:
            return " or ".join(f'`"{name}"`' for name in names)
        if "properties" in resolved or self._variants(resolved):
            return "table"
        if "array" in _types(resolved):
            items = self._resolved(resolved.get("items", {}))
            return "list of tables" if "properties" in items else f"list of {self._type(items)}"
        title = self._name(node)
        if title in _QUANTITIES:
            return _QUANTITIES[title]
        kinds = [_WORDS.get(kind, kind) for kind in _types(resolved) if kind != "null"]
        choices = [self._type(part) for part in resolved.get("anyOf", []) if part.get("type") != "null"]
        return " or ".join(kinds or choices) or "value"

    def _name(self, node: Node) -> str:
        for part in (node, *node.get("anyOf", []), *node.get("allOf", [])):
            if "$ref" in part:
                return str(part["$ref"]).rsplit("/", 1)[-1]
        return ""

    def _default(self, node: Node) -> str:
        if "default" not in node or node["default"] is None or node["default"] in ([], {}):
            return "absent"
        if isinstance(node["default"], dict):
            return "below"
        return f"`{json.dumps(node['default'])}`"


_QUANTITIES = {
    "Time": "time",
    "Rate": "rate",
    "Size": "size",
    "PacketRate": "packets per second",
    "Buffer": 'size, packets or `"unlimited"`',
    "Mark": 'size, packets or `"never"`',
}
_WORDS = {"integer": "whole number", "number": "number", "boolean": "true or false", "string": "text"}


def _types(node: Node) -> list[str]:
    kinds = node.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _names(node: Node) -> list[str]:
    if "enum" in node:
        return [str(name) for name in node["enum"] if name is not None]
    if isinstance(node.get("const"), str):
        return [node["const"]]
    return [str(part["const"]) for part in node.get("oneOf", []) if isinstance(part.get("const"), str)]


def _text(node: Node) -> str:
    """A description, its lines joined; paragraphs stay."""
    paragraphs = str(node.get("description", "")).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).strip()


def _cell(text: str) -> str:
    return text.replace("\n\n", "<br>").replace("|", "\\|")


def _first_sentence(text: str) -> str:
    return text.split("\n\n")[0]


if __name__ == "__main__":
    sys.exit(main())
