"""The directory of `weft multiverse`: the result as JSON, a table of worlds, and the figure."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from weft import _core
from weft.durable import DurableDirectory
from weft.multiverse.drawing import drawn
from weft.multiverse.exploring import Question
from weft.multiverse.result import ClaimWorlds, Multiverse, Seen
from weft.papers.open import Choice
from weft.papers.store import INPUTS

__all__ = ["MANIFEST", "RESULT", "as_dict", "opened", "world_table", "written"]

MANIFEST = "multiverse.json"
"""Says whose directory it is."""
RESULT = "result.json"
"""Written last."""
_FILES = (RESULT, INPUTS, "report.html", "worlds.parquet", "worlds.csv", "figure.png", "figure.pdf", "figure.svg")


@contextmanager
def opened(path: Path) -> Iterator[DurableDirectory]:
    """Open the directory, so that what is in the way is told before anything is run."""
    with DurableDirectory(path, MANIFEST, set(_FILES), "multiverse") as directory:
        with directory.explained():
            directory.put(path / MANIFEST, json.dumps({"format": 1, "version": _core.version()}).encode() + b"\n")
            directory.take_away(path / RESULT)
        yield directory


def written(directory: DurableDirectory, question: Question, result: Multiverse) -> dict[str, Any]:
    """Write everything. Returns what is in `result.json`."""
    dictionary = as_dict(question, result)
    table = world_table(result)
    stream = BytesIO()
    table.write_parquet(stream)
    with directory.explained():
        directory.put(directory.path / "worlds.parquet", stream.getvalue())
        directory.put(directory.path / "worlds.csv", table.write_csv().encode())
        for name, content in drawn(question, result).items():
            directory.put(directory.path / name, content)
        text = json.dumps(dictionary, indent=1, ensure_ascii=False) + "\n"
        directory.put(directory.path / RESULT, text.encode())
    return dictionary


def as_dict(question: Question, result: Multiverse) -> dict[str, Any]:
    """All of it but the table of worlds, ready for JSON."""
    return {
        "format": 1,
        "version": _core.version(),
        "paper": question.paper.name,
        "scale": question.scale,
        "figures": [figure.name for figure in question.figures],
        "choices": [_choice(choice) for choice in question.choices.values()],
        "worlds": len(result.seen),
        "design": None if result.design is None else result.design.words,
        "untried": [str(world) for world in result.untried],
        "claims": [_claim(one) for one in result.claims],
        "apart": [list(pair) for pair in result.apart],
        "left_out": dict(question.left_out),
        "best": {"world": str(result.best.world), "holds": _held(result.best)},
        "failed": dict(result.failed),
        "impossible": {str(world): why for world, why in result.impossible.items()},
    }


def world_table(result: Multiverse) -> pl.DataFrame:
    """Make a row for each world and claim: the verdict, and what was measured with its interval."""
    rows = [
        (
            str(one.world),
            len(one.world.changed),
            claim,
            str(judgement.verdict),
            None if judgement.measured is None else judgement.measured.mean,
            None if judgement.measured is None else judgement.measured.half_width,
        )
        for one in result.seen
        for claim, judgement in one.judgements.items()
    ]
    schema = {
        "world": pl.String,
        "changes": pl.Int64,
        "claim": pl.String,
        "verdict": pl.String,
        "measured": pl.Float64,
        "half_width": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "name": choice.name,
        "question": choice.question,
        "default": choice.default,
        "alternatives": {one.name: one.source for one in choice.alternatives.values()},
    }


def _claim(one: ClaimWorlds) -> dict[str, Any]:
    return {
        "id": one.claim.id,
        "text": one.claim.text,
        "figure": one.claim.figure,
        "default": {"verdict": str(one.default.verdict), "measured": one.default.measured_text},
        "holds": one.share.holds,
        "open": one.share.open,
        "worlds": one.share.worlds,
        "interval": [one.share.low, one.share.high],
        "deciders": [
            {"choice": own.choice, "alternative": own.alternative, "effect": own.effect, "alone": own.alone}
            for own in one.deciders
        ],
        "nearest": None if one.nearest is None else str(one.nearest),
    }


def _held(seen: Seen) -> list[str]:
    return [claim for claim in seen.judgements if seen.holds(claim)]
