"""One sentence says what was run."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import Weft
from factory import LINKS
from weft.report.picture import picture
from weft.runs.run import resolved_run
from weft.set_up import set_up_words
from weft.spec import load_spec

TRAFFIC = {"traffic.workload": "web-search", "traffic.load": "0.6", "traffic.flows": "2000"}
INCAST = "{senders=2,size='1MB'}"
EXAMPLES = Path(__file__).parents[2] / "examples"
BLACKHOLES = ",".join(f"{{link='leaf0-spine{number}',blackhole=0.5}}" for number in range(5))


def load_resolved(overrides: Mapping[str, str], contender: str = "ecmp") -> dict[str, Any]:
    run = resolved_run(load_spec(""), 0, {}, overrides=list(overrides.items()), contender=contender, tables=())
    return tomllib.loads(run.spec.text)


def said(overrides: Mapping[str, str], seeds: Sequence[int] = (1,), contenders: Sequence[str] = ("ecmp",)) -> str:
    return set_up_words([load_resolved(overrides, contender) for contender in contenders], seeds)


def test_the_default_is_said_whole() -> None:
    assert said({}) == (
        "A leaf-spine of 8 leaves and 8 spines, 128 hosts, 10 Gbit/s; 2,000 web-search flows between racks "
        "at load 0.6; DCTCP; seed 1."
    )


@pytest.mark.parametrize(
    ("overrides", "part"),
    [
        ({"fabric.kind": "fat-tree"}, "A fat-tree of 8 pods and 16 cores, 128 hosts, 10 Gbit/s; "),
        ({"fabric.fabric_rate": "9Gbps"}, " 10 Gbit/s to hosts and 9 Gbit/s between switches; "),
        ({"fabric.links_per_pair": "2"}, "8 leaves and 8 spines with 2 cables a pair, 128 hosts"),
        ({"fabric.fault": '[{link="leaf0-spine1",down=true,at="2ms",until="4ms"}]'},
         "; leaf0-spine1 down from 2 ms to 4 ms; "),
        ({"fabric.fault": '[{share=0.25,tier="leaf-spine",rate="1Gbps"}]'},
         "; 25.0 % of the leaf-spine cables at 1 Gbit/s; "),
        ({"fabric.fault": '[{link="leaf0>spine1",loss=0.01,delay="5us",at="10us"}]'},
         "; leaf0>spine1 with 5 µs more delay and losing 1.00 % of packets from 10 µs on; "),
        ({"fabric.fault": f"[{BLACKHOLES}]"}, "; leaf0-spine0 and 4 more cables swallowing 50.0 % of flows; "),
        ({**TRAFFIC, "traffic.load_of": "host-links", "traffic.pairs": "permutation", "traffic.load": "0.5"},
         "2,000 web-search flows in a permutation of hosts at load 0.5 of the host links; "),
        ({**TRAFFIC, "traffic.incast": '[{senders=20,size="30KB",period="1ms"}]', "traffic.long_lived": "[{count=2}]"},
         " at load 0.6, incast of 20 × 30 KB every 1 ms and 2 long-lived flows; "),
        ({**TRAFFIC, "traffic.flows": "1"}, "; 1 web-search flow between racks at load 0.6; "),
        ({"traffic.flows": "1", "traffic.size": "1MB"}, "; 1 flow of 1 MB "),
        ({"traffic.schedule": f"{{file='{EXAMPLES / 'ring.cm'}'}}"}, "; the schedule of ring.cm; "),
        ({"traffic.incast": f"[{INCAST},{INCAST},{INCAST},{INCAST.replace('2', '3')}]"},
         "; 3 times incast of 2 × 1 MB and incast of 3 × 1 MB; "),
    ],
)  # fmt: skip
def test_what_differs_from_it_is_said(overrides: dict[str, str], part: str) -> None:
    assert part in said(overrides)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "; the flows of ok.csv; "),
        ({"flows": 2}, "; the first 2 flows of ok.csv; "),
        ({"duration": "1ms"}, "; the flows of ok.csv that start before 1 ms; "),
    ],
)
def test_of_a_trace_it_says_which_rows(keys: dict[str, object], words: str) -> None:
    spec = load_resolved({})
    spec["traffic"] = {"trace": "/there/ok.csv", "pairs": "between-racks", **keys}
    assert words in set_up_words([spec], [1])


def test_transports_and_seeds_are_named() -> None:
    assert said({}, (1, 2, 3), ("dctcp", "mptcp")).endswith("; DCTCP or MPTCP; seeds 1 to 3.")
    linux = {"transport": "{name='tcp',profile='linux'}"}
    assert said(linux, (3, 7)).endswith("; CUBIC as in Linux; seeds 3 and 7.")
    assert said({}, (1, 3, 5, 7, 9, 11)).endswith("; 6 seeds.")


def test_compare_and_its_report_begin_with_it(weft_command: Weft, small_options: list[str], tmp_path: Path) -> None:
    sentence = (
        "A leaf-spine of 2 leaves and 2 spines, 8 hosts, 10 Gbit/s; 60 web-search flows between racks at load 0.6; "
        "DCTCP; seed 1."
    )
    out = tmp_path / "out"
    done = weft_command("compare", "--schemes", "ecmp", *small_options, "--out", out)
    assert " ".join(done.stdout.split()).startswith(sentence)
    report = (out / "report.html").read_text(encoding="utf-8")
    body = report[report.index("<main") :]
    assert body.index("<svg") < body.index(sentence) < body.index('id="verdict"')
    assert weft_command("compare", "--schemes", "ecmp", *small_options, "--json").json()["set_up"] == sentence


def test_where_runs_differ_each_is_said_or_how_many_there_are() -> None:
    def words(key: str, *values: str) -> str:
        found = [load_resolved({**TRAFFIC, key: value}) for value in values]
        return set_up_words(found, (1, 2), {key: values})

    assert words("traffic.load", "0.3", "0.6") == (
        "A leaf-spine of 8 leaves and 8 spines, 128 hosts, 10 Gbit/s; 2,000 web-search flows between racks; DCTCP; "
        "seeds 1 and 2; traffic.load 0.3 and 0.6."
    )
    assert words("fabric.spines", "2", "4").startswith(
        "A leaf-spine of 8 leaves and 2 spines, 128 hosts, 10 Gbit/s, or a leaf-spine of 8 leaves and 4 spines, "
    )
    assert words("fabric.spines", "2", "4", "6", "8").startswith("4 fabrics; 2,000 web-search flows")
    assert "; leaf0-spine1 down, or none; " in words("fabric.fault", '[{link="leaf0-spine1",down=true}]', "[]")


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
    assert same.index("<svg") < same.index("leaf0-spine1 down from 1 ms to 2 ms; 60 web-search flows between racks; ")
    assert "; seeds 1 and 2; traffic.load 0.3 and 0.5." in same
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
