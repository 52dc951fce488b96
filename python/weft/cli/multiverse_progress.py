"""How far `weft multiverse` has come, on stderr."""

from weft.cli.sweep_progress import ShownSweep
from weft.multiverse.exploring import ProgressListener, Question
from weft.runs.progress import SweepProgress

__all__ = ["Shown"]


class Shown(ProgressListener):
    """Shows how far it has come."""

    def __init__(self, show: ShownSweep) -> None:
        self._show = show

    def begins(self, question: Question) -> None:
        """Say what is asked."""
        alternatives = sum(len(choice.others) for choice in question.choices.values())
        self._show.say(
            f"{len(question.claims)} claims, {len(question.figures)} figures, {len(question.choices)} open choices "
            f"with {alternatives} alternatives to the default"
        )
        for why in question.left_out.values():
            self._show.say(f"left out: {why}")

    def run(self, state: SweepProgress) -> None:
        """Show how far the runs of a step are."""
        self._show(state)

    def says(self, text: str) -> None:
        """Say what happens next."""
        self._show.say(text)
