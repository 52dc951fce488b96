"""Variants of a comparison: a load balancer, a transport, a kind of hosts, some of these, or a scheme in Python.

A variant is written `letflow:gap=100us` (a load balancer, with the spec's transport), `maxpass:keep=3` (a
transport, with the spec's load balancer), `mptcp+ecmp:hash=shared` (a transport, then a load balancer), or any of
these after a kind of hosts, as in `linux+letflow`. A load balancer may be a class in a file, `my.py:Least:gap=3us`. The
core reads it, says what it is called, and puts it into a spec.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from weft import _core
from weft.errors import SpecError
from weft.scheme import AnyScheme, Scheme

__all__ = ["SchemeLike", "Variant", "listed_schemes", "parse_variants"]

SchemeLike: TypeAlias = str | type[Scheme] | Callable[[], AnyScheme]
"""A variant as it is written, as in `letflow:gap=100us`, `mptcp+ecmp`, `linux+ecmp` or `my.py:Least`; a `Scheme`; or
a class (or function) that makes a scheme for each run."""


_Scheme = TypeVar("_Scheme", bound=SchemeLike)


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant."""

    label: str
    slug: str
    """The label as a file name."""
    parts: Mapping[str, str]
    """Values that replace tables of the spec: `{"scheme": "letflow:gap=100us"}`."""
    factory: Callable[[], AnyScheme] | None = None

    @property
    def text(self) -> str | None:
        """Text that the core takes; None for a scheme from a program."""
        return None if self.factory is not None else self.label


def parse_variants(schemes: Iterable[SchemeLike]) -> list[Variant]:
    """Read the variants; raises `SpecError` for an unknown or repeated one, or when there is none."""
    given = listed_schemes(schemes)
    texts = [(scheme, False) if isinstance(scheme, str) else (_name(scheme), True) for scheme in given]
    return [
        Variant(**entry, factory=_factory(scheme))
        for scheme, entry in zip(given, json.loads(_core.variants(texts)), strict=True)
    ]


def listed_schemes(schemes: Iterable[_Scheme]) -> list[_Scheme]:
    """Return variants as a list; raises `SpecError` for one text, whose letters would be taken for names."""
    if isinstance(schemes, str):
        example = [part.strip() for part in schemes.split(",")]
        raise SpecError(f"schemes = {schemes!r}: expected a list, as in {example}")
    return list(schemes)


def _factory(scheme: SchemeLike) -> Callable[[], AnyScheme] | None:
    """Return the factory of each run's scheme, if the spec does not name one."""
    if isinstance(scheme, str):
        return None
    if isinstance(scheme, type) and issubclass(scheme, Scheme):
        return lambda: scheme  # it makes an object for each switch of each run
    if not callable(scheme):
        raise SpecError(
            f"schemes: a {_name(scheme)} would be shared by all runs; give the class, or what makes one for a run"
        )
    return cast("Callable[[], AnyScheme]", scheme)


def _name(factory: Callable[[], AnyScheme]) -> str:
    return getattr(factory, "__name__", type(factory).__name__)
