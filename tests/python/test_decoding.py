"""Decoding of results in Python: complete, or rejected with the file and the key."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import OutputError
from weft.summary import Summary

EVERYTHING = {
    "run.bins": "lbt",
    "run.paths_of": "100KB",
    "run.sample_every": "50us",
    "traffic.deadlines.mean": "2ms",
    "traffic.workload": "web-search",
    "traffic.long_lived": [{"count": 2}],
}


def written(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the document that the core writes."""
    core = weft.run("", set=settings).core
    assert core is not None
    found: dict[str, Any] = json.loads(core.summary)
    return found


@pytest.fixture
def whole(small: dict[str, int]) -> dict[str, Any]:
    return written(small | EVERYTHING)


def test_every_field_that_the_core_writes_is_declared(whole: dict[str, Any], small: dict[str, int]) -> None:
    assert Summary.read(whole).raw == whole
    least = written(dict(small))
    assert Summary.read(least).raw == least
    absent = whole.keys() - least.keys()
    assert absent == {"bins", "paths", "background", "deadlines"}, "only these may be missing"


MISTAKES: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda raw: raw.pop("unfinished"), "unfinished is missing"),
    (lambda raw: raw["small"].pop("unfinished"), "small.unfinished is missing"),
    (lambda raw: raw["bins"][1].pop("label"), "bins[1].label is missing"),
    (lambda raw: raw["fct_us"].update(mean="soon"), "fct_us.mean: Expected `float | null`, got `str`"),
    (lambda raw: raw.update(seed=None), "seed: Expected `int`, got `null`"),
    (lambda raw: raw.pop("spec_hash"), "spec_hash is missing"),
]


@pytest.mark.parametrize(("damage", "told"), MISTAKES)
def test_a_summary_that_is_not_whole_is_answered_with_file_and_key(
    small: dict[str, int], whole: dict[str, Any], tmp_path: Path, damage: Callable[[dict[str, Any]], object], told: str
) -> None:
    place = weft.run("", set=small).write(tmp_path / "out")
    damage(whole)
    (place / "summary.json").write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(OutputError) as error:
        weft.load(place)
    assert str(error.value).startswith(f"{place / 'summary.json'}: {told}")


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1}', b"[]", b"\xff\xfe"])
@pytest.mark.parametrize("name", ["summary.json", "compare.json", "sweep.json"])
def test_any_other_content_is_answered_with_the_file(
    small: dict[str, int], tmp_path: Path, name: str, content: bytes
) -> None:
    from weft.report import render_directory

    place = weft.run("", set=small).write(tmp_path / "out")
    (place / name).write_bytes(content)
    with pytest.raises(OutputError, match=name):
        render_directory(place)


def test_threads_that_read_a_kind_for_the_first_time_at_once_do_not_end_the_process() -> None:
    script = """
import sys, threading, msgspec
from weft.decoding import decode
sys.setswitchinterval(1e-6)
for _ in range(40):
    parts = [msgspec.defstruct(f"Part{i}", [(f"a{j}", int) for j in range(10)]) for i in range(20)]
    kind = msgspec.defstruct("Whole", [(f"x{i}", part) for i, part in enumerate(parts)])
    text = msgspec.json.encode({f"x{i}": {f"a{j}": 1 for j in range(10)} for i in range(20)})
    begin = threading.Barrier(4)
    def read():
        begin.wait()
        decode(text, kind, "it")
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stderr == ""
