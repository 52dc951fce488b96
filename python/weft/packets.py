"""The packets that links send, one by one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft import _core
from weft.simulation import Overrides, ProgressCallback, override_pairs
from weft.spec import SpecLike, load_spec

if TYPE_CHECKING:
    import polars as pl

__all__ = ["packets"]


def packets(
    at: Sequence[str] = (),
    *,
    flows: Sequence[int] | None = None,
    variant: str | None = None,
    spec: SpecLike = "",
    set: Overrides = (),  # noqa: A002 - the same word as on the command line
    seed: int | None = None,
    most: int = 20_000_000,
    progress: ProgressCallback | None = None,
) -> "pl.DataFrame":
    """Run a variant, as `weft.compare` names them, and return what some links sent: a row a packet, by time.

    `at` names links, or hosts and switches, which stand for all links from and to them; `"hosts"` stands for the
    cables of all hosts, away from them. With `flows`, numbers as in the table of flows, it is their packets alone, at
    every link unless `at` names some. At most `most` packets, the first ones queued, are kept.
    """
    import polars as pl

    text = load_spec(spec)
    listed = _core.packets(
        text.text,
        base_dir=text.base_dir,
        overrides=override_pairs(set),
        seed=seed,
        progress=progress,
        origin=text.origin,
        variant=variant,
        at=at,
        flows=flows,
        most=most,
    )
    return pl.DataFrame(listed)
