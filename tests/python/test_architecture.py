"""The architecture page lists the dependencies of each crate: they are those of the manifests."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `crates/(?P<crate>[\w-]+)` \|.*\|(?P<uses>[^|]*)\|$", re.MULTILINE)


def declared() -> dict[str, set[str]]:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return {row["crate"]: set(re.findall(r"`([\w-]+)`", row["uses"])) for row in ROW.finditer(page)}


def used() -> dict[str, set[str]]:
    crates = {}
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        dependencies = tomllib.loads(manifest.read_text(encoding="utf-8"))["dependencies"]
        crates[manifest.parent.name] = {name.removeprefix("weft-") for name in dependencies if name.startswith("weft-")}
    return crates


def test_the_page_lists_the_dependencies_of_the_manifests() -> None:
    assert declared() == used()


def test_each_crate_uses_crates_above_it_in_the_table_alone() -> None:
    crates = used()
    order = list(declared())
    for crate, below in crates.items():
        assert all(order.index(other) < order.index(crate) for other in below), crate
