"""The replay: the fabric with its links and queues over time, and the paths of traced flows."""

import base64
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weft.collectives import CRITICAL_PARTS
from weft.over_time import any_pauses, shown
from weft.palette import CRITICAL_COLOURS
from weft.report import lossless
from weft.report.cells import short
from weft.report.fabric_drawing import place_nodes
from weft.report.faults import CAUSES
from weft.summary import FCT_PARTS

if TYPE_CHECKING:
    from weft.comparison import Comparison
    from weft.series import Series
    from weft.simulation import Result

__all__ = ["SCRIPTS", "payload"]

SCRIPTS = ("replay-fabric", "replay-draw", "replay")

_BUDGET = 1_800_000
"""Bytes of all frames of all variants, before base64 makes four of three."""
_MOST_FRAMES, _FEWEST_FRAMES = 600, 24
_MOST_TRACE_ROWS = 20_000
"""Largest number of rows for one variant, 8 characters each."""
_MOST_DROP_ROWS = 20_000
"""Largest number of rows for one variant, 8 characters each."""
_FULL = 250
"""The number of a link that is used to the full."""
_LEAST_QUEUE, _QUEUE_STEPS = 64, 12
"""Bytes of the shortest queue that is told from none, and steps from a length to its double."""


def payload(comparison: "Comparison") -> dict[str, Any] | None:
    """Everything that the replay draws; None when no run was sampled."""
    found = shown(comparison.groups)
    runs = {label: one.run for label, one in found.items()}
    if not runs:
        return None
    table = next(iter(runs.values())).link_table
    names = table.get_column("link").to_list()
    # One drawing for all; a variant in another fabric has no replay.
    runs = {label: run for label, run in runs.items() if run.link_table.get_column("link").to_list() == names}
    interval_us = _interval(list(runs.values()), (3 if any_pauses(found.values()) else 2) * len(names))
    nodes = place_nodes(table)
    place = {node.name: at for at, node in enumerate(nodes)}
    number = {name: at for at, name in enumerate(names)}
    return {
        "nodes": [[node.name, node.level, round(node.x, 5)] for node in nodes],
        "links": [[place[start], place[end]] for start, end in table.select("from", "to").iter_rows()],
        "rates": [short(rate / 1e9) for rate in table.get_column("rate_bps")],
        "full": _FULL,
        "queue": [_LEAST_QUEUE, _QUEUE_STEPS],
        # The names that faults know links by.
        "names": names,
        "parts": [{"title": title, "colour": CRITICAL_COLOURS[key]} for key, title in CRITICAL_PARTS.items()],
        "schemes": [
            _variant(found[0], runs[label].coarser(interval_us), number, place) if label in runs else None
            for label, found in comparison.groups.items()
        ],
    }


