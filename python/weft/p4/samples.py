"""The run that is replayed unless a spec is given."""

from weft.spec import SpecText

__all__ = ["sample"]

_RUN = """
[run]
seed = 1

[fabric]
kind = "leaf-spine"
leaves = 3
spines = 4
hosts_per_leaf = 4
host_rate = "10Gbps"
fabric_rate = "10Gbps"
reroute_after = "200us"

[[fabric.fault]]
link = "leaf0-spine1"
rate = "4Gbps"

[traffic]
workload = "web-search"
load = 0.8
flows = 300
classes = { best_effort = 0.2 }

[transport]
name = "dctcp"
"""
_FAILURE = """
# Next hops change while packets are on their way.
[[fabric.fault]]
link = "leaf1-spine2"
down = true
at = "2ms"
until = "6ms"
"""


def sample(*, is_steady: bool) -> SpecText:
    """A small fabric with a slow uplink; unless `is_steady`, another one fails, and comes back."""
    return SpecText(_RUN if is_steady else _RUN + _FAILURE, origin="the run of weft p4 check")
