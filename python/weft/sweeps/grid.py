"""The points of a sweep: every field of a spec that is a list, value by value, in all combinations."""

import itertools
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any, TypeAlias
from urllib.parse import quote

from weft import _core
from weft.errors import SpecError
from weft.runs.run import SEED
from weft.simulation import Overrides, override_pairs
from weft.spec import SpecText, parse_document, to_toml_value
from weft.variant import Variant, parse_variants

__all__ = ["SEED", "Axis", "Grid", "Vary", "parse_vary", "partitions", "read_grid"]

MOST_POINTS = 100_000

VARIANT = "variant"
"""The swept field of variants that are not all load balancers, and not all transports."""

# Tables that are named by one of their keys: a label begins with it.
_TAGS = {"scheme": "name", "transport": "name", "fabric": "kind"}
# What says which of its tables a variant is.
_VARIANTS_NAMES = {"scheme": "name", "transport": "name", "hosts": "kind"}

# A component of a path takes 255 bytes on every file system in use.
_LONGEST_PARTITION = 200

Vary: TypeAlias = Mapping[str, Sequence[Any]]
"""Keys of the spec, and the values that each takes in turn: `{"traffic.load": [0.2, 0.4]}`."""

_Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A swept field: its key, its values as TOML, and what each is called."""

    key: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    variants: bool = False
    """Whether the values are variants, as on the command line: each takes the place of one table, or of two."""
    asked: bool = False
    """Whether it was asked for beside the spec: mistakes in its values are not the spec's."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A spec, what is changed in all of its runs, and the fields that are swept."""

    spec: SpecText
    overrides: tuple[tuple[str, str], ...]
    axes: tuple[Axis, ...]

    def places(self) -> Iterator[tuple[int, ...]]:
        """List the points: for each axis the place of its value; the last axis changes fastest."""
        return itertools.product(*(range(len(axis.labels)) for axis in self.axes))

    def overrides_at(self, places: Sequence[int]) -> list[tuple[str, str]]:
        """Return what to change in the spec for a point; `--set` may change a part of a swept table."""
        chosen = zip(self.axes, places, strict=True)
        own = [(axis.key, axis.texts[place]) for axis, place in chosen if not axis.variants]
        return [*own, *self.overrides]

    def variant_at(self, places: Sequence[int]) -> str | None:
        """Return the variant of a point, if variants are swept."""
        chosen = zip(self.axes, places, strict=True)
        return next((axis.texts[place] for axis, place in chosen if axis.variants), None)

    def labels_at(self, places: Sequence[int]) -> dict[str, str]:
        """Name a point: the label of its value for each swept field."""
        return {axis.key: axis.labels[place] for axis, place in zip(self.axes, places, strict=True)}


def read_grid(
    spec: SpecText, overrides: Overrides, vary: Vary, seeds: Sequence[int] | None, schemes: Sequence[str] | None
) -> Grid:
    """Find the swept fields of a spec and add those that were asked for beside it.

    `overrides` replace a field of the spec, swept or not; `vary`, `seeds` and `schemes` sweep one in place of what
    the spec has. `vary` changes variants, too, as `overrides` do. Raises `SpecError` for a list without values, a
    value that is listed twice, or too many points.
    """
    document = parse_document(spec)
    sets = [(_normal(key), text) for key, text in override_pairs(overrides)]
    asked = {_normal(key): _values(key, values) for key, values in vary.items()}
    variants = _variants(parse_variants(schemes)) if schemes is not None else None
    twice = [SEED] if seeds is not None else []
    twice += [] if variants is None else sorted(variants.tables)
    for key in twice:
        if key in asked:
            raise SpecError(f"{key} is varied twice; give all its values at once")
    if variants is not None:
        variants.check(asked)
    if seeds is not None:
        asked[SEED] = list(seeds)
    for key, _ in sets:
        if any(_covers(other, key) or _covers(key, other) for other in asked if other not in _TAGS):
            raise SpecError(f"{key} is both set and varied: once is enough")
    found = {_key(path): (path, values) for path, values in _lists(document, ())}
    gone = [key for key, _ in sets] + [key for key in asked if key not in found]
    kept = {key: values for key, (_, values) in found.items() if not any(_covers(other, key) for other in gone)}
    for key, values in asked.items():  # one that the spec sweeps too stays in its place
        kept[key] = _expanded(values, tuple(key.split(".")))
    axes = {key: _axis(key, values, asked=key in asked) for key, values in kept.items()}
    if variants is not None:
        axes = variants.placed(axes)
    if SEED in axes:
        axes[SEED] = axes.pop(SEED)  # the last: what differs in nothing else lies side by side
    points = math.prod(len(axis.labels) for axis in axes.values())
    if points > MOST_POINTS:
        raise SpecError(f"the sweep has {points:,} points, and at most {MOST_POINTS:,} are taken")
    return Grid(spec, tuple(sets), tuple(axes.values()))


