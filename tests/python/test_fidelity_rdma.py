"""The figures of uet-htsim and conweave-ns3 on the same flows, the short ones of them: see tests/fidelity."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load(name: str) -> ModuleType:
    """A file of tests/fidelity as a module."""
    path = Path(__file__).parent.parent / "fidelity" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"fidelity_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


uec = load("uec")
rdma = load("rdma")


@pytest.mark.parametrize("case", ["perm_100KB", "incast8_1MB", "outcast_incast"])
def test_the_last_flow_is_done_when_it_is_in_uet_htsim(case: str, tmp_path: Path) -> None:
    for row in uec.differences(case, tmp_path):
        assert row.expected, row


def test_a_flow_alone_takes_what_it_takes_in_uet_htsim(tmp_path: Path) -> None:
    # 489 packets of 4,150 bytes and one of 2,010, over six links of 100 Gbit/s and 1 us; an acknowledgement of 64 back.
    trace = tmp_path / "one.cm"
    trace.write_text("Nodes 128\nConnections 1\n0->100 id 1 start 0 size 2000000\n")
    done, resent = uec.run(uec.CASES["perm_2MB"], "oblivious", trace, 1)
    assert done == pytest.approx(489 * 0.332 + 5 * 0.332 + 6 + 0.1608 + 6 + 6 * 0.00512, abs=1e-4)
    assert resent == 0


@pytest.mark.parametrize("mode", ["pfc", "irn"])
def test_slowdowns_are_those_of_conweave_ns3_within_their_bounds_or_said_not_to_be(mode: str) -> None:
    for row in rdma.differences(mode, "conweave"):
        assert row.expected, row
