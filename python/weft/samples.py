"""Which runs are samples: those whose results depend on the seed."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET

from weft.summary import Summary

__all__ = ["depends_on_seed", "distinct", "of_one_sample"]


def depends_on_seed(runs: Sequence[Summary]) -> bool:
    """Whether anything that was measured of flows and packets differs between these runs of several seeds."""
    first = _measured(runs[0])
    return any(_measured(run) != first for run in runs[1:])


def distinct(runs: Sequence[Summary]) -> Sequence[Summary]:
    """Return the runs that are samples: the first alone if no result depends on the seed."""
    return runs if len(runs) < 2 or depends_on_seed(runs) else runs[:1]


def of_one_sample(groups: Mapping[str, Sequence[Summary]]) -> list[str]:
    """Name the variants that ran with several seeds, of which no result depends."""
    return [label for label, runs in groups.items() if len(runs) > 1 and not depends_on_seed(runs)]


def _measured(run: Summary) -> Summary:
    """Take away what no flow and no packet notices: the seed, and the work that the simulation was."""
    return msgspec.structs.replace(
        run,
        seed=0,
        label="",
        spec_hash="",
        events=0,
        warnings=(),
        cpu_s=UNSET,
        wall_s=UNSET,
        packet_hops_per_cpu_s=UNSET,
        memory_bytes=UNSET,
    )
