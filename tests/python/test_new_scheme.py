"""`weft new-scheme` writes a scheme that runs at once, its test and its page, and replaces nothing."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

import weft
from conftest import SMALL, Weft
from weft.new_scheme import class_name, rust_scheme, write
from weft.palette import free_home, home
from weft.testing import FakePacket, FakeSwitch

ROOT = Path(__file__).parents[2]
LISTS = [
    "crates/balance/src/switch/mod.rs",
    "crates/balance/src/registry.rs",
    "crates/lab/tests/fingerprints/pins.toml",
    "crates/fabric/tests/all/conservation.rs",
    "python/weft/palette.py",
    "docs/schemes/index.md",
    "mkdocs.yml",
]


def test_a_scheme_in_python_runs_by_the_command_that_is_printed_and_passes_its_test(
    weft_command: Weft, tmp_path: Path
) -> None:
    done = weft_command("new-scheme", "least-queue")
    assert done.code == 0
    assert done.stdout.splitlines() == ["wrote least_queue.py", "wrote test_least_queue.py", "wrote least_queue.md"]
    commands = [line.split() for line in done.stderr.splitlines()[1:]]
    assert commands[0][:3] == ["weft", "compare", "--schemes"]
    few = [part for key, value in {**SMALL, "traffic.flows": 20}.items() for part in ("--set", f"{key}={value}")]
    assert "least_queue.py:LeastQueue" in weft_command(*commands[0][1:], *few).stdout
    assert commands[1] == ["python", "-m", "pytest", "test_least_queue.py"]
    tested = subprocess.run(
        [sys.executable, *commands[1][1:], "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0 and "3 passed" in tested.stdout, tested.stdout
    assert (tmp_path / "least_queue.md").read_text().startswith("# least-queue\n")


def test_nothing_is_replaced_and_names_that_cannot_be_are_refused(weft_command: Weft, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("my own")
    done = weft_command("new-scheme", "mine")
    assert (done.code, done.stderr) == (2, "error: mine.md: is there already; nothing was written\n")
    assert (tmp_path / "mine.md").read_text() == "my own" and not (tmp_path / "mine.py").exists()
    for name, message in (
        ("random", "Python has a module random, which a file random.py would hide"),
        ("class", "class: class is a word of Python's own"),
        ("none", "none: None is a word of Python's own"),
        ("Mine", "'Mine' cannot be the name of a scheme"),
        ("../mine", "'../mine' cannot be the name of a scheme"),
    ):
        done = weft_command("new-scheme", name)
        assert done.code == 2 and message in done.stderr
    done = weft_command("new-scheme", "mine", "--rust")
    assert done.code == 2 and "is no source tree of Weft" in done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of the parts of a source tree that list its schemes."""
    for name in LISTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_scheme_in_rust_stands_wherever_the_tree_lists_schemes(tree: Path) -> None:
    before = {name: (tree / name).read_text().splitlines() for name in LISTS}
    write(rust_scheme("least-queue", tree))
    after = {name: (tree / name).read_text().splitlines() for name in LISTS}
    added = {name: [line for line in after[name] if line not in before[name]] for name in LISTS}
    modules = [line for line in after[LISTS[0]] if line.endswith(";")]
    assert added[LISTS[0]] == ["pub mod least_queue;"]
    assert [line.split()[-1] for line in modules] == sorted(line.split()[-1] for line in modules)
    (registered,) = added["crates/balance/src/registry.rs"]
    assert registered.startswith('        least_queue as "least-queue": LeastQueue, Sprays, "LeastQueue: every packet ')
    text = "\n".join(after["crates/balance/src/registry.rs"])
    assert text.index("switch {") < text.index(registered) < text.index("\n    host {")
    pins = tomllib.loads("\n".join(after["crates/lab/tests/fingerprints/pins.toml"]))["pin"]
    assert pins[-1]["set"][0] == "scheme={ name = 'least-queue' }" and "tables" not in pins[-1]
    assert added["mkdocs.yml"] == ["      - least-queue: schemes/least-queue.md"]
    assert all(len(lines) >= 1 for lines in added.values())
    for name in LISTS:
        assert [line for line in after[name] if line in before[name] or line == ""][: len(before[name])]
    source = (tree / "crates/balance/src/switch/least_queue.rs").read_text()
    assert "pub struct LeastQueue {" in source and "use crate::testing::{FakeSwitch, Group, packet};" in source
    page = (tree / "docs/schemes/least-queue.md").read_text()
    assert "`LeastQueue::choose`" in page and "<!-- parameters least-queue -->" in page
    with pytest.raises(weft.OutputError, match="is there already"):
        write(rust_scheme("least-queue", tree))


