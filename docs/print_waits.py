"""Prints where packets of short and long flows waited in the runs of `weft reproduce lbt`: the tables of docs/papers/lbt.md.

.venv/bin/python docs/print_waits.py out/reproduce-quick
"""

import argparse
import tomllib
from pathlib import Path

import polars as pl

from weft.catalog import entry

WAITS = ("wait_host_us", "wait_leaf_us", "wait_spine_us", "wait_last_us")
COLUMNS = ("fct_us", *WAITS, "out_of_order_share", "resent_share")
POINT = ("workload", "load", "scheme", "flows")


def main() -> None:
    """Read every run with nine spines, a load of the uplinks and its flows; print means over seeds as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    rows = [row for run in sorted((parser.parse_args().directory / "runs").iterdir()) for row in of_run(run)]
    print(f"| {' | '.join((*POINT, *COLUMNS))} |\n|{'---|' * (len(POINT) + len(COLUMNS))}")
    for row in pl.DataFrame(rows).group_by(POINT).agg(pl.col(COLUMNS).mean()).sort(POINT).rows():
        print(f"| {' | '.join(f'{value:.4g}' if isinstance(value, float) else value for value in row)} |")


def of_run(run: Path) -> list[dict[str, object]]:
    """Measure the short and the long flows of a run, best effort left out."""
    if not (run / "flows.parquet").exists():
        return []
    spec = tomllib.loads((run / "spec.toml").read_text())
    traffic = spec["traffic"]
    if "workload" not in traffic or spec["fabric"].get("spines") != 9 or traffic["load_of"] != "leaf-uplinks":
        return []
    every = pl.read_parquet(run / "flows.parquet").filter(pl.col("class") == "unknown")
    below = entry("bins", "lbt").raw["bounds"][0]["up_to_bytes"]
    is_short = pl.col("size_bytes") <= below
    found = []
    for name, flows in (("short", every.filter(is_short)), ("long", every.filter(~is_short))):
        received = pl.col("segments_received").sum()
        measured = flows.select(
            pl.col("fct_us").mean(),
            pl.col(WAITS).sum() / received,
            (pl.col("out_of_order_packets").sum() / received).alias("out_of_order_share"),
            (pl.col("retransmissions").sum() / pl.col("segments_sent").sum()).alias("resent_share"),
        ).row(0, named=True)
        point = (traffic["workload"], traffic["load"], spec["balancer"]["name"], name)
        found.append(dict(zip(POINT, point, strict=True)) | measured)
    return found


if __name__ == "__main__":
    main()
