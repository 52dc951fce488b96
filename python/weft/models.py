"""The analytic models of papers, worked out by the core."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft import _core

__all__ = ["Quantity", "Working", "work_out"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number that a model works out."""

    key: str
    equation: str
    """The equation of the paper that gives it; "text" where the paper has no number, "-" if it is not the paper's."""
    symbol: str
    meaning: str
    unit: str
    value: float | None
    """None if it is infinite."""


@dataclass(frozen=True, slots=True)
class Working:
    """What a model says of its inputs."""

    model: str
    inputs: Mapping[str, Any]
    quantities: Mapping[str, Quantity]
    """By key, in the order in which one follows from those before."""
    conclusions: Sequence[str]
    raw: Mapping[str, Any] = field(repr=False)
    """The core's own document."""

    def value(self, key: str) -> float:
        """Value of a quantity; infinity if it is infinite."""
        found = self.quantities[key].value
        return float("inf") if found is None else found


def work_out(model: str, inputs: Mapping[str, object] | None = None) -> Working:
    """Work a model out, equation by equation; inputs that are not given have their defaults.

    Raises `SpecError` for an unknown model or input, or a value that the equations do not hold for.
    """
    pairs = [(key, value if isinstance(value, str) else json.dumps(value)) for key, value in (inputs or {}).items()]
    raw = json.loads(_core.model(model, pairs))
    quantities = {item["key"]: Quantity(**item) for item in raw["quantities"]}
    return Working(raw["model"], raw["inputs"], quantities, raw["conclusions"], raw)
