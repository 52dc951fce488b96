"""Recordings hold all that decisions follow from: schemes that are written here once more decide the same from them."""

from collections.abc import Callable

import pytest

from weft.p4.recording import Choose, Recording, Switch, record

MASK = (1 << 64) - 1
SPEC = """
[fabric]
kind = "leaf-spine"
leaves = 3
spines = 4
hosts_per_leaf = 4
reroute_after = "200us"

[[fabric.fault]]
link = "leaf1-spine2"
down = true
at = "2ms"
until = "6ms"

[traffic]
workload = "web-search"
load = 0.8
flows = 300
"""


def recorded(contender: str) -> Recording:
    """A run in which a link fails, as a scheme decided in it."""
    return record(SPEC, overrides=[], seed=1, base_dir=".", origin="spec", contender=contender, most=2_000)


def choices(switch: Switch) -> list[Choose]:
    return [call for call in switch.calls if isinstance(call, Choose)]


def mix64(value: int) -> int:
    z = value + 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def below(draw: int, bound: int) -> int:
    return (draw >> 32) * bound >> 32


def ecmp(constants: dict[str, int]) -> Callable[[Choose], int]:
    return lambda call: call.ports[below(mix64(constants["hash_seed"] ^ call.packet.entropy), len(call.ports))]


def letflow(constants: dict[str, int]) -> Callable[[Choose], int]:
    table: dict[int, tuple[int, int]] = {}

    def choose(call: Choose) -> int:
        entry = mix64(constants["hash_seed"] ^ call.packet.entropy) % constants["entries"]
        stamp = call.at_ps >> 10
        last, port = table.get(entry, (0, -1))
        if port not in call.ports or stamp - last > constants["pause_limit"]:
            port = call.ports[below(call.draws[0], len(call.ports))]
        table[entry] = (stamp, port)
        return port

    return choose


def drill(constants: dict[str, int]) -> Callable[[Choose], int]:
    remembered = -1

    def choose(call: Choose) -> int:
        nonlocal remembered
        first, second = below(call.draws[0], len(call.ports)), below(call.draws[1], len(call.ports) - 1)
        sampled = [call.ports[first], call.ports[second + (first <= second)]]
        queues = {look.port: look.bytes for look in call.looks}
        tried = [remembered, *sampled] if remembered in call.ports else sampled
        remembered = min(tried, key=lambda port: queues[port])
        return remembered

    return choose


@pytest.mark.parametrize(
    ("contender", "model"), [("ecmp", ecmp), ("letflow:gap=20us:entries=64", letflow), ("drill", drill)]
)
def test_a_recording_holds_all_that_its_decisions_follow_from(
    contender: str, model: Callable[[dict[str, int]], Callable[[Choose], int]]
) -> None:
    for switch in recorded(contender).switches:
        choose = model(switch.constants)
        decided = choices(switch)
        assert [choose(call) for call in decided] == [call.port for call in decided]


def test_a_recording_ends_with_the_last_decision_that_was_asked_for_and_counts_the_others() -> None:
    def all_of(most: int) -> Recording:
        return record(SPEC, overrides=[], seed=1, base_dir=".", origin="spec", contender="drill", most=most)

    for few, many in zip(all_of(100).switches, all_of(1_000).switches, strict=True):
        assert few.decisions <= 100
        assert few.calls == many.calls[: len(few.calls)]
        assert few.decisions + few.beyond == many.decisions + many.beyond
