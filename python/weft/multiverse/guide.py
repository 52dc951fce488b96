"""Page part of the guide on the scenarios of a paper: the answer first, then each claim."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from weft.multiverse.result import Excluded
from weft.multiverse.result_file import RESULT, KeptClaim, ResultFile, read_scenarios
from weft.multiverse.words import decider_words, share_words, why_excluded
from weft.output import write_file
from weft.papers.declared import SCALES, Paper
from weft.papers.pictures import small_png
from weft.papers.scorecard import SIGNS, as_markdown
from weft.papers.verdicts import Verdict, in_scenarios

__all__ = ["kept_scenarios", "write_scenarios"]

_DECIDERS = 2


def kept_scenarios(paper: Paper, target: Path) -> list[Path]:
    """List the results of `weft multiverse` that the guide keeps of a paper."""
    return sorted((target / paper.name).glob("scenarios-*.json"), key=lambda path: path.stem)


def write_scenarios(paper: Paper, directories: Sequence[Path], target: Path) -> list[Path]:
    """Keep results and pictures of `weft multiverse`, and write `target/<paper>/scenarios.md` of all that are kept.

    Returns the results that are kept. What is there of the same figures, and of the same choices if some were asked
    for, goes; raises `OutputError` for what is no directory of the command.
    """
    folder = target / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    for directory in directories:
        scenarios = read_scenarios(directory)
        if scenarios.paper == paper.name:
            name = _name(scenarios)
            write_file(folder / f"{name}.json", (directory / RESULT).read_text(encoding="utf-8"))
            (folder / f"{name}.png").write_bytes(small_png(directory / "figure.png"))
    found = kept_scenarios(paper, target)
    write_file(folder / "scenarios.md", "\n".join(_part(paper, path) for path in found))
    return found


def _name(scenarios: ResultFile) -> str:
    """`scenarios-10`, or `scenarios-10-of-sizes-ports` if these choices were asked for."""
    words = shlex.split(scenarios.command)
    asked = words[words.index("--choices") + 1].split(",") if "--choices" in words else []
    return "-".join(["scenarios", *scenarios.figures, *(["of", *asked] if asked else [])])


def _part(paper: Paper, path: Path) -> str:
    scenarios = read_scenarios(path)
    headings = ", ".join(paper.figures[name].heading for name in scenarios.figures)
    design = as_markdown(scenarios.design or "one choice at a time")
    shows = "claims as rows, scenarios as columns, what decides each beside it, and the choices of each scenario below"
    lines = [
        f"**{headings}: {_answer(scenarios)}** ({_made(scenarios)}; {design}.)",
        "",
        f"![{headings}: {shows}]({paper.name}/{path.stem}.png)",
        "",
        "| | claim | by default | holds in | decided by |",
        "|---|---|---|---|---|",
        *(_row(claim) for claim in sorted(scenarios.claims, key=_group)),
        "",
    ]
    if scenarios.apart:
        lines += ["Each holds in some scenario, and both together in none:", "", *_apart(scenarios), ""]
    if scenarios.excluded:
        heading = "Exclude each other to the letter, whatever the scheme does, by what a third one takes there:"
        lines += [heading, "", *(_excluded(one, scenarios, paper) for one in scenarios.excluded), ""]
    if scenarios.untried:
        lines += [as_markdown(f"Not looked at for lack of time: {', '.join(scenarios.untried)}."), ""]
    return "\n".join(lines)


def _apart(scenarios: ResultFile) -> list[str]:
    """A line for each claim, with those that do not hold where it does."""
    others: dict[str, list[str]] = {}
    for one, other in scenarios.apart:
        others.setdefault(one, []).append(scenarios.text(other))
    return [as_markdown(f"- \u201c{scenarios.text(one)}\u201d, and {_quoted(texts)}") for one, texts in others.items()]


def _quoted(texts: Sequence[str]) -> str:
    return "; or ".join(f"\u201c{text}\u201d" for text in texts)


def _excluded(one: Excluded, scenarios: ResultFile, paper: Paper) -> str:
    both = f"{_quoted([scenarios.text(one.claim)])}, and {_quoted([scenarios.text(one.other)])}"
    return as_markdown(f"- {both}, {why_excluded(one, scenarios.scenarios, paper.label)}")


def _made(scenarios: ResultFile) -> str:
    """Say how it was made: the command, its runs and what they took; less of what was kept in format 2."""
    if not scenarios.command:
        scale = [] if scenarios.scale == SCALES[0] else ["--scale", scenarios.scale]
        command = shlex.join(["weft", "multiverse", scenarios.paper, *scenarios.figures, *scale])
        return f"`{command}`; {scenarios.scale} scale"
    return (
        f"`{scenarios.command}`: {scenarios.runs:,} runs at {scenarios.scale} scale, {scenarios.cpu_min:g} CPU-minutes"
    )


def _answer(scenarios: ResultFile) -> str:
    """`of 12 claims 3 hold by default, 4 only under another interpretation, and 5 in none of 64 scenarios`."""
    groups = [_group(one) for one in scenarios.claims]
    by_default = groups.count(0)
    held = {0: "none holds", 1: "1 holds"}.get(by_default, f"{by_default} hold")
    parts = [f"of {len(groups)} claims {held} by default", f"{groups.count(1)} only under another interpretation"]
    if groups.count(2):
        parts.append(f"{groups.count(2)} in scenarios that are the default as far as seeds tell")
    return f"{', '.join(parts)}, and {groups.count(3)} in none of {scenarios.scenarios:,} scenarios"


def _group(claim: KeptClaim) -> int:
    """0: holds by default; 1: under another interpretation; 2: where nothing else is measured, by luck; 3: never."""
    if claim.default.verdict is Verdict.REPRODUCED:
        return 0
    if claim.nearest is None:
        return 3
    return 1 if claim.elsewhere else 2


def _row(claim: KeptClaim) -> str:
    sign = SIGNS[in_scenarios(claim.default.verdict, elsewhere=claim.elsewhere)]
    default = f"{claim.default.verdict}, {claim.default.measured}" if claim.default.measured else claim.default.verdict
    deciders = "; ".join(map(decider_words, claim.deciders[:_DECIDERS])) or "nothing that was tried"
    cells = (sign, f"{claim.text} (Fig. {claim.figure})", default, share_words(claim.share), deciders)
    return "| " + " | ".join(map(as_markdown, cells)) + " |"
