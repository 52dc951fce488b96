"""Citations have one form, and name every equation and algorithm line of the five papers, or a reason says why not.

`TR eq. 4`, `TR eqs. 3, 5 and 7`, `QALL Alg. 1 lines 11 to 20`, `MEET §3.2 Alg. 2 line 7`, `RFC 5681 §3.2`.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = tomllib.loads(Path(__file__).with_name("citations.toml").read_text())
PAPERS = ("MEET", "TR", "QALL", "LBT", "MaxPass")

NUMBERS = r"\d+(?:(?:, | and | to |, and )\d+)*"
CITATION = re.compile(
    rf"\b({'|'.join(PAPERS)})(?: §[^,.;:()]{{1,40}}?,?)? "
    rf"(?:eqs?\. ({NUMBERS})|Algs?\. ({NUMBERS})(?: lines? ({NUMBERS}))?)"
)

OTHER_FORMS = re.compile(
    r"\b(?:meet|tr|qall|lbt|maxpass) (?:§|[Ee]q|[Aa]lg)"
    rf"|\b(?:{'|'.join(PAPERS)}),? (?:[Ss]ection|[Ee]quation|Eqs?\.|Algorithm)s? ?\d*"
    r"|\bRFC \d+,? [Ss]ections? \d"
    r"|(?<![.\w] )\b(?:[Ss]ections?|[Ee]quations?|Eqs?\.|Algorithms?) \d"
)


def comments(text: str) -> Iterator[str]:
    """The comments of Rust code: neighbouring lines are one, without their slashes."""
    block: list[str] = []
    for line in text.splitlines():
        found = re.match(r"\s*//[/!]? ?(.*)", line) or re.search(r"\s// (.*)", line)
        if found is not None:
            block.append(found.group(1).strip())
        elif block:
            yield " ".join(block)
            block = []
    if block:
        yield " ".join(block)


@cache
def sources() -> dict[str, list[str]]:
    """Return the texts that may cite, by file: comments of Rust, texts of Python."""
    rust = {path: list(comments(path.read_text())) for path in sorted((ROOT / "crates").rglob("*.rs"))}
    python = {path: [re.sub(r"\s+", " ", path.read_text())] for path in sorted((ROOT / "python").rglob("*.py"))}
    return {str(path.relative_to(ROOT)): texts for path, texts in (rust | python).items()}


def spelled_out(numbers: str) -> set[int]:
    """`"3, 5 and 7 to 9"`: 3, 5, 7, 8 and 9."""
    spans = [part.split(" to ") for part in re.split(r", and |, | and ", numbers)]
    return {number for span in spans for number in range(int(span[0]), int(span[-1]) + 1)}


@cache
def cited(paper: str) -> frozenset[str]:
    """Return the parts of a paper that comments cite: `"eq. 4"`, `"Alg. 1"`, `"Alg. 1 line 2"`."""
    found: set[str] = set()
    for text in (text for texts in sources().values() for text in texts):
        for name, equations, algorithms, lines in CITATION.findall(text):
            if name != paper:
                continue
            found |= {f"eq. {number}" for number in spelled_out(equations)} if equations else set()
            for algorithm in spelled_out(algorithms) if algorithms else ():
                found.add(f"Alg. {algorithm}")
                found |= {f"Alg. {algorithm} line {line}" for line in spelled_out(lines)} if lines else set()
    return frozenset(found)


def numbered(paper: str) -> set[str]:
    """Return the numbered parts of a paper."""
    equations = {f"eq. {number}" for number in range(1, DATA[paper]["equations"] + 1)}
    for algorithm, lines in DATA[paper]["algorithms"].items():
        equations |= {f"Alg. {algorithm} line {line}" for line in range(1, lines + 1)} or {f"Alg. {algorithm}"}
    return equations


@pytest.mark.parametrize("paper", PAPERS)
def test_every_equation_and_algorithm_line_is_named_or_explained(paper: str) -> None:
    reasons = DATA["reasons"].get(paper, {})
    missing = numbered(paper) - cited(paper) - set(reasons)
    assert not missing, f"{paper}: nothing names {sorted(missing)}; cite it where it is done, or give a reason"


@pytest.mark.parametrize("paper", PAPERS)
def test_a_reason_is_for_what_the_paper_has_and_nothing_names(paper: str) -> None:
    reasons = DATA["reasons"].get(paper, {})
    assert set(reasons) <= numbered(paper)
    assert not set(reasons) & cited(paper), "named after all: take the reason out"
    assert all(reason.strip() for reason in reasons.values())


@pytest.mark.parametrize("paper", PAPERS)
def test_a_citation_names_what_the_paper_has(paper: str) -> None:
    wholes = {f"Alg. {algorithm}" for algorithm in DATA[paper]["algorithms"]}
    assert cited(paper) <= numbered(paper) | wholes


def test_citations_have_one_form() -> None:
    others = [
        f"{path}: {found.group()}"
        for path, texts in sources().items()
        if path.startswith("crates/")
        for text in texts
        for found in OTHER_FORMS.finditer(text)
    ]
    assert others == []


def test_the_search_reads_wrapped_comments_and_lists() -> None:
    text = "fn a() {} // TR eq. 4\n/// See MEET\n/// §3.2 Alg. 2 lines 2 to 4 and 7.\nlet b = 1;\n"
    assert list(comments(text)) == ["TR eq. 4 See MEET §3.2 Alg. 2 lines 2 to 4 and 7."]
    assert spelled_out("3, 5 and 7 to 9") == {3, 5, 7, 8, 9}
