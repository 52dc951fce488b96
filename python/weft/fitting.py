"""Polynomials of a port's traffic in the occupancy and dequeue interval of its queue (QALL, section V-A)."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from weft import _core
from weft.errors import SpecError
from weft.spec import SpecText

__all__ = [
    "DEGREES",
    "PAPER",
    "Fit",
    "Observations",
    "Reading",
    "Report",
    "Source",
    "first_seed",
    "fit",
    "observe",
    "report",
]

Vector: TypeAlias = npt.NDArray[np.float64]
Reading: TypeAlias = Literal["latest", "mean"]
"""Value that represents a window: that of the last packet to leave the queue in it, or the mean over all packets."""

DEGREES = (1, 2, 3, 5, 8, 10)
MAX_DEGREE = 10
RESOLUTION = 0.01
"""Resolution of the fit as a share of a port's rate: QALL rounds its coefficients to hundredths."""

NOT_SEEN = 1e-8
"""Directions in which the terms vary by less than this share of the most are left out of a fit: queues of whole packets
take few values, so that high powers of them are nearly sums of others, and what is left over is rounding, which differs
from one processor to the next."""


@dataclass(frozen=True, slots=True)
class Paper:
    """Published result of QALL: section III-B and Table I, R^2 and mean relative error by degree."""

    occupancy_correlation: float
    interval_correlation: float
    table: Mapping[int, tuple[float, float]]


