"""The source distribution that is published, its metadata, and the targets that workflows run."""

import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
URL = "https://example.org/weft"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The texts of a source distribution, by name."""
    out = tmp_path_factory.mktemp("sdist")
    build = str(ROOT / "packaging" / "build.py")
    command = [sys.executable, build, "--sdist-only", "--out", str(out), "--url", URL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = out.glob("weft-*.tar.gz")
    found = {}
    with tarfile.open(file) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is not None:
                found[member.name.partition("/")[2]] = content.read().decode(errors="replace")
    return found


def test_the_source_distribution_has_all_that_its_crates_are_built_from(sdist: dict[str, str]) -> None:
    included = re.compile(r'include_(?:str|bytes)!\(\s*"([^"]+)"')
    checked = 0
    for name, text in sdist.items():
        if not name.endswith(".rs"):
            continue
        for path in included.findall(text):
            parts: list[str] = []
            for part in [*Path(name).parent.parts, *Path(path).parts]:
                parts[-1:] = [] if part == ".." else [*parts[-1:], part]
            assert "/".join(parts) in sdist, f"{name} includes {path}"
            checked += 1
    assert checked > 30
    assert {"Cargo.lock", "rust-toolchain.toml", "LICENSE-MIT", "LICENSE-APACHE", "python/weft/py.typed"} <= set(sdist)
    assert not [name for name in sdist if name.endswith((".so", ".pyc"))]


def test_the_metadata_has_the_readme_and_links_that_lead_to_this_version(sdist: dict[str, str]) -> None:
    head, _, readme = sdist["PKG-INFO"].partition("\n\n")
    for line in (
        f"Project-URL: Source, {URL}",
        f"Project-URL: Issues, {URL}/issues",
        "License-Expression: MIT OR Apache-2.0",
        "Requires-Python: >=3.11",
        "Classifier: Operating System :: POSIX :: Linux",
    ):
        assert line in head.splitlines()
    assert f"]({URL}/blob/v0.1.0/docs/schemes/adding.md)" in readme
    assert f"]({URL}/raw/v0.1.0/docs/images/demo-fct-by-size.png)" in readme
    for target in re.findall(r"\]\(([^)]+)\)", readme):
        assert target.startswith(("https://", "#")), target


def test_the_extension_module_is_for_every_version_of_python() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (stable,) = [one for one in cargo["workspace"]["dependencies"]["pyo3"]["features"] if one.startswith("abi3-")]
    assert stable == "abi3-py" + project["requires-python"].removeprefix(">=").replace(".", "")


def test_the_newest_c_library_that_a_wheel_needs_is_found() -> None:
    check = script("check")
    assert check.glibc_of(b"\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.9\0other\0") == (2, 17)
    assert check.glibc_of(b"nothing") == (0,)
    width, command, printed = check.first_example((ROOT / "README.md").read_text(encoding="utf-8"))
    assert int(width) > 0 and command.startswith("weft compare ") and printed


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_targets_that_the_makefile_has(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    called = {target for text in commands for target in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)}
    assert called <= targets
