"""Installs a wheel in an environment of its own, without Rust, and runs the README's first example.

It must print what stands there.

python packaging/check.py [dist/weft-*.whl]
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEWEST_GLIBC = (2, 28)


def main(arguments: list[str]) -> int:
    """Check the wheel that is named, or the only one in dist/."""
    wheels = [Path(name).resolve() for name in arguments] or sorted((ROOT / "dist").glob("weft-*.whl"))
    if len(wheels) != 1:
        print(f"expected one wheel, found {len(wheels)}: name it, or build it with make wheel", file=sys.stderr)
        return 2
    (wheel,) = wheels
    check_wheel(wheel)
    with tempfile.TemporaryDirectory(prefix="weft-check-") as folder:
        run_example(installed(wheel, Path(folder) / "venv"), Path(folder))
    print(f"{wheel.name}: installs without Rust, and the README's first example prints what stands there")
    return 0


def check_wheel(wheel: Path) -> None:
    """Hold what is in the wheel against what it claims."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (extension,) = (name for name in names if name.endswith(".so"))
        needed = glibc_of(archive.read(extension))
    assert needed <= NEWEST_GLIBC, f"{extension} needs glibc {needed}"
    assert "-cp311-abi3-manylinux_2_28_" in wheel.name, f"{wheel.name}: not for every Python and every Linux since 2018"
    for name in ("weft/py.typed", "weft/_core.pyi", "weft/papers/data/meet.toml"):
        assert name in names, f"{name} is missing"
    assert any("/licenses/LICENSE-MIT" in name for name in names), "the licence is missing"


def glibc_of(library: bytes) -> tuple[int, ...]:
    """Return the newest version of glibc that an ELF file names."""
    versions = {tuple(map(int, found.split(b"."))) for found in re.findall(rb"GLIBC_([0-9.]+)\0", library)}
    return max(versions, default=(0,))


def installed(wheel: Path, place: Path) -> Path:
    """Install it with what it needs; return the folder of the command."""
    venv.create(place, with_pip=True)
    subprocess.run([place / "bin" / "pip", "install", "--quiet", "--only-binary", ":all:", wheel], check=True)
    return place / "bin"


def run_example(commands: Path, place: Path) -> None:
    """Run the first command that the README prints output of, and compare."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    width, command, expected = first_example(readme)
    found = shutil.which("cargo", path=str(commands))
    assert found is None, found
    environment = {"PATH": f"{commands}:/usr/bin:/bin", "HOME": str(place), "COLUMNS": width, "NO_COLOR": "1"}
    words = shlex.split(command)
    done = subprocess.run(
        [commands / words[0], *words[1:]],
        cwd=place,
        env=environment | {key: value for key, value in os.environ.items() if key == "LANG"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    printed = "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())
    assert printed == expected, f"{command} printed\n{printed}\nand the README has\n{expected}"


def first_example(readme: str) -> tuple[str, str, str]:
    """Return the width of the terminal, the command and what it prints."""
    found = re.search(r"<!-- run width=(\d+)[^>]*-->\n```console\n\$ ([^\n]+)\n(.*?)\n```", readme, re.DOTALL)
    assert found is not None, "README.md: no example with its output"
    return found[1], found[2], found[3]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
