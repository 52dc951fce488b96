"""Fits of `weft fit qall` to observations, and their use as parameters of `qall-poly`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Weft
from weft.errors import SpecError
from weft.fitting import Observations, exponents, fit, report, value

SMALL = """
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
switch_queue = { buffer = "64packets" }

[traffic]
workload = "web-search"
load = 0.7
flows = 40

[transport]
name = "tcp"
"""


def scattered(rows: int) -> Observations:
    """Occupancies and intervals all over their range, without traffic."""
    random = np.random.default_rng(7)
    return Observations(random.random(rows), random.random(rows) ** 2, np.ones(rows))


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 8, 10])
def test_a_fit_to_a_known_polynomial_gives_its_coefficients_back(degree: int) -> None:
    at = scattered(4_000)
    random = np.random.default_rng(degree)
    # Traffic of 0.1 to 0.9 of the rate.
    terms = exponents(degree)
    known = (0.5, *random.uniform(-0.4, 0.4, len(terms) - 1) / len(terms))
    # The values have no noise, so what is left is rounding. Powers of numbers from 0 to 1 are nearly alike: at degree
    # 10 in two variables ten of sixteen digits may go.
    exact = Observations(at.occupancy, at.interval, value(known, degree, at))
    training, test = exact.split()
    found = fit(degree, training, test)
    assert np.allclose(found.coefficients, known, rtol=0.0, atol=1e-6)
    assert found.r2 == pytest.approx(1.0, abs=1e-9)
    assert found.mre < 1e-9


def test_accuracy_is_of_values_as_the_scheme_holds_them() -> None:
    # 2 L in training, and a test at L = 1, beyond it, where it is 2 and counts as 1.
    column = np.array([0.0, 0.1, 0.2, 0.5])
    training = Observations(column, column[::-1] ** 2, 2.0 * column)
    test = Observations(np.array([1.0, 0.25]), np.array([0.0, 0.0]), np.array([1.0, 0.5]))
    found = fit(1, training, test)
    assert found.coefficients == pytest.approx((0.0, 2.0, 0.0), abs=1e-12)
    assert (found.r2, found.mre) == pytest.approx((1.0, 0.0))


def test_accuracy_is_measured_as_the_definitions_say_by_hand() -> None:
    # A constant traffic of 1 in training makes the plane 1; the test has 1 and 2, a mean of 1.5, errors 0 and -1.
    column = np.array([0.0, 0.5, 1.0, 0.2])
    training = Observations(column, column[::-1] ** 2, np.ones(4))
    test = Observations(np.array([0.1, 0.9]), np.array([0.3, 0.4]), np.array([1.0, 2.0]))
    found = fit(1, training, test)
    assert found.r2 == pytest.approx(1.0 - 1.0 / 0.5)
    assert found.mre == pytest.approx((0.0 + 0.5) / 2)


def test_three_quarters_are_for_training_each_row_once_and_the_same_every_time() -> None:
    rows = 200_000
    numbers = np.arange(rows, dtype=np.float64)
    training, test = Observations(numbers, numbers, numbers).split()
    assert (len(training), len(test)) == (150_000, 50_000)
    assert np.array_equal(np.sort(np.concatenate([training.traffic, test.traffic])), numbers)
    # Each eighth row is of one port; of each port a quarter is for the test: 6,250 with a standard deviation of 65.
    per_port = np.bincount(test.traffic.astype(int) % 8)
    assert np.all(np.abs(per_port - 6_250) < 5 * 65)
    again = Observations(numbers, numbers, numbers).split()[1]
    assert np.array_equal(again.traffic, test.traffic)


def test_what_cannot_be_fitted_is_refused_with_the_reason() -> None:
    at = scattered(1_000)
    with pytest.raises(SpecError, match="degrees from 1 to 10"):
        report(at, [11])
    with pytest.raises(SpecError, match=r"traffic is 1 in all"):
        report(at, [1])
    few = at.rows(slice(20))
    with pytest.raises(SpecError, match="20 observations are too few for degree 10"):
        report(few, [10])
    alike = Observations(at.occupancy, np.ones(1_000), at.occupancy)
    with pytest.raises(SpecError, match="--time-constant"):
        report(alike, [1])


def fit_small(weft_command: Weft, tmp_path: Path, *options: str) -> dict[str, Any]:
    spec = tmp_path / "small.toml"
    spec.write_text(SMALL)
    out = tmp_path / "fit.json"
    arguments = ("--samples", "800", "--degrees", "1,2", "--window", "100us", "--time-constant", "1ms")
    outcome = weft_command("fit", "qall", spec, "--out", out, *arguments, *options)
    assert outcome.code == 0, outcome
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_what_the_command_writes_is_what_qall_poly_takes(weft_command: Weft, tmp_path: Path) -> None:
    document = fit_small(weft_command, tmp_path)
    assert [one["degree"] for one in document["polynomials"]] == [1, 2]
    assert document["time_constant"] == "1ms"
    runs = document["provenance"]["runs"]
    assert sum(run["samples"] for run in runs) == 800
    assert [run["seed"] for run in runs] == list(range(1, len(runs) + 1))
    # The file counts from the folder of the spec, and gives other results than the published polynomial.
    file = ("--set", "scheme.name=qall-poly", "--set", "scheme.file=fit.json", "--set", "scheme.degree=2")
    fitted = weft_command("run", str(tmp_path / "small.toml"), *file, "--json").json()
    published = weft_command("run", str(tmp_path / "small.toml"), *file[:2], "--json").json()
    assert fitted["flows"] == 40
    assert fitted["spec_hash"] != published["spec_hash"]
    # The same coefficients by hand, in hundredths, are the same scheme.
    hundredths = [100.0 * value for value in document["polynomials"][1]["coefficients"]]
    by_hand = ("--set", f"scheme.coefficients={hundredths}", "--set", "scheme.time_constant=1ms")
    same = weft_command("run", str(tmp_path / "small.toml"), *file[:2], *by_hand, "--json").json()
    assert same["fct_us"] == fitted["fct_us"]


def test_one_seed_gives_one_file(weft_command: Weft, tmp_path: Path) -> None:
    first = fit_small(weft_command, tmp_path)
    assert fit_small(weft_command, tmp_path, "--force") == first
    assert fit_small(weft_command, tmp_path, "--force", "--seed", "9") != first


def test_a_file_that_does_not_fit_gets_one_message(weft_command: Weft, tmp_path: Path) -> None:
    fit_small(weft_command, tmp_path)
    spec = str(tmp_path / "small.toml")
    poly = ("--set", "scheme.name=qall-poly", "--set", "scheme.file=fit.json")
    table = [
        (("run", spec, *poly), "has the degrees 1, 2: allowed is one of those"),
        (("run", spec, *poly[:2], "--set", "scheme.file=none.json"), "which cannot be read"),
        (("run", spec, *poly[:2], "--set", "scheme.file=small.toml"), "which holds no fits"),
        (("run", spec, *poly[:2], "--set", "scheme.coefficients=[1, 2]"), "an array of 2"),
        (("fit", "qall", spec, "--out", str(tmp_path / "fit.json")), "--force replaces it"),
        (("fit", "qall", spec, "--degrees", "3,x"), "--degrees '3,x'"),
        (("fit", "qall", spec, "--window", "5"), "window"),
        (("fit", "qall", spec, "--set", "fabric.switch_queue.buffer=unlimited"), "has no limit"),
    ]
    for arguments, part in table:
        failed = weft_command(*arguments)
        assert (failed.code, failed.stdout) == (2, ""), arguments
        assert part in failed.stderr, arguments
