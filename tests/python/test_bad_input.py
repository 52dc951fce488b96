"""Whatever stands in a spec or behind --set, the core answers with a result or a SpecError, never otherwise."""

import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft import _core
from weft.spec import to_toml

KEYS = [
    *("run.seed", "run.time_limit", "fabric.kind", "fabric.leaves", "fabric.host_rate", "fabric.host_delay"),
    *("fabric.switch_queue.buffer", "fabric.switch_queue.mark", "fabric.fault.0.link", "fabric.fault.0.rate"),
    *("traffic.workload", "traffic.load", "traffic.flows", "traffic.pairs", "transport.name", "transport.mss"),
    *("scheme.name", "scheme.gap", "scheme", "fabric", "traffic.flows.x", "a", "..", ""),
]
VALUES = [
    *(
        "0",
        "-1",
        "1",
        "4",
        "1e400",
        "nan",
        "0.5",
        "true",
        "null",
        "",
        "''",
        "[]",
        "{}",
        "[[1]]",
        "1us",
        "-1us",
        "10Gbps",
    ),
    *("99999999999999999999", "18446744073709551616us", "0bps", "leaf0-spine1", "fat-tree", "letflow", "reno", "1e3KB"),
]
text = st.text(st.characters(codec="utf-8"), max_size=20)


def answered(spec: str, overrides: list[tuple[str, str]]) -> None:
    # Flows stay few, so that a spec that happens to be good is resolved at once.
    with contextlib.suppress(weft.SpecError):
        _core.resolve(spec, overrides=[("traffic.flows", "5"), *overrides])


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(KEYS) | text, st.sampled_from(VALUES) | text), max_size=3))
def test_any_set_is_answered(overrides: list[tuple[str, str]]) -> None:
    answered("", [(key, value) for key, value in overrides if not key.startswith("traffic")])


@settings(max_examples=200)
@given(text)
def test_any_text_is_answered(spec: str) -> None:
    answered(spec, [])


values = st.sampled_from([*VALUES, -1, 0, 1, 7, 0.5, -0.5, True, [], {}, [1], ["a"], [{"link": "leaf0-spine0"}]])
tables = st.dictionaries(
    st.sampled_from(["name", "kind", "leaves", "spines", "hosts_per_leaf", "fault", "gap", "mss", "seed", "x"]),
    values,
    max_size=4,
)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(["run", "fabric", "transport", "scheme", "x"]), tables | values, max_size=4))
def test_any_table_is_answered(document: dict[str, Any]) -> None:
    answered(to_toml(document), [])
