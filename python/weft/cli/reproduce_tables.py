"""The tables of `weft reproduce`: what was made, and what there is to make."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from weft.cli.console import Text
from weft.cli.layout import new_table
from weft.papers.costs import paper_cpu_s
from weft.papers.measured import CORES
from weft.papers.reproduction import Planned, Reproduction
from weft.papers.scorecard import SIGNS
from weft.papers.times import read_times
from weft.papers.verdicts import Verdict, in_scenarios
from weft.quantity import clock

__all__ = ["listed", "print_list", "print_made"]

_STYLES = {
    Verdict.REPRODUCED: "green",
    Verdict.OTHER_INTERPRETATION: "green",
    Verdict.OTHER_SIZE: "yellow",
    Verdict.NOT_REPRODUCED: "red",
}


def listed(figures: Sequence[Planned]) -> list[dict[str, Any]]:
    """Describe figures, ready for JSON: what each shows, of how many runs, and the seconds that it took."""
    times = read_times()
    return [
        {
            "paper": one.paper.name,
            "figure": one.figure.name,
            "title": one.figure.title,
            "place": one.figure.place,
            "runs": len(one.cases),
            "seconds": {
                scale: found[one.paper.name][one.figure.name]
                for scale, found in times.items()
                if one.figure.name in found.get(one.paper.name, {})
            },
            "paper_scale_predicted_s": None if cpu_s is None else round(cpu_s / CORES),
            "linux_hosts": one.linux_hosts,
            "not_made": one.figure.reason,
        }
        for one in figures
        for cpu_s in [None if one.figure.reason is not None else paper_cpu_s(one.paper, [one.figure])]
    ]


def print_list(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """Print a row per figure; a dash where nobody has measured it."""
    names = ("figure", "what it shows", "runs", "quick", "paper", "Linux hosts")
    table = new_table(*names, left=("figure", "what it shows"))
    for row in rows:
        title = f"{row['title']} (not made: {row['not_made']})" if row["not_made"] else row["title"]
        quick, paper = (row["seconds"].get(scale) for scale in ("quick", "paper"))
        predicted = row["paper_scale_predicted_s"]
        whole = f"~ {_took(predicted)}" if paper is None and predicted is not None else _took(paper)
        linux = _took(row["seconds"].get("linux"), "yes") if row["linux_hosts"] else ""
        runs = f"{row['runs']:,}" if row["runs"] else "-"
        table.add_row(Text(f"{row['paper']} {row['figure']}"), Text(title), runs, _took(quick), whole, linux)
    console.print(table)
    console.print(
        "times: measured, on two cores, each figure by itself; ~: predicted from quick scale, by numbers of flows; "
        "-: not measured; Linux hosts: with --hosts linux",
        style="dim",
    )


def _took(seconds: float | None, unknown: str = "-") -> str:
    return unknown if seconds is None else clock(seconds) if seconds >= 60.0 else f"{seconds:.0f} s"


def print_made(console: Console, result: Reproduction) -> None:
    """Print a row per figure that was made, and a row per claim that they test."""
    figures = new_table(
        "figure", "what it shows", "claims", "where", left=("figure", "what it shows", "claims", "where")
    )
    for made in result.made:
        where = str(made.files[0].parent) if made.files else f"not made: {made.error}"
        figures.add_row(Text(made.figure.key), Text(made.figure.title), _counts(made.verdicts), Text(where))
    for figure in result.not_made:
        figures.add_row(Text(figure.key), Text(figure.title), "", Text(f"not made: {figure.reason}"))
    console.print(figures)
    if result.beside is None:
        _print_claims(console, result)
    else:
        _print_claims_of_both(console, result, result.beside)
    for card in result.scorecards:
        console.print(f"{card.paper.name}: {card.summary()}")


def _print_claims(console: Console, result: Reproduction) -> None:
    names = ("figure", "claim", "measured", "verdict")
    claims = new_table(*names, left=names)
    for made in result.made:
        for one in made.verdicts:
            claims.add_row(Text(made.figure.key), Text(one["text"]), *_judged(one))
    if claims.row_count:
        console.print(claims)


def _print_claims_of_both(console: Console, linux: Reproduction, simulated: Reproduction) -> None:
    """Print what each claim comes to with Linux hosts, and beside it with simulated hosts."""
    names = ("figure", "claim", "Linux hosts", "verdict", "simulated hosts", "their verdict")
    claims = new_table(*names, left=names)
    known = {(made.figure.key, one["id"]): one for made in simulated.made for one in made.verdicts}
    for made in linux.made:
        for one in made.verdicts:
            beside = known.get((made.figure.key, one["id"]))
            other = (Text("-"), Text("-")) if beside is None else _judged(beside)
            claims.add_row(Text(made.figure.key), Text(one["text"]), *_judged(one), *other)
    if claims.row_count:
        console.print(claims)


def _judged(one: Mapping[str, Any]) -> tuple[Text, Text]:
    """Return the measured value and the verdict."""
    return Text(one["measured"]["text"] if one["measured"] else "-"), _verdict(one)


def _counts(verdicts: Sequence[Mapping[str, Any]]) -> Text:
    """Count verdicts by their signs: `3 ✓ 1 ✗`."""
    counts = Counter(map(_said, verdicts))
    return Text("  ".join(f"{counts[verdict]} {SIGNS[verdict]}" for verdict in Verdict if counts[verdict]))


def _verdict(one: Mapping[str, Any]) -> Text:
    verdict = _said(one)
    return Text(f"{SIGNS[verdict]} {verdict}", style=_STYLES.get(verdict, ""))


def _said(one: Mapping[str, Any]) -> Verdict:
    return in_scenarios(Verdict(one["verdict"]), elsewhere=one["other"] is not None)
