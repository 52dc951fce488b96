"""Load sharing accuracy, by hand and on the command line."""

from pathlib import Path

import polars as pl
import pytest

from conftest import Weft
from weft.load_sharing import load_sharing

pytestmark = pytest.mark.slow

LINKS = pl.DataFrame(
    {
        "link": ["leaf0>spine0", "leaf0>spine1", "leaf1>spine0", "host0>leaf0", "spine0>leaf0"],
        "from": ["leaf0", "leaf0", "leaf1", "host0", "spine0"],
        "tier": ["leaf", "leaf", "leaf", "host", "spine"],
        "rate_bps": [10_000, 20_000, 10_000, 10_000, 10_000],
    }
)


def samples(rows: list[tuple[float, str, int]]) -> pl.DataFrame:
    schema = {"time_us": pl.Float64, "link": pl.String, "sent_bytes": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.join(LINKS.select("link", "rate_bps"), on="link", how="left")


def test_accuracy_is_the_busiest_uplink_over_the_least_busy_one_less_one() -> None:
    found = load_sharing(
        samples(
            [
                # 300 at 10 kbit/s is as busy as 600 at 20: even. Then 50 % more, and one that is idle.
                (1.0, "leaf0>spine0", 300),
                (1.0, "leaf0>spine1", 600),
                (2.0, "leaf0>spine0", 300),
                (2.0, "leaf0>spine1", 400),
                (3.0, "leaf0>spine0", 300),
                (3.0, "leaf0>spine1", 0),
                # Nothing of these is shared.
                (1.0, "leaf1>spine0", 5),
                (1.0, "host0>leaf0", 5),
                (2.0, "spine0>leaf0", 5),
            ]
        ),
        LINKS,
    )
    assert found is not None
    assert (found.slots, found.idle) == (2, 1)
    assert found.mean == pytest.approx(0.25)
    # Two slots, at 0 and at 0.5: percentiles lie between.
    assert found.p50 == pytest.approx(0.25) and found.p99 == pytest.approx(0.495)


def test_without_samples_or_a_choice_there_is_nothing_to_say() -> None:
    assert load_sharing(samples([]), LINKS) is None
    assert load_sharing(samples([(1.0, "leaf1>spine0", 5)]), LINKS.filter(pl.col("from") == "leaf1")) is None
    only_idle = load_sharing(samples([(1.0, "leaf0>spine0", 5)]), LINKS)
    assert only_idle is not None
    assert (only_idle.slots, only_idle.idle, only_idle.mean) == (0, 1, None)


def test_every_scheme_has_it_once_samples_are_on(weft_command: Weft, small_options: list[str]) -> None:
    sampled = (*small_options, "--set", "run.sample_every=1ms")
    document = weft_command("compare", "--schemes", "ecmp,rps,presto", *sampled, "--seeds", "2", "--json").json()
    assert {label: len(runs) for label, runs in document["load_sharing"].items()} == {"ecmp": 2, "rps": 2, "presto": 2}
    # Packets in turn over two uplinks are shared more evenly than flows by a hash.
    mean = {label: runs[0]["mean"] for label, runs in document["load_sharing"].items()}
    assert mean["presto"] < mean["ecmp"]
    for command in (("compare", "--schemes", "ecmp,rps"), ("run",)):
        assert "load sharing accuracy" in weft_command(*command, *sampled, "--load-sharing").stdout
        assert "load sharing" not in weft_command(*command, *sampled).stdout, "nobody asked"


def test_samples_that_go_nowhere_are_told_of(weft_command: Weft, small_options: list[str], tmp_path: Path) -> None:
    told = "say where to with --out"
    for command in (("compare", "--schemes", "ecmp,rps"), ("run",)):
        lost = weft_command(*command, *small_options, "--sample-every", "1ms")
        plain = weft_command(*command, *small_options)
        kept = weft_command(*command, *small_options, "--sample-every", "1ms", "--out", tmp_path / command[0])
        assert told in lost.stderr and told not in plain.stderr and told not in kept.stderr
        if command[0] == "compare":
            assert lost.stdout == plain.stdout, "samples alone print nothing"


def test_load_sharing_without_samples_is_refused_and_a_mistake_is_all_that_is_said(weft_command: Weft) -> None:
    for command in (("compare", "--schemes", "ecmp,rps"), ("run",)):
        refused = weft_command(*command, "--load-sharing")
        assert refused.code == 2 and "--load-sharing needs samples" in refused.stderr
        wrong = weft_command(*command, "--trace-flows", "-1", "--sample-every", "10us")
        assert wrong.code == 2 and wrong.stderr.startswith("error: --set: run.trace_flows = -1")
    sampled = weft_command("run", "--set", "run.sample_every=1ms", "--flows", "10", "--load-sharing")
    assert sampled.code == 0 and "load sharing accuracy" in sampled.stdout
