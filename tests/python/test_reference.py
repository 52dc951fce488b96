"""The figures of another simulator on the same flows: see tests/fidelity."""

import importlib.util
from pathlib import Path

import pytest

_PATH = Path(__file__).parent.parent / "fidelity" / "reference.py"
_SPEC = importlib.util.spec_from_file_location("reference", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)


@pytest.mark.parametrize("scheme", list(reference.SCHEMES))
def test_completion_times_are_those_of_ns3_within_their_bounds(scheme: str) -> None:
    outside = [row for row in reference.differences(scheme) if not row.within]
    assert not outside


def test_flows_that_meet_nobody_take_the_time_that_they_take_in_ns3() -> None:
    flows = reference.undisturbed()
    assert len(flows) >= 3
    assert (flows["weft_us"] - flows["ns3_us"]).abs().max() < 0.2
