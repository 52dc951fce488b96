"""Progress of `weft reproduce` on stderr: that of the runs, and a line for each figure as it is made."""

from weft.cli.sweep_progress import ShownSweep
from weft.papers.making import Made
from weft.papers.reproduction import ProgressListener
from weft.quantity import clock
from weft.runs.progress import SweepProgress

__all__ = ["Shown", "many"]


class Shown(ProgressListener):
    """Passes on how far the runs are, and says the rest in lines."""

    def __init__(self, show: ShownSweep) -> None:
        self._show = show

    def begins(self, figures: int, runs: int, kept: int) -> None:
        """Say how much there is to do."""
        already = f", {kept:,} of them there already" if kept else ""
        self._show.say(f"{many(figures, 'figure')} from {many(runs, 'run')}{already}")

    def run(self, state: SweepProgress) -> None:
        """Show how far the runs are."""
        self._show(state)

    def made(self, made: Made) -> None:
        """Say that a figure is there, or why it is not."""
        took = "made"
        # The CPU time of Linux hosts is that of other processes, which nobody adds up.
        if made.data is None or made.data.runs.scale != "linux":
            took += f"; by itself {clock(made.seconds)} on two quiet cores"
        self._show.say(f"{made.figure.key}: {took if made.error is None else f'not made: {made.error}'}")


def many(number: int, name: str) -> str:
    """Count things: `1 figure`, `72 runs`."""
    return f"{number:,} {name}{'s' * (number != 1)}"
