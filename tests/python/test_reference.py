"""The figures of another simulator on the same flows: see tests/fidelity."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_PATH = Path(__file__).parent.parent / "fidelity" / "reference.py"
_SPEC = importlib.util.spec_from_file_location("reference", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)


EVERYDAY = {"ecmp", "letflow"}
"""Schemes beside ns-3 in each gate: one that never moves a flow, and one that does. The others are for the night."""


@pytest.mark.parametrize(
    ("case", "scheme"),
    [
        pytest.param(case, scheme, marks=[] if scheme in EVERYDAY else [pytest.mark.nightly])
        for case in reference.CASES
        for scheme in reference.SCHEMES
    ],
)
def test_completion_times_are_those_of_ns3_within_their_bounds_or_said_not_to_be(case: str, scheme: str) -> None:
    outside = {row.statistic for row in reference.differences(case, scheme) if not row.within}
    assert outside == reference.OUTSIDE.get((case, scheme), set())


def test_flows_that_meet_nobody_take_the_time_that_they_take_in_ns3() -> None:
    flows = reference.undisturbed()
    assert len(flows) >= 3
    assert (flows["weft_us"] - flows["ns3_us"]).abs().max() < 0.2
