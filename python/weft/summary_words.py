"""Summary of one run on the terminal: a table of its flows by size, and lines below it."""

from collections.abc import Sequence

from weft.lead import unfinished_words
from weft.metrics import has_only_long_lived
from weft.phases import fault_lines
from weft.quantity import percent, plain, plural, rate_scale, time_scale
from weft.ranking import MEAN_FCT
from weft.summary import BINS, Background, Distribution, LosslessFacts, PhaseFacts, SizeBin, Summary

__all__ = ["deadlock_words", "pause_words", "summary_lines", "summary_table"]


def summary_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Return titles, and a row for each range of sizes; times in the unit that suits them all.

    Of flows that never end, and no others, it is what they carry.
    """
    if has_only_long_lived([summary]) and (endless := summary.background) is not None:
        unit, scale = rate_scale([endless.goodput_mbps or 0.0])
        numbers = [
            "-" if value is None else plain(value)
            for value in (None if endless.goodput_mbps is None else endless.goodput_mbps / scale, endless.fairness)
        ]
        return ["flows", "number", f"mean goodput ({unit})", "fairness"], [
            ["long-lived", f"{endless.flows:,}", *numbers]
        ]
    named: list[tuple[str, SizeBin | PhaseFacts]]
    named = [(name if name == "all" else f"{name} ({BINS[name]})", one) for name, one in summary.bins.items()]
    named += [(one.label, one) for one in summary.size_bins]
    # What began with the run and lasts divides nothing.
    phases = [one for one in summary.phases if one.flows]
    if len(phases) > 1:
        named += [(f"{one.phase} faults", one) for one in phases]
    unit, scale = time_scale(
        [value for _, one in named for field in ("mean", "p999") for value in _known(one.fct_us, field)]
    )
    times = [f"{name} FCT ({unit})" for name in ("mean", "p50", "p99")]
    waits = bool(summary.never_started)
    rows = []
    for title, one in named:
        fct = [_cell(one.fct_us, field, scale) for field in ("mean", "p50", "p99")]
        # A flow that never began did so neither before nor after a fault.
        never = ["-" if isinstance(one, PhaseFacts) else f"{one.never_started:,}"] if waits else []
        rows.append([title, f"{one.flows:,}", f"{one.unfinished:,}", *never, *fct, _cell(one.slowdown, "mean")])
    return ["flows", "number", "unfinished", *(["never began"] if waits else []), *times, "mean slowdown"], rows


def _known(of: Distribution, field: str) -> list[float]:
    """Return a mean or a percentile, or its lower bound; nothing if there is neither."""
    found = getattr(of, field)
    found = getattr(of.at_least, field) if found is None and of.at_least is not None else found
    return [] if found is None else [found]


def _cell(of: Distribution, field: str, scale: float = 1.0) -> str:
    sign = "" if getattr(of, field) is not None else "≥ " if field == "mean" else "> "
    return "".join(f"{sign}{plain(value / scale)}" for value in _known(of, field)) or "-"


def summary_lines(summary: Summary) -> list[str]:
    """Return what became of the packets, and what else there is to say."""
    return [*_unfinished(summary), _packets(summary), *_pauses(summary), *fault_lines(summary), *_more(summary)]


def deadlock_words(links: Sequence[str]) -> str:
    """Say on which links nothing would ever have moved again, and that each waits for the next."""
    return (
        f"deadlock: {', which waits for '.join([*links, links[0]])}; nothing on these links would ever have moved again"
    )


def pause_words(found: LosslessFacts, simulated_us: float) -> str:
    """Say how much was paused, because of which link mostly, and how many flows that held up innocently."""
    if not found.pauses:
        return f"none; at most {_kilobytes(found.largest_shared_buffer_bytes)} waited in the memory of a switch"
    share = found.paused_us / (found.paused_queues * simulated_us) if simulated_us else 0.0
    links, each = plural(found.paused_links, "link"), "each"
    if found.paused_queues > found.paused_links:
        links, each = f"{found.paused_queues:,} queues of {links}", "each queue"
    said = f"{found.pauses:,} on {links}, {percent(share)} of the time of {each} on average"
    if found.root is not None and found.root_share is not None:
        said += f"; {percent(found.root_share)} of it goes back to {found.root}"
    if found.innocent_flows:
        were = "was" if found.innocent_flows == 1 else "were"
        said += f"; {plural(found.innocent_flows, 'innocent flow')} {were} held up"
    return said


def _kilobytes(size: int) -> str:
    return f"{plain(size / 1e3)} KB"


def _pauses(summary: Summary) -> list[str]:
    return [] if summary.lossless is None else [f"pauses: {pause_words(summary.lossless, summary.simulated_us)}"]


def _unfinished(summary: Summary) -> list[str]:
    """Say which flows did not finish, why, and what is a bound therefore."""
    if said := unfinished_words({summary.label: [summary]}, MEAN_FCT):
        return [f"{said}: ≥ and > stand before what they leave open"]
    return []


def _packets(summary: Summary) -> str:
    if summary.data_packets is None:
        # What is counted by flow leaves long-lived ones out, and there are no others.
        return f"{summary.label}, seed {summary.seed}: {plural(summary.dropped_packets, 'packet')} dropped"
    told = (_count(summary.data_packets, "data packets"), f"{summary.dropped_packets:,} dropped", *_counts(summary))
    return f"{summary.label}, seed {summary.seed}: {', '.join(told)}"


def _counts(of: Summary | Background) -> list[str]:
    """Say how many segments were sent again, and came out of order; a dash stands for what nobody counted."""
    share = of.out_of_order_share
    return [
        _count(of.retransmissions, "retransmitted"),
        _count(of.timeouts, "timeouts"),
        _count(of.out_of_order_packets, "out of order") + ("" if share is None else f" ({plain(100.0 * share)} %)"),
    ]


def _count(value: int | None, what: str) -> str:
    return f"{'-' if value is None else f'{value:,}'} {what}"


def _more(summary: Summary) -> list[str]:
    """Say why packets were sent again, which deadlines were missed, what long-lived flows carried."""
    lines = []
    if summary.retransmissions:
        resent = summary.resent
        lines.append(
            f"retransmissions: {_count(resent.after_loss, 'after a loss')}, "
            f"{_count(resent.after_reordering, 'after reordering')}, "
            f"{_count(resent.after_timeout, 'in vain after a timeout')}"
        )
    if share := summary.duplicate_acks.one_or_more:
        three = summary.duplicate_acks.three_or_more or 0.0
        lines.append(f"duplicate ACKs: {percent(share)} of flows had one or more, {percent(three)} three or more")
    if summary.missed_deadlines_share is not None:
        lines.append(f"deadlines: {percent(summary.missed_deadlines_share)} of the flows that have one missed it")
    if summary.background is not None and summary.background.goodput_mbps is not None:
        unit, scale = rate_scale([summary.background.goodput_mbps])
        mean = plain(summary.background.goodput_mbps / scale)
        packets = ", ".join((_count(summary.background.data_packets, "data packets"), *_counts(summary.background)))
        lines.append(
            f"{plural(summary.background.flows, 'long-lived flow')}: {mean} {unit} each, on average; {packets}"
        )
    if summary.unmeasured is not None:
        flows = plural(summary.unmeasured.flows, "flow")
        are = "is" if summary.unmeasured.flows == 1 else "are"
        lines.append(f"{flows} outside the window of measurement {are} in no average")
    return lines
