"""Puts the scorecards and figures of papers into the guide, from directories of `weft reproduce`.

    .venv/bin/python docs/print_papers.py out/reproduce-paper out/reproduce-quick [--papers meet tr]
    .venv/bin/python docs/print_papers.py --scenarios out/multiverse-lbt-8 out/multiverse-meet-6

A figure that is in several directories is taken from the first, one that is in none stays as it is. Scenarios are directories of `weft multiverse`; without
directories of `weft reproduce` the scorecards that are there are written anew, with what scenarios say. What is written, docs/papers/PAPER/, is never edited
by hand; the page docs/papers/PAPER.md shows it.
"""

import argparse
from pathlib import Path

from weft.multiverse.guide import write_scenarios
from weft.multiverse.result_file import other_interpretations
from weft.papers.declared import load_paper, paper_names
from weft.papers.guide import rewrite_card, write_parts, write_summary

TARGET = Path(__file__).resolve().parent / "papers"


def main() -> None:
    """Write the parts of each paper."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", type=Path)
    parser.add_argument("--scenarios", nargs="+", type=Path, default=[])
    parser.add_argument("--papers", nargs="+", choices=paper_names(), default=paper_names())
    given = parser.parse_args()
    for name in given.papers:
        paper = load_paper(name)
        others = other_interpretations(write_scenarios(paper, given.scenarios, TARGET)).get(name, {})
        if given.directories:
            card = write_parts(paper, given.directories, TARGET, others)
        else:
            card = rewrite_card(paper, TARGET, others)
        print(f"{name}: {len(card.figures)} figures; {card.summary()}")
    write_summary(TARGET)


if __name__ == "__main__":
    main()
