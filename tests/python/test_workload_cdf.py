"""The shares of flows and bytes of a distribution, by hand and against those that the core works out."""

from pathlib import Path

import pytest

from weft.catalog import Entry, entry, workloads
from weft.errors import SpecError
from weft.papers.declared import FigureSpec, load_paper
from weft.papers.measured import RunsUsed
from weft.papers.special import SpecialContext
from weft.papers.special.workload_cdf import byte_share_above, flow_share_up_to, make
from weft.spec import SpecText

KNOTS = [(0.0, 0.0), (100.0, 0.5), (100.0, 0.75), (300.0, 1.0)]
"""Half of the flows have up to 100 bytes, a quarter exactly 100, a quarter 100 to 300: of the mean 25, 25 and 50."""


def context(**options: object) -> SpecialContext:
    figure = FigureSpec("meet", "5", "sizes", special="workload-cdf", options=options)
    return SpecialContext(
        load_paper("meet"),
        figure,
        "quick",
        1,
        {},
        lambda _: None,
        runs=RunsUsed("quick", runs=0),
        set_ups={},
        spec=lambda _: SpecText(""),
        simulate=lambda _, __: [],
        keep=lambda name, _: Path(name),
    )


@pytest.mark.parametrize(("size", "share"), [(0.0, 0.0), (50.0, 0.25), (99.0, 0.495), (100.0, 0.75), (200.0, 0.875)])
def test_an_atom_belongs_to_the_flows_up_to_its_size(size: float, share: float) -> None:
    assert flow_share_up_to(KNOTS, size) == pytest.approx(share)
    assert flow_share_up_to(KNOTS, 1e9) == 1.0


@pytest.mark.parametrize(("size", "share"), [(0.0, 1.0), (50.0, 0.9375), (100.0, 0.5), (200.0, 0.3125), (300.0, 0.0)])
def test_bytes_above_a_size_leave_out_the_atom_at_it(size: float, share: float) -> None:
    assert byte_share_above(KNOTS, size) == pytest.approx(share)


@pytest.mark.parametrize("workload", workloads(), ids=lambda one: str(one.name))
def test_shares_agree_with_the_cores(workload: Entry) -> None:
    knots = workload.raw["knots"]
    assert flow_share_up_to(knots, 1e5) == pytest.approx(workload.raw["share_of_flows_up_to_100_kb"])
    assert byte_share_above(knots, 1e6) == pytest.approx(workload.raw["share_of_bytes_above_1_mb"], abs=1e-12)


def test_curves_rise_to_one_and_ranges_add_up() -> None:
    data = make(context(workloads=["web-search", "data-mining", "enterprise-meet"], bins="maxpass"))
    for (name,), curve in data.curves.group_by("variant", maintain_order=True):
        values, shares = curve.get_column("value"), curve.get_column("share")
        assert values.is_sorted() and shares.is_sorted(), name
        assert values[0] >= 1.0 and shares[-1] == pytest.approx(1.0)
        rows = data.rows.filter(variant=name)
        for kind in ("flows ", "bytes "):
            ranges = rows.filter(rows.get_column("measure").str.starts_with(kind))
            assert ranges.height == 4 and ranges.get_column("value").sum() == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{}, {"workloads": "web-search"}, {"workloads": []}])
def test_a_list_of_workloads_is_asked_for(options: dict[str, object]) -> None:
    with pytest.raises(SpecError, match=r"options\.workloads: expected a list"):
        make(context(**options))


def test_an_unknown_workload_is_answered_with_the_nearest() -> None:
    with pytest.raises(SpecError, match="web-search"):
        make(context(workloads=["web-serch"], bins="maxpass"))


def test_ranges_are_those_of_the_core_and_their_bounds_belong_to_one_range_alone() -> None:
    data = make(context(workloads=["web-search"], bins="tr"))
    shares = dict(
        data.rows.filter(data.rows.get_column("measure") != "mean size (bytes)").select("measure", "value").rows()
    )
    knots = entry("workloads", "web-search").raw["knots"]
    names = entry("bins", "tr").raw["ranges"].split(", ")
    assert list(shares) == [f"{kind} {name}" for kind in ("flows", "bytes") for name in names]
    assert shares["flows ≤ 100 KB"] == pytest.approx(flow_share_up_to(knots, 1e5))
    assert shares["bytes > 1 MB"] == pytest.approx(byte_share_above(knots, 1e6))


@pytest.mark.parametrize(
    ("bins", "said"), [(None, "expected the name"), (["0-1"], "expected the name"), ("trr", "'tr'")]
)
def test_a_set_of_ranges_is_asked_for_by_name(bins: object, said: str) -> None:
    options = {} if bins is None else {"bins": bins}
    with pytest.raises(SpecError, match=said):
        make(context(workloads=["web-search"], **options))
