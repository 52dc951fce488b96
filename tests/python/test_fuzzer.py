"""The fuzzer notices what it is there to notice, makes the same cases everywhere, and leaves out no parameter."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import polars as pl
import pytest

import weft
from conftest import SMALL
from fuzz.graphs import drawn_graph
from fuzz.relations import RELATIONS
from fuzz.shrinking import shrunk
from fuzz.specs import Case, Maker
from fuzz.tables import mistakes
from weft import _core
from weft.catalog import entries
from weft.simulation import Result
from weft.spec import to_toml

DAMAGES = {
    "finished_flows_are_delivered": ("flows", pl.col("delivered_bytes") - 1),
    "parts_of_a_time_add_up": ("flows", pl.col("fct_window_us") + 1.0),
    "a_packet_waits_no_longer_than_its_flow_takes": ("flows", pl.col("wait_leaf_us") + 1e9),
    "links_carry_no_more_than_they_can": ("samples", pl.col("utilisation") * 1000.0),
    "deliveries_are_payload_of_flows": ("deliveries", pl.col("payload_bytes") + 1),
    "the_summary_is_that_of_the_flows": ("flows", pl.col("retransmissions") + 1),
}


@pytest.fixture(scope="module")
def first_cases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Sequence[Case]]:
    """The first cases of all; each is made once for all tests, which takes some hundredths of a second."""
    maker = Maker(tmp_path_factory.mktemp("cases"))
    made: list[Case] = []

    def first(count: int) -> Sequence[Case]:
        made.extend(map(maker.case, range(len(made), count)))
        return made[:count]

    return first


def small_run() -> Result:
    return weft.run({}, set={**SMALL, "run.sample_every": "100us"})


def test_a_run_has_no_mistakes() -> None:
    result = small_run()
    assert mistakes(result, {"fabric": {}}) == []


SEVERAL = {
    **SMALL,
    "traffic.classes": {"short_below": "20KB", "transport": {"short": "quick", "long": "bulk"}},
    "transport": [{"label": "quick", "name": "dctcp"}, {"label": "bulk", "name": "expresspass"}],
}
SPEC_OF_SEVERAL = {"fabric": {}, "traffic": {"classes": SEVERAL["traffic.classes"]}, "transport": SEVERAL["transport"]}
SEVERAL_DAMAGED = {
    "a_flow_has_the_transport_that_the_spec_gives_it": [
        ("flows", {"transport": pl.lit("slow")}),
        ("flows", {"transport": pl.lit("quick")}),
    ],
    "each_transport_counts_what_it_does": [
        ("flows", {"marked_acks": pl.lit(1)}),
        ("scheme", {"value": pl.when(pl.col("name") == "credits_sent").then(1).otherwise(pl.col("value"))}),
    ],
}


def test_a_run_with_several_transports_has_no_mistakes() -> None:
    assert mistakes(weft.run({}, set=SEVERAL), SPEC_OF_SEVERAL) == []


@pytest.mark.parametrize("check", SEVERAL_DAMAGED)
def test_each_check_of_several_transports_notices_a_table_that_is_wrong(check: str) -> None:
    for table, damage in SEVERAL_DAMAGED[check]:
        result = weft.run({}, set=SEVERAL)
        result._frames[table] = getattr(result, table).with_columns(**damage)
        told = {told.split(":", 1)[0] for told in mistakes(result, SPEC_OF_SEVERAL)}
        assert check in told, (table, damage)


def test_a_transport_that_is_told_and_was_alone_is_a_mistake() -> None:
    result = small_run()
    result._frames["flows"] = result.flows.with_columns(transport=pl.lit("dctcp"))
    assert [told for told in mistakes(result, {"fabric": {}}) if "a column transport" in told]


@pytest.mark.nightly
def test_some_cases_have_several_transports_and_every_transport_is_among_them(
    first_cases: Callable[[int], Sequence[Case]],
) -> None:
    cases = [case.document["transport"] for case in first_cases(60)]
    several = [tables for tables in cases if isinstance(tables, list)]
    assert 0 < len(several) < len(cases)
    assert {table["name"] for tables in several for table in tables} == {entry.name for entry in weft.transports()}


@pytest.mark.parametrize("check", DAMAGES)
def test_each_check_notices_a_table_that_is_wrong(check: str) -> None:
    result = small_run()
    table, damage = DAMAGES[check]
    result._frames[table] = getattr(result, table).with_columns(damage)
    assert check in {told.split(":", 1)[0] for told in mistakes(result, {"fabric": {}})}


def test_a_relation_notices_another_run() -> None:
    document = {"run": {"seed": 1}, "fabric": {}, "traffic": {}}
    own = weft.run({}, set=SMALL)
    other = weft.run({}, set=SMALL, seed=2)
    for name in ("the_resolved_spec_gives_the_same_bytes_on_other_threads", "observation_changes_no_flow"):
        assert list(RELATIONS[name](own, document, lambda _: other)), name


@pytest.mark.nightly
def test_a_case_follows_from_its_number(tmp_path: Path) -> None:
    one, two = Maker(tmp_path / "a"), Maker(tmp_path / "b")
    assert [one.case(number).toml for number in range(40)] == [two.case(number).toml for number in range(40)]


@pytest.mark.nightly
def test_every_parameter_of_every_scheme_and_transport_is_drawn(
    first_cases: Callable[[int], Sequence[Case]],
) -> None:
    schema = json.loads(_core.schema())
    missing = {
        node["properties"]["name"]["const"]: set(node["properties"])
        for section in ("SchemeSpec", "TransportsSpec")
        # Last stands the list of several transports.
        for node in schema["$defs"][section]["oneOf"]
        if "properties" in node
    }
    for number in range(2_000):  # as many as `.ci/run` draws
        document = first_cases(number + 1)[number].document
        transport = document["transport"]
        for table in (document["scheme"], *(transport if isinstance(transport, list) else [transport])):
            missing[table["name"]] -= set(table)
        if not any(missing.values()):
            return
    raise AssertionError({name: keys for name, keys in missing.items() if keys})


@pytest.mark.nightly
def test_ports_of_several_classes_are_drawn_with_each_scheduler_and_every_key_of_a_class(
    first_cases: Callable[[int], Sequence[Case]],
) -> None:
    queues = [
        queue
        for case in first_cases(400)
        for name in ("switch_queue", "host_queue")
        if "class" in (queue := case.document["fabric"].get(name, {}))
    ]
    assert {queue["scheduler"] for queue in queues} == {"strict", "weighted"}
    known = set(json.loads(_core.schema())["$defs"]["ClassTable"]["properties"])
    assert {key for queue in queues for table in queue["class"] for key in table} == known


@pytest.mark.nightly
def test_schedules_rails_and_all_classes_of_flows_are_drawn(first_cases: Callable[[int], Sequence[Case]]) -> None:
    documents = [case.document for case in first_cases(400)]
    files = {schedule["file"] for one in documents if (schedule := one["traffic"].get("schedule"))}
    assert files == {"ring.goal", "ring.cm"}
    assert {one["fabric"]["kind"] for one in documents} == {entry.name for entry in entries("fabrics")}
    classes = {table.get("class") for one in documents for table in one["traffic"].get("incast", ())}
    names = json.loads(_core.schema())["$defs"]["ClassName"]["oneOf"]
    assert classes - {None} == {name["const"] for name in names}


def test_graphs_of_every_shape_are_drawn_and_hang_together() -> None:
    graphs = [drawn_graph(Random(number)) for number in range(400)]
    for graph in graphs:
        reached, behind = {"host0"}, ["host0"]
        while behind:
            near = behind.pop()
            ends = [(start, end) for start, end, *_ in graph.cables]
            found = {other for pair in ends if near in pair for other in pair} - reached
            reached |= found
            behind += found
        assert len(reached) == len(graph.hosts) + graph.switches, graph
    assert {graph.switches for graph in graphs} > {1, 2, 3}
    assert any(len(set(graph.hosts)) == graph.switches > 2 for graph in graphs), "all switches have hosts"
    assert any(list(graph.hosts) != sorted(graph.hosts) for graph in graphs)
    assert any(count > 1 for graph in graphs for _, _, count, *_ in graph.cables)


def test_the_fabric_of_some_cases_or_of_all_is_an_arbitrary_graph(tmp_path: Path) -> None:
    some, alone = Maker(tmp_path / "some"), Maker(tmp_path / "all", only_graphs=True)
    assert {some.case(number).graph is None for number in range(20)} == {True, False}
    for number in range(5):
        case = alone.case(number)
        [(name, text)] = case.files.items()
        assert (tmp_path / "all" / name).read_text(encoding="utf-8") == text
        assert case.document["fabric"]["file"] == name


def test_a_failure_is_made_as_small_as_what_fails() -> None:
    tweaks = [(("traffic", "flows"), 3), (("fabric", "fault"), [{"loss": 0.1, "at": "1us"}, {"down": True}])]
    case = Case({"traffic": {}, "fabric": {}}, tweaks)
    small = shrunk(case, lambda smaller: "down" in smaller.toml, seconds=5.0)
    assert small.toml == to_toml({"traffic": {}, "fabric": {"fault": [{"down": True}]}})
