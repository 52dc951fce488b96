"""What a comparison compares: a load balancer or a transport of the core, both, or a balancer written in Python.

A contender is written `letflow:gap=100us` (a load balancer, with the spec's transport), `maxpass:keep=3` (a
transport, with the spec's load balancer) or `mptcp+ecmp:hash=shared` (a transport, then a load balancer).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from weft.balancer import Balancer
from weft.catalog import entries, entry
from weft.errors import SpecError
from weft.spec import SpecText, parse_assignment

__all__ = ["SchemeLike", "Variant", "parse_variants", "slug"]

SchemeLike: TypeAlias = str | Callable[[], Balancer]
"""A load balancer, a transport or both, as in `letflow:gap=100us` or `mptcp+ecmp`, or a class (or function) that
makes a balancer for each run."""

Assignments: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A name in the registry of one part of a spec, with parameters."""

    table: Literal["balancer", "transport"]
    name: str
    parameters: Assignments = ()

    @property
    def text(self) -> str:
        """The name with its parameters, as on a command line."""
        return ":".join([self.name, *(f"{key}={value}" for key, value in self.parameters)])

    def apply(self, spec: SpecText) -> tuple[SpecText, list[tuple[str, str]]]:
        """Put this part into a spec; returns the spec and the overrides to run it with.

        The part's table of the spec keeps its parameters only for what it names: those of one scheme or transport mean
        nothing to another.
        """
        found = spec.table(self.table)
        if found and found.get("name") != self.name:
            spec = spec.with_table(self.table, {"name": self.name})
        keys = [(f"{self.table}.{key}", value) for key, value in self.parameters]
        return spec, [(f"{self.table}.name", self.name), *keys]


@dataclass(frozen=True, slots=True)
class Variant:
    """One contender."""

    label: str
    parts: tuple[Part, ...] = ()
    factory: Callable[[], Balancer] | None = None

    @property
    def slug(self) -> str:
        """The label as a file name."""
        return slug(self.label)

    def apply(self, spec: SpecText) -> tuple[SpecText, list[tuple[str, str]]]:
        """Put this contender into a spec; returns the spec and the overrides to run it with."""
        overrides: list[tuple[str, str]] = []
        for part in self.parts:
            spec, own = part.apply(spec)
            overrides += own
        return spec, overrides


def parse_variants(schemes: Iterable[SchemeLike]) -> list[Variant]:
    """Read the contenders; raises `SpecError` for an unknown or repeated one, or when there is none."""
    variants = [_variant(scheme) for scheme in schemes]
    if not variants:
        raise SpecError("no scheme to compare: name at least one, for example ecmp,letflow")
    _refuse_repeats(variants)
    return variants


def slug(label: str) -> str:
    """Turn a label into a file name: `letflow:gap=100us` becomes `letflow-gap-100us`."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", label).strip("-.") or "scheme"


def _variant(scheme: SchemeLike) -> Variant:
    if not isinstance(scheme, str):
        return Variant(getattr(scheme, "__name__", type(scheme).__name__), factory=scheme)
    label = scheme.strip()
    transports = [item.name for item in entries("transports")]
    if _name(label) not in transports:
        return Variant(label, (_balancer(label, transports),))
    transport, plus, balancer = (text.strip() for text in label.partition("+"))
    parts = [Part("transport", _name(transport), _parameters(transport))]
    if plus:
        parts.append(Part("balancer", entry("schemes", _name(balancer)).name, _parameters(balancer)))
    return Variant(label, tuple(parts))


def _balancer(text: str, transports: Sequence[str]) -> Part:
    """Read a load balancer where a transport could stand, too."""
    name, plus, other = text.split(":", 1)[0].partition("+")
    name = name.strip()
    known = [item.name for item in entries("schemes")]
    if name not in known:
        near = get_close_matches(name, [*known, *transports], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        names = f"known: {', '.join(known)}; transports: {', '.join(transports)}"
        raise SpecError(f"there is no scheme {name!r}{hint} ({names})")
    if plus:
        raise SpecError(f"{text!r}: the transport comes first, as in {other.strip() or 'dctcp'}+{name}")
    return Part("balancer", name, _parameters(text))


def _name(text: str) -> str:
    return re.split(r"[:+]", text, maxsplit=1)[0].strip()


def _parameters(text: str) -> Assignments:
    return tuple(parse_assignment(part.strip()) for part in text.split(":")[1:])


def _refuse_repeats(variants: Sequence[Variant]) -> None:
    seen: dict[str, str] = {}
    for variant in variants:
        if variant.slug in seen:
            raise SpecError(f"{variant.label!r} is named twice among the schemes to compare")
        seen[variant.slug] = variant.label
