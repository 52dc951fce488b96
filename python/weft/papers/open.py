"""Open choices of papers, as data: each with its alternatives, and each of these with a source.

A choice stands in the `[open]` table of a preset or of a paper's file, where an alternative sets keys of the spec, or
in `data/open.toml`, in the table of a load balancer or transport, where an alternative sets that one's parameters. The
former may also multiply numbers that an experiment sets, and name the load balancers that they are about; in a paper's
file they may set options of figures that have a function of their own. One alternative sets nothing: it is what Weft
does unless told otherwise. It is the default of a paper, too, unless the paper's text supports another one better: then
`[reads]` in the paper's file says which, and why.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from weft.catalog import entry, schemes, transports
from weft.errors import SpecError
from weft.papers.reading import Section, nearest, read_toml

__all__ = ["OPEN", "Alternative", "Choice", "Place", "open_of_preset", "open_of_schemes", "read_choices"]

Place: TypeAlias = Literal["paper", "preset", "scheme", "transport"]

OPEN = Path(__file__).with_name("data") / "open.toml"
"""The choices that the papers of load balancers and transports leave open, whatever paper compares them."""

_RESERVED = frozenset(" ,=")


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to read what is open."""

    name: str
    source: str
    settings: Mapping[str, Any]
    """Keys of the spec, or parameters of a scheme, and their values; none for what Weft does unless told otherwise."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """By what it multiplies numbers of the spec that an experiment sets, where it sets anything: as many more flows."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that the alternative sets in figures that have them."""

    @property
    def is_default(self) -> bool:
        """Whether it changes nothing."""
        return not self.settings and not self.options


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that a paper leaves open, or makes in two ways."""

    name: str
    """As in `window`, or `drill.memory` where it is a scheme's."""
    question: str
    alternatives: Mapping[str, Alternative]
    """By name, the default first."""
    place: Place
    """Where it is open: in all of a paper, in what has a preset, in what runs with a scheme or a transport."""
    scheme: str = ""
    """The name of that load balancer or transport, whose parameters it sets; empty: it sets keys of the spec."""
    schemes: tuple[str, ...] = ()
    """The load balancers that it is about, if it sets keys of the spec; none: all."""

    @property
    def default(self) -> str:
        """The alternative that holds unless another is asked for."""
        return next(iter(self.alternatives))

    @property
    def others(self) -> tuple[str, ...]:
        """All but the default."""
        return tuple(self.alternatives)[1:]

    def read_as(self, name: str, why: str) -> "Choice":
        """Return the choice as a paper reads it: another alternative is the default; `why` comes before its source."""
        chosen = self.alternative(name)
        first = replace(chosen, source=f"{why}; {chosen.source}")
        rest = {key: one for key, one in self.alternatives.items() if key != name}
        return replace(self, alternatives={name: first, **rest})

    def alternative(self, name: str) -> Alternative:
        """Find an alternative; `SpecError` names the nearest one if there is none."""
        if name not in self.alternatives:
            raise nearest(f"alternative of {self.name}", name, self.alternatives)
        return self.alternatives[name]


@cache
def open_of_schemes() -> Mapping[str, Choice]:
    """Read what the papers of load balancers and transports leave open, by name."""
    top = read_toml(OPEN)
    found: dict[str, Choice] = {}
    for scheme in top.values:
        for choice in read_choices(top, scheme, _table_of(scheme), scheme):
            found[choice.name] = choice
    top.end()
    return found


@cache
def open_of_preset(name: str) -> Mapping[str, Choice]:
    """Read what a preset's paper leaves open about its set-up, by name."""
    top = Section(entry("presets", name).raw, f"preset {name}")
    return {choice.name: choice for choice in read_choices(top, "open", "preset")}


def read_choices(top: Section, table: str, place: Place, scheme: str = "") -> Iterator[Choice]:
    """Read a table of choices, with the keys `question` and `alternatives`."""
    for name, section in top.sections(table).items():
        own = f"{scheme}.{name}" if scheme else name
        question = section.need("question", str)
        about = _schemes(section) if not scheme else ()
        alternatives = [_alternative(key, one, place, scheme) for key, one in section.sections("alternatives").items()]
        section.end()
        _check_names([own, *(one.name for one in alternatives)], section)
        defaults = [one for one in alternatives if one.is_default]
        if len(defaults) != 1 or len(alternatives) < 2:
            raise section.error("needs two alternatives or more, of which one, the default, sets nothing")
        ordered = sorted(alternatives, key=lambda one: not one.is_default)
        yield Choice(own, question, {one.name: one for one in ordered}, place, scheme, about)


def _alternative(name: str, section: Section, place: Place, scheme: str) -> Alternative:
    source = section.need("source", str)
    settings = section.take("parameters" if scheme else "set", dict, {})
    factors = {} if scheme else section.take("multiply", dict, {})
    options = section.take("options", dict, {}) if place == "paper" else {}
    section.end()
    for key, factor in factors.items():
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not factor > 0:
            raise section.error(f"multiply: {key} = {factor!r}: expected a number above 0")
    if factors and not settings:
        raise section.error("multiply: needs set, which says where it applies")
    return Alternative(name, source, settings, factors, options)


def _schemes(section: Section) -> tuple[str, ...]:
    """Take the load balancers that a choice is about."""
    names, known = section.texts("schemes"), [one.name for one in schemes()]
    for name in names:
        if name not in known:
            raise section.error(f"schemes: {nearest('load balancer', name, known)}")
    return names


def _check_names(names: Iterable[str], section: Section) -> None:
    for name in names:
        if _RESERVED & set(name):
            raise section.error(f"{name!r}: a name has no space, comma or equals sign")


def _table_of(scheme: str) -> Place:
    """Return the table of a spec that a scheme stands in."""
    known, carriers = ([one.name for one in every] for every in (schemes(), transports()))
    if scheme in known:
        return "scheme"
    if scheme in carriers:
        return "transport"
    raise SpecError(f"{OPEN.name}: {nearest('load balancer or transport', scheme, [*known, *carriers])}")
