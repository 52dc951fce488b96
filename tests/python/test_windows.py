"""Congestion windows over time."""

import polars as pl
import pytest

from weft.windows import congestion_windows, means_by_interval, plot_windows

SPEC = """
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_rate = "1Gbps"
fabric_rate = "1Gbps"

[traffic]
workload = "web-search"
load = 0.3
flows = 3

[transport]
name = "dctcp"
initial_window = 7
"""


def test_a_window_is_looked_at_from_the_start_of_its_flow_until_all_is_acknowledged() -> None:
    import weft

    flows = weft.run(SPEC).flows.sort("id")
    row = flows.row(2, named=True)
    seen = congestion_windows([2], every="50us", spec=SPEC)
    assert seen["flow"].unique().to_list() == [2]
    assert seen["time_us"][0] == pytest.approx(row["start_us"] + 50.0)
    assert seen["time_us"].diff().drop_nulls().to_list() == pytest.approx([50.0] * (seen.height - 1))
    end = row["start_us"] + row["sender_fct_us"]
    assert end - 50.0 <= seen["time_us"][-1] <= end
    assert (seen["cwnd"] >= 1.0).all() and (seen["outstanding"] <= seen["cwnd"].ceil() + 3).all()


def test_transports_without_a_window_of_their_own_have_no_rows() -> None:
    assert congestion_windows([0], spec=SPEC, variant="expresspass+ecmp", set=[]).is_empty()


@pytest.mark.parametrize(
    ("flows", "every", "message"),
    [([3], "10us", "there is no flow 3: allowed is 0 to 2"), ([0], "1ns", "too short"), ([0], "soon", "soon")],
)
def test_what_cannot_be_looked_at_is_refused(flows: list[int], every: str, message: str) -> None:
    import weft

    with pytest.raises(weft.SpecError, match=message):
        congestion_windows(flows, every=every, spec=SPEC)


def test_means_are_those_of_the_samples_in_each_interval() -> None:
    samples = [(1.0, 2.0), (2.0, 4.0), (12.0, None), (29.0, 5.0), (30.0, 7.0)]
    assert means_by_interval(samples, 30.0, 3) == [3.0, None, 6.0]


def test_windows_are_drawn_with_a_panel_for_each_kind_of_hosts() -> None:
    frame = pl.DataFrame(
        {
            "hosts": ["simulated", "simulated", "linux"],
            "time_us": [1.0, 2.0, 1.0],
            "cwnd": [10.0, 11.0, 10.0],
            "ssthresh": [None, 5.0, None],
            "outstanding": [10, 11, 9],
            "rtt_us": [None, 3.0, 4.0],
        }
    )
    figure = plot_windows({"ecmp, flow 1": frame})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["ecmp, flow 1, simulated", "ecmp, flow 1, linux"]
