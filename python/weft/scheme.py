"""The base class of a load balancer in Python, and the types of its parameters."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import new_class
from typing import Any, ClassVar, Self, cast

from weft import _core
from weft.schemes import PacketView, PortView, SwitchInfo, SwitchScheme, SwitchView

__all__ = ["QUANTITIES", "Rate", "Scheme", "Size", "Time"]


class Scheme(SwitchScheme):
    """A load balancer, as it runs at one switch: subclass it and write `choose`.

    Weft makes an object of the class for each switch of a run. What one knows of others, packets brought it. Its
    parameters are keyword arguments of `__init__`; those of the types `weft.Time`, `weft.Size` and `weft.Rate` are
    written with their units, as in `my.py:Least:gap=3us`.

    Besides `choose` it may have any of the methods that `weft.SwitchScheme` lists. What has no method costs nothing.
    """

    _parameters: ClassVar[Mapping[str, Any]] = {}
    """What `having` gave: keyword arguments of `__init__`."""

    def __init__(self, info: SwitchInfo) -> None:
        self.info = info
        """What is known of the switch before the first packet."""

    @abstractmethod
    def choose(self, switch: SwitchView, packet: PacketView, ports: Sequence[PortView]) -> int:
        """Return the position in `ports` of the port that the packet shall leave by."""

    @classmethod
    def at(cls, info: SwitchInfo) -> Self:
        """Return the scheme at one switch, with the parameters that `having` gave, or their defaults."""
        return cls(info, **cls._parameters)

    @classmethod
    def having(cls, **parameters: Any) -> type[Self]:
        """Return the same scheme with these parameters, for `weft.run(scheme=...)` and `weft.compare`.

        It is called as on the command line, `LetFlow:gap=50us`. Raises `SpecError` for a parameter that it does not
        have, or a value of another type.
        """
        from weft.scheme_file import checked_parameters  # which knows of schemes

        given = checked_parameters(cls, {**cls._parameters, **parameters})
        name = ":".join([cls.__name__.partition(":")[0], *(f"{key}={_shown(value)}" for key, value in given.items())])
        own = {"_parameters": given, "__module__": cls.__module__, "__doc__": cls.__doc__}
        return cast("type[Self]", new_class(name, (cls,), exec_body=lambda body: body.update(own)))


class _Quantity(int):
    """A whole number of base units, that may be written with a unit."""

    _kind = ""
    _units: ClassVar[Mapping[str, int]] = {}

    def __new__(cls, value: str | int) -> Self:
        """Take a text such as "50us", or a number of base units."""
        return super().__new__(cls, _core.quantity(value, cls._kind) if isinstance(value, str) else value)

    @property
    def text(self) -> str:
        """As in a spec, in the largest unit of which it is a whole number: "50us"."""
        unit, size = next((unit, size) for unit, size in self._units.items() if self % size == 0)
        return f"{self // size}{unit}"


class Time(_Quantity):
    """A time in picoseconds: `weft.Time("50us") == 50_000_000`."""

    _kind = "time"
    _units: ClassVar[Mapping[str, int]] = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1}


class Size(_Quantity):
    """A size in bytes: `weft.Size("100KB") == 100_000`."""

    _kind = "size"
    _units: ClassVar[Mapping[str, int]] = {"GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}


class Rate(_Quantity):
    """A rate in bits per second: `weft.Rate("10Gbps") == 10_000_000_000`."""

    _kind = "rate"
    _units: ClassVar[Mapping[str, int]] = {"Tbps": 10**12, "Gbps": 10**9, "Mbps": 10**6, "Kbps": 10**3, "bps": 1}


QUANTITIES = (Time, Size, Rate)
"""The types of parameters that are written with a unit."""


def _shown(value: object) -> str:
    """Return the value of a parameter as it is written behind a name."""
    if isinstance(value, QUANTITIES):
        return value.text
    return str(value).lower() if isinstance(value, bool) else str(value)
