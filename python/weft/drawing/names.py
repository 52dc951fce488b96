"""Labels of columns, metrics and fields of a spec on axes, and the units of their values."""

import re
from collections.abc import Iterable, Mapping

from weft.drawing.view import DrawnUnit
from weft.metrics import Metric

__all__ = ["column_unit", "column_words", "field_names", "last_part", "metric_unit", "number_of", "value_words"]

_ENDINGS: Mapping[str, DrawnUnit] = {
    "us": "us", "mbps": "mbps", "bytes": "bytes", "share": "share", "utilisation": "share", "slowdown": "ratio",
}  # fmt: skip
"""Unit of a column of a table, by the end of its name."""

_UNITS: Mapping[str, tuple[str, float]] = {
    **{name: ("time", scale) for name, scale in (("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0))},
    **{f"{name}B": ("bytes", scale) for name, scale in (("", 1.0), ("K", 1e3), ("M", 1e6), ("G", 1e9))},
    **{f"{name}iB": ("bytes", scale) for name, scale in (("K", 2.0**10), ("M", 2.0**20), ("G", 2.0**30))},
    **{f"{name}bps": ("rate", scale) for name, scale in (("", 1.0), ("K", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))},
}
"""Units in which a spec may write values, for the positions of points on an axis: the quantity and its scale."""

_QUANTITY = re.compile(r"(?P<number>[-+]?[\d_.]+(?:e[-+]?\d+)?)\s*(?P<unit>[a-zµ]*)", re.IGNORECASE)


def column_unit(name: str) -> DrawnUnit:
    """Unit of the values of a column, told by the end of its name."""
    return _ENDINGS.get(name.rpartition("_")[2], "count")


def metric_unit(metric: Metric) -> DrawnUnit:
    """Unit of the values of a metric."""
    return "bytes" if metric.key.endswith("_bytes") else metric.unit


def column_words(name: str) -> str:
    """A column's or metric's name as it can stand on an axis, its unit apart."""
    head, _, tail = name.rpartition("_")
    return (head if head and tail in ("us", "mbps", "bytes", "share") else name).replace("_", " ")


def last_part(key: str) -> str:
    """The last part of a field's name: `traffic.load` is a load, and `transport.name` a transport."""
    return key.removesuffix(".name").rpartition(".")[2].replace("_", " ")


def field_names(keys: Iterable[str]) -> dict[str, str]:
    """Call each field by the last part of its name, or by the whole of it where two would be called the same."""
    known = list(keys)
    short = [last_part(key) for key in known]
    return {key: name if short.count(name) == 1 else key for key, name in zip(known, short, strict=True)}


def value_words(label: str) -> str:
    """Write a swept value so that it can be read and folded: a list without its brackets, `none` for an empty one."""
    if not (label.startswith("[") and label.endswith("]")):
        return label
    return label[1:-1].replace(",", ", ") or "none"


def number_of(label: str) -> tuple[str, float] | None:
    """Read a swept value as what is measured and a number: 0.4, 100KB, 50us. None for what is no finite number."""
    found = _QUANTITY.fullmatch(label.strip())
    if found is None:
        return None
    known = {name.lower(): value for name, value in _UNITS.items()} | dict(_UNITS)
    unit = found["unit"]
    kind = known.get(unit, known.get(unit.lower())) if unit else ("", 1.0)
    try:
        return None if kind is None else (kind[0], float(found["number"]) * kind[1])
    except ValueError:
        return None
