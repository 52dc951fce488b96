"""A scheme has one colour and one marker, whatever stands beside it and wherever it is drawn."""

from itertools import combinations

import pytest

from weft import catalog
from weft.palette import home, looks
from weft.papers.declared import load_paper, paper_names
from weft.report.payload import SYMBOLS, payload

REGISTRY = [one.name for one in (*catalog.schemes(), *catalog.transports())]


def test_every_scheme_and_transport_has_a_look_that_no_other_has() -> None:
    homes = [home(name) for name in REGISTRY]
    assert None not in homes and len(set(homes)) == len(homes)


def test_a_scheme_keeps_colour_and_marker_whatever_stands_beside_it() -> None:
    every = looks(REGISTRY)
    for pair in combinations(REGISTRY, 2):
        for label, look in looks([*pair, "ecmp", "no scheme"]).items():
            if label in every:
                assert (look.colour, look.marker) == (every[label].colour, every[label].marker)


def test_parameters_do_not_change_the_look_of_a_scheme_that_stands_there_once() -> None:
    for name in REGISTRY:
        assert looks(["rival", f"{name}:parameter=1"])[f"{name}:parameter=1"] == looks([name])[name]


def test_no_two_of_the_registry_look_alike_in_lines_or_bars_or_by_markers() -> None:
    found = looks([*REGISTRY, "drill:q=1", "drill:q=2"]).values()
    assert len({(look.colour, look.marker) for look in found}) == len(found)
    some = looks(["conga", "drb", "plb"]).values()
    assert len({look.colour for look in some}) == 1
    assert len({look.dash for look in some}) == len({look.hatch for look in some}) == 3


@pytest.mark.parametrize("name", paper_names())
def test_no_two_schemes_that_one_paper_compares_share_a_colour_or_a_marker(name: str) -> None:
    for experiment in load_paper(name).experiments.values():
        homes = {own for label in experiment.variants if (own := home(label)) is not None}
        assert len({colour for colour, _ in homes}) == len({marker for _, marker in homes}) == len(homes)


def test_the_report_has_colour_and_symbol_of_every_scheme() -> None:
    found = {one["label"]: one for one in payload(REGISTRY, [], [])["schemes"]}
    for label, look in looks(REGISTRY).items():
        assert (found[label]["colour"], found[label]["symbol"]) == (look.colour, SYMBOLS[look.marker])
    assert len(set(SYMBOLS.values())) == len(SYMBOLS)
