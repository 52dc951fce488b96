"""The base class of a load balancer in Python, and the types of its parameters."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from weft import _core
from weft.balancer import PacketView, PortView, SwitchFactory, SwitchInfo, SwitchScheme, SwitchView

__all__ = ["QUANTITIES", "Rate", "Scheme", "Size", "Time"]


class Scheme(SwitchScheme):
    """A load balancer, as it runs at one switch: subclass it and write `choose`.

    Weft makes an object of the class for each switch of a run. What one knows of others, packets brought it. Its
    parameters are keyword arguments of `__init__`; those of the types `weft.Time`, `weft.Size` and `weft.Rate` are
    written with their units, as in `my.py:Least:gap=3us`.

    Besides `choose` it may have any of the methods that `weft.SwitchScheme` lists. What has no method costs nothing.
    """

    def __init__(self, info: SwitchInfo) -> None:
        self.info = info
        """What is known of the switch before the first packet."""

    @abstractmethod
    def choose(self, switch: SwitchView, packet: PacketView, ports: Sequence[PortView]) -> int:
        """Return the position in `ports` of the port that the packet shall leave by."""

    @classmethod
    def at(cls, info: SwitchInfo) -> Self:
        """Return the scheme at one switch, with the defaults of its parameters."""
        return cls(info)

    @classmethod
    def having(cls, **parameters: Any) -> SwitchFactory:
        """Return the same scheme with these parameters, for `weft.run(balancer=...)`."""
        return _Everywhere(cls, parameters)


class _Everywhere(SwitchFactory):
    """A class with its parameters: makes the scheme of each switch."""

    def __init__(self, scheme: type[Scheme], parameters: dict[str, Any]) -> None:
        self._scheme, self._parameters = scheme, parameters

    def at(self, info: SwitchInfo) -> Scheme:
        return self._scheme(info, **self._parameters)


class _Quantity(int):
    """A whole number of base units, that may be written with a unit."""

    _kind = ""

    def __new__(cls, value: str | int) -> Self:
        """Take a text such as "50us", or a number of base units."""
        return super().__new__(cls, _core.quantity(value, cls._kind) if isinstance(value, str) else value)


class Time(_Quantity):
    """A time in picoseconds: `weft.Time("50us") == 50_000_000`."""

    _kind = "time"


class Size(_Quantity):
    """A size in bytes: `weft.Size("100KB") == 100_000`."""

    _kind = "size"


class Rate(_Quantity):
    """A rate in bits per second: `weft.Rate("10Gbps") == 10_000_000_000`."""

    _kind = "rate"


QUANTITIES = (Time, Size, Rate)
"""The types of parameters that are written with a unit."""
