"""What a comparison compares: a scheme of the core with its parameters, or a balancer written in Python."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.balancer import SwitchBalancer
from weft.catalog import entry
from weft.errors import SpecError
from weft.spec import SpecText, parse_assignment

__all__ = ["SchemeLike", "Variant", "parse_variants", "slug"]

SchemeLike: TypeAlias = str | Callable[[], SwitchBalancer]
"""A scheme's name, `letflow:gap=100us`, or a class (or function) that makes a balancer for each run."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One contender."""

    label: str
    scheme: str | None
    parameters: tuple[tuple[str, str], ...] = ()
    factory: Callable[[], SwitchBalancer] | None = None

    @property
    def slug(self) -> str:
        """The label as a file name."""
        return slug(self.label)

    def apply(self, spec: SpecText) -> tuple[SpecText, list[tuple[str, str]]]:
        """Put this contender into a spec; returns the spec and the overrides to run it with.

        A `[balancer]` table of the spec keeps its parameters only for the scheme that it names: those of one
        scheme mean nothing to another.
        """
        if self.scheme is None:
            return spec, []
        table = spec.table("balancer")
        if table and table.get("name") != self.scheme:
            spec = spec.with_table("balancer", {"name": self.scheme})
        keys = [(f"balancer.{key}", value) for key, value in self.parameters]
        return spec, [("balancer.name", self.scheme), *keys]


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
        return Variant(getattr(scheme, "__name__", type(scheme).__name__), None, factory=scheme)
    label = scheme.strip()
    name, *assignments = (part.strip() for part in label.split(":"))
    return Variant(label, entry("schemes", name).name, tuple(parse_assignment(text) for text in assignments))


def _refuse_repeats(variants: Sequence[Variant]) -> None:
    seen: dict[str, str] = {}
    for variant in variants:
        if variant.slug in seen:
            raise SpecError(f"{variant.label!r} is named twice among the schemes to compare")
        seen[variant.slug] = variant.label
