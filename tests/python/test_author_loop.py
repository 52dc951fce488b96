"""What makes `make dev` quick stays: no link-time optimisation, many units, and only what changed is compiled.

How long it takes depends on the machine: `benches/author_loop.sh` measures it.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROFILES = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["profile"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def recipe(target: str) -> str:
    """The commands of a target."""
    found = re.search(rf"^{re.escape(target)}:[^\n]*\n((?:\t[^\n]*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None, target
    return found[1]


def test_the_quick_profile_optimises_and_links_without_waiting() -> None:
    quick = PROFILES["quick"]
    assert quick["inherits"] == "release" and "opt-level" not in quick, "the same code at a comparable speed"
    assert quick["lto"] is False and quick["incremental"] is True and quick["codegen-units"] >= 16


def test_the_release_stays_what_figures_of_speed_are_of() -> None:
    assert PROFILES["release"] == {"lto": "fat", "codegen-units": 1}


def test_make_dev_builds_it_where_the_command_is_and_make_build_knows_that_it_has_to_build_again() -> None:
    assert "--profile quick" in recipe("dev") and "--release" not in recipe("dev")
    assert "rm -f $(VENV)/.extension" in recipe("dev")
    assert "--release" in recipe("$(VENV)/.extension")


def test_the_measurement_changes_what_is_there_and_builds_what_make_dev_builds() -> None:
    script = (ROOT / "benches" / "author_loop.sh").read_text(encoding="utf-8")
    assert "cargo build --quiet --profile quick -p weft-python --locked" in script
    (scheme,) = re.findall(r"^scheme=(\S+)$", script, re.MULTILINE)
    assert "self.decisions += 1;" in (ROOT / scheme).read_text(encoding="utf-8")
