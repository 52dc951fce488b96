"""A class in a file of Python is a load balancer by its file and name, wherever a scheme is asked for."""

import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

import weft
from conftest import SMALL, Weft
from weft import _core, palette

EXAMPLES = Path(__file__).parents[2] / "examples"
FEW: Mapping[str, object] = {**SMALL, "fabric.hosts_per_leaf": 2, "traffic.flows": 20}
OPTIONS = [part for key, value in FEW.items() for part in ("--set", f"{key}={value}")]

LEAST = """
import weft

class Least(weft.Scheme):
    "Takes the port that would send first."

    def __init__(self, info, *, tolerance: weft.Time = weft.Time("0us"), ways: int = 2, name: str = ""):
        super().__init__(info)
        self.tolerance = tolerance

    def choose(self, switch, packet, ports):
        best = min(port.wait_ps for port in ports)
        return next(place for place, port in enumerate(ports) if port.wait_ps <= best + self.tolerance)

    def counters(self):
        return {"tolerance_ps": self.tolerance}

class Bare(weft.Scheme):
    pass
"""


@pytest.fixture
def least(tmp_path: Path) -> Path:
    file = tmp_path / "least.py"
    file.write_text(LEAST)
    return file


def spec_hash(variant: str) -> str:
    found: str = json.loads(_core.resolve("", variant=variant))["spec_hash"]
    return found


def test_a_class_is_compared_and_its_runs_are_kept_by_the_content_of_its_file(least: Path, tmp_path: Path) -> None:
    def kept(scheme: str) -> int:
        found = weft.compare(["ecmp", scheme], set=FEW, store=tmp_path / "kept")
        assert list(found.groups) == ["ecmp", scheme]
        return found.kept

    assert (kept(f"{least}:Least"), kept(f"{least}:Least")) == (0, 2)
    (tmp_path / "elsewhere").mkdir()
    same = tmp_path / "elsewhere" / "same.py"
    same.write_text(LEAST)
    assert kept(f"{same}:Least") == 2
    assert kept(f"{least}:Least:tolerance=3us") == 1
    least.write_text(LEAST + "# changed\n")
    assert kept(f"{least}:Least") == 1


def test_a_class_in_the_working_directory_is_compared_on_the_command_line(least: Path, weft_command: Weft) -> None:
    done = weft_command("compare", "--schemes", f"ecmp,{least.name}:Least", *OPTIONS, "--json")
    assert [run["scheme"] for run in done.json()["runs"]] == ["ecmp", "Least"]


def test_parameters_have_units_and_a_spec_has_them_beside_the_name(least: Path) -> None:
    spec = {"scheme": {"name": f"{least}:Least", "tolerance": "3us"}}
    results = [
        weft.run(spec, set=FEW),
        weft.run("", set=FEW, scheme=f"{least}:Least:tolerance=3us"),
        weft.run("", set={**FEW, "scheme": f"{least}:Least", "scheme.tolerance": "3us"}),
    ]
    for result in results:
        assert dict(result.scheme.iter_rows())["tolerance_ps"] == 4 * 3_000_000  # of four switches
        assert (result.summary.scheme, result.summary.label) == ("Least", "Least")
        assert result.flows.equals(results[0].flows)
    assert len({result.summary.spec_hash for result in results}) == 1
    assert results[0].summary.spec_hash != weft.run("", set=FEW, scheme=f"{least}:Least").summary.spec_hash


