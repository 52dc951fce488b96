"""Numbers as people read them: three significant digits and a unit."""

from collections.abc import Iterable

from weft.metrics import Unit
from weft.statistics import Estimate

__all__ = [
    "bytes_text",
    "clock",
    "count",
    "estimate_text",
    "in_unit",
    "number",
    "percent",
    "plain",
    "plural",
    "rate_scale",
    "spaced",
    "time_scale",
    "time_us",
    "unit_and_scale",
]

_BYTE_SCALES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3))
_TIME_SCALES = (("s", 1e6), ("ms", 1e3), ("µs", 1.0))


def plain(value: float) -> str:
    """Three significant digits, from 0.0001 on without an exponent: 0.00123, 0.0123, 1.23, 123, 12,345."""
    if value == 0.0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    for limit, digits in ((9.995, 1), (0.9995, 2), (0.09995, 3), (0.009995, 4), (0.0009995, 5)):
        if magnitude >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.3g}"


def time_scale(values_us: Iterable[float]) -> tuple[str, float]:
    """Unit, and microseconds in it, that suits times whose largest is given in microseconds."""
    largest = max((abs(value) for value in values_us), default=0.0)
    return next(((name, scale) for name, scale in _TIME_SCALES if largest >= scale), ("µs", 1.0))


def rate_scale(values_mbps: Iterable[float]) -> tuple[str, float]:
    """Unit, and Mbit/s in it, that suits rates whose largest is given in Mbit/s."""
    largest = max((abs(value) for value in values_mbps), default=0.0)
    return ("Gbit/s", 1e3) if largest >= 1e3 else ("Mbit/s", 1.0)


def unit_and_scale(unit: Unit, values: Iterable[float]) -> tuple[str, float]:
    """Return the unit for the title of a column of these values, and the divisor of the values."""
    if unit == "us":
        return time_scale(values)
    if unit == "mbps":
        return rate_scale(values)
    return {"share": "%", "GB/s": "GB/s"}.get(unit, ""), 1.0


def time_us(value_us: float) -> str:
    """A time given in microseconds, with the unit that suits it."""
    name, scale = time_scale([value_us])
    return f"{plain(value_us / scale)} {name}"


def in_unit(value: float, unit: Unit) -> str:
    """A value of a column with the unit that suits it: `1.23 ms`, `9.41 Gbit/s`, `3.2 %`."""
    name, scale = unit_and_scale(unit, [value])
    text = plain(value * 100.0 if unit == "share" else value / scale)
    return f"{text} {name}" if name else text


def spaced(quantity: str) -> str:
    """A quantity of a spec as people write it: `2 ms` for `2ms`, `10 Gbit/s` for `10Gbps`."""
    digits = quantity.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ")
    unit = quantity[len(digits) :].replace("bps", "bit/s")
    return f"{digits.strip()} {'µs' if unit == 'us' else unit}".strip()


def bytes_text(value: float) -> str:
    """A number of bytes, with the unit that suits it: 999 B, 12.3 KB, 4.56 MB, 7.89 GB."""
    name, scale = next(((name, scale) for name, scale in _BYTE_SCALES if value >= scale), ("B", 1.0))
    return f"{plain(value / scale)} {name}"


def percent(share: float) -> str:
    """A share as a percentage."""
    return f"{plain(100.0 * share)} %"


def count(value: float) -> str:
    """A count with a short suffix: 999, 12.3 k, 4.56 M, 7.89 G."""
    for suffix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if abs(value) >= scale:
            return f"{plain(value / (1e3 if suffix == 'k' else scale))} {suffix}"
    return plain(value) if value != int(value) else f"{int(value):,}"


def number(value: float) -> str:
    """A count, or a mean of counts: 3, 12,345, 2.67."""
    return f"{int(value):,}" if value == int(value) else plain(value)


def plural(value: float, word: str, plural: str = "") -> str:
    """A number of things: `1 run`, `12,345 runs`; `plural` is that of a word that takes more than an s."""
    return f"{number(value)} {word if value == 1 else plural or f'{word}s'}"


def estimate_text(value: Estimate | None, unit: Unit, scale: float = 1.0) -> str:
    """An estimate for a table cell: `12.3`, `12.3 ± 0.4` over several runs, a bound `≥ 12.3`; `-` if there is none."""
    if value is None:
        return "-"
    if unit == "count" and value.half_width is None:
        return number(value.mean)
    factor = {"us": 1.0 / scale, "mbps": 1.0 / scale, "ratio": 1.0, "count": 1.0, "share": 100.0, "GB/s": 1.0}[unit]
    text = f"{value.sign} {plain(value.mean * factor)}".strip()
    if value.half_width is None:
        return text
    return f"{text} ± {plain(value.half_width * factor)}"


def clock(seconds: float) -> str:
    """A span of wall time: 12.3 s, 4:05, 1:02:03."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
