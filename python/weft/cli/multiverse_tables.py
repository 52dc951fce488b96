"""The tables of `weft multiverse`: what is open, and what scenarios say of claims."""

from rich.console import Console

from weft.cli.console import Text, print_json
from weft.cli.layout import new_table
from weft.multiverse.exploring import Question
from weft.multiverse.result import ClaimScenarios, Multiverse
from weft.multiverse.words import commands, decided_by, exclusion_words, share_words
from weft.papers.scorecard import SIGNS
from weft.papers.verdicts import Verdict

__all__ = ["print_multiverse", "print_open"]

_STYLES = {Verdict.REPRODUCED: "green", Verdict.OTHER_SIZE: "yellow", Verdict.NOT_REPRODUCED: "red"}


_EXCLUSIONS = 8


def print_open(console: Console, question: Question, *, as_json: bool) -> None:
    """Print the open choices with the sources of their alternatives, and the claims."""
    if as_json:
        print_json(
            {
                "choices": [
                    {
                        "name": choice.name,
                        "question": choice.question,
                        "default": choice.default,
                        "alternatives": {
                            one.name: {"source": one.source, "sets": {**one.settings, **one.options}}
                            for one in choice.alternatives.values()
                        },
                    }
                    for choice in question.choices.values()
                ],
                "claims": {claim.id: claim.text for claim in question.claims},
            }
        )
        return
    table = new_table("choice", "alternatives", "source", left=("choice", "alternatives", "source"))
    for choice in question.choices.values():
        table.add_row(Text(choice.name, style="bold"), Text(choice.question), Text(""))
        for one in choice.alternatives.values():
            default = one.name == choice.default
            table.add_row("", Text(f"  {one.name}{' (default)' if default else ''}"), Text(one.source, style="dim"))
    console.print(table)
    claims = new_table("claim", "figure", "what the paper says", left=("claim", "figure", "what the paper says"))
    for claim in question.claims:
        claims.add_row(Text(claim.id, style="bold"), Text(claim.figure or ""), Text(claim.text))
    console.print(claims)


def print_multiverse(console: Console, question: Question, result: Multiverse) -> None:
    """Print each claim, which claims hold nowhere together, and the commands that show the nearest scenarios."""
    for one in result.claims:
        console.print(Text(one.claim.id, style="bold").append(f": {one.claim.text}", style="not bold"))
        lines = [("by default", _by_default(one)), ("holds in", Text(share_words(one.share)))]
        deciders = decided_by(one) or ["nothing that was tried"]
        lines += [("decided by" if not place else "", Text(words)) for place, words in enumerate(deciders)]
        for name, text in lines:
            console.print(Text(f"  {name:<12}", style="dim").append_text(text), soft_wrap=True)
        console.print()
    scenarios = f"{len(result.seen):,} scenarios"
    console.print(
        f"{scenarios}; " + (result.design.words if result.design is not None else "one choice at a time"), style="dim"
    )
    if result.untried:
        console.print(
            f"not looked at for lack of time: {', '.join(map(str, result.untried))}; the same command goes on",
            style="yellow",
        )
    if result.impossible:
        console.print(
            f"{len(result.impossible):,} scenarios cannot be, as {next(iter(result.impossible))}:", style="dim"
        )
        console.print(Text(f"  {next(iter(result.impossible.values()))}", style="dim"))
    if result.apart:
        console.print()
        console.print("Hold in some scenario each, and together in none:", style="bold")
        for first, second in result.apart:
            console.print(Text(f"  {first} and {second}"))
    if result.excluded:
        console.print()
        console.print("Exclude each other to the letter, whatever the scheme does:", style="bold")
        for pair in result.excluded[:_EXCLUSIONS]:
            console.print(Text(f"  {exclusion_words(pair, len(result.seen), question.paper.label)}"))
        if (more := len(result.excluded) - _EXCLUSIONS) > 0:
            console.print(f"  and {more} more in result.json", style="dim")
    shown = commands(question, result)
    if shown:
        console.print()
        console.print("The nearest scenarios in which claims hold that do not by default:", style="bold")
        for line in shown:
            console.print(Text(f"  {line}"), soft_wrap=True)


def _by_default(one: ClaimScenarios) -> Text:
    verdict = one.default.verdict
    text = Text(f"{SIGNS[verdict]} {verdict}", style=_STYLES.get(verdict, ""))
    if one.default.measured_text:
        text.append(f", {one.default.measured_text}", style="default")
    return text
