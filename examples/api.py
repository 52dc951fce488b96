"""Weft from Python: one run, its tables, a comparison and a figure."""

import polars as pl

import weft

spec = {"traffic": {"workload": "web-search", "load": 0.6, "flows": 500}, "scheme": {"name": "letflow"}}

result = weft.run(spec)
print(result)
print(result.flows.sort("fct_us", descending=True).select("id", "size_bytes", "fct_us", "slowdown").head(5))
print(result.links.group_by("tier").agg(pl.col("utilisation").mean()).sort("tier"))

comparison = weft.compare(["ecmp", "letflow", "drill"], spec=spec, seeds=3)
print(comparison.table.select("scheme", "mean_fct_us", "mean_fct_us_ci95"))
if comparison.verdict is not None:
    print("\n".join(comparison.verdict.sentences))
comparison.plot_fct().savefig("fct.png")