PAPER = Paper(
    occupancy_correlation=0.7824,
    interval_correlation=-0.7308,
    table={
        1: (0.5772, 0.3687),
        2: (0.6277, 0.2755),
        3: (0.6738, 0.2739),
        5: (0.7312, 0.2696),
        8: (0.7358, 0.2638),
        10: (0.7452, 0.2114),
    },
)


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations of ports in windows of time, one number each: occupancy, interval and traffic, all from 0 to 1."""

    occupancy: Vector
    """Occupancy of the queue, as a share of its capacity."""
    interval: Vector
    """Between two packets that leave the queue, as a share of the time constant; longer ones count as that."""
    traffic: Vector
    """Bytes that left the queue, as a share of the bytes that the port can send in a window."""

    def __len__(self) -> int:
        return len(self.traffic)

    def rows(self, which: "npt.NDArray[np.intp] | slice") -> "Observations":
        """Some of them."""
        return Observations(self.occupancy[which], self.interval[which], self.traffic[which])

    def split(self) -> tuple["Observations", "Observations"]:
        """Three quarters to fit to and one quarter to test with, as QALL's 150,000 and 50,000.

        Which row goes where follows from a hash of its number, and not from its place: neighbours are alike.
        """
        order = np.argsort(_mix64(np.arange(len(self), dtype=np.uint64)), kind="stable")
        cut = 3 * len(self) // 4
        return self.rows(np.sort(order[:cut])), self.rows(np.sort(order[cut:]))

    @classmethod
    def join(cls, parts: Sequence["Observations"]) -> "Observations":
        """All rows of several, in order."""
        columns = zip(*((part.occupancy, part.interval, part.traffic) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def _mix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64: a permutation of 64-bit words."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def exponents(degree: int) -> list[tuple[int, int]]:
    """The powers of L and T in the terms of a polynomial, in order: 1; L, T; L^2, L T, T^2; and so on."""
    return [(total - of_t, of_t) for total in range(degree + 1) for of_t in range(total + 1)]


@dataclass(frozen=True, slots=True)
class Fit:
    """One polynomial, and how well its values, held between 0 and 1, do on observations that it was not fitted to."""

    degree: int
    coefficients: tuple[float, ...]
    """In the order of `exponents`."""
    r2: float
    """Share of the variance of traffic that it explains."""
    mre: float
    """Mean of the relative error of traffic."""

    def to_dict(self) -> dict[str, Any]:
        """As in a file of fits."""
        return {"degree": self.degree, "coefficients": list(self.coefficients), "r2": self.r2, "mre": self.mre}


def value(coefficients: Sequence[float], degree: int, at: Observations) -> Vector:
    """The polynomial at each observation, worked out term by term as `qall-poly` does."""
    powers_l = [np.ones(len(at))]
    powers_t = [np.ones(len(at))]
    for _ in range(degree):
        powers_l.append(powers_l[-1] * at.occupancy)
        powers_t.append(powers_t[-1] * at.interval)
    total: Vector = np.zeros(len(at))
    for coefficient, (of_l, of_t) in zip(coefficients, exponents(degree), strict=True):
        total += coefficient * powers_l[of_l] * powers_t[of_t]
    return total


def fit(degree: int, training: Observations, test: Observations) -> Fit:
    """Fit a polynomial by least squares (QALL eq. 7), and measure it on the test set.

    Powers of numbers from 0 to 1 are nearly alike, so the system is set up in Chebyshev polynomials of both
    variables, each stretched from its own range to -1 to 1, and solved by singular values (but for those that the
    data do not show); the coefficients of powers follow from that. Raises `SpecError` if rounding in them is as much
    as a hundredth of the rate: then the degree asks too much of the data.
    """
    basis_l = _Basis.over(training.occupancy, degree)
    basis_t = _Basis.over(training.interval, degree)
    terms = exponents(degree)
    columns_l, columns_t = basis_l.columns(training.occupancy), basis_t.columns(training.interval)
    matrix = np.stack([columns_l[:, of_l] * columns_t[:, of_t] for of_l, of_t in terms], axis=1)
    solution = np.linalg.lstsq(matrix, training.traffic, rcond=NOT_SEEN)[0]
    grid = np.zeros((degree + 1, degree + 1))
    for weight, (of_l, of_t) in zip(solution, terms, strict=True):
        grid += weight * np.outer(basis_l.powers[of_l], basis_t.powers[of_t])
    coefficients = tuple(float(grid[term]) for term in terms)
    rounding = float(np.max(np.abs(value(coefficients, degree, training) - matrix @ solution)))
    if not rounding < RESOLUTION:
        raise SpecError(
            f"--degrees {degree}: its coefficients cannot be written in double precision for these observations "
            f"(off by {rounding:.1g} of a port's rate); take a lower degree or a shorter --time-constant"
        )
    # As the scheme uses it: traffic is not negative, and at most the rate.
    error = np.clip(value(coefficients, degree, test), 0.0, 1.0) - test.traffic
    spread = test.traffic - test.traffic.mean()
    r2 = 1.0 - float(error @ error) / float(spread @ spread)
    return Fit(degree, coefficients, r2, float(np.mean(np.abs(error) / test.traffic)))


@dataclass(frozen=True, slots=True)
class _Basis:
    """Chebyshev polynomials of one variable, stretched over the range of the data."""

    middle: float
    half: float
    powers: Vector
    """A row for each: its coefficients of the powers of the variable itself."""

    @classmethod
    def over(cls, data: Vector, degree: int) -> "_Basis":
        low, high = float(data.min()), float(data.max())
        middle, half = (low + high) / 2.0, (high - low) / 2.0 or 1.0
        powers = np.zeros((degree + 1, degree + 1))
        stretched = np.polynomial.Polynomial([-middle / half, 1.0 / half])
        for index in range(degree + 1):
            plain = np.polynomial.Polynomial(np.polynomial.chebyshev.cheb2poly([0.0] * index + [1.0]))
            coefficients = plain(stretched).coef
            powers[index, : len(coefficients)] = coefficients
        return cls(middle, half, powers)

    def columns(self, data: Vector) -> Vector:
        stretched = (data - self.middle) / self.half
        return np.polynomial.chebyshev.chebvander(stretched, len(self.powers) - 1).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a fit: two correlations and a fit for each degree."""

    observations: int
    training: int
    test: int
    occupancy_correlation: float
    interval_correlation: float
    fits: tuple[Fit, ...]


def report(observations: Observations, degrees: Iterable[int]) -> Report:
    """Work out the correlations over all observations, and fit to three quarters of them."""
    wanted = sorted(set(degrees))
    if not wanted or wanted[0] < 1 or wanted[-1] > MAX_DEGREE:
        raise SpecError(f"--degrees {','.join(map(str, wanted))}: allowed are degrees from 1 to {MAX_DEGREE}")
    training, test = observations.split()
    terms = len(exponents(wanted[-1]))
    if len(training) < 2 * terms:
        raise SpecError(
            f"{len(observations)} observations are too few for degree {wanted[-1]}, which has {terms} coefficients: "
            "raise --samples, or the traffic"
        )
    for name, column in (("queue occupancy", observations.occupancy), ("traffic", observations.traffic)):
        if np.ptp(column) == 0.0:
            raise SpecError(f"the {name} is {column[0]:.3g} in all observations: there is nothing to fit to")
    if np.ptp(observations.interval) == 0.0:
        raise SpecError("all dequeue intervals are alike: raise --time-constant, which caps them")

    def correlation(column: Vector) -> float:
        return float(np.corrcoef(column, observations.traffic)[0, 1])

    return Report(
        len(observations),
        len(training),
        len(test),
        correlation(observations.occupancy),
        correlation(observations.interval),
        tuple(fit(degree, training, test) for degree in wanted),
    )


