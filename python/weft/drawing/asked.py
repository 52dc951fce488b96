"""Figures that are asked for in words: `mean FCT over load by scheme`, `CDF of fct_us by scheme`, `slowdown by size`.

    METRIC over KEY by KEY      lines where the values of the first key are numbers, bars otherwise
    METRIC by KEY               bars
    METRIC by size              bars, a group for each range of flow sizes
    CDF of COLUMN by KEY        a distribution of the flows' values

A metric is called by its key or by its title, a field by its key or by the last part of it; `scheme` is whatever field
has the variants. Every field that is not named has a panel for each of its values; seeds are averaged over.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod

from weft.drawing.names import field_names, last_part, number_of
from weft.errors import SpecError
from weft.metrics import ALL_METRICS, Metric
from weft.schemas import empty_table
from weft.summary import SizeBin

__all__ = ["SIZE", "VARIANT_KEYS", "Asked", "Fields", "read_asked", "size_reading", "usual"]

VARIANT_KEYS = ("variant", "scheme", "transport")
"""Fields whose values are variants, which have the same flows."""
SIZE = "size"
"""Stands in place of a field: the ranges of flow sizes of a run."""
_SCHEME = ("scheme", "schemes", "variant", "variants")
_ALIASES: Mapping[str, str] = {
    "fct": "mean_fct_us",
    "p99": "p99_fct_us",
    "p50": "p50_fct_us",
    "median FCT": "p50_fct_us",
    "slowdown": "mean_slowdown",
    "goodput": "goodput_mbps",
}
_COLUMN_ALIASES: Mapping[str, str] = {"fct": "fct_us", "size": "size_bytes", "goodput": "goodput_mbps"}
_USUAL = ("mean_fct_us", "p99_fct_us", "mean_slowdown")
_USUAL_WAITING = ("collective_us", "longest_collective_us")
"""Metrics that are drawn by default where flows wait for each other."""
_MOST_PANELS = 24
_MOST_LINES = 8
"""Most values of a field that is drawn as lines where there are no variants."""

_WORDS = re.compile(
    r"\s*(?:cdf\s+of\s+(?P<column>\S.*?)|(?P<metric>\S.*?))"
    r"(?:\s+over\s+(?P<over>\S.*?))?(?:\s+by\s+(?P<by>\S.*?))?\s*",
    re.IGNORECASE,
)
_SIZES: Mapping[str, Callable[[SizeBin], float | None]] = {
    "mean_fct_us": lambda one: one.fct_us.mean,
    "p50_fct_us": lambda one: one.fct_us.p50,
    "p99_fct_us": lambda one: one.fct_us.p99,
    "mean_slowdown": lambda one: one.slowdown.mean,
    "goodput_mbps": lambda one: one.goodput_mbps.mean,
    "queueing_us": lambda one: one.queueing_us,
    "missed_deadlines_share": lambda one: one.missed_deadlines_share,
    "unfinished": lambda one: float(one.unfinished),
}
"""Metrics of all flows as fields of one range of flow sizes."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields that a figure may have on its axes: the swept fields except the seed, with their values as text."""

    values: Mapping[str, Sequence[str]]

    @property
    def variant(self) -> str | None:
        """The field whose values are variants, if there is one."""
        return next((key for key in VARIANT_KEYS if key in self.values), None)

    @property
    def numeric(self) -> str | None:
        """The field to draw lines over: one whose values are numbers of one kind, the load first, or the longest."""
        found = [key for key, own in self.values.items() if len(own) > 1 and self.is_numeric(key)]
        found = [key for key in found if key not in VARIANT_KEYS]
        return max(found, key=lambda key: (last_part(key) == "load", len(self.values[key])), default=None)

    @property
    def axis(self) -> str | None:
        """The field to follow variants along: the numeric one, or else the first that has no variants."""
        return self.numeric or next(iter(self.beside(self.variant)), None)

    def is_numeric(self, key: str) -> bool:
        """Whether all values are numbers, and of one kind: times, bytes, rates, or numbers without a unit."""
        numbers = [number_of(label) for label in self.values[key]]
        return None not in numbers and len({found[0] for found in numbers if found is not None}) == 1

    def beside(self, *named: str | None) -> list[str]:
        """Return the fields with several values that are not named: each of their values has a panel."""
        return [key for key, own in self.values.items() if key not in named and len(own) > 1]


@dataclass(frozen=True, slots=True)
class Asked:
    """A figure that was asked for."""

    text: str
    """In the words of who asked."""
    metric: Metric | None
    column: str | None
    """Column of the table of flows, in place of a metric: its distribution is drawn."""
    over: str | None
    """The field along x, or `SIZE`."""
    by: str | None
    """The field whose values are told apart by colour."""

    @property
    def name(self) -> str:
        """Name of the figure's file."""
        return re.sub(r"[^a-z0-9]+", "-", self.text.lower()).strip("-")[:80]


