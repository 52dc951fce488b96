"""The Python interface, on the real core."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

import weft
from weft.runs.progress import RunProgress


def test_a_run_gives_typed_statistics_and_tables(small: dict[str, int]) -> None:
    result = weft.run({"scheme": {"name": "letflow"}}, set=small, seed=3)
    assert (result.summary.scheme, result.summary.seed, result.summary.flows) == ("letflow", 3, 60)
    assert result.flows.height == 60
    assert result.flows.schema["size_bytes"] == pl.UInt64
    assert result.flows["fct_us"].mean() == pytest.approx(result.summary.fct_us.mean)
    assert result.flows["slowdown"].min() >= 1.0  # type: ignore[operator]
    assert set(result.links["tier"].unique()) == {"host", "leaf", "spine", "last"}
    assert result.scheme.columns == ["name", "value"]


def test_the_summary_is_what_the_flows_say(small: dict[str, int]) -> None:
    result = weft.run("", set=small | {"traffic.flows": 400})
    size = pl.col("size_bytes")
    bins = {"small": size < 100_000, "medium": (size >= 100_000) & (size <= 10_000_000), "large": size > 10_000_000}
    for name, wanted in bins.items():
        flows = result.flows.filter(wanted)
        found = result.summary.bins[name]  # type: ignore[index]
        assert found.flows == flows.height
        if flows.height:
            assert found.fct_us.mean == pytest.approx(flows["fct_us"].mean())
            assert found.fct_us.p99 == pytest.approx(flows["fct_us"].quantile(0.99, "linear"))
            assert found.slowdown.p50 == pytest.approx(flows["slowdown"].quantile(0.5, "linear"))


def test_what_the_summary_says_of_packets_and_throughput_is_what_the_flows_say(small: dict[str, int]) -> None:
    shape = small | {"traffic.flows": 200, "fabric.switch_queue.buffer": "30KB", "scheme.name": "rps"}
    result = weft.run("", set=shape | {"run.bins": "lbt", "run.paths_of": "100KB", "traffic.deadlines.mean": "2ms"})
    for place, wanted in enumerate([pl.col("size_bytes") < 100_000, pl.col("size_bytes") >= 100_000]):
        flows, found = result.flows.filter(wanted), result.summary.size_bins[place]
        assert found.flows == flows.height > 0
        assert (flows["goodput_mbps"] - flows["size_bytes"] * 8.0 / flows["fct_us"]).abs().max() < 1e-6  # type: ignore[operator]
        assert found.goodput_mbps.sum == pytest.approx(flows["goodput_mbps"].sum())
        assert found.goodput_mbps.p25 == pytest.approx(flows["goodput_mbps"].quantile(0.25, "linear"))
        waits = flows.select(pl.sum_horizontal(pl.sum("wait_leaf_us", "wait_spine_us", "wait_last_us"))).item()
        assert found.queueing_us == pytest.approx(waits / flows["segments_received"].sum())
        assert found.duplicate_acks.three_or_more == pytest.approx((flows["duplicate_acks"] >= 3).mean())
        reasons = ["after_loss", "after_reordering", "after_timeout"]
        counts = [flows[f"retransmissions_{reason}"].sum() for reason in reasons]
        assert [getattr(found.resent, reason) for reason in reasons] == counts
        assert sum(counts) == flows["retransmissions"].sum()
        missed = (flows["fct_us"] > flows["deadline_us"]).mean()
        assert found.missed_deadlines_share == pytest.approx(missed)
    long = result.flows.filter(pl.col("size_bytes") >= 100_000)
    carried = result.paths["carried_bytes"].sum()
    most = (long["segments_received"] * 1_460).sum()
    assert long["delivered_bytes"].sum() <= carried <= most, "duplicates were carried, too"
    deviations = result.paths.group_by("src_rack", "dst_rack").agg(pl.col("throughput_mbps").std(ddof=0))
    assert result.summary.paths is not None
    assert result.summary.paths.sd_mbps == pytest.approx(deviations["throughput_mbps"].mean())


def test_a_run_is_drawn_in_words(small: dict[str, int]) -> None:
    result = weft.run(set=small)
    figure = result.plot("mean FCT by size")
    assert figure.axes[0].get_ylabel().startswith("mean FCT (")
    (bar, *_) = figure.axes[0].patches
    unit = 1_000.0 if "(ms)" in figure.axes[0].get_ylabel() else 1.0
    mean = result.summary.bins["small"].fct_us.mean
    assert mean is not None and bar.get_height() * unit == pytest.approx(mean)  # type: ignore[attr-defined]
    with pytest.raises(weft.SpecError, match="did you mean 'mean FCT'"):
        result.plot("mean FTC by size")


def test_written_results_are_read_back_the_same(small: dict[str, int], tmp_path: Path) -> None:
    result = weft.run("", set=small)
    result.write(tmp_path / "out")
    again = weft.load(tmp_path / "out")
    assert again.summary == result.summary
    assert again.flows.equals(result.flows)
    with pytest.raises(weft.OutputError, match="exists already"):
        result.write(tmp_path / "out")


def test_every_scheme_sees_the_same_flows(small: dict[str, int]) -> None:
    comparison = weft.compare(["ecmp", "rps", "letflow"], set=small, seeds=[4, 9], jobs=2)
    columns = ["id", "src", "dst", "size_bytes", "start_us"]
    groups = list(comparison.groups.values())
    for runs in groups[1:]:
        for run, first in zip(runs, groups[0], strict=True):
            assert run.flows.select(columns).equals(first.flows.select(columns))
    assert not groups[0][0].flows.select(columns).equals(groups[0][1].flows.select(columns))


def test_results_do_not_depend_on_the_number_of_jobs(small: dict[str, int]) -> None:
    tables = [weft.compare(["ecmp", "drill"], set=small, seeds=2, jobs=jobs).table for jobs in (1, 4)]
    assert tables[0].equals(tables[1])


def test_a_comparison_survives_its_directory(small: dict[str, int], tmp_path: Path) -> None:
    comparison = weft.compare(["ecmp", "letflow:gap=50us"], set=small, seeds=2, out=tmp_path / "out")
    assert list(comparison.groups) == ["ecmp", "letflow:gap=50us"]
    again = weft.load_comparison(tmp_path / "out")
    assert again.table.equals(comparison.table)
    assert pl.read_parquet(tmp_path / "out" / "table.parquet").equals(comparison.table)
    assert again.table.columns[:3] == ["scheme", "seeds", "mean_fct_us"]


def test_a_bad_spec_stops_before_anything_runs(small: dict[str, int], tmp_path: Path) -> None:
    seen: list[RunProgress] = []
    with pytest.raises(weft.SpecError, match="gapp"):
        weft.compare(["ecmp", "letflow:gapp=1us"], set=small, out=tmp_path / "out", progress=seen.append)
    assert seen == [] and list(tmp_path.iterdir()) == []


def test_progress_ends_with_every_run_done(small: dict[str, int]) -> None:
    seen: list[RunProgress] = []
    weft.compare(["ecmp", "rps"], set=small, progress=seen.append)
    done = {state.label: state for state in seen if state.done}
    assert set(done) == {"ecmp", "rps"}
    assert all(state.packet_hops > 0 and state.flows_total == 60 for state in done.values())


class FirstPort(weft.SwitchChooser):
    """Always the first port; counts what it is asked."""

    asked = 0

    def choose(self, switch: int, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        FirstPort.asked += 1
        assert packet.size_bytes > 0 and packet.src != packet.dst
        assert len(ports) == 2 and all(port.rate_bps > 0 and port.backlog_bytes >= 0 for port in ports)
        return 0


def test_a_scheme_written_in_python_decides(small: dict[str, int]) -> None:
    FirstPort.asked = 0
    result = weft.run("", set=small, scheme=FirstPort())
    assert FirstPort.asked > 0
    uplinks = result.links.filter(pl.col("tier") == "leaf")
    by_spine = dict(uplinks.group_by("to").agg(pl.col("packets").sum()).sort("packets").iter_rows())
    assert len(by_spine) == 2
    assert min(by_spine.values()) == 0 < max(by_spine.values())


def test_a_scheme_written_in_python_can_be_compared(small: dict[str, int]) -> None:
    comparison = weft.compare(["ecmp", FirstPort], set=small)
    assert list(comparison.groups) == ["ecmp", "FirstPort"]


class Wrong(weft.SwitchChooser):
    """Makes a mistake of its author's."""

    def choose(self, switch: int, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        raise ZeroDivisionError("my own mistake")


def test_a_mistake_in_a_python_scheme_reaches_its_author(small: dict[str, int]) -> None:
    with pytest.raises(ZeroDivisionError, match="my own mistake"):
        weft.run("", set=small, scheme=Wrong())


class OutOfRange(weft.SwitchChooser):
    """Names a port that is not there."""

    def choose(self, switch: int, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        return len(ports)


def test_a_port_that_is_not_there_is_an_error_not_a_crash(small: dict[str, int]) -> None:
    with pytest.raises((IndexError, ValueError, weft.SpecError)):
        weft.run("", set=small, scheme=OutOfRange())


def test_an_error_in_the_progress_callback_ends_the_run(small: dict[str, int]) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        weft.run("", set=small | {"traffic.flows": 2_000_000}, progress=refuse)


def test_the_catalog_describes_parameters() -> None:
    letflow = next(scheme for scheme in weft.schemes() if scheme.name == "letflow")
    gap = next(parameter for parameter in letflow.parameters if parameter.key == "gap")
    assert gap.doc and gap.default
    assert {"dctcp"} <= {transport.name for transport in weft.transports()}
    assert {"web-search"} <= {workload.name for workload in weft.workloads()}
    assert {"leaf-spine"} <= {fabric.name for fabric in weft.fabrics()}


def test_the_gaps_of_a_flow_make_its_flowlets(small: dict[str, int]) -> None:
    from weft.gaps import measure

    found = measure(["dctcp+ecmp", "tcp+ecmp"], set=small)
    flows = weft.run("", set=small).flows
    own = found.packets.filter(pl.col("variant") == "dctcp+ecmp")
    assert own.height == flows["segments_sent"].sum(), "each data packet once"
    assert own["gap_us"].is_null().sum() == flows.height, "only the first has none"
    assert (own["gap_us"].drop_nulls() > 0).all()
    table = found.table.filter(pl.col("variant") == "dctcp+ecmp")
    assert table["flowlets"].is_sorted(descending=True), "a longer gap begins fewer flowlets"
    assert (table["flowlets"] >= flows.height).all()
    assert (table["mean_flowlet_bytes"] * table["flowlets"]).round().unique().len() == 1, "the same bytes"
    assert found.plot().axes
