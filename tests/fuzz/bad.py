"""Bad input near good input: a good spec with one value or one key spoiled."""

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

from weft.spec import to_toml

__all__ = ["spoiled"]

_VALUES: tuple[Any, ...] = (
    -1, 0, 2**31, 2**53, 2**63 - 1, -0.5, 1.5, 1e300, float("nan"), float("inf"), True, "", " ", "x", "-1us", "0us",
    "1e9s", "99999999999999999999us", "0B", "1e30KB", "18446744073709551615B", "0bps", "999999999Tbps", "1 packet",
    "0 packets", "4", "é", "a\nb", "[red]", ":x:", "\u202e", [], [[]], [1, "a"], {}, {"a": 1}, [{}], "/dev/null", "..",
    "leaf0-leaf0", "leaf9-spine9", "leaf0", "host0>host0", "0-99999", "5-1",
)  # fmt: skip
_SECTIONS = ("run", "fabric", "traffic", "transport", "scheme")


def spoiled(document: Mapping[str, Any], random: Random) -> tuple[str, str]:
    """Return the TOML of a spec with one mistake, perhaps, and what it is."""
    spec = copy.deepcopy(dict(document))
    section = random.choice(_SECTIONS)
    table = spec.setdefault(section, {})
    if isinstance(table, list):
        table = random.choice(table)
    key = random.choice([*table, "x"])
    match random.randrange(6):
        case 0:
            value = table.pop(key, None)
            table[f"{key}s"] = value if value is not None else 1
            what = f"{section}.{key} misspelt"
        case 1:
            table.pop(key, None)
            what = f"{section}.{key} left out"
        case 2 if isinstance(table.get(key), int) and not isinstance(table[key], bool):
            table[key] *= random.choice((-1, 10**6))
            what = f"{section}.{key} = {table[key]}"
        case 3:
            spec[section] = value = random.choice(_VALUES)
            what = f"{section} = {value!r}"
        case _:
            table[key] = value = random.choice(_VALUES)
            what = f"{section}.{key} = {value!r}"
    return to_toml(spec), what
