"""Shell completion: names of schemes, transports, workloads, fabrics, presets, papers and keys of a spec.

`weft --install-completion` sets it up for bash, zsh and fish. A completion has to be there at once: what it needs is
imported when it is asked for.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import typer
from typer import _completion_classes, _completion_shared

__all__ = ["complete_at_once", "entries_of", "figures_of", "files", "keys", "papers", "variants"]

Completions: TypeAlias = list[tuple[str, str]]
"""Each with what it is; shells that can show it."""

_AT_ONCE = """
# zsh reads this file when the Tab key is first pressed: then it has to complete, too.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  %(complete_func)s "$@"
fi
"""


def complete_at_once() -> None:
    """Let zsh complete at the first Tab key: Typer's script only defines then what completes at the second."""
    scripts = _completion_shared._completion_scripts
    scripts["zsh"] = _at_once(scripts["zsh"])
    _completion_classes.ZshComplete.source_template = _at_once(_completion_classes.ZshComplete.source_template)


def _at_once(script: str) -> str:
    return script if script.endswith(_AT_ONCE) else script + _AT_ONCE


def files(_incomplete: str) -> Completions:
    """Leave it to the shell, which knows files best."""
    return []


def entries_of(kind: Any) -> Callable[[str], Completions]:
    """Complete the names of a kind: "transports", "workloads"."""

    def complete(incomplete: str) -> Completions:
        from weft.catalog import entries

        return _beginning(incomplete, ((item.name, item.title) for item in entries(kind)))

    return complete


def variants(incomplete: str) -> Completions:
    """Complete the last of several variants: `ecmp,let`, `dctcp+dr`."""
    from weft.catalog import entries

    before, name = _split_last(incomplete, ",+")
    there = set(before.replace("+", ",").split(","))
    named = ((item.name, item.title) for kind in ("schemes", "transports") for item in entries(kind))
    found = _beginning(name, (one for one in named if one[0] not in there))
    return [(before + known, title) for known, title in found]


def keys(incomplete: str) -> Completions:
    """Complete the key of `--set KEY=VALUE`; the value is nobody's to guess."""
    import json

    from weft import _core

    if "=" in incomplete:
        return []
    schema = json.loads(_core.schema())
    # A scheme's parameters stand once, whichever schemes have them.
    found = {f"{key}=": doc for key, doc in _keys(schema, schema, "")}
    return _beginning(incomplete, sorted(found.items()))


def papers(incomplete: str) -> Completions:
    """Complete the name of a paper."""
    from weft.papers.declared import load_paper, paper_names

    return _beginning(incomplete, ((name, load_paper(name).title) for name in paper_names()))


def figures_of(context: typer.Context, incomplete: str) -> Completions:
    """Complete a figure or table of the paper that is named already."""
    from weft.papers.declared import load_paper, paper_names

    paper = context.params.get("paper")
    if paper not in paper_names():
        return []
    there = set(context.params.get("figures") or ())
    figures = load_paper(paper).figures.values()
    return _beginning(incomplete, ((one.name, one.title) for one in figures if one.name not in there))


def _beginning(incomplete: str, named: Iterable[tuple[str, str]]) -> Completions:
    return [(name, title) for name, title in named if name.startswith(incomplete)]


def _split_last(text: str, separators: str) -> tuple[str, str]:
    """Split behind the last separator, which stays with what is before."""
    at = max(text.rfind(separator) for separator in separators) + 1
    return text[:at], text[at:]


def _keys(root: Any, node: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """Walk the keys of a schema that hold a value, with what they mean."""
    if "$ref" in node:
        node = node | root["$defs"][node["$ref"].rsplit("/", 1)[1]]
    for variant in (node, *(one for kind in ("allOf", "anyOf", "oneOf") for one in node.get(kind, ()))):
        if variant is not node:
            yield from _keys(root, variant, prefix)
            continue
        for name, value in node.get("properties", {}).items():
            inner = list(_keys(root, value, f"{prefix}{name}."))
            doc = " ".join(str(value.get("description", "")).split())
            yield from inner or [(f"{prefix}{name}", doc.split(". ")[0])]
