"""TR's Fig. 6: the completion times of the paper's model beside simulated ones.

The scenario is that of the paper's section Design motivation, at its full size: the preset `tr-micro`, with flows of
one size that start together, as the model has them, in place of random ones. The paper does not say which flow it
shows, nor how many flows the second plot goes up to: here it is the mean over all flows, and up to the 100 of the
scenario.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft import _core, figures
from weft.catalog import preset
from weft.errors import SpecError
from weft.jobs import Job, JobsCallback, default_jobs, run_jobs
from weft.models import work_out
from weft.output import staged_directory
from weft.spec import SpecText
from weft.statistics import Estimate, estimate
from weft.variant import parse_variants

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from weft.simulation import Result

__all__ = [
    "PANELS",
    "SCHEMES",
    "Figure6",
    "Point",
    "Row",
    "figure6",
    "model_time_us",
    "runs_of",
    "spec_of",
    "trace",
    "trace_name",
]

SCHEMES = ("rps", "tr")
_GROUP = 10
"""Hosts of a group: each pair of one of the first group and one of the second has the same number of flows."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the axis of a plot: how many flows, and how large they are."""

    flows: int
    size_kb: int


PANELS: Mapping[str, Sequence[Point]] = {
    "a": tuple(Point(20, size_kb) for size_kb in (100, 150, 200, 250, 300, 350)),
    "b": tuple(Point(flows, 300) for flows in (20, 40, 60, 80, 100)),
}
"""The points of Fig. 6a (20 flows of more and more bytes) and of Fig. 6b (more and more flows of 300 KB)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One scheme at one point."""

    panel: str
    point: Point
    scheme: str
    model_us: float
    simulated_us: Estimate
    """Mean completion time of all flows, over the seeds."""
    resent: Estimate
    """Share of the flows that sent a packet again."""
    resent_model: float
    """What the model says of that."""

    @property
    def ratio(self) -> float:
        """How many times as long as the model says the simulated flows took."""
        return self.simulated_us.mean / self.model_us


@dataclass(frozen=True, slots=True)
class Figure6:
    """The points of the figure, and how to show them."""

    rows: Sequence[Row]
    seeds: int

    @property
    def table(self) -> "pl.DataFrame":
        """A row for each plot, point and scheme."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "panel": row.panel,
                    "scheme": row.scheme,
                    "flows": row.point.flows,
                    "size_kb": row.point.size_kb,
                    "model_us": row.model_us,
                    "simulated_us": row.simulated_us.mean,
                    "simulated_us_ci95": row.simulated_us.half_width,
                    "simulated_to_model": row.ratio,
                    "resent_model": row.resent_model,
                    "resent_simulated": row.resent.mean,
                }
                for row in self.rows
            ]
        )

    def plot(self) -> "Figure":
        """Draw both plots."""
        runs = f"{self.seeds} seeds, 95 % confidence" if self.seeds > 1 else "one seed"
        return figures.model_beside_simulation(
            [
                self._panel("a", "20 flows", "size of a flow (KB)"),
                self._panel("b", "Flows of 300 KB", "number of flows"),
            ],
            y_label="flow completion time (ms)",
            note="Ten paths of 1 Gbit/s, five of 200 and five of 500 µs around, buffers of 250 packets. "
            "Model: TR Eqs. 7 and 8 (TR at its worst).\n"
            f"Simulation at full size: DCTCP, mean of all flows over {runs}.",
        )

    def write(self, directory: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the points as CSV and Parquet and the figure as PNG and PDF."""
        target = Path(directory)
        with staged_directory(target, force=force) as staging:
            (staging / "table.csv").write_text(self.table.write_csv(), encoding="utf-8")
            # By way of memory: a full disk is then an OSError, as everywhere else.
            parquet = BytesIO()
            self.table.write_parquet(parquet)
            (staging / "table.parquet").write_bytes(parquet.getvalue())
            place = staging / "figures"
            place.mkdir()
            figure = self.plot()
            for suffix in ("png", "pdf"):
                figures.save(figure, place / f"completion-times.{suffix}")
            (staging / "figure.json").write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        return target

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "version": _core.version(),
            "figure": "tr 6",
            "seeds": self.seeds,
            "rows": self.table.to_dicts(),
        }

    def _panel(self, name: str, title: str, x_label: str) -> figures.Panel:
        curves = {}
        for scheme in SCHEMES:
            rows = [row for row in self.rows if row.panel == name and row.scheme == scheme]
            curves[scheme.upper()] = figures.Curve(
                [row.point.size_kb if name == "a" else row.point.flows for row in rows],
                [row.model_us / 1e3 for row in rows],
                [_in_ms(row.simulated_us) for row in rows],
            )
        return figures.Panel(f"({name}) {title}", x_label, curves)


