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


def test_every_room_says_its_rule_in_its_module_comment() -> None:
    for room in used():
        text = (ROOT / f"crates/{room}/src/lib.rs").read_text(encoding="utf-8")
        comment = "\n".join(line for line in text.splitlines() if line.startswith("//!"))
        assert "The rule of this room:" in comment, room


def test_the_table_of_the_engine_names_its_files_each_once() -> None:
    engine = ROOT / "crates/fabric/src/engine"
    rows = re.findall(
        r"^\| (`[\w./]+`(?:, `[\w./]+`)*) \|", (ROOT / "docs/house.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    named = [
        name for row in rows for name in re.findall(r"`([\w./]+)`", row) if not name.startswith(("crates/", "python/"))
    ]
    files = {path.name for path in engine.glob("*.rs") if path.name != "mod.rs"}
    files |= {f"{path.parent.name}/" for path in engine.glob("*/mod.rs")}
    # The folder of a file may be named beside it.
    beside = {f"{path.stem}/" for path in engine.glob("*.rs") if path.with_suffix("").is_dir()}
    assert sorted(name for name in named if name not in beside) == sorted(files)
    assert len(set(named)) == len(named)
