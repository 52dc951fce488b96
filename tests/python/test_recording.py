"""Recordings hold all that decisions follow from: schemes that are written here once more decide the same from them."""

import pytest

from switch_models import MODELS
from weft.recording import Choose, OnArrival, OnEnqueued, Recording, record

pytestmark = pytest.mark.slow

SPEC = """
[fabric]
kind = "leaf-spine"
leaves = 3
spines = 4
hosts_per_leaf = 4
reroute_after = "200us"

[traffic]
workload = "web-search"
load = 0.8
flows = 300
classes = { best_effort = 0.2 }
"""
FAILURE = """
[[fabric.fault]]
link = "leaf1-spine2"
down = true
at = "2ms"
until = "6ms"
"""


def recorded(variant: str) -> Recording:
    """A run, as a scheme decided in it. A link fails, but for QALL: leaving times are not known there."""
    spec = SPEC if variant.startswith("qall") else SPEC + FAILURE
    return record(spec, seed=1, scheme=variant, most=2_000)


@pytest.mark.parametrize(
    "variant",
    [
        "ecmp",
        "letflow",
        "letflow:gap=20us:entries=64",
        "drill",
        "drill:memory=rack",
        "lbt:long_after=20KB",
        "tr",
        *(
            pytest.param(rare, marks=pytest.mark.nightly)
            for rare in (
                "qall:update=20us:recirculation=30us:time_constant=100us",
                "tr:rtt=20us:entries=64:long_after=20KB",
                "tr:rtt=20us:believe=rtt:counted=last:last_uplink=always:slack=step:long_after=20KB",
                "tr:rtt=20us:last_uplink=always:margin=step:long_after=20KB",
                "tr:margin=2us",
                "qall:granularity=flowlet:gap=50us:update=20us:recirculation=30us:time_constant=100us",
            )
        ),
    ],
)
def test_a_recording_holds_all_that_its_decisions_follow_from(variant: str) -> None:
    scheme = variant.split(":", 1)[0]
    decided = 0
    for switch in recorded(variant).switches:
        calls = switch.calls
        if scheme == "qall":
            calls = sorted(calls, key=lambda call: call.leaves_ps if isinstance(call, OnEnqueued) else call.at_ps)
        answer = MODELS[scheme](switch)
        for call in calls:
            found = answer(call)
            if isinstance(call, Choose):
                decided += 1
                assert found == call.port, call
            elif isinstance(call, OnArrival):
                assert found == call.scheme_after, call
    assert decided > 3_000


def test_a_recording_ends_with_the_last_decision_that_was_asked_for_and_counts_the_others() -> None:
    def all_of(most: int) -> Recording:
        return record(SPEC, seed=1, scheme="drill", most=most)

    for few, many in zip(all_of(100).switches, all_of(1_000).switches, strict=True):
        assert few.decisions <= 100
        assert few.calls == many.calls[: len(few.calls)]
        assert few.decisions + few.beyond == many.decisions + many.beyond
