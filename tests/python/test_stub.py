"""The types of the extension module are those of the module that is installed."""

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import _core

STUB = ast.parse(Path(weft.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
DECLARED = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_the_stub_declares_what_the_module_has() -> None:
    public = {name for name in vars(_core) if not name.startswith("_")}
    assert DECLARED.keys() == public


@pytest.mark.parametrize("name", DECLARED)
def test_signatures_and_docs_of_the_stub_are_those_of_the_module(name: str) -> None:
    node, thing = DECLARED[name], getattr(_core, name)
    assert ast.get_docstring(node) == inspect.getdoc(thing)
    if isinstance(node, ast.FunctionDef):
        assert declared_parameters(node) == parameters(thing)
        return
    members = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
    own = {key for key, value in vars(thing).items() if not key.startswith("__") and value is not None}
    assert {key for key in members if not key.startswith("__")} == own
    for key, member in members.items():
        if key.startswith("__"):
            continue
        found = inspect.getattr_static(thing, key)
        assert ast.get_docstring(member) == inspect.getdoc(found), key
        if not member.decorator_list:
            assert declared_parameters(member) == parameters(found), key


def declared_parameters(node: ast.FunctionDef) -> list[tuple[str, str, bool]]:
    """Name, kind and whether it may be left out, of each parameter."""
    given = node.args
    found = [(one.arg, "POSITIONAL_ONLY") for one in given.posonlyargs]
    found += [(one.arg, "POSITIONAL_OR_KEYWORD") for one in given.args]
    needed = len(found) - len(given.defaults)
    listed = [(name, kind, place >= needed) for place, (name, kind) in enumerate(found)]
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return [*listed, *((one.arg, "KEYWORD_ONLY", default is not None) for one, default in named)]


def parameters(function: Any) -> list[tuple[str, str, bool]]:
    """Return name, kind and whether it may be left out, of each parameter of a function at run time."""
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.kind.name, one.default is not inspect.Parameter.empty) for one in found]
