"""The P4 compiler and the software switch: found on the PATH, never built or downloaded."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import weft
from weft.errors import OutputError, SpecError

__all__ = ["Tools", "find_compiler", "find_programs", "find_tools"]

COMPILER = "p4c-bm2-ss"
SWITCH = "simple_switch"
_SOURCES = {
    COMPILER: "https://github.com/p4lang/p4c",
    SWITCH: "https://github.com/p4lang/behavioral-model",
}


@dataclass(frozen=True, slots=True)
class Tools:
    """Where they are."""

    compiler: str
    switch: str


def _missing(names: list[str]) -> OutputError:
    listed = " and ".join(f"{name} ({_SOURCES[name]})" for name in names)
    verb = "is" if len(names) == 1 else "are"
    return OutputError(f"{listed} {verb} not on the PATH: no package registry has them; build them from there")


def find_tools() -> Tools:
    """Find both. Raises `OutputError` with what is missing and where its public repository is."""
    found = {name: shutil.which(name) for name in (COMPILER, SWITCH)}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise _missing(missing)
    return Tools(compiler=found[COMPILER] or "", switch=found[SWITCH] or "")


def find_compiler() -> str:
    """Find the compiler alone. Raises `OutputError` if it is missing."""
    path = shutil.which(COMPILER)
    if path is None:
        raise _missing([COMPILER])
    return path


def find_programs(given: Path | None) -> Path:
    """The folder that is given, or `p4/` of the source tree. Raises `SpecError` if it has no programs."""
    source_tree = Path(weft.__file__).resolve().parents[2]
    places = [given] if given is not None else [Path.cwd() / "p4", source_tree / "p4"]
    for place in places:
        if (place / "include" / "world.p4").is_file():
            return place
    listed = " or ".join(str(place) for place in places)
    raise SpecError(f"no P4 programs in {listed}: they are in p4/ of Weft's source tree; --programs names the folder")