def test_a_file_stands_where_its_spec_is_and_a_written_spec_runs_again(least: Path, tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    least.rename(specs / "least.py")
    (specs / "mine.toml").write_text('[scheme]\nname = "least.py:Least"\nways = 3\n')
    first = weft.run(specs / "mine.toml", set=FEW)
    assert f'file = "{specs / "least.py"}"' in first.spec
    again = weft.run(first.spec)
    assert again.summary.spec_hash == first.summary.spec_hash
    assert again.flows.equals(first.flows)


def test_a_sweep_has_a_class_among_its_schemes_in_threads_and_finds_it_again(least: Path, tmp_path: Path) -> None:
    def sweep(out: str) -> weft.Sweep:
        schemes = ["ecmp", f"{least}:Least", f"{least}:Least:tolerance=1us"]
        return weft.sweep("", tmp_path / out, vary={"traffic.load": [0.3, 0.5]}, schemes=schemes, set=FEW, jobs=4)

    first, again = sweep("first"), sweep("again")
    assert (len(first.points), again.kept) == (6, 6)
    labels = [f"{least}:Least", f"{least}:Least:tolerance=1us"]
    assert set(first.table["scheme"]) == {"ecmp", *labels}
    means = [sweep.table.sort("traffic.load", "scheme")["mean_fct_us"] for sweep in (first, again)]
    assert means[0].equals(means[1])


def test_the_hash_is_of_the_content_and_of_the_class_and_not_of_the_place(least: Path, tmp_path: Path) -> None:
    own = spec_hash(f"{least}:Least")
    copy = tmp_path / "copy.py"
    copy.write_text(LEAST + "\nclass Other(Least):\n    pass\n")
    assert spec_hash(f"{copy}:Least") != own
    assert spec_hash(f"{copy}:Other") != spec_hash(f"{copy}:Least")
    copy.write_text(LEAST)
    assert spec_hash(f"{copy}:Least") == own


def test_letflow_in_a_file_is_letflow_of_the_core_decision_by_decision() -> None:
    spec = {
        "fabric": {
            "kind": "leaf-spine",
            "leaves": 2,
            "spines": 3,
            "hosts_per_leaf": 4,
            "reroute_after": "1ms",
            "fault": [{"link": "leaf0-spine1", "at": "1ms", "until": "9ms", "down": True}],
        },
        "traffic": {"workload": "web-search", "load": 0.5, "flows": 80},
    }
    core = weft.run(spec, scheme="letflow:gap=20us")
    python = weft.run(spec, scheme=f"{EXAMPLES / 'letflow.py'}:LetFlow:gap=20us")
    assert python.flows.equals(core.flows)
    assert python.links.equals(core.links)
    counted = [dict(result.scheme.iter_rows())["flowlets"] for result in (core, python)]
    assert counted[0] == counted[1] > 80


def test_runs_side_by_side_share_no_state_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "counting.py"
    file.write_text("""
from dataclasses import dataclass

calls = 0

@dataclass
class First:
    "One object for all switches: the short form."
    port: int = 0

    def choose(self, switch, packet, ports):
        global calls
        calls += 1
        return self.port

    def at(self, info):
        return Here()

class Here:
    def choose(self, switch, packet, ports):
        global calls
        calls += 1
        return 0
    def counters(self):
        return {"calls": calls}
""")
    comparison = weft.compare(["ecmp", f"{file}:First", f"{file}:First:port=1"], set=FEW, seeds=2, jobs=4)
    calls: dict[int, set[int]] = {}
    for result in comparison.runs[2:]:
        calls.setdefault(result.summary.seed, set()).add(dict(result.scheme.iter_rows())["calls"])
    assert [len(found) for found in calls.values()] == [1, 1]


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        ("least.py", 'error: "least.py" names no load balancer: expected the file and a class in it'),
        (
            "least.py:Leest",
            "error: least.py: 'Leest' is not there; did you mean 'Least'? (load balancers in it: Least)",
        ),
        (
            "least.py:weft",
            "error: least.py: 'weft' is no load balancer: it has no method choose (load ",
        ),
        (
            "least.py:Bare",
            "error: least.py: 'Bare' is no load balancer: it has no method choose (load ",
        ),
        ("none.py:Least", 'none.py", which cannot be read (No such file'),
        (
            "least.py:Least:tolerence=3us",
            "error: scheme.tolerence is no parameter of least.py:Least; allowed: tolerance, ways, name; did you mean "
            "'tolerance'?",
        ),
        ("least.py:Least:tolerance=3", 'error: scheme.tolerance: "3" is not a time: '),
        ("least.py:Least:tolerance", 'has "tolerance": expected key=value after each colon'),
        ("least.py:Least:ways=2.5", "error: scheme.ways = 2.5: least.py:Least wants a whole number"),
    ],
)
def test_what_the_file_does_not_have_is_answered_in_one_line(
    scheme: str, message: str, least: Path, weft_command: Weft
) -> None:
    done = weft_command("compare", "--schemes", scheme, *OPTIONS)
    assert done.code == 2
    told = done.stderr.strip().splitlines()
    assert len(told) == 1 and message in told[0]


