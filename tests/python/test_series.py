"""Statistics over time, beside values worked out by hand, and conservation in whole runs."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import weft
from weft.paths import shortest_paths
from weft.series import Series

TRAFFIC = {"workload": "web-search", "load": 0.5, "flows": 60}
GIGABIT = 1_000_000_000
# At 1 Gbit/s, 12,500 bytes fill an interval of 100 us.
FULL = 12_500

LINKS = pl.DataFrame(
    [
        ("host0>leaf0", "host0", "leaf0", "host"),
        ("leaf0>spine0", "leaf0", "spine0", "leaf"),
        ("leaf0>spine1", "leaf0", "spine1", "leaf"),
        ("spine0>leaf1", "spine0", "leaf1", "spine"),
        ("spine1>leaf1", "spine1", "leaf1", "spine"),
        ("leaf0>host0", "leaf0", "host0", "last"),
        ("leaf1>host1", "leaf1", "host1", "last"),
    ],
    schema=["link", "from", "to", "tier"],
    orient="row",
).with_columns(rate_bps=pl.lit(GIGABIT, dtype=pl.UInt64), buffer_bytes=pl.lit(100_000, dtype=pl.UInt64))

SAMPLE = {"time_us": pl.Float64, "link": pl.String, "sent_bytes": pl.UInt64, "backlog_bytes": pl.UInt64}
Row = tuple[float, str, int, int]
"""End of the interval, link, bytes sent, backlog."""


def series(*rows: Row, end_us: float = 400.0, deliveries: list[dict[str, Any]] | None = None) -> Series:
    samples = pl.DataFrame(rows, schema=SAMPLE, orient="row")
    samples = samples.join(LINKS.select("link", "tier", "rate_bps"), on="link", how="left").with_columns(
        interval_us=pl.col("time_us") - ((pl.col("time_us") / 100.0).ceil() - 1) * 100.0,
        utilisation=pl.lit(None, dtype=pl.Float64),
        largest_backlog_bytes=pl.col("backlog_bytes") + 10,
        dropped_packets=pl.lit(1),
        marked_packets=pl.lit(2),
    )
    kinds = {"time_us": pl.Float64, "interval_us": pl.Float64, "host": pl.UInt16, "class": pl.String}
    schema = {**kinds, "background": pl.Boolean, "payload_bytes": pl.UInt64}
    return Series(samples, pl.DataFrame(deliveries or [], schema=schema), LINKS, 100.0, end_us)


def test_the_last_interval_ends_with_the_run() -> None:
    assert series(end_us=250.0).intervals.rows() == [(1, 100.0, 100.0), (2, 200.0, 100.0), (3, 250.0, 50.0)]
    assert series(end_us=300.0).intervals.height == 3


def test_a_link_without_a_row_was_idle() -> None:
    uplink = series((200.0, "leaf0>spine0", FULL, 5)).links("leaf").filter(pl.col("link") == "leaf0>spine0")
    assert uplink["utilisation"].to_list() == [0.0, 1.0, 0.0, 0.0]
    assert uplink["throughput_gbps"].to_list() == [0.0, 1.0, 0.0, 0.0]
    assert uplink["backlog_bytes"].to_list() == [0, 5, 0, 0]


def test_a_short_last_interval_can_be_full() -> None:
    cut = series((150.0, "leaf0>spine0", FULL // 2, 0), end_us=150.0).links("leaf")
    assert cut.filter(pl.col("link") == "leaf0>spine0")["utilisation"].to_list() == [0.0, 1.0]


def test_longer_intervals_have_the_mean_of_rates_that_a_fault_changed() -> None:
    full = series((100.0, "leaf0>spine0", FULL, 0), (200.0, "leaf0>spine0", FULL // 5, 0))
    rates = pl.Series([GIGABIT, GIGABIT // 5], dtype=pl.UInt64)
    longer = Series(full.samples.with_columns(rate_bps=rates), *list(vars(full).values())[1:5]).coarser(200.0)
    assert longer.samples["rate_bps"].to_list() == [GIGABIT * 3 // 5]
    assert longer.samples["utilisation"].to_list() == [1.0]


def test_pauses_add_up_by_tier_and_over_longer_intervals() -> None:
    one = series((100.0, "host0>leaf0", 0, 0), (200.0, "host0>leaf0", FULL, 5), (200.0, "leaf0>spine0", 1, 0))
    paused = Series(one.samples.with_columns(paused_us=pl.Series([100.0, 20.0, 50.0])), *list(vars(one).values())[1:5])
    hosts = paused.pauses().filter(pl.col("tier") == "host")
    assert hosts["paused_us"].to_list() == [100.0, 20.0, 0.0, 0.0]
    assert hosts["paused_links"].to_list() == [1.0, 0.2, 0.0, 0.0]
    coarse = paused.coarser(200.0).pauses()
    assert coarse.filter(pl.col("tier") == "host")["paused_us"].to_list() == [120.0, 0.0]
    assert coarse.filter(pl.col("tier") == "leaf")["paused_links"].to_list() == [0.25, 0.0]
    assert one.pauses()["paused_us"].to_list() == [0.0] * 16, "a run without lossless classes has no such column"


def test_utilisation_of_a_tier_is_bytes_over_capacity() -> None:
    tiers = series((100.0, "leaf0>spine0", FULL, 0), (100.0, "leaf0>spine1", FULL // 2, 0)).tiers()
    first = tiers.filter((pl.col("tier") == "leaf") & (pl.col("time_us") == 100.0)).row(0, named=True)
    assert (first["utilisation"], first["utilisation_min"], first["utilisation_max"]) == (0.75, 0.5, 1.0)


def test_a_path_has_the_mean_the_least_and_the_most_of_its_links() -> None:
    run = series((100.0, "leaf0>spine0", FULL, 0), (100.0, "spine0>leaf1", FULL // 2, 0), end_us=100.0)
    paths = run.paths("leaf0", "leaf1").select("path", "utilisation_mean", "utilisation_min", "utilisation_max")
    assert paths.rows() == [
        ("leaf0>spine0 spine0>leaf1", 0.75, 0.5, 1.0),
        ("leaf0>spine1 spine1>leaf1", 0.0, 0.0, 0.0),
    ]


def test_a_load_that_is_split_evenly_has_no_spread_and_one_on_a_single_uplink_all() -> None:
    run = series(
        *((100.0, link, FULL // 2, 0) for link in ("leaf0>spine0", "leaf0>spine1")),
        (200.0, "leaf0>spine0", FULL, 0),
    )
    even, single, idle, _ = run.uplinks().drop("time_us", "interval_us", "leaf").rows(named=True)
    assert (even["utilisation_mean"], even["utilisation_std"], even["imbalance"], even["spread"]) == (0.5, 0, 0, 0)
    # Of 1 and 0 the mean is 1/2, and so is the standard deviation; max / mean - 1 = 1, (max - min) / mean = 2.
    assert (single["utilisation_std"], single["throughput_std_gbps"]) == (0.5, 0.5)
    assert (single["imbalance"], single["spread"]) == (1.0, 2.0)
    assert (idle["imbalance"], idle["spread"]) == (None, None)
    # Over 400 us: std 0.5 in one interval of four; imbalance 0 and 1, with equal traffic.
    found = run.statistics()
    assert found["uplink_utilisation"] == pytest.approx(0.25)
    assert found["uplink_std"] == pytest.approx(0.125)
    assert found["uplink_imbalance"] == pytest.approx(0.5)


def test_a_constant_queue_has_no_variance() -> None:
    run = series(*((time, "leaf0>spine0", 0, 20_000) for time in (100.0, 200.0, 250.0)), end_us=250.0)
    queue = run.queues().filter(pl.col("link") == "leaf0>spine0").row(0, named=True)
    assert queue["backlog_mean_bytes"] == pytest.approx(20_000.0)
    assert queue["backlog_variance_bytes2"] == pytest.approx(0.0, abs=1e-3)
    assert queue["occupancy_mean"] == pytest.approx(0.2)
    assert queue["largest_backlog_bytes"] == 20_010


def test_the_variance_over_queues_is_that_of_all_their_backlogs_together() -> None:
    # Backlogs of one uplink 40, 0, 0, 0 KB and of the other 0, 0, 0, 80 KB; of 100 KB.
    run = series((100.0, "leaf0>spine0", 0, 40_000), (400.0, "leaf0>spine1", 0, 80_000))
    shares = pl.Series([0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.8])
    tier = run.queue_tiers().filter(pl.col("tier") == "leaf").row(0, named=True)
    assert tier["occupancy_mean"] == pytest.approx(shares.mean())
    assert tier["occupancy_variance"] == pytest.approx(shares.var(ddof=0))
    assert tier["backlog_variance_bytes2"] == pytest.approx((shares * 1e5).var(ddof=0))
    assert run.statistics()["uplink_occupancy_variance"] == pytest.approx(shares.var(ddof=0))


def test_a_queue_without_a_limit_has_no_occupancy() -> None:
    run = series((100.0, "leaf0>spine0", 0, 40_000))
    unlimited = LINKS.with_columns(buffer_bytes=pl.lit(None, dtype=pl.UInt64))
    queues = Series(run.samples, run.deliveries, unlimited, 100.0, 400.0).queues()
    assert queues["occupancy_mean"].null_count() == queues.height
    assert queues["backlog_mean_bytes"].sum() == pytest.approx(10_000.0)


def test_longer_intervals_keep_sums_and_the_backlog_at_their_ends() -> None:
    rows = [(100.0, FULL, 9), (200.0, FULL, 7), (300.0, 5_000, 3), (450.0, 600, 2)]
    run = series(*((time, "leaf0>spine0", sent, held) for time, sent, held in rows), end_us=450.0)
    longer = run.coarser(150.0)
    assert longer.interval_us == 200.0
    columns = ("time_us", "interval_us", "sent_bytes", "backlog_bytes", "largest_backlog_bytes", "dropped_packets")
    assert longer.samples.select(columns).rows() == [
        (200.0, 200.0, 2 * FULL, 7, 19, 2),
        (400.0, 200.0, 5_000, 0, 13, 1),
        (450.0, 50.0, 600, 2, 12, 1),
    ]
    assert longer.samples["utilisation"][0] == 1.0


def test_throughput_is_payload_over_time_by_receiver_and_kind() -> None:
    got = {"interval_us": 100.0, "class": "unknown", "background": False}
    rows = [
        {**got, "time_us": 100.0, "host": 0, "payload_bytes": 12_500},
        {**got, "time_us": 300.0, "host": 1, "payload_bytes": 25_000},
        {**got, "time_us": 300.0, "host": 1, "class": "short", "payload_bytes": 12_500},
    ]
    run = series(deliveries=rows)
    assert run.throughput()["throughput_gbps"].to_list() == [1.0, 0.0, 3.0, 0.0]
    second = run.throughput(["host"]).filter(pl.col("host") == 1)
    assert second["throughput_gbps"].to_list() == [0.0, 0.0, 3.0, 0.0]
    assert run.throughput(["class"]).filter(pl.col("class") == "short")["payload_bytes"].sum() == 12_500
    with pytest.raises(ValueError, match="allowed are host, class, background"):
        run.throughput(["flow"])


def test_paths_of_a_fat_tree_are_as_many_as_its_cores() -> None:
    links = weft.run({"fabric": {"kind": "fat-tree", "k": 4}, "traffic": TRAFFIC}).links
    paths = shortest_paths(links, source="edge0")
    lengths = paths.select("target", hops=pl.col("link").list.len()).group_by("target", "hops").len().sort("target")
    # One edge switch in the same pod, behind 2 aggregation switches; 6 in the others, behind 4 cores.
    assert sorted(lengths.select("hops", "len").rows()) == [(2, 2)] + [(4, 4)] * 6
    with pytest.raises(weft.SpecError, match="no leaf 'spine0'"):
        shortest_paths(LINKS, "spine0")


@pytest.fixture(scope="module")
def run() -> weft.Result:
    fabric = {"leaves": 2, "spines": 2, "hosts_per_leaf": 4}
    return weft.run({"fabric": fabric, "traffic": TRAFFIC, "run": {"sample_every": "37us"}})


def test_the_series_of_a_run_add_up_to_its_totals(run: weft.Result) -> None:
    links = (
        run.series.links()
        .group_by("link")
        .agg(pl.col("sent_bytes", "dropped_packets", "marked_packets").sum(), left=pl.col("backlog_bytes").last())
    )
    both = run.links.join(links, on="link")
    assert both.height == run.links.height
    assert (both["sent_bytes"] + both["left"]).to_list() == both["bytes"].to_list()
    assert both["dropped_packets"].to_list() == both["dropped_packets_right"].to_list()
    assert run.series.throughput(["host"])["payload_bytes"].sum() == run.flows["size_bytes"].sum()


def test_the_mean_over_time_is_the_utilisation_of_the_whole_run(run: weft.Result) -> None:
    weight = pl.col("interval_us")
    mean = run.series.links().group_by("link").agg(mean=(pl.col("utilisation") * weight).sum() / weight.sum())
    both = run.links.join(mean, on="link")
    assert both["mean"].to_list() == pytest.approx(both["utilisation"].to_list(), rel=1e-9, abs=1e-12)


def test_sampling_changes_no_flow(run: weft.Result) -> None:
    plain = weft.run(run.spec, set={"run.sample_every": "10s"})
    assert plain.flows.equals(run.flows)


def test_a_run_that_was_not_sampled_says_how_to_sample(small: dict[str, int]) -> None:
    with pytest.raises(weft.SpecError, match="--sample-every 100us"):
        _ = weft.run("", set=small).series


def test_shared_memory_has_a_row_for_each_switch_and_adds_up_over_longer_intervals() -> None:
    one = series((100.0, "leaf0>spine0", FULL, 0))
    rows = [(100.0, "leaf0", 50, 90), (200.0, "leaf0", 70, 80), (400.0, "spine1", 5, 6)]
    schema = {"time_us": pl.Float64, "switch": pl.String, "held_bytes": pl.UInt64, "largest_bytes": pl.UInt64}
    full = replace(one, memories=pl.DataFrame(rows, schema=schema, orient="row"))
    leaf = full.shared_buffers().filter(pl.col("switch") == "leaf0")
    assert leaf["held_bytes"].to_list() == [50, 70, 0, 0] and leaf["largest_bytes"].to_list() == [90, 80, 0, 0]
    assert full.shared_buffers().height == 4 * 4, "two leaves and two spines in four intervals"
    coarse = full.coarser(200.0).shared_buffers()
    assert coarse.filter(pl.col("switch") == "leaf0")["held_bytes"].to_list() == [70, 0]
    assert coarse.filter(pl.col("switch") == "leaf0")["largest_bytes"].to_list() == [90, 0]
    assert coarse.filter(pl.col("switch") == "spine1")["largest_bytes"].to_list() == [0, 6]
    assert one.shared_buffers().is_empty(), "a run without shared buffer has no such rows"


def test_the_memory_of_a_run_is_that_of_its_summary_at_most() -> None:
    shape = {"fabric.leaves": 2, "fabric.spines": 2, "fabric.hosts_per_leaf": 4, "fabric.shared_buffer.size": "4MB"}
    incast: dict[str, Any] = {"traffic.incast": [{"senders": 6, "size": "1MB"}], "run.sample_every": "100us"}
    run = weft.run("", set=shape | incast, progress=False)
    assert run.summary.lossless is not None
    assert run.series.shared_buffers()["largest_bytes"].max() == run.summary.lossless.largest_shared_buffer_bytes
    figure = weft.compare(["ecmp"], set=shape | incast, progress=False).plot_over_time()["shared_buffer"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Shared buffer, mean of switches",
        "Shared buffer, the fullest switch",
    ]
