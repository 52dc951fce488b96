"""Scorecards, the guide's parts and the report hold every claim, say what was run, and let no text out of its place."""

import json
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from papering import grid, paper
from test_paper_claims import GOOD, LOADS
from weft.drawing.figure import write
from weft.errors import OutputError
from weft.papers.declared import Paper, load_paper, paper_names
from weft.papers.drawing import draw
from weft.papers.guide import write_parts, write_summary
from weft.papers.measured import FigureData, RunsUsed
from weft.papers.scorecard import Scorecard, figure_verdicts, read_scorecard
from weft.papers.verdict_files import read_card
from weft.papers.verdicts import Verdict
from weft.report.paper import is_reproduction, render_papers, write_paper_report

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EVIL = "<script>alert(1)</script> a|b *c* `d` [e](f) <!--slot:data-->"

DECLARED = """
[paper]
name = "meet"
title = "A paper"
venue = "A venue"

[experiment.e]
preset = "meet-symmetric"
schemes = ["meet", "ecmp"]
vary = { "traffic.load" = [0.3, 0.6, 0.9] }
seeds = 10

[figure.6]
title = "TITLE"
place = "section 4"

[[figure.6.panel]]
title = "(a) Small flows"
experiment = "e"
plot = "lines"
x = "traffic.load"
measure = { metric = "mean_fct_us" }
y_label = "FCT"

[figure.7]
title = "Another one"

[[figure.7.panel]]
experiment = "e"
x = "traffic.load"
measure = { metric = "mean_fct_us" }

[figure.8]
title = "A photograph"
reason = "it is a photograph"
"""

CLAIMS = (
    GOOD
    + """
[[claim]]
id = "other"
text = "of another figure"
place = "section 5"
figure = "7"
rule = { kind = "zero", of = "meet" }

[[claim]]
id = "products"
text = "about products"
place = "section 1"
untestable = "no product is here"
"""
)


def declared(folder: Path, *, title: str = "What it shows", text: str = "small flows take 40 % less") -> Paper:
    """A paper with two figures, one of which is run, and one that cannot be made."""
    (folder / "meet.toml").write_text(DECLARED.replace("TITLE", title))
    (folder / "meet-claims.toml").write_text(CLAIMS.replace("small flows take 40 % less", text))
    return load_paper("meet", folder)


def run(
    one: Paper, directory: Path, *, ours: float = 60.0, scale: str = "quick", seeds: int = 3, oracle: bool = False
) -> Path:
    """A directory with figure 6, in which MEET takes so much and ECMP 100."""
    rows = grid(
        ["meet", "ecmp"], LOADS, lambda scheme, *_: ours if scheme == "meet" else 100.0, seeds=seeds,
        measure="mean_fct_us",
    )  # fmt: skip
    import polars as pl

    runs = RunsUsed(scale, 18, seeds=seeds, flows=(400,), points={"traffic.load": 3}, oracle=oracle)  # type: ignore[arg-type]
    data = FigureData(
        pl.DataFrame(rows, schema=FigureData.row_schema(), orient="row"),
        pl.DataFrame([], schema=FigureData.curve_schema()),
        runs,
    )
    folder = directory / "meet" / "6"
    folder.mkdir(parents=True)
    (directory / "reproduce.json").write_text("{}")
    (folder / "verdicts.json").write_text(json.dumps(figure_verdicts(one, one.figures["6"], data)))
    (folder / "data.csv").write_text(data.rows.write_csv())
    write(draw(one, one.figures["6"], data), folder)
    return directory


@pytest.fixture
def card(tmp_path: Path) -> Scorecard:
    one = declared(tmp_path)
    return read_scorecard(one, run(one, tmp_path / "out"))


def test_every_claim_has_a_verdict(card: Scorecard) -> None:
    assert [entry.verdict for entry in card.entries] == [Verdict.REPRODUCED, Verdict.NOT_RUN, Verdict.UNTESTABLE]
    assert all(part in card.summary() for part in ("3 claims", "1 reproduced", "1 not testable here", "1 not run"))
    assert card.entries[0].measured == "40 % ± 0"


