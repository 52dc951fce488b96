"""Weft: a packet-level laboratory for load balancing in datacenter fabrics.

>>> import weft
>>> result = weft.run({"traffic": {"flows": 100}, "scheme": {"name": "letflow"}})
>>> result.flows.head()
>>> weft.compare(["ecmp", "letflow"], set={"traffic.load": 0.6}).table
"""

from weft._core import version as _version
from weft.catalog import fabrics, presets, schemes, transports, workloads
from weft.comparing import compare
from weft.comparison import Comparison, load_comparison
from weft.errors import ClusterError, OutputError, SchemeError, SpecError
from weft.papers import reproduce
from weft.scheme import (
    PacketView,
    PortView,
    Rate,
    Scheme,
    Size,
    SwitchChooser,
    SwitchFactory,
    SwitchInfo,
    SwitchScheme,
    SwitchView,
    Time,
)
from weft.simulation import Result, load, run
from weft.summary import Summary
from weft.sweeps import Sweep, load_sweep, sweep

__version__ = _version()

__all__ = [
    "ClusterError",
    "Comparison",
    "OutputError",
    "PacketView",
    "PortView",
    "Rate",
    "Result",
    "Scheme",
    "SchemeError",
    "Size",
    "SpecError",
    "Summary",
    "Sweep",
    "SwitchChooser",
    "SwitchFactory",
    "SwitchInfo",
    "SwitchScheme",
    "SwitchView",
    "Time",
    "__version__",
    "compare",
    "fabrics",
    "load",
    "load_comparison",
    "load_sweep",
    "presets",
    "reproduce",
    "run",
    "schemes",
    "sweep",
    "transports",
    "workloads",
]