def test_a_scheme_in_rust_gets_a_look_that_no_other_has(tree: Path) -> None:
    colour, marker = free_home()
    assert (colour, marker) not in {home(one.name) for one in (*weft.schemes(), *weft.transports())}
    write(rust_scheme("least", tree))
    assert f'    "least": ({colour}, "{marker}"),\n' in (tree / "python/weft/palette.py").read_text()


def test_a_name_that_is_taken_and_a_tree_that_is_another_are_refused(tree: Path) -> None:
    with pytest.raises(weft.SpecError, match="is the name of a scheme or transport that there is"):
        rust_scheme("letflow", tree)
    (tree / "mkdocs.yml").write_text("nothing\n")
    with pytest.raises(weft.SpecError, match=r"mkdocs.yml: is not what it is in a source tree of Weft"):
        rust_scheme("least", tree)
    assert not (tree / "docs/schemes/least.md").exists()


def test_names_become_classes() -> None:
    assert [class_name(name) for name in ("least", "least-queue-2")] == ["Least", "LeastQueue2"]


class Probing(weft.Scheme):
    """Sends a probe by each port every 10 us, and forgets ports that are down."""

    def start(self, switch: weft.SwitchView) -> None:
        switch.set_timer(weft.Time("10us"), 3)

    def on_timer(self, switch: weft.SwitchView, token: int) -> None:
        for port in range(switch.ports):
            if switch.is_up(port):
                switch.send(port, scheme=token)
        switch.set_timer(weft.Time("10us"), token)

    def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: Sequence[weft.PortView]) -> int:
        return 0


def test_the_test_world_moves_only_by_hand() -> None:
    switch = FakeSwitch(ports=3, up=[True, False, True])
    scheme = Probing(switch.info())
    scheme.start(switch)
    assert switch.next_timer() == 3 and switch.now_ps == 10_000_000 and not switch.timers
    scheme.on_timer(switch, 3)
    assert [(one.port, one.scheme) for one in switch.sent] == [(0, 3), (2, 3)]
    assert switch.timers == [(20_000_000, 3)]
    assert [hop.index for hop in switch.hops()] == [0, 2]


def test_the_test_world_shows_what_a_run_shows() -> None:
    """Whatever a real switch, port, packet or info has, the fake one has, under the same name and of the same type."""
    seen: dict[str, dict[str, type]] = {}

    def attributes(real: object) -> dict[str, type]:
        return {name: type(getattr(real, name)) for name in dir(real) if not name.startswith("_")}

    class Looks(weft.Scheme):
        def choose(self, switch: weft.SwitchView, packet: weft.PacketView, ports: object) -> int:
            real = {"switch": switch, "packet": packet, "port": ports[0], "info": self.info}  # type: ignore[index]
            seen.update({name: attributes(one) for name, one in real.items()})
            return 0

    weft.run("", set={**SMALL, "traffic.flows": 3}, scheme=Looks)
    switch = FakeSwitch()
    fake = {"switch": switch, "packet": FakePacket(), "port": switch.hops()[0], "info": switch.info()}
    for name, wanted in seen.items():
        own = attributes(fake[name])
        assert wanted.keys() <= own.keys(), name
        values = {key for key, kind in wanted.items() if kind in (int, str, bool, list)}
        assert {key: own[key] for key in values} == {key: wanted[key] for key in values}, name
