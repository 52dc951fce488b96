"""Prints where packets of short and long flows waited in directories of `weft compare`: the tables of docs/papers/lbt.md.

.venv/bin/python docs/print_waits.py out/lbt-web-server out/lbt-web-search
"""

import argparse
import tomllib
from pathlib import Path

import polars as pl

import weft
from weft.catalog import entry

WAITS = ("wait_host_us", "wait_leaf_us", "wait_spine_us", "wait_last_us")
COLUMNS = ("fct_us", *WAITS, "out_of_order_share", "resent_share")
POINT = ("workload", "load", "scheme", "flows")


def main() -> None:
    """Read every run; print means over its seeds as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", type=Path)
    runs = [run for directory in parser.parse_args().directories for run in weft.load_comparison(directory).runs]
    rows = [row for run in runs for row in of_run(run)]
    print(f"| {' | '.join((*POINT, *COLUMNS))} |\n|{'---|' * (len(POINT) + len(COLUMNS))}")
    for row in pl.DataFrame(rows).group_by(POINT).agg(pl.col(COLUMNS).mean()).sort(POINT).rows():
        print(f"| {' | '.join(f'{value:.4g}' if isinstance(value, float) else value for value in row)} |")


def of_run(run: weft.Result) -> list[dict[str, object]]:
    """Measure the short and the long flows of a run, best effort left out."""
    traffic = tomllib.loads(run.spec)["traffic"]
    every = run.flows.filter(pl.col("class") == "unknown")
    is_short = pl.col("size_bytes") <= entry("bins", "lbt").raw["bounds"][0]["up_to_bytes"]
    found = []
    for name, flows in (("short", every.filter(is_short)), ("long", every.filter(~is_short))):
        received = pl.col("segments_received").sum()
        measured = flows.select(
            pl.col("fct_us").mean(),
            pl.col(WAITS).sum() / received,
            (pl.col("out_of_order_packets").sum() / received).alias("out_of_order_share"),
            (pl.col("retransmissions").sum() / pl.col("segments_sent").sum()).alias("resent_share"),
        ).row(0, named=True)
        point = (traffic["workload"], traffic["load"], run.summary.label, name)
        found.append(dict(zip(POINT, point, strict=True)) | measured)
    return found


if __name__ == "__main__":
    main()