@dataclass(frozen=True, slots=True)
class Source:
    """A run to observe, as often as it takes with one seed after the other."""

    spec: SpecText
    overrides: tuple[tuple[str, str], ...]
    seed: int
    name: str


Watch: TypeAlias = Callable[[str, int], Callable[[_core.Progress], None] | None]
"""Is told of each run, by name and seed, and gives its progress callback."""


def observe(
    sources: Sequence[Source],
    samples: int,
    *,
    window: str,
    time_constant: str,
    ports: str,
    reading: Reading,
    watch: Watch = lambda _name, _seed: None,
) -> tuple[Observations, list[dict[str, Any]]]:
    """Collect observations, the same number from each source; and list the runs that gave them."""
    share, rest = divmod(samples, len(sources))
    parts: list[Observations] = []
    runs: list[dict[str, Any]] = []
    for index, source in enumerate(sources):
        missing = share + (1 if index < rest else 0)
        for seed in count(source.seed) if missing else ():
            text = source.spec
            table = _core.observe(
                text.text,
                base_dir=text.base_dir,
                overrides=list(source.overrides),
                seed=seed,
                origin=text.origin,
                progress=watch(source.name, seed),
                window=window,
                time_constant=time_constant,
            )
            found = _observations(table, ports, reading)
            if not len(found):
                raise SpecError(f"{source.name}, seed {seed}: no packet left the queue of a port to observe ({ports})")
            part = found.rows(slice(missing))
            parts.append(part)
            spec_hash = _resolved(text, source.overrides, seed)["spec_hash"]
            runs.append({"name": source.name, "seed": seed, "spec_hash": spec_hash, "samples": len(part)})
            missing -= len(part)
            if not missing:
                break
    return Observations.join(parts), runs


def first_seed(spec: SpecText, overrides: Sequence[tuple[str, str]], seed: int | None) -> int:
    """The seed to begin with: the one given, or the spec's. Raises `SpecError` for a mistake in the spec."""
    found: int = _resolved(spec, overrides, seed)["spec"]["run"]["seed"]
    return found


def _resolved(spec: SpecText, overrides: Sequence[tuple[str, str]], seed: int | None) -> dict[str, Any]:
    text = _core.resolve(spec.text, base_dir=spec.base_dir, overrides=list(overrides), seed=seed, origin=spec.origin)
    found: dict[str, Any] = json.loads(text)
    return found


def _observations(table: "_core.Table", ports: str, reading: Reading) -> Observations:
    import polars as pl

    frame = pl.DataFrame(table)
    if ports != "all":
        frame = frame.filter(pl.col("tier") == ports)
    unlimited = frame.filter(pl.col("occupancy").is_null())
    if not unlimited.is_empty():
        raise SpecError(
            f"the queue of {unlimited['link'][0]} has no limit, and occupancy is a share of it: set a buffer"
        )
    prefix = "mean_" if reading == "mean" else ""
    names = (f"{prefix}occupancy", f"{prefix}interval", "traffic")
    return Observations(*(frame[name].to_numpy().astype(np.float64) for name in names))


def document(found: Report, time_constant: str, provenance: Mapping[str, Any]) -> dict[str, Any]:
    """A file of fits, as `qall-poly` reads it."""
    return {
        "scheme": "qall-poly",
        "time_constant": time_constant,
        "polynomials": [one.to_dict() for one in found.fits],
        "order": "1; L, T; L^2, L T, T^2; L^3, L^2 T, L T^2, T^3; and so on",
        "meaning": "traffic as a share of a port's rate; L as a share of its buffer; T as a share of time_constant",
        "correlation": {"occupancy": found.occupancy_correlation, "interval": found.interval_correlation},
        "provenance": {
            "weft": _core.version(),
            "observations": found.observations,
            "training": found.training,
            "test": found.test,
            **provenance,
        },
    }


def table(found: Report) -> Iterator[tuple[Fit, tuple[float, float] | None]]:
    """Each fit, and R^2 and mean relative error of the paper's Table I where it has that degree."""
    for one in found.fits:
        yield one, PAPER.table.get(one.degree)
