"""A made-up paper for the tests of multiverses: flows take 9 us, and 10, 20 and 30 more by three choices."""

from pathlib import Path

PAPER = """
[paper]
name = "made"
title = "MADE: a paper of which all is known"

[experiment.e]
schemes = ["ecmp", "drill"]
seeds = 2
set = { "fabric.overhead" = "0B" }
[experiment.e.spec]
fabric = { kind = "leaf-spine", leaves = 2, spines = 2, hosts_per_leaf = 2 }
traffic = { size = "1KB", load = 0.001, flows = 20 }
transport = { name = "tcp" }

[figure.1]
title = "Completion times"
[[figure.1.panel]]
experiment = "e"
plot = "bars"
measure = { metric = "mean_fct_us" }

[open.host-delay]
question = "How long are the cables of hosts?"
[open.host-delay.alternatives]
short = { source = "made up" }
long = { source = "made up: 10 us more, one way", set = { "fabric.host_delay" = "6us" } }

[open.fabric-delay]
question = "How long are the other cables?"
[open.fabric-delay.alternatives]
short = { source = "made up" }
long = { source = "made up: 20 us more, one way", set = { "fabric.fabric_delay" = "11us" } }

[open.stack]
question = "How long does a packet take in a host?"
[open.stack.alternatives]
nothing = { source = "made up" }
long = { source = "made up: 30 us more, one way", set = { "fabric.stack_delay" = "15us" } }

[open.overhead]
question = "What the experiment decides is not open."
[open.overhead.alternatives]
none = { source = "made up" }
much = { source = "made up", set = { "fabric.overhead" = "64B" } }
"""
CLAIMS = """
[[claim]]
id = "slow"
text = "flows take 44 us or more"
place = "everywhere"
figure = "1"
rule = { kind = "at-least", bound = 44.0 }

[[claim]]
id = "fast"
text = "flows take 24 us at most"
place = "everywhere"
figure = "1"
rule = { kind = "at-most", bound = 24.0 }

[[claim]]
id = "never"
text = "flows take no time"
place = "everywhere"
figure = "1"
rule = { kind = "at-most", bound = 1.0 }
"""

CHOICES = ("host-delay", "fabric-delay", "stack")


def write_made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "made.toml").write_text(PAPER, encoding="utf-8")
    (folder / "made-claims.toml").write_text(CLAIMS, encoding="utf-8")
    return folder
