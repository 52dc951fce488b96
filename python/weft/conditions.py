"""Equal conditions: which keys of the spec a variant's transport does not take, and in what variants differ unasked."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from weft import _core
from weft.quantity import time_us

__all__ = ["Condition", "notes_of"]


class Condition(msgspec.Struct, frozen=True):
    """A quantity that decides completion times whatever a transport's algorithm is, as the core tells it."""

    quantity: str
    """Such as `packet size`."""
    key: str
    """The transport's key for it."""
    value: str
    asked: bool
    """Whether the variant itself says it."""


def notes_of(variants: Iterable[tuple[str, Sequence[str], Sequence[Condition]]]) -> list[str]:
    """Say what is unequal between variants, each given by its label, its notes and its conditions; every note once."""
    found: dict[str, None] = {}
    unasked: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for label, notes, conditions in variants:
        found.update(dict.fromkeys(notes))
        for one in conditions:
            if not one.asked:
                unasked.setdefault(one.quantity, {}).setdefault(one.value, []).append((label, one.key))
    unequal = [_unequal(quantity, values) for quantity, values in unasked.items() if len(values) > 1]
    return [*found, *unequal]


def _unequal(quantity: str, values: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    keys = list(dict.fromkeys(key for variants in values.values() for _, key in variants))
    shown = [f"{_readable(value)} ({', '.join(label for label, _ in variants)})" for value, variants in values.items()]
    if len(keys) == 1:
        advice = f"--set transport.{keys[0]}=... makes them equal"
    else:
        advice = f"their keys are {', '.join(f'transport.{key}' for key in keys)}"
    return f"unequal {quantity}, which no variant sets: {'; '.join(shown)}; {advice}"


def _readable(value: str) -> str:
    """Return a time in the unit of its size, and anything else as the spec has it."""
    try:
        return time_us(_core.quantity(value, "time") / 1e6)
    except _core.SpecError:
        return value
