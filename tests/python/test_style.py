"""How comments are written: lines that fit, and first words that say something alone."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 100
EMPTY = re.compile(r"(The same|That of|Those of|Of|Its|What)\b")
"""Words that begin a doc comment without saying what it is about: somebody reads it alone, in a tooltip."""


def rust() -> Iterator[tuple[str, list[str]]]:
    listed = subprocess.run(["git", "ls-files", "crates/*.rs"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        yield name, (ROOT / name).read_text(encoding="utf-8").splitlines()


def test_lines_of_comments_end_at_column_100() -> None:
    long = [
        f"{name}:{number}"
        for name, lines in rust()
        for number, line in enumerate(lines, 1)
        if len(line) > COLUMNS and line.lstrip().startswith("//")
    ]
    assert long == []