def figure6(
    *,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    jobs: int | None = None,
    panels: Mapping[str, Sequence[Point]] = PANELS,
    progress: JobsCallback | None = None,
) -> Figure6:
    """Simulate every point with RPS and with TR, once for each seed, and work the model out beside it.

    `jobs` limits how many runs go on at a time; `progress` is told of each run. Raises `SpecError` for a repeated or
    negative seed.
    """
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise SpecError(f"seeds: expected one or more different numbers from 0, not {list(seeds)}")
    points = sorted({point for own in panels.values() for point in own}, key=lambda point: (point.flows, point.size_kb))
    with tempfile.TemporaryDirectory() as folder:
        plan = _plan(points, seeds, Path(folder))
        results = run_jobs(
            list(plan), workers=jobs or default_jobs(), keep=lambda _job, result: result, progress=progress
        )
    simulated: dict[tuple[Point, str], list[Result]] = {}
    for (point, scheme), result in zip(plan.values(), results, strict=True):
        simulated.setdefault((point, scheme), []).append(result)
    rows = [
        _row(panel, point, scheme, simulated[point, scheme])
        for panel, own in panels.items()
        for scheme in SCHEMES
        for point in own
    ]
    return Figure6(rows, len(seeds))


def runs_of(panels: Mapping[str, Sequence[Point]], seeds: int) -> int:
    """Count the runs that the figure takes."""
    return len({point for own in panels.values() for point in own}) * len(SCHEMES) * seeds


def _plan(points: Sequence[Point], seeds: Sequence[int], folder: Path) -> dict[Job, tuple[Point, str]]:
    base = preset("tr-micro").spec
    plan: dict[Job, tuple[Point, str]] = {}
    for point in points:
        name = trace_name(point)
        (folder / name).write_text(trace(point), encoding="utf-8")
        spec = replace(base.with_table("traffic", {"trace": name}), base_dir=str(folder))
        for variant in parse_variants(SCHEMES):
            own_spec, own = variant.apply(spec)
            for seed in seeds:
                plan[Job(len(plan), variant, seed, own_spec, tuple(own))] = (point, variant.label)
    return plan


def spec_of(scheme: str, seed: int, trace_file: Path) -> SpecText:
    """Return the spec of one run of the figure, whose flows stand in a file."""
    spec = preset("tr-micro").spec.with_table("traffic", {"trace": str(trace_file)})
    return spec.with_table("balancer", {"name": scheme}).with_table("run", spec.table("run") | {"seed": seed})


def trace_name(point: Point) -> str:
    """Name the file of a point's flows."""
    return f"{point.flows}-flows-of-{point.size_kb}-kb.csv"


def trace(point: Point) -> str:
    """All flows at once, from each host of the first group to its counterpart in the second in turn."""
    rows = [f"0,{index % _GROUP},{_GROUP + index % _GROUP},{1_000 * point.size_kb}" for index in range(point.flows)]
    return "\n".join(["start_us,src,dst,size_bytes", *rows, ""])


def model_time_us(point: Point, scheme: str) -> float:
    """Return the completion time that the paper's model gives at a point, in microseconds."""
    return work_out("tr", {"flows": point.flows, "size": f"{point.size_kb}KB"}).value(f"{scheme}_time")


def _row(panel: str, point: Point, scheme: str, runs: Sequence["Result"]) -> Row:
    model = work_out("tr", {"flows": point.flows, "size": f"{point.size_kb}KB"})
    resent = [int((run.flows["retransmissions"] > 0).sum()) / point.flows for run in runs]
    return Row(
        panel=panel,
        point=point,
        scheme=scheme,
        model_us=model_time_us(point, scheme),
        simulated_us=estimate([float(run.flows["fct_us"].to_numpy().mean()) for run in runs]),
        resent=estimate(resent),
        resent_model=model.value("reordered") if scheme == "rps" else 0.0,
    )


def _in_ms(value: Estimate) -> Estimate:
    width = None if value.half_width is None else value.half_width / 1e3
    return Estimate(value.mean / 1e3, width, value.runs)