def test_the_scorecard_says_what_was_run_and_how(card: Scorecard) -> None:
    assert card.commands == ["weft reproduce meet 6 --scale quick"]
    text = card.markdown()
    assert all(part in text for part in (*card.commands, "18 runs", "400 flows", "3 loads", "3 seeds"))


def test_markdown_has_a_row_for_each_claim_and_json_all_of_it(card: Scorecard) -> None:
    rows = [line for line in card.markdown().splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 3
    cells = [cell.strip() for cell in rows[1].replace("\u00a0", " ").split("|")]
    assert cells[1:5] == ["small flows take 40 % less", "section 4", "40 % ± 0", "✓ reproduced"]
    document = json.loads(card.json())
    assert [one["verdict"] for one in document["claims"]] == ["reproduced", "not run", "not testable here"]
    assert document["claims"][0]["measured"]["mean"] == pytest.approx(0.4)


def test_the_same_results_are_the_same_scorecard(tmp_path: Path) -> None:
    one = declared(tmp_path)
    cards = [read_scorecard(one, run(one, tmp_path / name)) for name in ("first", "second")]
    assert cards[0].markdown() == cards[1].markdown()
    assert cards[0].json() == cards[1].json()


def test_a_figure_is_taken_from_the_first_directory_that_has_it(tmp_path: Path) -> None:
    one = declared(tmp_path)
    paper_scale = run(one, tmp_path / "paper", ours=90.0, scale="paper", seeds=10)
    quick = run(one, tmp_path / "quick")
    assert read_scorecard(one, paper_scale, quick).entries[0].measured == "10.0 % ± 0"
    assert read_scorecard(one, quick, paper_scale).entries[0].measured == "40 % ± 0"
    assert read_scorecard(one, paper_scale, quick).commands == ["weft reproduce meet 6 --scale paper"]


def test_the_command_says_whether_a_perfect_balancer_was_there(tmp_path: Path) -> None:
    one = declared(tmp_path)
    bounded = run(one, tmp_path / "bounded", oracle=True)
    assert read_scorecard(one, bounded).commands == ["weft reproduce meet 6 --scale quick --oracle"]


def test_a_verdict_of_old_stays_with_the_words_of_today(tmp_path: Path) -> None:
    place = run(declared(tmp_path), tmp_path / "out")
    again = declared(tmp_path, text="in other words")
    assert "in other words" in read_scorecard(again, place).markdown()


def test_undecided_claims_are_counted(card: Scorecard) -> None:
    judged = msgspec.structs.replace(card.entries[0].judged, verdict=Verdict.UNDECIDED)
    open_one = replace(card.entries[0], judged=judged)
    assert "1 undecided" in replace(card, entries=[open_one]).summary()


def test_text_stays_in_its_cell(tmp_path: Path) -> None:
    one = declared(tmp_path)
    evil = replace(read_scorecard(one, run(one, tmp_path / "out")).entries[0].claim, text=EVIL)
    card = Scorecard(one, [replace(read_scorecard(one, tmp_path / "out").entries[0], claim=evil)], {})
    row = card.markdown().splitlines()[-1]
    assert row.count("|") - row.count("\\|") == 6
    assert "<script" not in row.replace("\\<", "")


def test_the_guide_shows_what_was_made_and_why_the_rest_was_not(tmp_path: Path) -> None:
    one = declared(tmp_path)
    place = run(one, tmp_path / "out")
    for _ in range(2):
        write_parts(one, [place], tmp_path / "guide")
    folder = tmp_path / "guide" / "meet"
    assert sorted(path.name for path in folder.iterdir()) == ["6.png", "figures.md", "scorecard.json", "scorecard.md"]
    text = (folder / "figures.md").read_text()
    sections = text.split("\n### ")
    made, not_run, not_made = (
        next(one for one in sections if title in one) for title in ("Fig. 6", "Fig. 7", "Fig. 8")
    )
    assert "6.png" in made and "section 4" in made and "1 reproduced" in made
    assert "Not run" in not_run and "png" not in not_run
    assert "it is a photograph" in not_made
    assert (folder / "6.png").stat().st_size < (place / "meet" / "6" / "figure.png").stat().st_size


def test_a_figure_that_is_not_run_again_stays_in_the_guide(tmp_path: Path) -> None:
    one = declared(tmp_path)
    write_parts(one, [run(one, tmp_path / "out")], tmp_path / "guide")
    folder = tmp_path / "guide" / "meet"
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    (tmp_path / "nothing" / "meet").mkdir(parents=True)
    write_parts(one, [tmp_path / "nothing"], tmp_path / "guide")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
    again = write_parts(one, [run(one, tmp_path / "again", ours=90.0, scale="paper")], tmp_path / "guide")
    assert again.entries[0].measured == "10.0 % ± 0"
    assert again.commands == ["weft reproduce meet 6 --scale paper"]


def test_a_picture_of_what_was_never_run_goes(tmp_path: Path) -> None:
    one = declared(tmp_path)
    folder = tmp_path / "guide" / "meet"
    folder.mkdir(parents=True)
    (folder / "7.png").touch()
    write_parts(one, [run(one, tmp_path / "out")], tmp_path / "guide")
    assert not (folder / "7.png").exists()


def test_the_guide_counts_the_verdicts_of_all_papers(tmp_path: Path) -> None:
    one = declared(tmp_path)
    (tmp_path / "tr-claims.toml").write_text(CLAIMS)
    for name, scale in (("meet", "paper"), ("tr", "quick")):
        write_parts(replace(one, name=name), [run(one, tmp_path / f"out-{name}", scale=scale)], tmp_path / "guide")
    (tmp_path / "guide" / "meet.md").touch()
    write_summary(tmp_path / "guide")
    rows = (tmp_path / "guide" / "summary.md").read_text().splitlines()
    head, meet, tr, every = ([cell.strip() for cell in rows[place].strip("|").split("|")] for place in (0, 2, 3, 4))
    counts = dict(zip(head, meet, strict=True))
    assert meet[0] == "[MEET](meet.md)" and counts["✓ reproduced"] == "1" and sum(map(int, meet[3:])) == 3
    assert (meet[1:3], tr[:3], every[:3]) == (["1 of 1", "3"], ["TR", "0 of 0", "3"], ["all", "1 of 1", "6"])


class Page(HTMLParser):
    """Collects elements and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.all_formats
def test_the_report_holds_scorecard_figures_and_links(tmp_path: Path) -> None:
    place = run(declared(tmp_path), tmp_path / "out")
    write_paper_report(place, place / "report.html", tmp_path)
    page = Page((place / "report.html").read_text())
    assert is_reproduction(place) and not is_reproduction(tmp_path)
    assert [dict(tag)["data-verdict"] for name, tag in page.tags if name == "tr" and tag] == [
        "reproduced",
        "not run",
        "not testable here",
    ]
    (picture,) = [tag for name, tag in page.tags if name == "img"]
    assert (picture["src"] or "").startswith("data:image/png;base64,")
    assert "What it shows" in (picture["alt"] or "")
    links = [tag["href"] for name, tag in page.tags if name == "a"]
    assert links == ["meet/6/data.csv", "meet/6/figure.pdf", "meet/6/figure.svg", "meet/6/verdicts.json"]
    assert all((place / link).is_file() for link in links if link)
    assert "it is a photograph" in page.text and "Not run" in page.text


def test_a_link_of_the_report_leads_to_its_file_whatever_the_directory_is_called(tmp_path: Path) -> None:
    run(declared(tmp_path), tmp_path / "out #1?")
    links = [
        tag["href"] for name, tag in Page(render_papers(tmp_path / "out #1?", tmp_path, tmp_path)).tags if name == "a"
    ]
    assert links[0] == "out%20%231%3F/meet/6/data.csv"


def test_the_report_needs_no_network_and_lets_no_text_become_markup(tmp_path: Path) -> None:
    plain = declared(tmp_path)
    place = run(plain, tmp_path / "out")
    tags = [name for name, _ in Page(render_papers(place, place, tmp_path)).tags]
    declared(tmp_path, title=EVIL, text=EVIL)
    page = Page(render_papers(place, place, tmp_path))
    assert [name for name, _ in page.tags] == tags
    assert page.text.count(EVIL) >= 2
    policy = next(tag["content"] for _, tag in page.tags if tag.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'")
    sources = [value for _, tag in page.tags for key, value in tag.items() if key == "src"]
    assert all((source or "").startswith("data:") for source in sources)


def spoiled(text: str, place: Sequence[str | int], value: Any) -> str:
    """JSON with another value at a place; with none, for None."""
    found = inner = json.loads(text)
    *way, last = place
    for step in way:
        inner = inner[step]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(found)


@pytest.mark.parametrize(("content", "said"), [("{}", "scale is missing"), ("{", "not valid JSON"), ("3", "Expected")])
def test_damaged_verdicts_are_answered_with_their_file(tmp_path: Path, content: str, said: str) -> None:
    one = declared(tmp_path)
    place = run(one, tmp_path / "out")
    (place / "meet" / "6" / "verdicts.json").write_text(content)
    with pytest.raises(OutputError, match=rf"verdicts\.json: {said}"):
        read_scorecard(one, place)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (["claims", 0, "sentence"], None, r"claims\[0\]\.sentence is missing"),
        (["claims", 0, "measured", "text"], None, r"claims\[0\]\.measured\.text is missing"),
        (["claims", 0, "verdict"], "splendid", r"claims\[0\]\.verdict: Invalid enum value 'splendid'"),
        (["unfinished"], None, "unfinished is missing"),
        (["seeds"], "3", "seeds: Expected `int`, got `str`"),
    ],
)
def test_a_key_that_a_verdict_lacks_is_named_and_not_made_up(
    tmp_path: Path, key: Sequence[str | int], value: Any, said: str
) -> None:
    one = declared(tmp_path)
    place = run(one, tmp_path / "out")
    file = place / "meet" / "6" / "verdicts.json"
    file.write_text(spoiled(file.read_text(), key, value))
    with pytest.raises(OutputError, match=rf"verdicts\.json: {said}"):
        read_scorecard(one, place)


@pytest.mark.parametrize("key", [["label"], ["counts"], ["figures", "6", "runs"]])
def test_a_sum_over_papers_names_the_key_that_a_scorecard_lacks(tmp_path: Path, key: Sequence[str]) -> None:
    one = declared(tmp_path)
    write_parts(one, [run(one, tmp_path / "out")], tmp_path / "guide")
    file = tmp_path / "guide" / "meet" / "scorecard.json"
    file.write_text(spoiled(file.read_text(), key, None))
    with pytest.raises(OutputError, match=rf"scorecard\.json: .*{key[-1]} is missing"):
        write_summary(tmp_path / "guide")


def test_the_scorecards_of_the_guide_can_be_read() -> None:
    cards = [read_card(path) for path in sorted((ROOT / "docs/papers").glob("*/scorecard.json"))]
    assert [card.paper for card in cards] == sorted(paper_names())
    assert all(sum(card.counts.values()) > 0 and card.figures for card in cards)


def test_a_directory_without_figures_is_answered(tmp_path: Path) -> None:
    declared(tmp_path)
    with pytest.raises(OutputError, match="holds no figure yet"):
        render_papers(tmp_path, tmp_path, tmp_path)


def test_a_paper_without_claims_has_an_empty_scorecard(tmp_path: Path) -> None:
    empty = read_scorecard(replace(paper({}), folder=tmp_path), tmp_path)
    assert empty.entries == [] and empty.markdown()
