"""The examples run as they are."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from conftest import Weft

pytestmark = pytest.mark.slow

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
EVERY_DAY = {"api.py"}
"""Schemes in files of Python have tests of their own, so that their examples need not run each day."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=[] if path.name in EVERY_DAY else [pytest.mark.nightly])
        for path in EXAMPLES
    ],
)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


def test_a_fabric_of_ones_own_runs_from_its_file_of_cables(weft_command: Weft) -> None:
    spec = EXAMPLES[0].parent / "own-fabric.toml"
    outcome = weft_command("compare", spec, "--schemes", "ecmp,wcmp", "--flows", "60", "--json")
    assert outcome.code == 0, outcome.stderr
    runs = outcome.json()["runs"]
    assert [run["unfinished"] for run in runs] == [0, 0]
    # Weights follow the rates of the file: without them, both would be ECMP.
    assert runs[0]["fct_us"] != runs[1]["fct_us"]


def test_rdma_and_tcp_have_queues_of_their_own(weft_command: Weft, tmp_path: Path) -> None:
    spec = EXAMPLES[0].parent / "rdma-beside-tcp.toml"
    outcome = weft_command("run", spec, "--flows", "300", "--out", tmp_path / "out")
    assert outcome.code == 0, outcome.stderr
    flows = pl.read_parquet(tmp_path / "out" / "flows.parquet")
    carried = {(row["transport"], row["class"]) for row in flows.select("transport", "class").to_dicts()}
    assert carried == {("rdma", "long"), ("dctcp", "best-effort")}
    # Only the class of RoCE is lossless: it is paused, and loses nothing.
    pauses = pl.read_parquet(tmp_path / "out" / "pauses.parquet")
    assert pauses.height > 0
    assert pauses["class"].unique().to_list() == [0]
    classes = pl.read_parquet(tmp_path / "out" / "classes.parquet")
    assert classes.filter(pl.col("class") == 0)["dropped"].sum() == 0
