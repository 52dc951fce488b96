"""Shell completion."""

import os
import subprocess
import sys

import pytest

from weft.catalog import entries
from weft.cli.completion import figures_of, keys, variants

pytestmark = pytest.mark.slow


def completed(line: str, shell: str = "bash") -> list[str]:
    """Ask as the shell does behind the last character of a line."""
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    done = subprocess.run(
        [sys.executable, "-m", "weft"],
        env=os.environ | {"_WEFT_COMPLETE": f"complete_{shell}"} | asked[shell],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == "", done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("weft compare --schemes ecmp,letf", ["ecmp,letflow"]),
        ("weft sweep --preset tr-mi", ["tr-micro"]),
        ("weft reproduce me", ["meet"]),
        ("weft explain --set traffic.loa", ["traffic.load=", "traffic.load_of="]),
        ("weft fl", ["flow"]),
        # The shell's own completion of files takes over.
        ("weft run examp", []),
    ],
)
def test_a_line_is_completed(line: str, expected: list[str]) -> None:
    found = completed(line)
    assert [one for one in found if one] == expected


def test_zsh_and_fish_show_what_a_name_means() -> None:
    for shell in ("zsh", "fish"):
        found = "\n".join(completed("weft compare --transport dct", shell))
        assert "dctcp" in found and entries("transports")[1].title[:10] in found


@pytest.mark.parametrize("option", ["--schemes", "--preset", "--transport", "--workload", "--fabric"])
def test_every_name_of_a_kind_is_offered(option: str) -> None:
    kind = {"--schemes": "schemes"}.get(option, f"{option.removeprefix('--')}s")
    known = {item.name for item in entries(kind)}  # type: ignore[arg-type]
    assert known <= set(completed(f"weft compare {option} "))


def test_a_script_is_shown_for_each_shell() -> None:
    for shell in ("bash", "zsh", "fish"):
        done = subprocess.run(
            [sys.executable, "-m", "weft"],
            env=os.environ | {"_WEFT_COMPLETE": f"source_{shell}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "_WEFT_COMPLETE" in done.stdout and f"complete_{shell}" in done.stdout


def test_the_last_of_several_variants_is_completed_and_none_twice() -> None:
    assert ("dctcp+drill", dict(variants("dctcp+dri"))["dctcp+drill"]) in variants("dctcp+dri")
    assert "ecmp,ecmp" not in dict(variants("ecmp,e"))
    assert "ecmp,expresspass" in dict(variants("ecmp,e"))


def test_keys_have_the_parameters_of_every_scheme_once() -> None:
    found = [key for key, _ in keys("scheme.")]
    assert len(found) == len(set(found))
    assert {"scheme.name=", "scheme.gap=", "scheme.hash="} <= set(found)
    assert keys("traffic.load=0.") == []


def test_figures_are_those_of_the_paper_that_is_named() -> None:
    class Context:
        params = {"paper": "meet", "figures": ("10",)}  # noqa: RUF012

    found = [name for name, _ in figures_of(Context(), "1")]  # type: ignore[arg-type]
    assert "11" in found and "10" not in found
