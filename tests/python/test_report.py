"""A report is one file, opens without a network, and lets no text out of its place."""

import json
import re
from html.parser import HTMLParser
from importlib import resources

import pytest
from jinja2 import UndefinedError

from factory import comparison, summary
from weft.report import render
from weft.report.page import render_template
from weft.summary import FCT_PARTS

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\u2028'\"{{ data }}"


class Page(HTMLParser):
    """Collects elements, text and the data block."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data = ""
        self._in_data = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_data = tag == "script" and dict(attrs).get("id") == "data"

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data
        else:
            self.text += data


def test_no_text_of_a_user_becomes_markup() -> None:
    def rendered(text: str) -> Page:
        runs = summary(text, 1, 5.0, scheme="rps"), summary("ecmp")
        return Page(render(comparison(*runs, command=text, spec=f"# {text}\n")))

    page, plain = rendered(EVIL), rendered("x")
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert page.text.count(EVIL) >= 4
    assert json.loads(page.data)["schemes"][0]["label"] == EVIL


def test_json_in_a_script_has_no_character_that_could_end_it() -> None:
    page = Page(render(comparison(summary(EVIL), command=EVIL)))
    assert not set("<>&'\u2028") & set(page.data)
    assert json.loads(page.data)["schemes"][0]["label"] == EVIL


def test_a_number_that_json_does_not_know_is_refused_and_not_written() -> None:
    values = dict.fromkeys(("title", "kind", "heading", "subtitle"), "x")
    with pytest.raises(ValueError, match="not JSON compliant"):
        render_template("results.html", **values, data={"mean": float("nan")}, scripts=())


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = Page(render(comparison(summary())))
    links = [attributes.get("src", attributes.get("href")) for _, attributes in page.tags]
    assert {link for link in links if link} == {"#content"}
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'")


def test_a_template_that_lacks_a_value_is_an_error_and_no_empty_place() -> None:
    with pytest.raises(UndefinedError, match="'title' is undefined"):
        render_template("base.html", heading="x", subtitle="x")


def test_no_template_switches_the_escaping_off() -> None:
    templates = list(resources.files("weft.report").joinpath("templates").iterdir())
    assert len(templates) >= 8
    for one in templates:
        assert not re.search(r"\|\s*safe|autoescape|Markup", one.read_text(encoding="utf-8")), one.name


def test_the_data_block_holds_every_curve() -> None:
    data = json.loads(Page(render(comparison(summary("ecmp"), summary("rps", 1, 50.0)))).data)
    assert [scheme["label"] for scheme in data["schemes"]] == ["ecmp", "rps"]
    assert data["sizes"] == ["all flows", "< 100 KB", "100 KB - 10 MB", "> 10 MB"]
    (point,) = data["points"]
    ecmp, rps = point["cells"]
    assert ecmp["curves"]["slowdown"][0] == [[1.0, 2.0, 4.0], [0.33333, 0.66667, 1.0]]
    assert ecmp["curves"]["fct"][0] == [[10.0, 20.0, 40.0], [0.33333, 0.66667, 1.0]]
    assert ecmp["curves"]["slowdown"][3] == [[], []]
    assert rps["fct"]["mean"][0] == [50.0, 50.0, 50.0]
    assert ecmp["waits"] == [1.0, 5.0, 2.0, 3.0]
    assert ecmp["bySize"] == [[2000.0, 2.3333, 2.0, 3.96]]


def test_the_bar_of_a_scheme_is_its_mean_completion_time_over_the_seeds() -> None:
    data = json.loads(Page(render(comparison(summary("ecmp", 1, 40.0), summary("ecmp", 2, 80.0)))).data)
    assert len(data["parts"]) == len(FCT_PARTS)
    (ecmp,) = data["points"][0]["cells"]
    assert ecmp["breakdown"][0] == [6.0] * len(FCT_PARTS)
    assert sum(ecmp["breakdown"][0]) == ecmp["fct"]["mean"][0][0] == 60.0
    assert ecmp["breakdown"][3] == [None] * len(FCT_PARTS), "no large flow"


def test_what_a_scheme_paid_is_a_share_of_all_bytes() -> None:
    data = json.loads(Page(render(comparison(summary("hula", own_bytes=20_000)))).data)
    assert data["points"][0]["cells"][0]["overhead"]["share"] == [2.0, 2.0, 2.0]


def test_ranges_of_sizes_that_a_spec_asked_for_can_be_chosen() -> None:
    page = Page(render(comparison(summary(sizes=["<b> 5"]))))
    data = json.loads(page.data)
    assert data["sizes"][4] == "<b> 5"
    assert data["points"][0]["cells"][0]["curves"]["fct"][4][0] == [10.0, 20.0, 40.0]


def test_a_run_in_which_no_flow_finished_is_reported_as_such() -> None:
    assert "No flow finished" in render(comparison(summary("ecmp", 1, None)))


def test_the_report_stays_small_enough_to_send() -> None:
    assert len(render(comparison(summary())).encode()) < 1_000_000


def test_ranges_of_sizes_have_tables_of_their_own_and_what_nobody_has_has_no_column() -> None:
    runs = [summary(label, 1, 5.0, sizes=["< 100 KB", "≥ 100 KB"]) for label in ("ecmp", "rps")]
    page = Page(render(comparison(*runs)))
    tables = [tag for tag, _ in page.tags if tag == "table"]
    # The summary, one for each range, two with more columns, and the reason's.
    assert len(tables) == 1 + 2 + 2 + 1
    assert "Flows of < 100 KB" in page.text and "resent after reordering" in page.text
    assert "missed deadlines" not in page.text
