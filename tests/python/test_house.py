"""The page on the house says which room uses which: it must be what the manifests say."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `crates/(?P<room>[\w-]+)` \|.*\|(?P<uses>[^|]*)\|$", re.MULTILINE)


def declared() -> dict[str, set[str]]:
    page = (ROOT / "docs/house.md").read_text(encoding="utf-8")
    return {row["room"]: set(re.findall(r"`([\w-]+)`", row["uses"])) for row in ROW.finditer(page)}


def used() -> dict[str, set[str]]:
    rooms = {}
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        dependencies = tomllib.loads(manifest.read_text(encoding="utf-8"))["dependencies"]
        rooms[manifest.parent.name] = {name.removeprefix("weft-") for name in dependencies if name.startswith("weft-")}
    return rooms


def test_the_arrows_of_the_page_are_those_of_the_manifests() -> None:
    assert declared() == used()


def test_no_arrow_goes_up() -> None:
    rooms = used()
    order = list(declared())
    for room, below in rooms.items():
        assert all(order.index(other) < order.index(room) for other in below), room
