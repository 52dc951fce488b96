"""Specs reach the core as they were meant, however they were given."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Weft
from weft import SpecError
from weft.spec import load_spec, parse_assignment, to_toml, to_toml_value

keys = st.text(st.characters(codec="utf-8", exclude_characters="="), min_size=1).filter(lambda text: text.strip())
values = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text.strip())
scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(st.characters(codec="utf-8"))
documents = st.recursive(
    st.dictionaries(st.text(st.characters(codec="utf-8")), scalars, max_size=4),
    lambda inner: st.dictionaries(
        st.text(st.characters(codec="utf-8")),
        scalars | inner | st.lists(inner, max_size=2) | st.lists(scalars, max_size=3),
        max_size=4,
    ),
    max_leaves=12,
)


@given(keys, values)
def test_set_splits_at_the_first_equals_sign(key: str, value: str) -> None:
    assert parse_assignment(f"{key}={value}") == (key.strip(), value.strip())


@given(st.text(st.characters(exclude_characters="=")))
def test_set_without_equals_sign_is_an_error_that_shows_the_text(text: str) -> None:
    with pytest.raises(SpecError, match="expected key=value"):
        parse_assignment(text)


@pytest.mark.parametrize("text", ["=5", " =5", "a.b=", "a.b=  "])
def test_set_needs_both_sides(text: str) -> None:
    with pytest.raises(SpecError):
        parse_assignment(text)


def same(left: Any, right: Any) -> bool:
    """Equality in which a NaN equals a NaN and 1 differs from 1.0 and True."""
    if isinstance(left, dict):
        return (
            isinstance(right, dict) and left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or (left != left and right != right))


@given(documents)
def test_dictionaries_survive_the_way_through_toml(document: dict[str, Any]) -> None:
    assert same(tomllib.loads(to_toml(document)), document)


@given(documents | scalars | st.lists(documents | scalars, max_size=3))
def test_a_value_survives_in_one_line(value: Any) -> None:
    text = to_toml_value(value, "key")
    assert "\n" not in text
    assert same(tomllib.loads(f"value = {text}")["value"], value)


def test_paths_and_numbers_of_numpy_are_written_as_values() -> None:
    document = {"a": Path("x.csv"), "b": np.float64(0.5), "c": ({"d": 1},)}
    assert tomllib.loads(to_toml(document)) == {"a": "x.csv", "b": 0.5, "c": [{"d": 1}]}


def test_none_means_not_given() -> None:
    assert to_toml({"fabric": {"leaves": 4, "spines": None}}) == "[fabric]\nleaves = 4\n"


def test_what_toml_cannot_hold_is_named() -> None:
    with pytest.raises(SpecError, match=r"fabric\.leaves: a set cannot stand in a spec"):
        to_toml({"fabric": {"leaves": {1, 2}}})


def test_a_file_brings_its_folder_along(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text("[run]\nseed = 3\n", encoding="utf-8")
    spec = load_spec(path)
    assert (spec.text, spec.base_dir, spec.origin) == ("[run]\nseed = 3\n", str(tmp_path), str(path))
    assert load_spec(str(path)) == spec


def test_toml_text_is_told_from_a_path() -> None:
    assert load_spec("run.seed = 3").text == "run.seed = 3"
    long = "run.seed = 3 # " + "x" * 5_000
    assert (load_spec(long).text, load_spec(f"{long}\n").text) == (long, f"{long}\n")
    assert load_spec("").text == ""
    with pytest.raises(SpecError, match=r"nowhere\.toml: there is no such spec file"):
        load_spec("nowhere.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="not a text file"):
        load_spec(path)


def test_convert_gives_an_older_spec_the_names_of_today(weft_command: Weft, tmp_path: Path) -> None:
    old = tmp_path / "old.toml"
    old.write_text('# mine\n[balancer]\nname = "drill"\n[traffic]\nflows = 10\n')
    assert "balancer is scheme today" in weft_command("explain", str(old)).stderr
    done = weft_command("convert", str(old))
    assert done.stdout == '# mine\n[scheme]\nname = "drill"\n[traffic]\nflows = 10\n'
    old.write_text(done.stdout)
    assert weft_command("explain", str(old), "--json").json()
