"""Contenders are read as they were written, and a spec's parameters stay with their scheme."""

import pytest

from weft import SpecError
from weft.cli.compare import parse_seeds, split_schemes
from weft.spec import SpecText
from weft.variant import parse_variants, slug


def test_parameters_follow_the_name() -> None:
    (variant,) = parse_variants(["letflow:gap=100us"])
    assert variant.label == "letflow:gap=100us"
    assert variant.apply(SpecText("")) == (
        SpecText(""),
        [("balancer.name", "letflow"), ("balancer.gap", "100us")],
    )


def test_an_unknown_scheme_is_answered_with_the_nearest() -> None:
    with pytest.raises(SpecError, match="'letflw'; did you mean 'letflow'"):
        parse_variants(["ecmp", "letflw"])


def test_a_transport_competes_with_the_load_balancer_of_the_spec_or_with_its_own() -> None:
    spec = SpecText('[balancer]\nname = "letflow"\ngap = "9us"\n[transport]\nname = "tcp"\nsack = true\n')
    plain, both = parse_variants(["dctcp:g=0.5", "tcp + ecmp:hash=shared"])
    text, overrides = plain.apply(spec)
    assert overrides == [("transport.name", "dctcp"), ("transport.g", "0.5")]
    assert text.table("balancer") == {"name": "letflow", "gap": "9us"}
    assert text.table("transport") == {"name": "dctcp"}, "the keys of one transport mean nothing to another"
    text, overrides = both.apply(spec)
    assert overrides == [("transport.name", "tcp"), ("balancer.name", "ecmp"), ("balancer.hash", "shared")]
    assert text.table("balancer") == {"name": "ecmp"}
    assert text.table("transport") == {"name": "tcp", "sack": True}
    assert both.slug == "tcp-ecmp-hash-shared"


@pytest.mark.parametrize(
    ("contender", "message"),
    [
        ("dctpc", "no scheme 'dctpc'; did you mean 'dctcp'.*transports: tcp, dctcp"),
        ("dctcp+letflw", "no scheme 'letflw'; did you mean 'letflow'"),
        ("letflow+dctcp", "the transport comes first, as in dctcp[+]letflow"),
        ("dctcp:g", "dctcp|g"),
    ],
)
def test_a_transport_that_there_is_not_and_a_wrong_order_are_named(contender: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_variants([contender])


@pytest.mark.parametrize("schemes", [[], ["ecmp", "ecmp"], ["letflow:gap=1us", "letflow: gap=1us"]])
def test_no_scheme_and_the_same_twice_are_refused(schemes: list[str]) -> None:
    with pytest.raises(SpecError):
        parse_variants(schemes)


def test_parameters_in_the_spec_stay_with_the_scheme_they_belong_to() -> None:
    spec = SpecText('[balancer]\nname = "letflow"\ngap = "9us"\n')
    letflow, ecmp = parse_variants(["letflow", "ecmp"])
    assert letflow.apply(spec)[0].table("balancer") == {"name": "letflow", "gap": "9us"}
    assert ecmp.apply(spec)[0].table("balancer") == {"name": "ecmp"}


@pytest.mark.parametrize(
    ("label", "expected"),
    [("ecmp", "ecmp"), ("letflow:gap=100us", "letflow-gap-100us"), ("../../etc", "etc"), ("::", "scheme")],
)
def test_labels_become_harmless_file_names(label: str, expected: str) -> None:
    assert slug(label) == expected


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", [1, 2, 3]), ("3,7", [3, 7]), ("10-12", [10, 11, 12]), ("1-2, 9", [1, 2, 9]), ("7,", [7])]
)
def test_seeds_are_a_count_a_list_or_ranges(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "0", "-1", "a", "1,1", "3-1", "1-", "1.5"])
def test_other_seeds_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="--seeds"):
        parse_seeds(text)


def test_lists_of_schemes_may_hold_blanks_and_trailing_commas() -> None:
    assert split_schemes(" ecmp, drill,,") == ["ecmp", "drill"]
