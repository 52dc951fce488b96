"""Numbers are shown with three significant digits and the unit that suits them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.quantity import count, estimate_text, percent, plain, plural, time_us
from weft.statistics import estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.000123, "0.000123"),
        (0.00195, "0.00195"),
        (0.009999, "0.0100"),
        (0.0123, "0.0123"),
        (0.5, "0.500"),
        (1.234, "1.23"),
        (9.999, "10.0"),
        (12.34, "12.3"),
        (99.96, "100"),
        (12345.6, "12,346"),
        (-1.5, "-1.50"),
    ],
)
def test_plain(value: float, text: str) -> None:
    assert plain(value) == text


@given(st.floats(1e-4, 1e9))
def test_plain_is_within_half_a_percent(value: float) -> None:
    assert float(plain(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(("us", "text"), [(0.5, "0.500 µs"), (12.0, "12.0 µs"), (1500.0, "1.50 ms"), (2.5e6, "2.50 s")])
def test_time_takes_the_unit_that_suits(us: float, text: str) -> None:
    assert time_us(us) == text


def test_count_and_percent() -> None:
    assert [count(value) for value in (7, 9_999, 12_345, 4.56e6, 7.89e9)] == [
        "7",
        "9,999",
        "12.3 k",
        "4.56 M",
        "7.89 G",
    ]
    assert percent(0.123) == "12.3 %"


def test_estimates_show_their_interval_only_when_there_is_one() -> None:
    assert estimate_text(None, "us") == "-"
    assert estimate_text(estimate([1500.0]), "us", 1e3) == "1.50"
    assert estimate_text(estimate([12345.0]), "count") == "12,345"
    assert estimate_text(estimate([0.01, 0.03]), "share") == "2.00 ± 12.7"


def test_one_thing_is_one() -> None:
    assert [plural(number, "run") for number in (0, 1, 2, 12_345)] == ["0 runs", "1 run", "2 runs", "12,345 runs"]
