"""One flow of runs that were made: what became of it under each scheme, its congestion windows over time, its packets.

A run is made again from its resolved spec, which gives the same flows and packets; what is looked at changes none.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from weft import _core
from weft.catalog import entries
from weft.comparison import load_comparison
from weft.errors import OutputError, SpecError
from weft.packets import packets
from weft.simulation import ProgressCallback, Result
from weft.spec import SpecText
from weft.summary import FCT_PARTS
from weft.windows import congestion_windows, plot_windows_of

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["OneFlow", "flow_packets", "flow_pcapng", "follow", "runs_of_seed", "worth_a_look"]

Watch: TypeAlias = Callable[[int, Result], ProgressCallback]
"""Called before each run with its place and the run; returns what is told of its progress."""

_INSTANTS = 400
"""How often a flow is looked at unless told, in the longest of its completion times."""
_LEAST_US = 1.0
_SHOWN = ("src", "dst", "size_bytes", "start_us", "fct_us", "slowdown")
_COUNTED = ("segments_sent", "retransmissions", "timeouts", "out_of_order_packets", "marked_acks", "dropped_segments")


@dataclass(frozen=True)
class OneFlow:
    """One flow under each scheme of a comparison, or in a single run."""

    flow: int
    outcomes: Sequence[Mapping[str, Any]]
    """For each scheme its `scheme` and its row of the table of flows, as far as it is shown."""
    windows: "pl.DataFrame"
    """A row an instant: `scheme`, `time_us` since the flow's start, `cwnd`, `ssthresh`, `outstanding` (in segments),
    `rtt_us`. Empty with transports that have no such window."""

    def plot(self) -> "Figure":
        """Draw the congestion window, the threshold and what is in flight over time, a panel a scheme."""
        schemes = [row["scheme"] for row in self.outcomes]
        return plot_windows_of(f"flow {self.flow}", self.windows, schemes)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {"flow": self.flow, "schemes": [dict(row) for row in self.outcomes], "windows": self.windows.to_dicts()}


def follow(runs: Sequence[Result], flow: int, *, every: str | None = None, watch: Watch | None = None) -> OneFlow:
    """Make runs again, one for each scheme, and look at the windows of a flow.

    `every` is how often, 1 µs at least; without it, 400 times in the longest of its completion times. Raises
    `SpecError` if there is no such flow, and for runs of schemes written in Python, which cannot be made again from
    their spec; `OutputError` for runs of a version whose results were others.
    """
    import polars as pl

    specs = [_again(run) for run in runs]
    outcomes = [_outcome(run, flow) for run in runs]
    interval = every if every is not None else f"{max(_LEAST_US, _longest_us(runs, outcomes) / _INSTANTS):.3f}us"
    frames = []
    for place, (run, spec, outcome) in enumerate(zip(runs, specs, outcomes, strict=True)):
        told = watch(place, run) if watch is not None else None
        seen = congestion_windows([flow], every=interval, spec=spec, progress=told)
        # To the picosecond: a difference of floats shows more digits than there are.
        since = (pl.col("time_us") - outcome["start_us"]).round(6).alias("time_us")
        frames.append(seen.select(pl.lit(outcome["scheme"]).alias("scheme"), since, pl.exclude("time_us", "flow")))
    return OneFlow(flow, outcomes, pl.concat(frames))


def flow_packets(run: Result, flow: int, *, most: int, progress: ProgressCallback | None = None) -> "pl.DataFrame":
    """Make a run again and list the packets of a flow at every link, by time; errors as of `follow`."""
    spec = _again(run)
    _outcome(run, flow)
    return packets(flows=[flow], most=most, spec=spec, progress=progress)


def flow_pcapng(run: Result, flow: int, *, most: int, progress: ProgressCallback | None = None) -> bytes:
    """Make a run again and return the packets of a flow as a file for Wireshark; errors as of `follow`."""
    spec = _again(run)
    _outcome(run, flow)
    return _core.pcapng(
        spec.text, base_dir=spec.base_dir, origin=spec.origin, at=[], flows=[flow], most=most, progress=progress
    )


def runs_of_seed(directory: str | os.PathLike[str], seed: int | None = None) -> list[Result]:
    """Load the runs of a directory of `weft run` or `weft compare` that have one seed: by default the first."""
    runs = load_comparison(directory).runs
    seeds = list(dict.fromkeys(run.summary.seed for run in runs))
    wanted = seeds[0] if seed is None else seed
    if wanted not in seeds:
        raise SpecError(f"--seed {wanted}: {os.fspath(directory)} has {', '.join(map(str, seeds))}")
    return [run for run in runs if run.summary.seed == wanted]


def worth_a_look(run: Result, count: int = 10) -> "pl.DataFrame":
    """Return the flows of a run that were traced, or else the largest: so many rows of the table of flows at most."""
    traced = run.traces["flow"].unique()
    flows = run.flows.sort("size_bytes", "id", descending=[True, False])
    chosen = flows.filter(flows["id"].is_in(traced.implode())) if len(traced) else flows
    return chosen.head(count).select("id", *_SHOWN, *_COUNTED)


def _again(run: Result) -> SpecText:
    """Return the spec that makes the run again."""
    summary, place = run.summary, str(run.path or run.summary.label)
    if summary.scheme not in {item.name for item in entries("schemes")}:
        raise SpecError(f"{place}: {summary.scheme} was written in Python, and its spec does not make the run again")
    if summary.results_version != _core.results_version():
        raise OutputError(
            f"{place}: was made by weft {summary.version}, whose results are others (version "
            f"{summary.results_version}, here {_core.results_version()}); run it again"
        )
    return SpecText(run.spec, origin=place)


def _outcome(run: Result, flow: int) -> dict[str, Any]:
    import polars as pl

    found = run.flows.filter(pl.col("id") == flow).to_dicts()
    if not found:
        raise SpecError(f"there is no flow {flow}: allowed is 0 to {run.flows.height - 1}")
    if found[0]["start_us"] is None:
        raise SpecError(f"flow {flow} never began under {run.summary.label}: there is nothing to look at")
    breakdown = [key for part in FCT_PARTS if (key := f"fct_{part}_us") in found[0]]
    return {"scheme": run.summary.label} | {key: found[0][key] for key in (*_SHOWN, *_COUNTED, *breakdown)}


def _longest_us(runs: Sequence[Result], outcomes: Sequence[Mapping[str, Any]]) -> float:
    """Return how long the flow took where it took longest; one that is not over counts to the end of the run."""
    until = [run.summary.simulated_us - row["start_us"] for run, row in zip(runs, outcomes, strict=True)]
    return float(max(end if row["fct_us"] is None else row["fct_us"] for end, row in zip(until, outcomes, strict=True)))
