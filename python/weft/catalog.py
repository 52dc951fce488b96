"""Catalog of the core, from schemes to models of papers, with parameters and defaults."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, TypeAlias

from weft import _core
from weft.errors import SpecError
from weft.spec import SpecText

__all__ = [
    "Entry",
    "Kind",
    "Parameter",
    "Preset",
    "entries",
    "entry",
    "fabrics",
    "preset",
    "presets",
    "references",
    "schemes",
    "transports",
    "workloads",
]

Kind: TypeAlias = Literal[
    "schemes", "transports", "workloads", "fabrics", "presets", "models", "bins", "groups", "tables"
]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an entry, as the core describes it."""

    key: str
    type: str
    unit: str
    default: str
    doc: str
    source: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One scheme, transport, workload or fabric."""

    name: str
    title: str
    source: str
    parameters: tuple[Parameter, ...]
    raw: Mapping[str, Any] = field(repr=False)
    """The core's whole description."""

    @property
    def details(self) -> dict[str, Any]:
        """Whatever else the core says about it."""
        known = {"name", "title", "source", "parameters"}
        return {key: value for key, value in self.raw.items() if key not in known}


def entries(kind: Kind) -> list[Entry]:
    """List everything of one kind, in the core's order."""
    return [_entry(item) for item in json.loads(_core.catalog(kind))]


def entry(kind: Kind, name: str) -> Entry:
    """Find one entry by name; `SpecError` names the nearest one if there is none."""
    found = entries(kind)
    for item in found:
        if item.name == name:
            return item
    names = [item.name for item in found]
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise SpecError(f"there is no {kind[:-1]} {name!r}{hint} (known: {', '.join(names)})")


def schemes() -> list[Entry]:
    """List the load balancers."""
    return entries("schemes")


@cache
def references() -> frozenset[str]:
    """Name the references among the schemes: they know what no node knows, win nothing, and bound nothing."""
    return frozenset(item.name for item in entries("schemes") if item.raw["place"] == "reference")


def transports() -> list[Entry]:
    """List the transports."""
    return entries("transports")


def workloads() -> list[Entry]:
    """List the flow-size distributions."""
    return entries("workloads")


def fabrics() -> list[Entry]:
    """List the kinds of fabric."""
    return entries("fabrics")


def presets() -> list[Entry]:
    """List the set-ups of papers that come with Weft."""
    return entries("presets")


@dataclass(frozen=True, slots=True)
class Preset:
    """A set-up of a paper: a spec, and the schemes to compare on it if nobody says which."""

    spec: SpecText
    schemes: tuple[str, ...]


def preset(name: str) -> Preset:
    """Find a preset by name; `SpecError` names the nearest one if there is none."""
    raw = entry("presets", name).raw
    return Preset(SpecText(raw["spec"], origin=f"preset {name}"), tuple(raw["schemes"]))


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return json.dumps(value)


def _entry(item: dict[str, Any]) -> Entry:
    parameters = tuple(
        Parameter(**{key: _text(raw.get(key)) for key in ("key", "type", "unit", "default", "doc", "source")})
        for raw in item.get("parameters", ())
    )
    return Entry(item["name"], _text(item.get("title")), _text(item.get("source")), parameters, item)
