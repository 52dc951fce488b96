"""Variants are read as they were written, and a spec's parameters stay with their scheme."""

import json
import pickle
from typing import Any

import pytest

from weft import SpecError, SwitchChooser, _core
from weft.cli.compare import parse_seeds, split_schemes
from weft.variant import parse_variants


def resolved(variant: str, spec: str = "", **overrides: str) -> dict[str, Any]:
    pairs = [(key.replace("__", "."), value) for key, value in overrides.items()]
    found: dict[str, Any] = json.loads(_core.resolve(spec, overrides=pairs, variant=variant))["spec"]
    return found


def test_a_variant_has_a_label_a_file_name_and_its_parts() -> None:
    (variant,) = parse_variants([" letflow: gap=100us"])
    assert (variant.label, variant.slug) == ("letflow:gap=100us", "letflow-gap-100us")
    assert variant.parts == {"scheme": "letflow:gap=100us"}
    (both,) = parse_variants(["tcp + ecmp:hash=shared"])
    assert (both.label, both.slug) == ("tcp+ecmp:hash=shared", "tcp-ecmp-hash-shared")
    assert both.parts == {"transport": "tcp", "scheme": "ecmp:hash=shared"}


def test_an_unknown_scheme_is_answered_with_the_nearest() -> None:
    with pytest.raises(SpecError, match='"letflw"; did you mean "letflow"') as raised:
        parse_variants(["ecmp", "letflw"])
    assert (raised.value.found, raised.value.nearest) == ("letflw", "letflow")
    assert "letflow" in (raised.value.allowed or "")


def test_a_transport_competes_with_the_load_balancer_of_the_spec_or_with_its_own() -> None:
    spec = '[scheme]\nname = "letflow"\ngap = "9us"\n[transport]\nname = "tcp"\nsack = true\n'
    plain, both = resolved("dctcp:g=0.5", spec), resolved("tcp+ecmp:hash=shared", spec)
    assert (plain["transport"]["name"], plain["transport"]["g"]) == ("dctcp", 0.5)
    assert (plain["scheme"]["name"], plain["scheme"]["gap"]) == ("letflow", "9us")
    assert (both["transport"]["name"], both["transport"]["sack"]) == ("tcp", True)
    assert both["scheme"] == {"name": "ecmp", "hash": "shared"}


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ("dctpc", 'no scheme "dctpc"; did you mean "dctcp".*transports: tcp, dctcp'),
        ("dctcp+letflw", 'no scheme "letflw".*did you mean "letflow"'),
        ("letflow+dctcp", "the transport comes before the scheme, as in dctcp[+]letflow"),
        ("dctcp:g", '"dctcp:g" has "g": expected key=value'),
    ],
)
def test_a_transport_that_there_is_not_and_a_wrong_order_are_named(variant: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_variants([variant])


@pytest.mark.parametrize("schemes", [[], ["ecmp", "ecmp"], ["letflow:gap=1us", "letflow: gap=1us"]])
def test_no_scheme_and_the_same_twice_are_refused(schemes: list[str]) -> None:
    with pytest.raises(SpecError):
        parse_variants(schemes)


def test_one_text_with_several_schemes_is_refused() -> None:
    with pytest.raises(SpecError, match=r"schemes = 'ecmp,drill': expected a list, as in \['ecmp', 'drill'\]"):
        parse_variants("ecmp,drill")


def test_a_balancer_from_python_and_one_of_the_core_cannot_share_a_name() -> None:
    class letflow(SwitchChooser):  # noqa: N801 - the name that is taken
        def choose(self, switch: Any, packet: Any, ports: Any) -> int:
            return 0

    with pytest.raises(SpecError, match="named twice"):
        parse_variants(["letflow", letflow])
    assert [variant.label for variant in parse_variants([letflow, "ecmp"])] == ["letflow", "ecmp"]


def test_parameters_in_the_spec_stay_with_the_scheme_they_belong_to() -> None:
    spec = '[scheme]\nname = "letflow"\ngap = "9us"\n'
    assert resolved("letflow", spec)["scheme"]["gap"] == "9us"
    assert "gap" not in resolved("ecmp", spec)["scheme"]


def test_a_variants_own_parameters_win_over_what_is_set_for_all() -> None:
    assert resolved("letflow", scheme__gap="7us")["scheme"]["gap"] == "7us"
    assert resolved("letflow:gap=5us", scheme__gap="7us")["scheme"]["gap"] == "5us"


def test_a_mistake_has_its_parts_as_attributes() -> None:
    with pytest.raises(SpecError) as raised:
        _core.resolve("[traffic]\nload = 0.5\nworkload = 'websearch'\nflows = 5\n", origin="my.toml")
    error = raised.value
    assert (error.path, error.found, error.nearest) == ("traffic.workload", "websearch", "web-search")
    assert (error.origin, error.line) == ("my.toml", 3)
    assert SpecError("of our own").path is None
    assert pickle.loads(pickle.dumps(error)).path == "traffic.workload", "it comes back from another machine"


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
