"""One sentence says what was run."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft
from factory import LINKS
from weft.description import description_words
from weft.report.picture import picture
from weft.runs.run import resolved_run
from weft.spec import load_spec

TRAFFIC = {"traffic.workload": "web-search", "traffic.load": "0.6", "traffic.flows": "2000"}
INCAST = "{senders=2,size='1MB'}"
EXAMPLES = Path(__file__).parents[2] / "examples"
BLACKHOLES = ",".join(f"{{link='leaf0-spine{number}',blackhole=0.5}}" for number in range(5))


def load_resolved(overrides: Mapping[str, str], variant: str = "ecmp") -> dict[str, Any]:
    run = resolved_run(load_spec(""), 0, {}, overrides=list(overrides.items()), variant=variant, tables=())
    return tomllib.loads(run.spec.text)


def said(overrides: Mapping[str, str], seeds: Sequence[int] = (1,), variants: Sequence[str] = ("ecmp",)) -> str:
    return description_words([load_resolved(overrides, variant) for variant in variants], seeds)


@pytest.mark.parametrize(
    ("overrides", "facts"),
    [
        ({}, ["leaf-spine", "8 leaves", "8 spines", "128 hosts", "10 Gbit/s", "web-search"]),
        ({}, ["load 0.6", "DCTCP", "seed 1"]),
        ({"fabric.kind": "fat-tree"}, ["fat-tree", "8 pods", "16 cores", "128 hosts"]),
        ({"fabric.fabric_rate": "9Gbps"}, ["10 Gbit/s", "9 Gbit/s"]),
        ({"fabric.links_per_pair": "2"}, ["2 cables", "128 hosts"]),
        ({"fabric.fault": '[{link="leaf0-spine1",down=true,at="2ms",until="4ms"}]'},
         ["leaf0-spine1", "down", "2 ms", "4 ms"]),
        ({"fabric.fault": '[{share=0.25,tier="leaf-spine",rate="1Gbps"}]'},
         ["25.0 %", "leaf-spine cables", "1 Gbit/s"]),
        ({"fabric.fault": '[{link="leaf0>spine1",loss=0.01,delay="5us",at="10us"}]'},
         ["leaf0>spine1", "5 µs", "1.00 %", "10 µs"]),
        ({"fabric.fault": f"[{BLACKHOLES}]"}, ["leaf0-spine0", "4 more cables", "50.0 %"]),
        ({**TRAFFIC, "traffic.load_of": "host-links", "traffic.pairs": "permutation", "traffic.load": "0.5"},
         ["2,000", "web-search", "permutation", "load 0.5", "host links"]),
        ({**TRAFFIC, "traffic.incast": '[{senders=20,size="30KB",period="1ms"}]', "traffic.long_lived": "[{count=2}]"},
         ["20 × 30 KB", "1 ms", "2 long-lived flows"]),
        ({**TRAFFIC, "traffic.flows": "1"}, ["1 web-search flow "]),
        ({"traffic.flows": "1", "traffic.size": "1MB"}, ["1 flow of 1 MB"]),
        ({"traffic.schedule": f"{{file='{EXAMPLES / 'ring.cm'}'}}"}, ["ring.cm"]),
        ({"traffic.incast": f"[{INCAST},{INCAST},{INCAST},{INCAST.replace('2', '3')}]"},
         ["3 times", "2 × 1 MB", "3 × 1 MB"]),
    ],
)  # fmt: skip
def test_what_was_run_is_described_by_its_values(overrides: dict[str, str], facts: Sequence[str]) -> None:
    sentence = said(overrides)
    assert [fact for fact in facts if fact not in sentence] == []


@pytest.mark.parametrize(("keys", "facts"), [({}, []), ({"flows": 2}, ["2 flows"]), ({"duration": "1ms"}, ["1 ms"])])
def test_of_a_trace_it_says_which_rows(keys: dict[str, object], facts: Sequence[str]) -> None:
    spec = load_resolved({})
    spec["traffic"] = {"trace": "/there/ok.csv", "pairs": "between-racks", **keys}
    assert all(fact in description_words([spec], [1]) for fact in ["ok.csv", *facts])


def test_transports_and_seeds_are_named() -> None:
    several = said({}, (1, 2, 3), ("dctcp", "mptcp"))
    assert all(fact in several for fact in ("DCTCP", "MPTCP", "1 to 3"))
    linux = said({"transport": "{name='tcp',profile='linux'}"}, (3, 7))
    assert all(fact in linux for fact in ("CUBIC", "Linux", "3 and 7"))
    assert "6 seeds" in said({}, (1, 3, 5, 7, 9, 11))


def test_compare_its_report_and_its_json_have_it(weft_command: Weft, small_options: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = weft_command("compare", "--schemes", "ecmp", *small_options, "--out", out)
    sentence = json.loads((out / "compare.json").read_text(encoding="utf-8"))["description"]
    assert "8 hosts" in sentence and "60 web-search flows" in sentence
    assert " ".join(done.stdout.split()).startswith(sentence)
    report = (out / "report.html").read_text(encoding="utf-8")
    body = report[report.index("<main") :]
    assert body.index("<svg") < body.index(sentence) < body.index('id="verdict"')


def test_where_runs_differ_each_is_said_or_how_many_there_are() -> None:
    def words(key: str, *values: str) -> str:
        found = [load_resolved({**TRAFFIC, key: value}) for value in values]
        return description_words(found, (1, 2), {key: values})

    loads = words("traffic.load", "0.3", "0.6")
    assert all(fact in loads for fact in ("traffic.load 0.3 and 0.6", "1 and 2")) and "at load" not in loads
    spines = words("fabric.spines", "2", "4")
    assert "2 spines" in spines and "4 spines" in spines
    assert "4 fabrics" in words("fabric.spines", "2", "4", "6", "8")
    faults = words("fabric.fault", '[{link="leaf0-spine1",down=true}]', "[]")
    assert "leaf0-spine1 down" in faults and "none" in faults


def test_the_report_of_a_sweep_begins_with_it_and_the_picture(
    weft_command: Weft, small_options: list[str], tmp_path: Path
) -> None:
    def head(name: str, *options: str) -> str:
        out = tmp_path / name
        done = weft_command("sweep", "--schemes", "ecmp,rps", *small_options, *options, "--out", out)
        assert done.code == 0 and weft_command("report", out).code == 0, done.stderr
        page = (out / "report.html").read_text(encoding="utf-8")
        return page[page.index("<main") : page.index('id="points-title"')]

    same = head("same", "--vary", "traffic.load=0.3,0.5", "--fault", "leaf0-spine1 down 1ms..2ms", "--seeds", "2")
    assert same.index("<svg") < same.index("leaf0-spine1 down") < same.index("traffic.load 0.3 and 0.5")
    assert same.count('class="cut"') == 1, "the cable has one line, whatever the seeds"
    other = head("other", "--vary", "fabric.links_per_pair=1,2")
    assert "<svg" not in other[: other.index('id="verdict"')], "there is no picture of two fabrics"


def test_the_picture_has_each_cable_once_and_marks_those_with_a_fault() -> None:
    drawn = picture(LINKS, {"leaf0>host0": ("cut", "down")})
    assert drawn is not None
    assert [(cable.mark, cable.title) for cable in drawn.cables] == [
        (None, "host1 – leaf0"),
        ("cut", "host0 – leaf0: down"),
    ]
    assert [box.name for box in drawn.boxes if not box.host] == ["leaf0"]


def test_one_is_singular() -> None:
    one = {"fabric.leaves": "1", "fabric.spines": "1", "fabric.hosts_per_leaf": "2", "traffic.load_of": "host-links"}
    assert said(one | {"traffic.pairs": "anywhere"}).startswith("A leaf-spine of 1 leaf and 1 spine, 2 hosts, ")
