"""The papers: their experiments and figures as data, what makes them again, and the verdicts on their claims."""

import os
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.papers.declared import Hosts, Scale
    from weft.papers.reproduction import ProgressListener, Reproduction
    from weft.runs.cluster import Cluster

__all__ = ["reproduce"]


def reproduce(
    paper: str,
    *figures: str,
    scale: "Scale" = "quick",
    hosts: "Hosts" = "simulated",
    seeds: int | None = None,
    flows: int | None = None,
    scenario: str | None = None,
    oracle: bool = False,
    scheme: str | None = None,
    scenarios: "Iterable[str | os.PathLike[str]]" = (),
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    force: bool = False,
    cluster: "Cluster | None" = None,
    store: str | os.PathLike[str] | None = None,
    watch: "ProgressListener | Literal[False] | None" = None,
) -> "Reproduction":
    """Make figures of a paper again, or all of them: runs, drawings, data and verdicts.

    `paper` is "meet", "tr", "qall", "lbt", "maxpass" or "all"; `figures` are names as in `weft reproduce --list`, by
    default all of the paper. With `seeds`, no more than the first so many seeds of each experiment are run, and
    with `flows` no run has more flows than so many; the figures and verdicts say so. `scenario` changes choices that
    the paper leaves open, as in `"drill.memory=rack"`: what there is to choose, `weft multiverse PAPER --list` shows.
    `oracle` puts a perfect per-packet choice (reference) beside the others. `scheme` is a load balancer, such as
    `"my.py:Least"`, in the place of the paper's own: claims are then judged of it. `scenarios` are directories of `weft
    multiverse`: a claim that is reproduced in another scenario than the default gets a verdict of its own, which names
    that scenario. `out` is `out/reproduce-quick`, `-paper` or `-linux` unless told. Runs that are in the store
    (`store`, by default `.weft` beside `out`) are not done again, unless `force` says so; a run that fails does not
    stop the rest. `jobs` and `cluster` are as for `weft.sweep`; `watch` is told how far it has come; without it there
    is a bar in a notebook and on a terminal, unless it is False.

    With `hosts="linux"`, figures that have a set-up with Linux hosts are made twice at a scale of their own, of the
    same flows: with Linux hosts, and `beside` what comes of it with simulated hosts.

    Raises `SpecError` for an unknown name, before anything is run, and `OutputError` if `out` holds something else, is
    in use, or cannot be written.
    """
    from weft.multiverse.result_file import other_interpretations
    from weft.papers.reproduction import Barred, make_figures
    from weft.progress_bar import sweep_bar

    with sweep_bar(None if watch is None else False, "reproduce") as show:
        return make_figures(
            paper,
            figures,
            scale=scale,
            hosts=hosts,
            seeds=seeds,
            flows=flows,
            scenario=scenario,
            oracle=oracle,
            scheme=scheme,
            others=other_interpretations(scenarios),
            out=out,
            jobs=jobs,
            cluster=cluster,
            force=force,
            store=store,
            watch=Barred(show) if show else watch or None,
        )
