"""Prints the examples of the guide and of the README again, so that every output in them came from the program.

A block after `<!-- run -->` holds commands (`$ weft ...`) and what they print; this script runs the commands, in a
directory of their own, and puts their output in place of the old one. Options stand in the comment:

- `width=90`: columns of the terminal (100 unless told);
- `lines=12`: so many lines of each output, and an ellipsis; none at all with 0;
- `stderr`: messages, too;
- `copy=out/demo/figures/waits.png`: afterwards, that file to docs/images/; several with commas between them;
- `into=gallery`: to docs/images/gallery/, in few colours, so that many are small;
- `checked`: cheap. With `--check` these alone are run, nothing is written, and a page that says something else is an error;
- `measured`: figures of speed, which differ between machines. `--check --all` runs all other blocks.

A block after `<!-- file mine.toml -->` is written to that file first.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_RUN = re.compile(r"<!-- run(?P<options>[^>]*) -->\n```console\n(?P<body>.*?)```", re.DOTALL)
_FILE = re.compile(r"<!-- file (?P<name>\S+) -->\n```\w+\n(?P<body>.*?)```", re.DOTALL)


def main() -> int:
    """Print the examples of the pages that are named, or of all; or compare what is cheap."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a block that is `checked` is out of date")
    parser.add_argument("--all", action="store_true", help="with --check: every block but those that are `measured`")
    parser.add_argument("--checked", action="store_true", help="print those blocks alone that are `checked`")
    parser.add_argument("pages", nargs="*", help="names of pages, such as cli.md; all unless told")
    asked = parser.parse_args()
    stale = _stale(asked.pages, check=asked.check, cheap=asked.checked or (asked.check and not asked.all))
    for page in stale:
        print(f"{page.name} is out of date: run python docs/print_examples.py {page.name}", file=sys.stderr)
    return 1 if stale else 0


def _stale(names: list[str], *, check: bool, cheap: bool) -> list[Path]:
    """Write the pages, or with `check` return those that say something else; `cheap`: by the blocks that are `checked` alone."""
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "examples").symlink_to(ROOT / "examples")
        for page in PAGES:
            if names and page.name not in names:
                continue
            text = page.read_text(encoding="utf-8")
            if cheap and not any("checked" in found["options"].split() for found in _RUN.finditer(text)):
                continue
            for found in _FILE.finditer(text):
                (place / found["name"]).write_text(found["body"], encoding="utf-8")
            printed = _RUN.sub(partial(_printed, place, cheap, check), text)
            if not check:
                page.write_text(printed, encoding="utf-8")
            elif printed != text:
                stale.append(page)
    return stale


def _printed(place: Path, cheap: bool, check: bool, found: re.Match[str]) -> str:
    words = found["options"].split()
    if (cheap and "checked" not in words) or (check and "measured" in words):
        return found[0]
    options = dict(part.partition("=")[::2] for part in words)
    commands = [line[2:] for line in found["body"].splitlines() if line.startswith("$ ")]
    outputs = [f"$ {command}\n{_output(command, options, place)}" for command in commands]
    for name in filter(None, () if check else options.get("copy", "").split(",")):
        _copy(place, Path(name), options.get("into"))
    return f"<!-- run{found['options']} -->\n```console\n" + "\n".join(outputs) + "```"


def _copy(place: Path, name: Path, folder: str | None) -> None:
    """Copy a picture; it is called by the directory of its result, if it has one, and its own name."""
    source, result = place / name, name.parent.parent.name
    called = f"{result}-{name.name}" if result else name.name
    target = ROOT / "docs" / "images" / (folder or "") / called
    target.parent.mkdir(parents=True, exist_ok=True)
    if folder is None:
        shutil.copyfile(source, target)
        return
    with Image.open(source) as picture:
        flat = picture.convert("RGB")
        small = flat.resize((flat.width * 3 // 4, flat.height * 3 // 4), Image.Resampling.LANCZOS)
        small.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)


def _output(command: str, options: dict[str, str], place: Path) -> str:
    print(command, file=sys.stderr)
    beside = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": options.get("width", "100"),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        shlex.split(command, comments=True),
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if "stderr" in options else subprocess.DEVNULL,
        text=True,
        check=False,
    )
    # 4: a run that answers nothing, as one that ends by a deadlock, is shown as it is.
    wanted = {0, 2, 4} if "stderr" in options else {0, 4}
    if done.returncode not in wanted:
        sys.exit(f"exit code {done.returncode}: {command}")
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    most = int(options.get("lines", len(lines)))
    if len(lines) > most:
        lines = [*lines[:most], "…"] if most else []
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