def _interval(runs: Sequence["Series"], frame_bytes: int) -> float:
    """One interval for all, long enough for the budget: a multiple of the longest of theirs."""
    longest, own = max(run.end_us for run in runs), max(run.interval_us for run in runs)
    frames = max(_FEWEST_FRAMES, min(_MOST_FRAMES, _BUDGET // max(frame_bytes * len(runs), 1)))
    return own * max(1, math.ceil(longest / (own * frames)))


def _variant(result: "Result", run: "Series", number: Mapping[str, int], place: Mapping[str, int]) -> dict[str, Any]:
    frames = run.links()
    shape = (run.intervals.height, len(number))
    used = (frames.get_column("utilisation").to_numpy() * _FULL).round().clip(0, 255).astype(np.uint8)
    queues = _queue_numbers(frames.get_column("largest_backlog_bytes").to_numpy().astype(np.float64))
    times = run.intervals.get_column("time_us").to_list()
    return {
        "frames": shape[0],
        "interval": run.interval_us,
        "end": short(times[-1]) if times else 0.0,
        "used": _text(used),
        "queues": _text(queues),
        "paused": _paused(frames),
        "drops": _text(_drops(frames, shape)),
        "lost": _lost_at_nodes(result, place),
        "flows": _flows(result, run.interval_us, shape[0], number),
        "pauses": lossless.pauses(result, number),
        "deadlock": lossless.deadlock(result, number),
        "critical": lossless.critical(result),
    }


def _paused(frames: pl.DataFrame) -> str | None:
    """Return the share of each frame that each link was paused, as utilisation; None if nothing ever was.

    Where classes of a link are paused at one time, it is counted once at most. Samples of old stores do not say.
    """
    if "paused_us" not in frames.columns:
        return None
    share = (frames.get_column("paused_us") / frames.get_column("interval_us")).to_numpy()
    # The least that is paused is told from nothing.
    steps = np.where(share > 0.0, np.maximum(share * _FULL, 1.0), 0.0)
    return _text(steps.round().clip(0, _FULL).astype(np.uint8)) if steps.any() else None


def _drops(frames: pl.DataFrame, shape: tuple[int, int]) -> NDArray[np.uint16]:
    """Frame, link and packets, 16 bits each, where packets were dropped; of too many rows, those of most packets."""
    lost = frames.get_column("dropped_packets").to_numpy().astype(np.int64).reshape(shape)
    frame, link = np.nonzero(lost)
    rows = np.stack([frame, link, lost[frame, link]], axis=1)
    rows = rows[np.argsort(-rows[:, 2], kind="stable")][:_MOST_DROP_ROWS]
    return rows.clip(0, 65_535).astype("<u2")


def _lost_at_nodes(result: "Result", place: Mapping[str, int]) -> list[list[Any]]:
    """Node, packets, first and last time in us, why: what switches and hosts lost themselves, as for want of a way.

    Samples are of links alone; the table has where, how many, and between when.
    """
    rows = result.drops.filter(pl.col("place").is_in(list(place)))
    return [
        [place[row["place"]], row["packets"], short(row["first_us"]), short(row["last_us"]), CAUSES[row["cause"]]]
        for row in rows.iter_rows(named=True)
    ]


def _queue_numbers(held: NDArray[np.float64]) -> NDArray[np.uint8]:
    """0 for an empty queue, then logarithmic: 1 for `_LEAST_QUEUE` bytes and less."""
    steps = 1.0 + _QUEUE_STEPS * np.log2(np.maximum(held, _LEAST_QUEUE) / _LEAST_QUEUE)
    return np.where(held > 0.0, steps.round().clip(1, 255), 0.0).astype(np.uint8)


def _flows(result: "Result", interval_us: float, frames: int, number: Mapping[str, int]) -> list[dict[str, Any]]:
    """Traced flows, the largest first, each with the links that it took: frame, link and packets as 16 bits each."""
    traces = result.traces
    if traces.is_empty():
        return []
    frame = ((pl.col("time_us") / interval_us - 1e-9).ceil().cast(pl.Int64) - 1).clip(0, frames - 1)
    place = pl.DataFrame({"link": list(number), "place": list(number.values())}, schema_overrides={"place": pl.Int64})
    rows = (
        traces.with_columns(frame=frame)
        .join(place, on="link")
        .group_by("flow", "frame", "place")
        .agg(pl.col("packets").sum())
        .sort("flow", "frame", "place")
    )
    own = pl.col("id").is_in(rows.get_column("flow").unique().implode())
    flows = result.flows.filter(own).sort(~pl.col("background"), -pl.col("size_bytes").cast(pl.Int64), "id")
    found, left = [], _MOST_TRACE_ROWS
    for flow in flows.iter_rows(named=True):
        mine = rows.filter(pl.col("flow") == flow["id"]).select("frame", "place", "packets").to_numpy()
        left -= len(mine)
        if left < 0:
            break
        found.append(_flow(flow, mine))
    return found


def _flow(flow: Mapping[str, Any], rows: NDArray[np.int64]) -> dict[str, Any]:
    fct = flow["fct_us"]
    breakdown = [key for part in FCT_PARTS if (key := f"fct_{part}_us") in flow]
    return {
        "id": flow["id"],
        "src": f"host{flow['src']}",
        "dst": f"host{flow['dst']}",
        "size": None if flow["background"] else flow["size_bytes"],
        "start": short(flow["start_us"]),
        "fct": None if fct is None else short(fct),
        "slowdown": None if flow["slowdown"] is None else short(flow["slowdown"]),
        "breakdown": [None if flow[key] is None else short(flow[key]) for key in breakdown],
        "path": _text(rows.clip(0, 65_535).astype("<u2")),
    }


def _text(values: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