def partitions(labels: Mapping[str, str]) -> str:
    """Name the directories of a point below each data set: `traffic.load=0.2/run.seed=1`."""
    return "/".join(f"{key}={quote(label, safe='')}" for key, label in labels.items())


@dataclass(frozen=True, slots=True)
class _Variants:
    """The variants of a sweep, and the tables that they take the place of."""

    axis: Axis
    tables: frozenset[str]

    def check(self, asked: Iterable[str]) -> None:
        """Raise `SpecError` for a key that says which variant it is: the variants say it already."""
        for key in asked:
            table, _, rest = key.partition(".")
            if table in self.tables and rest == _VARIANTS_NAMES.get(table):
                raise SpecError(f"{key} is varied, and the schemes say it already; name all in one list of schemes")

    def _says(self, key: str) -> bool:
        """Whether the variants say what a key of the spec says; a transport keeps the spec's own keys."""
        table, _, rest = key.partition(".")
        return table in self.tables and (table != "transport" or rest in ("", _VARIANTS_NAMES[table]))

    def placed(self, axes: Mapping[str, Axis]) -> dict[str, Axis]:
        """Put them where the spec sweeps what they stand for, else last; what was asked for beside the spec stays."""
        key = self.axis.key
        found = {known: self.axis if known == key else axis for known, axis in axes.items()}
        gone = [known for known, axis in found.items() if known != key and not axis.asked and self._says(known)]
        return {known: axis for known, axis in found.items() if known not in gone} | {key: self.axis}


def _variants(variants: Sequence[Variant]) -> _Variants:
    tables = [frozenset(variant.parts) for variant in variants]
    key = next(iter(tables[0])) if len(set(tables)) == 1 and len(tables[0]) == 1 else VARIANT
    labels = tuple(variant.label for variant in variants)
    axis = Axis(key, labels, tuple(_short(key, label) for label in labels), variants=True)
    return _Variants(axis, frozenset().union(*tables))