BROKEN = """import weft

class Zero(weft.Scheme):
    def choose(self, switch, packet, ports):
        return self.half(0)

    def half(self, n):
        return 1 // n

class Nine(weft.Scheme):
    def choose(self, switch, packet, ports):
        return 9

class Unmade(weft.Scheme):
    def __init__(self, info):
        self.far = info.everything

    def choose(self, switch, packet, ports):
        return 0

class Counts(Nine):
    def choose(self, switch, packet, ports):
        return 0

    def counters(self):
        return {"calls": "many"}

class Ends(Nine):
    def choose(self, switch, packet, ports):
        import sys

        sys.exit(5)
"""


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (BROKEN, "Zero", "broken.py:8: ZeroDivisionError: integer division or modulo by zero"),
        (BROKEN, "Nine", "broken.py:11: choose() returned 9: allowed is 0 to 1, one of 2 ports"),
        (
            BROKEN,
            "Unmade",
            "broken.py:16: AttributeError: 'weft._core.SwitchInfo' object has no attribute 'everything'",
        ),
        (BROKEN, "Counts", "broken.py:25: "),
        ("x = 1\nclass A(:\n", "A", "broken.py:2: SyntaxError: invalid syntax"),
        ("x = 1\ny = z\n", "A", "broken.py:2: NameError: name 'z' is not defined"),
        (BROKEN, "Ends", "broken.py:32: sys.exit(5): a load balancer cannot end the program"),
        ("import sys\nsys.exit()\n", "A", "broken.py:2: sys.exit(): a load balancer cannot end the program"),
        ("import os\nimport least\n", "A", "broken.py:2: import least: a scheme is one file"),
        ("from . import least\n", "A", "broken.py:1: from . import least: a scheme is one file"),
    ],
    ids=["raised", "answer", "init", "counters", "syntax", "module", "exit", "exit of module", "neighbour", "relative"],
)
def test_a_mistake_in_the_file_ends_the_run_with_its_line(
    content: str, name: str, message: str, least: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(content)
    with pytest.raises(weft.SchemeError) as raised:
        weft.run("", set=FEW, scheme=f"broken.py:{name}")
    assert message in str(raised.value)
    if ":" in message and message.startswith("broken.py:"):
        assert raised.value.line == int(message.split(":")[1])


def test_an_exception_in_a_scheme_is_one_message_on_the_command_line_and_its_cause_in_python(
    weft_command: Weft, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    for command in ("run --set scheme=broken.py:Zero", "compare --schemes ecmp,broken.py:Zero"):
        done = weft_command(*command.split(), *OPTIONS)
        assert done.code == 2
        assert "error: broken.py:8: ZeroDivisionError: integer division or modulo by zero" in done.stderr
    with pytest.raises(weft.SchemeError) as raised:
        weft.run("", set=FEW, scheme=f"{tmp_path / 'broken.py'}:Zero")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_command_that_cannot_have_it_says_so(least: Path, weft_command: Weft) -> None:
    done = weft_command("packets", "--scheme", "least.py:Least", "--at", "leaf0", *OPTIONS)
    assert done.code == 2
    assert "is a class in a file of Python, Least" in done.stderr


def test_a_run_with_it_is_on_one_thread_and_explain_says_who_named_it(least: Path, weft_command: Weft) -> None:
    done = weft_command("explain", "--set", "scheme=least.py:Least:ways=3")
    assert done.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if " scheme." in line}
    assert rows["scheme.class"] == ["Least", "--set"] and rows["scheme.ways"] == ["3", "--set"]
    assert rows["scheme.file"] == [str(least), "--set"]
    assert "1 thread: an external scheme works on the whole fabric" in done.stdout


def test_a_class_of_a_program_is_run_at_each_switch_with_its_parameters() -> None:
    class Second(weft.Scheme):
        def __init__(self, info: weft.SwitchInfo, *, port: int = 1) -> None:
            super().__init__(info)
            self.port = port

        def choose(self, switch: object, packet: object, ports: object) -> int:
            return self.port

    first = weft.run("", set=FEW, scheme=Second.having(port=0)).links
    second = weft.compare([Second, "ecmp"], set=FEW).groups["Second"][0].links
    idle = [frame.filter(pl.col("link") == f"leaf0>spine{one}")["bytes"][0] for frame, one in ((first, 1), (second, 0))]
    assert idle == [0, 0]
    assert weft.run("", set=FEW, scheme=Second).summary.label == "Second"


class Gapped(weft.Scheme):
    """One with a parameter of each kind."""

    def __init__(self, info: weft.SwitchInfo, *, gap: weft.Time = weft.Time("20us"), ways: int = 1) -> None:
        super().__init__(info)
        self.gap, self.ways = gap, ways

    def choose(self, switch: object, packet: object, ports: object) -> int:
        return 0


def test_a_class_with_parameters_is_compared_under_a_name_that_has_them() -> None:
    fifty = Gapped.having(gap=weft.Time("50us"))
    compared = weft.compare(["ecmp", fifty, Gapped.having(gap="1ms", ways=2), Gapped], set=FEW)
    assert list(compared.groups) == ["ecmp", "Gapped:gap=50us", "Gapped:gap=1ms:ways=2", "Gapped"]
    assert weft.run("", set=FEW, scheme=fifty).summary.label == "Gapped:gap=50us"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gapp": 1}, "gapp is no parameter of Gapped; allowed: gap, ways; did you mean 'gap'?"),
        ({"gap": "50"}, 'gap: "50" is not a time: the unit is missing'),
        ({"gap": 0.5}, 'gap: "0.5" is not a time: the unit is missing'),
        ({"ways": "2"}, 'ways = "2": Gapped wants a whole number'),
    ],
)
def test_a_parameter_that_a_class_does_not_have_is_refused_at_once(given: dict[str, object], message: str) -> None:
    with pytest.raises(weft.SpecError) as raised:
        Gapped.having(**given)
    assert str(raised.value).startswith(message)


