"""Builds the source distribution, and from it a wheel for Linux systems from 2018 on (manylinux_2_28), in dist/.

    python packaging/build.py [--url https://host/weft] [--guide https://host/guide] [--sdist-only]

The wheel is built from what is in the source distribution and from nothing else. It needs cargo, and what
packaging/requirements.txt lists. `--url` is where the project is hosted: the metadata then has links, and those of the
README lead there.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLATFORM = "manylinux_2_28"


def main() -> int:
    """Build what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where to put it (default: dist/)")
    parser.add_argument("--url", default=os.environ.get("WEFT_URL"), help="where the project is hosted (or $WEFT_URL)")
    parser.add_argument("--guide", default=os.environ.get("WEFT_GUIDE"), help="where the guide is (or $WEFT_GUIDE)")
    parser.add_argument("--sdist-only", action="store_true", help="build no wheel")
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="weft-packaging-") as folder:
        place = Path(folder)
        source = staged(place / "staged")
        if given.url:
            link(source, given.url.rstrip("/"), given.guide)
        else:
            print("the metadata has no links: --url says where the project is hosted", file=sys.stderr)
        sdist = _sdist(source, out)
        if not given.sdist_only:
            _wheel(_unpacked(sdist, place / "unpacked"), out)
    return 0


def staged(target: Path) -> Path:
    """Copy the files that git knows to another place, where they may be changed."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # not one that is removed and not yet committed
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def link(source: Path, url: str, guide: str | None) -> None:
    """Write where the project is hosted into the metadata, and into the README that is part of it."""
    (version,) = re.findall(r'^version = "(.+)"$', (source / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    project, readme = source / "pyproject.toml", source / "README.md"
    project.write_text(linked(project.read_text(encoding="utf-8"), url, guide), encoding="utf-8")
    readme.write_text(absolute(readme.read_text(encoding="utf-8"), url, f"v{version}"), encoding="utf-8")


def linked(project: str, url: str, guide: str | None) -> str:
    """Return the text of pyproject.toml with links."""
    links = {
        "Homepage": url,
        "Documentation": guide or f"{url}/tree/main/docs",
        "Source": url,
        "Issues": f"{url}/issues",
        "Changelog": f"{url}/blob/main/CHANGELOG.md",
    }
    table = "".join(f'{name} = "{target}"\n' for name, target in links.items())
    head = "[project.scripts]\n"
    if project.count(head) != 1:
        raise SystemExit(f"pyproject.toml: expected one {head.strip()}")
    return project.replace(head, f"[project.urls]\n{table}\n{head}")


def absolute(readme: str, url: str, tag: str) -> str:
    """Return the README with links and pictures that lead to the files of this version, wherever it is read."""

    def target(found: re.Match[str]) -> str:
        mark, text, name = found.groups()
        return f"{mark}[{text}]({url}/{'raw' if mark else 'blob'}/{tag}/{name})"

    return re.sub(r"(!?)\[([^]]*)\]\((?![a-z]+:|#)([^)]+)\)", target, readme)


def _sdist(source: Path, out: Path) -> Path:
    made = source / "target" / "sdist"
    _call(["maturin", "sdist", "--out", str(made)], source)
    (sdist,) = made.glob("*.tar.gz")
    return Path(shutil.copy2(sdist, out / sdist.name))


def _unpacked(sdist: Path, place: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    (found,) = place.iterdir()
    return found


def _wheel(source: Path, out: Path) -> None:
    options = ["--release", "--locked", "--zig", "--compatibility", PLATFORM, "--out", str(out)]
    _call(["maturin", "build", *options], source)


def _call(command: list[str], place: Path) -> None:
    beside = Path(sys.executable).parent
    # What was built before is taken, whichever copy of the source it was built from.
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / "packaging"))
    paths = os.pathsep.join([str(beside), os.environ["PATH"], str(Path.home() / ".cargo" / "bin")])
    environment = os.environ | {"PATH": paths, "CARGO_TARGET_DIR": target}
    subprocess.run(command, cwd=place, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
