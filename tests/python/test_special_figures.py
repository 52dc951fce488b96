"""Special figures of TR and QALL against values worked out by hand."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from weft.errors import SpecError
from weft.models import work_out
from weft.papers.declared import load_paper
from weft.papers.measured import RunsUsed
from weft.papers.runs import Case, Plan, cases_of_experiment
from weft.papers.scenarios import Scenario, in_scenario
from weft.papers.scorecard import figure_verdicts
from weft.papers.special import SpecialContext, tr_model
from weft.papers.special.qall_decision_delay import delays_us, set_age_us
from weft.papers.special.qall_load_sharing import sharing_by_slot
from weft.papers.special.qall_observations import classes
from weft.papers.special.qall_queue_variance import occupancy_variance
from weft.papers.special.scheme_costs import decision_ns
from weft.papers.special.tidy import figure_data
from weft.simulation import Result, run_text
from weft.spec import SpecText


class Hand:
    """Stands in for a result of which only these tables and numbers matter."""

    def __init__(self, **tables: Any) -> None:
        self.__dict__.update(tables)


def result(**tables: Any) -> Result:
    return cast("Result", Hand(**tables))


LINKS = pl.DataFrame(
    {
        "link": ["leaf0>spine0", "leaf0>spine1", "spine0>leaf0", "host0>leaf0"],
        "from": ["leaf0", "leaf0", "spine0", "host0"],
        "tier": ["leaf", "leaf", "spine", "host"],
        "buffer_bytes": [1_000, 1_000, 1_000, None],
        "packets": [30, 70, 90, 500],
    }
)
FLOWS = pl.DataFrame({"start_us": [0.0, 2.0]})


def sampled(rows: list[tuple[float, str, int, int]]) -> pl.DataFrame:
    schema = {"time_us": pl.Float64, "link": pl.String, "sent_bytes": pl.Int64, "backlog_bytes": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(rate_bps=10_000)


def test_the_variance_of_occupancy_counts_idle_queues_as_empty_and_stops_with_the_last_flow() -> None:
    samples = sampled(
        [
            (1.0, "leaf0>spine0", 5, 600),
            (2.0, "leaf0>spine0", 5, 0),
            (2.0, "host0>leaf0", 5, 900),  # no queue between switches
            (3.0, "leaf0>spine0", 5, 1_000),  # no flow arrives any more
        ]
    )
    # Three queues, two looks: 0.6 once and 0 five times.
    mean = 0.6 / 6
    expected = (0.36 / 6) - mean**2
    assert occupancy_variance(result(links=LINKS, samples=samples, flows=FLOWS)) == pytest.approx(expected)


def test_without_samples_there_is_no_variance_and_no_slot() -> None:
    nothing = result(links=LINKS, samples=sampled([]), flows=FLOWS)
    assert occupancy_variance(nothing) is None
    assert list(sharing_by_slot(nothing, 2.0)) == []


def test_a_slot_adds_up_its_intervals_and_needs_all_uplinks_and_a_full_length() -> None:
    flows = pl.DataFrame({"start_us": [0.0, 5.0]})
    samples = sampled(
        [
            (1.0, "leaf0>spine0", 100, 0),
            (1.0, "leaf0>spine1", 100, 0),
            (2.0, "leaf0>spine1", 50, 0),  # the slot to 2 us: 100 against 150
            (3.0, "leaf0>spine0", 100, 0),  # the slot to 4 us: one uplink is idle
            (5.0, "leaf0>spine0", 100, 0),  # the slot to 6 us: the last flow starts within
            (5.0, "leaf0>spine1", 100, 0),
        ]
    )
    ((time_us, accuracy),) = sharing_by_slot(result(links=LINKS, samples=samples, flows=flows), 2.0)
    assert time_us == 2.0 and accuracy == pytest.approx(0.5)


def test_a_leaf_with_one_uplink_shares_nothing_in_a_slot_of_the_figure() -> None:
    samples = sampled([(1.0, "leaf0>spine0", 100, 0), (1.0, "leaf0>spine1", 200, 0), (1.0, "leaf1>spine0", 100, 0)])
    single = pl.DataFrame([("leaf1>spine0", "leaf1", "leaf", 1_000, 30)], schema=LINKS.schema, orient="row")
    ((_, accuracy),) = sharing_by_slot(result(links=LINKS.vstack(single), samples=samples, flows=FLOWS), 1.0)
    assert accuracy == pytest.approx(1.0), "not the mean with a leaf that has no choice"


def test_a_decision_costs_the_time_beyond_ecmp_for_each_packet_that_leaves_a_rack() -> None:
    own = result(links=LINKS, summary=Hand(packet_hops=1_000, cpu_s=3e-6))
    base = result(links=LINKS, summary=Hand(packet_hops=500, cpu_s=1e-6))
    # 3 ns a hop against 2, a thousand hops, a hundred packets on uplinks.
    assert decision_ns(own, base) == pytest.approx(10.0)
    idle = result(links=LINKS.with_columns(packets=0), summary=Hand(packet_hops=1_000, cpu_s=3e-6))
    assert decision_ns(idle, base) is None


def test_delays_are_means_over_the_clones_and_the_informed_decisions() -> None:
    counters = {
        "clones": 5,
        "clones_lost": 1,
        "decision_delay_ns": 4_000,
        "decisions": 12,
        "uninformed_decisions": 2,
        "state_age_ns": 50_000,
    }
    known, age = delays_us(counters)
    assert known == pytest.approx(1.0) and age == pytest.approx(5.0)
    assert delays_us({"flowlets": 7}) == (None, None)


def test_drill_decides_by_lengths_as_old_as_qall_s_table_says() -> None:
    paper = load_paper("qall")
    late = Plan(in_scenario(paper), "quick")
    assert set_age_us(late.run(Case("delays", "drill", (), 1)).spec.text) == pytest.approx(621.0)
    at_once = Plan(in_scenario(paper, Scenario((("drill.age", "none"),))), "quick")
    assert set_age_us(at_once.run(Case("delays", "drill", (), 1)).spec.text) == 0.0


def test_classes_hold_what_is_up_to_their_end_and_need_enough_of_it() -> None:
    of = np.array([0.1] * 20 + [0.9] * 19 + [0.11] * 20)
    traffic = np.array([0.2] * 20 + [0.9] * 19 + [0.4] * 10 + [0.6] * 10)
    found = classes(of, traffic, (0.1, 0.5, 1.0))
    assert [end for end, _ in found] == [0.1, 0.5]
    assert [statistics["mean"] for _, statistics in found] == pytest.approx([0.2, 0.5])
    assert found[1][1]["5th percentile"] == pytest.approx(0.4)
    assert found[1][1]["95th percentile"] == pytest.approx(0.6)


def test_a_special_figure_tells_the_unit_of_each_of_its_panels() -> None:
    paper = load_paper("qall")
    rows = [
        (panel, "qall", "", None, seed, name, 0.02) for panel, name in ((1, "mean"), (2, "largest")) for seed in (1, 2)
    ]
    found = figure_verdicts(paper, paper.figure("15"), figure_data(rows, RunsUsed("quick", runs=2, seeds=2)))
    units = {claim["id"]: claim["measured"]["unit"] for claim in found["claims"] if claim["measured"]}
    assert (units["sharing-qall-pkt"], units["sharing-5"]) == ("share", "share")


def test_every_flow_of_tr_s_figure_6_starts_at_once_between_counterparts() -> None:
    rows = tr_model.trace(tr_model.Point(20, 100)).splitlines()[1:]
    assert len(rows) == 20 and len(set(rows)) == 10
    assert rows[13] == "0,3,13,100000"


def test_or_between_hosts_of_both_groups_that_are_drawn() -> None:
    """As in the random traffic of its scenario: one of the first ten sends to one of the others, not all as much."""
    rows = tr_model.trace(tr_model.Point(100, 300), Random("1")).splitlines()[1:]
    ends = [tuple(map(int, row.split(",")[1:3])) for row in rows]
    assert len(ends) == 100 and all(src < 10 <= dst < 20 for src, dst in ends)
    assert len(set(ends)) > 50 and max(Counter(src for src, _ in ends).values()) > 10
    assert rows == tr_model.trace(tr_model.Point(100, 300), Random("1")).splitlines()[1:]


OFF = ((0, "tr", "simulation"), (0, "tr", "model"), (4, "tr", "off"))


def test_tr_s_figure_6_has_model_and_simulation_of_every_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tr_model, "PANELS", {"size": (tr_model.Point(10, 100),), "flows": (tr_model.Point(10, 100),)})

    def keep(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    def simulate(specs: Sequence[SpecText], tables: Iterable[str]) -> list[Result | None]:
        return [run_text(spec) for spec in specs]

    paper, runs = load_paper("tr"), RunsUsed("quick", runs=0)
    plan, places = Plan(paper, "quick"), cases_of_experiment(paper.experiments["model"].at("quick"))
    context = SpecialContext(
        paper,
        paper.figure("6"),
        "quick",
        1,
        {},
        lambda _: None,
        runs=runs,
        set_ups={"model": list(places)},
        spec=lambda case: plan.run(case).spec,
        simulate=simulate,
        keep=keep,
    )
    made = tr_model.make(context)
    keys = ("panel", "variant", "measure")
    found = {key: rows["value"].to_list() for key, rows in made.rows.group_by(*keys)}
    assert found[0, "rps", "model"] == [work_out("tr", {"flows": 10, "size": "100KB"}).value("rps_time")] * 3
    # A flow alone on its host's link: 100 KB in 69 packets of 12 us, and at least one way over a good path.
    assert all(value > 69 * 12 + 100 for value in found[0, "rps", "simulation"] + found[0, "tr", "simulation"])
    # What TR is for: between two leaves nothing is sent again.
    assert set(found[2, "tr", "resent, simulation"]) == {0.0} and min(found[2, "rps", "resent, simulation"]) > 0.0
    for one, other, off in zip(*(found[key] for key in OFF), strict=True):
        assert off == pytest.approx(max(one / other, other / one))
    assert found[1, "tr", "simulation"] == found[0, "tr", "simulation"], "the same point on the other axis"
    assert tr_model.draw(paper, paper.figure("6"), made, "").axes

    figure = paper.figure("6")
    drawn = tr_model.make(replace(context, figure=replace(figure, options={"pairing": "random"})))
    assert drawn.rows.filter(measure="simulation").height == made.rows.filter(measure="simulation").height
    assert not drawn.rows.equals(made.rows)
    assert {path.name for path in tmp_path.glob("random-*")} == {
        f"random-10-flows-of-100-kb-seed-{seed}.csv" for seed in (1, 2, 3)
    }
    with pytest.raises(SpecError, match="did you mean 'random'"):
        tr_model.make(replace(context, figure=replace(figure, options={"pairing": "rendom"})))
