"""The report of `weft multiverse`: claims over scenarios, to explore choice by choice."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from weft.multiverse.result_file import ResultFile, read_scenarios
from weft.multiverse.words import exclusion_words
from weft.multiverse.writing import MANIFEST
from weft.papers.scorecard import SIGNS
from weft.papers.verdicts import Verdict
from weft.report.page import render_template

__all__ = ["is_multiverse", "render_multiverse"]

_KINDS = (Verdict.REPRODUCED, Verdict.OTHER_SIZE, Verdict.UNDECIDED, Verdict.NOT_REPRODUCED, Verdict.UNREACHABLE)
"""The verdicts that a scenario may have, in the order of a bar."""


def is_multiverse(directory: Path) -> bool:
    """Whether a directory is one of `weft multiverse`."""
    return (directory / MANIFEST).is_file()


def render_multiverse(directory: Path) -> str:
    """Return the page as text; raises `OutputError` where the command did not get to its end."""
    found = read_scenarios(directory)
    scenarios = pl.read_parquet(directory / "scenarios.parquet", glob=False)
    figures = ", ".join(found.figures)
    choices = _varied(found, scenarios)
    return render_template(
        "multiverse.html",
        title=f"Weft: scenarios of {found.paper}",
        heading=f"{found.paper.upper()}, figure {figures}: in which scenarios claims hold",
        subtitle=f"{found.scenarios:,} scenarios; {found.design or 'one choice at a time'}",
        choices=choices,
        claims=found.claims,
        apart=[[found.text(name) for name in pair] for pair in found.apart],
        excluded=[exclusion_words(one, found.scenarios, str.upper) for one in found.excluded],
        kinds=[{"name": str(one), "sign": SIGNS[one], "class": _class(one)} for one in _KINDS],
        picture=base64.b64encode((directory / "figure.png").read_bytes()).decode("ascii"),
        command=f"weft reproduce {found.paper} {' '.join(found.figures)} --scenario",
        data=_data(found, choices, scenarios),
    )


def _class(verdict: Verdict) -> str:
    return str(verdict).replace(",", "").replace(" ", "-")


def _varied(found: ResultFile, scenarios: pl.DataFrame) -> list[dict[str, Any]]:
    """List the choices in which scenarios differ, with the alternatives that occur."""
    changed = {pair for scenario in scenarios.get_column("scenario").unique() for pair in _pairs(scenario)}
    return [
        {
            "name": choice.name,
            "question": choice.question,
            "alternatives": [
                {"name": name, "source": source, "default": name == choice.default}
                for name, source in choice.alternatives.items()
                if name == choice.default or (choice.name, name) in changed
            ],
        }
        for choice in found.choices
        if any(name == choice.name for name, _ in changed)
    ]


def _pairs(scenario: str) -> list[tuple[str, str]]:
    """Read `window=64KB,drill.memory=rack`."""
    parts = [part.partition("=") for part in scenario.split(",") if "=" in part]
    return [(name, value) for name, _, value in parts]


def _data(found: ResultFile, choices: Sequence[dict[str, Any]], scenarios: pl.DataFrame) -> dict[str, Any]:
    """For each scenario the place of each choice's alternative, and of each claim's verdict; what was measured."""
    order = [claim.id for claim in found.claims]
    kinds = [str(one) for one in _KINDS]
    rows: list[dict[str, Any]] = []
    for (scenario,), own in scenarios.group_by("scenario", maintain_order=True):
        chosen = dict(_pairs(str(scenario)))
        by_claim = {row["claim"]: row for row in own.iter_rows(named=True)}
        rows.append(
            {
                "scenario": scenario,
                "at": [
                    [one["name"] for one in choice["alternatives"]].index(
                        chosen.get(choice["name"], choice["alternatives"][0]["name"])
                    )
                    for choice in choices
                ],
                "verdicts": [
                    kinds.index(by_claim[claim]["verdict"]) if by_claim[claim]["verdict"] in kinds else -1
                    for claim in order
                ],
                "measured": [_short(by_claim[claim]["measured"]) for claim in order],
            }
        )
    return {"scenarios": rows, "kinds": kinds}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