def usual(fields: Fields, *, collectives: bool = False) -> list[Asked]:
    """Return what is drawn unasked: mean FCT, 99th percentile and slowdown; nothing where panels would be too many.

    Of runs with collectives it is the mean of their completion times, and the longest.
    """
    by, over = fields.variant, fields.axis
    if by is None:
        by = next((key for key in fields.beside(over) if len(fields.values[key]) <= _MOST_LINES), None)
    names = {**field_names(fields.values), **({} if fields.variant is None else {fields.variant: "scheme"})}
    place = (f" over {names[over]}" if over else "") + (f" by {names[by]}" if by else "")
    known = {metric.key: metric for metric in ALL_METRICS}
    found = [
        Asked(f"{known[key].title}{place}", known[key], None, over, by)
        for key in (_USUAL_WAITING if collectives else _USUAL)
    ]
    return found if _panels(fields, over, by) <= _MOST_PANELS else []


def read_asked(texts: Iterable[str], fields: Fields) -> list[Asked]:
    """Read figures, or one. Raises `SpecError` for the first that cannot be drawn, with the nearest right name."""
    found: list[Asked] = []
    for text in [texts] if isinstance(texts, str) else texts:
        one = _read(text, fields)
        if one.name in [other.name for other in found]:
            raise SpecError(f"figure {text!r} is asked for twice")
        found.append(one)
    return found


def size_reading(metric: Metric) -> Callable[[SizeBin], float | None]:
    """Return what reads a metric of the flows of one range of sizes; `metric` is one that `read_asked` let through."""
    return _SIZES[metric.key]


def _read(text: str, fields: Fields) -> Asked:
    words = _WORDS.fullmatch(text)
    if words is None or not re.search("[a-z0-9]", text.lower()):
        raise SpecError(
            f"figure {text!r}: expected METRIC over KEY by KEY, METRIC by KEY, METRIC by size or CDF of COLUMN by KEY, "
            "for example 'mean FCT over load by scheme'"
        )
    over = _key(text, words["over"], fields) if words["over"] else None
    by = _key(text, words["by"], fields) if words["by"] else None
    if by == SIZE and over is None:
        by, over = None, SIZE
    if by == SIZE:
        raise SpecError(f"figure {text!r}: sizes stand along the axis: METRIC by size, or METRIC over size by KEY")
    if by is not None and by == over:
        raise SpecError(f"figure {text!r}: {by} is named twice")
    if by is None and over == fields.variant:
        over = None
    by = by or fields.variant
    if (panels := _panels(fields, over, by)) > _MOST_PANELS:
        raise SpecError(
            f"figure {text!r}: {panels:,} panels, one for each value of {', '.join(fields.beside(over, by))}; a figure "
            f"has at most {_MOST_PANELS}"
        )
    if words["column"]:
        if over is not None:
            raise SpecError(f"figure {text!r}: a distribution has values along its axis: CDF of COLUMN by KEY")
        return Asked(text, None, _column(text, words["column"]), None, by)
    metric = _metric(text, words["metric"])
    if over == SIZE and metric.key not in _SIZES:
        raise SpecError(f"figure {text!r}: {metric.key} is not told by size; those that are: {', '.join(_SIZES)}")
    return Asked(text, metric, None, over, by)


def _panels(fields: Fields, over: str | None, by: str | None) -> int:
    return prod(len(fields.values[key]) for key in fields.beside(over, by))


def _key(text: str, name: str, fields: Fields) -> str:
    """Find a field by its key or by what it is called."""
    called = {SIZE: SIZE, **{name.lower(): key for key, name in field_names(fields.values).items()}}
    called |= {key.lower(): key for key in fields.values}
    if fields.variant is not None:
        called = {**dict.fromkeys(_SCHEME, fields.variant), **called}
    if found := called.get(name.lower()):
        return found
    known = ", ".join([*fields.values, SIZE])
    raise SpecError(f"figure {text!r}: {name!r} is not swept{_near(name, called, called)} (there are {known})")


def _metric(text: str, name: str) -> Metric:
    titles = [metric.title for metric in ALL_METRICS]
    called = {metric.title.lower(): metric.key for metric in ALL_METRICS if titles.count(metric.title) == 1}
    called |= {alias.lower(): key for alias, key in _ALIASES.items()} | {
        metric.key: metric.key for metric in ALL_METRICS
    }
    by_key = {metric.key: metric for metric in ALL_METRICS}
    if found := called.get(name.lower()):
        return by_key[found]
    shown = {title.lower(): title for title in titles}
    raise SpecError(
        f"figure {text!r}: there is no metric {name!r}{_near(name, called, shown)} (known: {', '.join(by_key)})"
    )


def _column(text: str, name: str) -> str:
    table = empty_table("flows")
    known = [column for column, kind in table.schema.items() if kind.is_numeric()]
    called = {column: column for column in known} | {
        alias: column for alias, column in _COLUMN_ALIASES.items() if column in known
    }
    if found := called.get(name.lower()):
        return found
    raise SpecError(
        f"figure {text!r}: flows have no column {name!r}{_near(name, called, {})} (known: {', '.join(known)})"
    )


def _near(name: str, known: Iterable[str], shown: Mapping[str, str]) -> str:
    near = get_close_matches(name.lower(), list(known), n=1)
    return f"; did you mean {shown.get(near[0], near[0])!r}?" if near else ""
