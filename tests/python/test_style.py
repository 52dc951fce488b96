"""How comments are written: lines that fit, and first words that say something alone."""

import ast
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 100
EMPTY = re.compile(r"(The same|That of|Those of|Of|Its|What)\b")
"""Words that begin a doc comment without naming its subject: somebody reads it alone, in a tooltip."""


def sources(pattern: str) -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        yield name, (ROOT / name).read_text(encoding="utf-8")


def test_lines_of_comments_end_at_column_100() -> None:
    long = [
        f"{name}:{number}"
        for name, text in sources("crates/*.rs")
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS and line.lstrip().startswith("//")
    ]
    assert long == []


def test_doc_comments_name_their_subject() -> None:
    found = []
    for name, text in sources("crates/*.rs"):
        lines = ["", *(line.strip() for line in text.splitlines())]
        for number, (before, line) in enumerate(pairwise(lines), 1):
            begins = re.match(r"//[/!] (.*)", line) and not re.match(r"//[/!]( \S|$)", before)
            if begins and EMPTY.match(line[4:]):
                found.append(f"{name}:{number}: {line}")
    for name, text in sources("*.py"):
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Expr(value=ast.Constant(value=str(said))) if EMPTY.match(said.strip()):
                    found.append(f"{name}:{node.lineno}: {said.strip().splitlines()[0]}")
    assert found == []