def parse_vary(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Read every `--vary KEY=A,B,...`; a value is TOML (0.2, true, 7) or else a bare string (ecmp, 50us)."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        key, separator, values = (part.strip() for part in text.partition("="))
        parts = [part.strip() for part in values.split(",")]
        if not separator or not key or not all(parts):
            raise SpecError(f"--vary {text!r}: expected key=value,value,..., for example --vary traffic.load=0.2,0.4")
        if _normal(key) in found:
            raise SpecError(f"--vary: {key} is varied twice; give all its values at once")
        found[_normal(key)] = [_scalar(part) for part in parts]
    return found


def _values(key: str, values: Iterable[Any]) -> list[Any]:
    """Return the values of a field that is varied; raises `SpecError` for one alone."""
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise SpecError(f"vary: {key} = {values!r}: expected a list of values, as in [{values!r}]")
    return list(values)


def _normal(key: str) -> str:
    return re.sub(r"\[(\d+)\]", r".\1", key.strip())


def _key(path: _Path) -> str:
    return ".".join(map(str, path))


def _covers(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer` or a part of it."""
    return inner == outer or inner.startswith(f"{outer}.")


def _lists(value: Any, path: _Path) -> Iterator[tuple[_Path, list[Any]]]:
    """Find what is swept in a value: lists that are deeper than their field's own type."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _lists(item, (*path, key))
    elif isinstance(value, list):
        own = _list_depth(path)
        # An empty list is a value where lists are values, and a mistake elsewhere.
        if _depth(value) > own:
            yield path, _expanded(value, path)
        else:
            for place, item in enumerate(value):
                yield from _lists(item, (*path, place))


def _expanded(values: Sequence[Any], path: _Path) -> list[Any]:
    """Take the values of a swept field; a table among them that has lists itself stands for several."""
    found: list[Any] = []
    for value in values:
        inner = [(own[len(path) :], items) for own, items in _lists(value, path)] if isinstance(value, Mapping) else []
        for chosen in itertools.product(*(items for _, items in inner)):
            copy = deepcopy(value)
            for (place, _), item in zip(inner, chosen, strict=True):
                _put(copy, place, item)
            found.append(copy)
    return found


def _put(table: Any, path: _Path, value: Any) -> None:
    for step in path[:-1]:
        table = table[step]
    table[path[-1]] = value


def _scalar(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = parsed["value"] if len(parsed) == 1 else text
    return value if isinstance(value, str | int | float) else text


def _axis(key: str, values: Sequence[Any], *, asked: bool) -> Axis:
    if not values:
        raise SpecError(f"{key} = []: a field that is swept needs at least one value")
    texts = [to_toml_value(value, key) for value in values]
    labels = [_label(value, _TAGS.get(key)) for value in values]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise SpecError(f"{key}: {twice} is listed twice")
    return Axis(key, tuple(texts), tuple(_short(key, label) for label in labels), asked=asked)


def _label(value: Any, tag: str | None = None) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and tag in value:
        return ":".join([str(value[tag]), *(f"{key}={_label(item)}" for key, item in value.items() if key != tag)])
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_label(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_label, value))}]"
    return json.dumps(value)


def _short(key: str, label: str) -> str:
    """Cut a label that no directory could be called; a digest keeps it apart from others."""
    if len(quote(f"{key}={label}", safe="")) <= _LONGEST_PARTITION:
        return label
    return f"{label[:40]}~{sha256(label.encode()).hexdigest()[:8]}"


def _depth(value: Any) -> int:
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(_core.schema())
    return schema


def _list_depth(path: _Path) -> int:
    """Return how many lists deep the field's own type may be: 0 for a number, 1 for `traffic.sources`."""
    nodes: list[Mapping[str, Any]] = [_schema()]
    for step in path:
        own = [node for outer in nodes for node in _alternatives(outer)]
        take: Callable[[Any], Any] = (lambda node: node.get("items")) if isinstance(step, int) else _property(str(step))
        nodes = [inner for node in own if isinstance(inner := take(node), Mapping)]
    return max(map(_array_depth, nodes), default=0)


def _property(name: str) -> Callable[[Any], Any]:
    return lambda node: node.get("properties", {}).get(name)


def _array_depth(node: Any) -> int:
    items = [one.get("items") for one in _alternatives(node) if "array" in _types(one)]
    return max((1 + (_array_depth(item) if isinstance(item, Mapping) else 0) for item in items), default=0)


def _types(node: Any) -> Sequence[str]:
    kind = node.get("type", [])
    return [kind] if isinstance(kind, str) else kind


def _alternatives(node: Any) -> Iterator[Any]:
    """List what a value may be by a node of the schema: itself, what it refers to, each of its choices."""
    if reference := node.get("$ref"):
        yield from _alternatives(_schema()["$defs"][reference.rsplit("/", 1)[-1]])
    yield node
    for choice in ("oneOf", "anyOf", "allOf"):
        for inner in node.get(choice, []):
            yield from _alternatives(inner)
