"""The analytic models of papers, worked out by the core."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from weft import _core
from weft.decoding import decode

__all__ = ["Quantity", "Working", "work_out"]


class Quantity(msgspec.Struct, frozen=True):
    """One number that a model works out."""

    key: str
    equation: str
    """The equation of the paper that gives it; "text" where the paper has no number, "-" if it is not the paper's."""
    symbol: str
    meaning: str
    unit: str
    value: float | None
    """None if it is infinite."""


class Working(msgspec.Struct, frozen=True):
    """Inputs of a model with their derivation: the core's own document."""

    model: str
    inputs: dict[str, Any]
    steps: tuple[Quantity, ...] = msgspec.field(name="quantities")
    """In the order in which one follows from those before."""
    conclusions: tuple[str, ...]

    @property
    def quantities(self) -> Mapping[str, Quantity]:
        """By key, in order."""
        return {one.key: one for one in self.steps}

    @property
    def raw(self) -> dict[str, Any]:
        """The core's own document."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def value(self, key: str) -> float:
        """Value of a quantity; infinity if it is infinite."""
        found = self.quantities[key].value
        return float("inf") if found is None else found


def work_out(model: str, inputs: Mapping[str, object] | None = None) -> Working:
    """Work a model out, equation by equation; inputs that are not given have their defaults.

    Raises `SpecError` for an unknown model or input, or a value that the equations do not hold for.
    """
    pairs = [(key, value if isinstance(value, str) else json.dumps(value)) for key, value in (inputs or {}).items()]
    return decode(_core.model(model, pairs), Working, "the model")
