"""Puts the scorecards and figures of papers into the guide, from directories of `weft reproduce`.

    .venv/bin/python docs/print_papers.py out/reproduce-paper out/reproduce-quick [--papers meet tr]

A figure that is in several directories is taken from the first. What is written, docs/papers/PAPER/, is never edited
by hand; the page docs/papers/PAPER.md shows it.
"""

import argparse
from pathlib import Path

from weft.papers.declared import load_paper, paper_names
from weft.papers.guide import write_parts, write_summary

TARGET = Path(__file__).resolve().parent / "papers"


def main() -> None:
    """Write the parts of each paper."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--papers", nargs="+", choices=paper_names(), default=paper_names())
    given = parser.parse_args()
    for name in given.papers:
        card = write_parts(load_paper(name), given.directories, TARGET)
        print(f"{name}: {len(card.figures)} figures; {card.summary()}")
    write_summary(TARGET)


if __name__ == "__main__":
    main()
