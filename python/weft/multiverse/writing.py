"""The directory of `weft multiverse`: the result as JSON, a table of scenarios, and the figure."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import msgspec
import polars as pl

from weft import _core
from weft.durable import DurableDirectory
from weft.multiverse.drawing import drawn
from weft.multiverse.exploring import Question
from weft.multiverse.result import Multiverse
from weft.multiverse.result_file import RESULT, ResultFile, kept
from weft.papers.store import INPUTS

__all__ = ["MANIFEST", "opened", "scenario_table", "written"]

MANIFEST = "multiverse.json"
"""Says whose directory it is."""
_FILES = (RESULT, INPUTS, "report.html", "scenarios.parquet", "scenarios.csv", "figure.png", "figure.pdf", "figure.svg")


@contextmanager
def opened(path: Path) -> Iterator[DurableDirectory]:
    """Open the directory, so that what is in the way is told before anything is run."""
    with DurableDirectory(path, MANIFEST, set(_FILES), "multiverse") as directory:
        with directory.explained():
            directory.put(path / MANIFEST, json.dumps({"format": 1, "version": _core.version()}).encode() + b"\n")
            directory.take_away(path / RESULT)
        yield directory


def written(directory: DurableDirectory, question: Question, result: Multiverse) -> ResultFile:
    """Write everything. Returns what is in `result.json`."""
    found = kept(question, result)
    table = scenario_table(result)
    stream = BytesIO()
    table.write_parquet(stream)
    with directory.explained():
        directory.put(directory.path / "scenarios.parquet", stream.getvalue())
        directory.put(directory.path / "scenarios.csv", table.write_csv().encode())
        for name, content in drawn(question, result).items():
            directory.put(directory.path / name, content)
        directory.put(directory.path / RESULT, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return found


def scenario_table(result: Multiverse) -> pl.DataFrame:
    """Make a row for each scenario and claim: the verdict, and what was measured with its interval."""
    rows = [
        (
            str(one.scenario),
            len(one.scenario.changed),
            claim,
            str(judgement.verdict),
            None if judgement.measured is None else judgement.measured.mean,
            None if judgement.measured is None else judgement.measured.half_width,
        )
        for one in result.seen
        for claim, judgement in one.judgements.items()
    ]
    schema = {
        "scenario": pl.String,
        "changes": pl.Int64,
        "claim": pl.String,
        "verdict": pl.String,
        "measured": pl.Float64,
        "half_width": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")
