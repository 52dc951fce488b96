"""Shared code of the tests of papers: a paper that runs in a second, and the bytes of a directory."""

from hashlib import sha256
from pathlib import Path

TINY = """
[paper]
name = "tiny"
title = "A tiny paper"
labels = { letflow = "LetFlow" }

[experiment.loads]
spec = { fabric = { leaves = 2, spines = 2, hosts_per_leaf = 2 }, traffic = { workload = "web-search", flows = 60 } }
schemes = ["ecmp", "letflow:gap=50us"]
vary = { "traffic.load" = [0.3, 0.5, 0.7] }
seeds = 3

[experiment.loads.quick]
set = { "traffic.flows" = 30 }
vary = { "traffic.load" = [0.3, 0.7] }
seeds = 2

[figure.1]
title = "FCT"

[[figure.1.panel]]
title = "(a) Mean"
experiment = "loads"
x = "traffic.load"
measure = { metric = "mean_fct_us" }

[[figure.1.panel]]
title = "(b) 99th percentile, normalised"
experiment = "loads"
x = "traffic.load"
measure = { metric = "p99_fct_us" }
relative_to = "ecmp"

[figure.2]
title = "FCT again, as a distribution and over sizes"

[[figure.2.panel]]
title = "(a) Distribution"
experiment = "loads"
plot = "cdf"
where = { "traffic.load" = 0.7 }
measure = { table = "flows", column = "fct_us", where = { size_bytes_below = 100000 } }

[[figure.2.panel]]
title = "(b) Box"
experiment = "loads"
plot = "box"
where = { "traffic.load" = 0.7 }
measure = { table = "flows", column = "goodput_mbps" }

[[figure.2.panel]]
title = "(c) Bars"
experiment = "loads"
plot = "bars"
x = "metrics"
where = { "traffic.load" = 0.7 }
measure = [
    { label = "mean", table = "flows", column = "slowdown", statistic = "mean" },
    { label = "largest", table = "flows", column = "slowdown", statistic = "max" },
]

[experiment.sampled]
spec = { fabric = { leaves = 2, spines = 2, hosts_per_leaf = 2 }, traffic = { workload = "web-search", flows = 30 } }
set = { "run.sample_every" = "1ms", "traffic.load" = 0.5 }
schemes = ["ecmp"]

[figure.4]
title = "Uplinks over time"

[[figure.4.panel]]
experiment = "sampled"
plot = "over-time"
measure = { table = "samples", column = "utilisation", tier = "leaf", statistic = "mean" }

[figure.3]
title = "A photograph"
reason = "it shows a testbed"
"""


def write_tiny(folder: Path, text: str = TINY) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tiny.toml").write_text(text, encoding="utf-8")
    return folder


def tree(directory: Path) -> dict[str, str]:
    """Every file of a reproduction, by what it holds; but for the provenance, which tells when and where."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    found = {str(path.relative_to(directory)): sha256(path.read_bytes()).hexdigest() for path in files}
    return {name: digest for name, digest in found.items() if not name.endswith(("provenance.json", ".lock"))}


def stored_runs(directory: Path) -> list[Path]:
    """The runs in the store beside a directory, those that are there as a whole."""
    return sorted(file.parent for file in (directory.parent / ".weft").glob("??/*/provenance.json"))


def runs_done(directory: Path) -> int:
    return len(stored_runs(directory))