def test_parameters_are_given_in_steps() -> None:
    assert Gapped.having(gap=7).having(ways=3).__name__ == "Gapped:gap=7ps:ways=3"


def test_one_object_for_all_runs_is_refused() -> None:
    class Fixed(weft.SwitchChooser):
        def choose(self, switch: object, packet: object, ports: object) -> int:
            return 0

    with pytest.raises(weft.SpecError, match="a Fixed would be shared by all runs; give the class"):
        weft.compare(["ecmp", Fixed()], set=FEW)  # type: ignore[list-item]


def test_quantities_are_whole_numbers_of_base_units() -> None:
    quantities = (weft.Time("1500ns"), weft.Size("100KB"), weft.Rate("10Gbps"), weft.Time(0))
    assert [one.text for one in quantities] == ["1500ns", "100KB", "10Gbps", "0s"]
    assert (weft.Time("50us"), weft.Size("100KB"), weft.Rate("10Gbps")) == (50_000_000, 100_000, 10**10)
    assert weft.Time(7) == 7
    with pytest.raises(weft.SpecError, match="is not a rate"):
        weft.Rate("10us")


def test_a_file_that_is_called_like_a_scheme_has_not_its_look() -> None:
    assert palette.home("letflow") is not None and palette.home("letflow.py:Mine") is None
