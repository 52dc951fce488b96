"""Sweeps: which points there are, what is written of them, and what a mistake is answered with."""

import errno
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import weft
from conftest import Weft
from sweeping import POINTS, SPEC, tree
from weft import _core
from weft.cli.app import app
from weft.cli.sweep_progress import show_sweep
from weft.runs.run import resolved_run
from weft.spec import SpecText
from weft.sweeps import SweepProgress, planning
from weft.sweeps.grid import Grid, partitions, read_grid


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> weft.Sweep:
    return weft.sweep(SPEC, tmp_path_factory.mktemp("sweep") / "out")


def grid(text: str, **vary: list[object]) -> Grid:
    return read_grid(SpecText(text), (), {key.replace("__", "."): values for key, values in vary.items()}, None, None)


def labels(text: str, **vary: list[object]) -> dict[str, tuple[str, ...]]:
    return {axis.key: axis.labels for axis in grid(text, **vary).axes}


def test_a_list_is_swept_where_a_field_takes_none() -> None:
    assert labels("[traffic]\nload = [0.2, 0.4]\nflows = 10\n") == {"traffic.load": ("0.2", "0.4")}
    assert labels("[traffic]\nsources = [0, '4-7']\n") == {}
    assert labels("[[fabric.fault]]\nlink = 'leaf0-spine0'\n") == {}


def test_a_field_that_is_a_list_is_swept_by_a_list_of_lists() -> None:
    assert labels("[traffic]\nsources = [[0, 1], ['4-7']]\n") == {"traffic.sources": ("[0,1]", "[4-7]")}
    assert labels("[fabric]\nfault = [[], [{ link = 'leaf0-spine0', down = true }]]\n") == {
        "fabric.fault": ("[]", "[link=leaf0-spine0,down=true]")
    }


def test_fields_of_a_list_of_tables_are_swept_by_their_place() -> None:
    text = "[[fabric.fault]]\nlink = 'leaf0-spine0'\nrate = ['1Gbps', '2Gbps']\n"
    assert labels(text) == {"fabric.fault.0.rate": ("1Gbps", "2Gbps")}


def test_balancers_are_tables_or_schemes_and_tables_may_have_lists() -> None:
    tables = "[[scheme]]\nname = 'ecmp'\n[[scheme]]\nname = 'letflow'\ngap = ['50us', '500us']\n"
    expected = {"scheme": ("ecmp", "letflow:gap=50us", "letflow:gap=500us")}
    assert labels(tables) == expected
    assert labels("scheme = ['ecmp', 'letflow:gap=50us', 'letflow:gap=500us']\n") == expected
    assert labels("", scheme=["ecmp", "letflow:gap=50us", "letflow:gap=500us"]) == expected


def test_the_seed_is_the_last_field_and_what_is_varied_replaces_the_specs_list() -> None:
    found = labels("[run]\nseed = [4, 5]\n[traffic]\nload = [0.2, 0.4]\n", traffic__load=[0.7], fabric__leaves=[2, 4])
    assert list(found.items()) == [
        ("traffic.load", ("0.7",)),
        ("fabric.leaves", ("2", "4")),
        ("run.seed", ("4", "5")),
    ]


def test_what_is_set_is_no_longer_swept() -> None:
    text = SpecText("[traffic]\nload = [0.2, 0.4]\n[[scheme]]\nname = 'letflow'\n")
    found = read_grid(text, {"traffic.load": 0.3, "scheme.gap": "7us"}, {}, None, None)
    assert [axis.key for axis in found.axes] == ["scheme"]
    assert found.overrides_at((0,))[1:] == [("traffic.load", "0.3"), ("scheme.gap", "7us")]


def test_transports_are_swept_as_a_field_of_their_own_and_mixtures_as_variants() -> None:
    def axes(*schemes: str, spec: str = "") -> dict[str, tuple[str, ...]]:
        return {axis.key: axis.labels for axis in read_grid(SpecText(spec), (), {}, None, schemes).axes}

    swept = "[[scheme]]\nname = 'ecmp'\n[[scheme]]\nname = 'drill'\n[traffic]\nload = [0.2, 0.4]\n"
    loads = ("0.2", "0.4")
    assert axes("ecmp", "letflow:gap=1us") == {"scheme": ("ecmp", "letflow:gap=1us")}
    assert axes("dctcp", "mptcp", spec=swept) == {
        "scheme": ("ecmp", "drill"), "traffic.load": loads, "transport": ("dctcp", "mptcp"),
    }  # fmt: skip
    assert axes("ecmp", "mptcp", spec=swept) == {"traffic.load": loads, "variant": ("ecmp", "mptcp")}
    assert axes("mptcp + ecmp") == {"variant": ("mptcp+ecmp",)}


def test_what_is_varied_of_variants_is_swept_beside_them() -> None:
    text = SpecText("[scheme]\nname = 'letflow'\ngap = ['5us', '7us']\n")
    vary = {"transport.min_rto": ["1ms", "5ms"], "scheme.gap": ["50us", "100us"]}
    found = read_grid(text, (), vary, None, ["tcp+letflow", "dctcp+letflow"])
    assert {axis.key: axis.labels for axis in found.axes} == {
        "scheme.gap": ("50us", "100us"), "transport.min_rto": ("1ms", "5ms"),
        "variant": ("tcp+letflow", "dctcp+letflow"),
    }  # fmt: skip
    assert ("transport.min_rto", '"5ms"') in found.overrides_at((0, 1, 0))
    gone = read_grid(text, (), {}, None, ["letflow", "drill"])
    assert [axis.key for axis in gone.axes] == ["scheme"], "what the spec sweeps of a table goes with it"


def test_transports_and_a_preset_of_transports_can_be_swept(weft_command: Weft) -> None:
    small = ("--set", "traffic.flows=10", "--json")
    outcome = weft_command("sweep", "--preset", "maxpass-medium", "--set", "traffic.load=0.2", *small)
    assert outcome.code == 0, outcome.stderr
    schemes = weft.catalog.preset("maxpass-medium").schemes
    assert len(outcome.json()["points"]) == len(schemes)
    outcome = weft_command("sweep", "--schemes", "mptcp,mptcp+drill", *small)
    assert outcome.code == 0, outcome.stderr
    assert [point["variant"] for point in outcome.json()["points"]] == ["mptcp", "mptcp+drill"]


def test_a_label_too_long_for_a_directory_is_cut_and_stays_apart() -> None:
    places = [[f"{start}-{start + 1}" for start in range(first, 200)] for first in (0, 1)]
    (axis,) = grid("", traffic__sources=[*places]).axes
    assert len(set(axis.labels)) == 2
    assert all(len(partitions({axis.key: label})) < 255 for label in axis.labels)


def test_every_point_is_the_run_that_weft_run_does(done: weft.Sweep) -> None:
    assert len(done.runs) == POINTS and not done.failed
    for run in (done.runs[0], done.runs[-1]):
        scheme, *parameters = run.labels["scheme"].split(":")
        overrides = {"scheme": "{}", "scheme.name": scheme, "traffic.load": run.labels["traffic.load"]}
        overrides |= {f"scheme.{key}": value for key, value in (one.split("=") for one in parameters)}
        alone = weft.run(SPEC, set=overrides, seed=int(run.labels["run.seed"]))
        assert run.summary is not None
        assert run.summary.fct_us == alone.summary.fct_us
        assert run.summary.raw["spec_hash"] == alone.summary.raw["spec_hash"]
        flows = done.frame("flows").filter(*(pl.col(key).cast(pl.String) == value for key, value in run.labels.items()))
        assert flows.drop(*done.swept).equals(alone.flows)


def test_data_sets_are_partitioned_by_the_swept_fields(done: weft.Sweep) -> None:
    flows = pl.read_parquet(done.path / "flows")
    assert flows.height == POINTS * 40
    assert flows.schema["traffic.load"] == pl.Float64 and flows.schema["run.seed"] == pl.Int64
    assert set(flows["scheme"]) == {"ecmp", "letflow:gap=50us", "letflow:gap=500us"}
    by_glob = pl.read_parquet(f"{done.path}/runs/**/*.parquet", hive_partitioning=True)
    assert by_glob.height == by_glob["run"].n_unique() == POINTS


def test_provenance_has_a_row_per_run_and_no_other_file_tells_time_or_place(done: weft.Sweep, tmp_path: Path) -> None:
    rows = done.provenance
    assert rows.height == rows["run"].n_unique() == POINTS
    assert set(rows["version"]) == {weft.__version__} and rows["spec_hash"].n_unique() == POINTS
    assert (rows["seed"] == rows["run.seed"]).all()
    assert rows["host"].null_count() == rows["started"].null_count() == 0 and (rows["took_s"] > 0).all()
    assert tree(weft.sweep(SPEC, tmp_path / "again", jobs=1).path) == tree(done.path)


def test_the_table_has_means_and_intervals_over_seeds(done: weft.Sweep) -> None:
    assert done.table.columns[:3] == ["traffic.load", "scheme", "seeds"]
    assert done.table.height == 6 and set(done.table["seeds"]) == {3}
    values = [run.summary.fct_us.mean for run in done.runs[:3] if run.summary and run.summary.fct_us.mean]
    mean = sum(values) / 3
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 2)
    # Student's t for 95 % and two degrees of freedom, from a table: 4.303.
    assert done.table["mean_fct_us"][0] == pytest.approx(mean)
    assert done.table["mean_fct_us_ci95"][0] == pytest.approx(4.303 * deviation / math.sqrt(3), rel=1e-3)
    assert pl.read_parquet(done.path / "table.parquet").equals(done.table)


def test_a_finished_sweep_runs_nothing_again_and_can_be_extended(tmp_path: Path) -> None:
    small = {"traffic.load": 0.3, "scheme.name": "ecmp"}
    spec = SPEC.split("[[scheme]]")[0]
    first = weft.sweep(spec, tmp_path / "out", set=small, seeds=2)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out/flows").rglob("run.parquet")}
    more = weft.sweep(spec, tmp_path / "out", set=small, seeds=3)
    assert (first.kept, more.kept, len(more.runs)) == (0, 2, 3)
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    with pytest.raises(weft.OutputError, match=r"holds run\.seed = 3, which is not part"):
        weft.sweep(spec, tmp_path / "out", set=small, seeds=2)
    anew = weft.sweep(spec, tmp_path / "out", set=small, seeds=2, force=True)
    assert (anew.kept, len(anew.runs)) == (0, 2)
    assert pl.read_parquet(tmp_path / "out/flows")["run.seed"].max() == 2


def test_a_sweep_of_other_fields_is_not_mixed_in(done: weft.Sweep) -> None:
    with pytest.raises(weft.OutputError, match="holds a sweep of"):
        weft.sweep(SPEC, done.path, vary={"fabric.leaves": [2, 3]})


def test_a_directory_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    for force in (False, True):
        with pytest.raises(weft.OutputError, match="neither empty nor an earlier sweep"):
            weft.sweep(SPEC, tmp_path, force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_command_prints_a_table_and_says_where_it_all_is(weft_command: Weft, tmp_path: Path) -> None:
    (tmp_path / "loads.toml").write_text(SPEC, encoding="utf-8")
    outcome = weft_command("sweep", "loads.toml", "--seeds", "2", "--set", "scheme=", "--schemes", "ecmp,drill")
    assert outcome.code == 2 and "--set" in outcome.stderr
    outcome = weft_command("sweep", "loads.toml", "--seeds", "2", "--schemes", "ecmp,drill")
    assert outcome.code == 0, outcome.stderr
    assert "drill" in outcome.stdout and "± is the 95 %" in outcome.stdout
    assert "8/8" in outcome.stderr and "written to out/loads" in outcome.stderr
    again = weft_command("sweep", "loads.toml", "--seeds", "2", "--schemes", "ecmp,drill", "--json")
    document = json.loads(again.stdout)
    assert (document["runs"], document["kept"], document["failed"]) == (8, 8, [])
    assert len(document["points"]) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--vary", "traffic.load=0.3,1.7"), ("--vary: traffic.load = 1.7 offers", "run.seed = 1")),
        (("--vary", "traffic.lod=0.3,0.4"), ("--vary: traffic.lod is not a key", "load")),
        (("--vary", "traffic.load=0.3,0.3"), ("0.3 is listed twice",)),
        (("--vary", "traffic.load"), ("key=value,value",)),
        (("--vary", "traffic.load=0.3,,0.4"), ("key=value,value",)),
        (("--vary", "traffic.load=0.3", "--set", "traffic.load=0.4"), ("both set and varied",)),
        (("--vary", "run.seed=1", "--seeds", "2"), ("varied twice",)),
        (("--vary", "scheme.gap=1us,2us"), ("scheme.gap is not a key", "at ")),
        (("--vary", "run.time_limit=1s,1000ms"), ("two points are the same run",)),
        (("--schemes", "ecmp,leflow"), ('did you mean "letflow"',)),
        (("--schemes", "ecmp,ecmp"), ("named twice",)),
        (("--schemes", "hermes:probe_interval=1us"), ("scheme.probe_interval is 1us", "scheme = hermes")),
        (("--schemes", "ecmp", "--vary", "scheme=drill,rps"), ("scheme is varied twice",)),
        (("--schemes", "ecmp", "--vary", "scheme.name=drill,rps"), ("scheme.name is varied, and the schemes say",)),
        (("--schemes", "ecmp,letflow", "--vary", "scheme.gap=1us,2us"), ("scheme.gap is not a key of ecmp",)),
        (("--seeds", "60000"), ("at most 100,000",)),
        (("--seeds", "1-1000000000000"), ("seeds: 1,000,000,000,000 of them, and at most 100,000",)),
        (("--seeds", "1-60000,70000-120000"), ("seeds: 110,001 of them",)),
        (("--seeds", "1-99999999999999999999999"), ("expected a count",)),
        (("--workers", "3"), ("needs --slurm or --pbs",)),
        (("--slurm", "--pbs"), ("give one of them",)),
        (("--slurm", "--batch", "cores"), ("key=value",)),
        (("--jobs", "0"), ("--jobs",)),
    ],
)
def test_a_mistake_at_any_point_is_answered_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    Path("my.toml").write_text(SPEC, encoding="utf-8")
    outcome = CliRunner().invoke(app, ["sweep", "my.toml", *options, "--out", "out"])
    assert outcome.exit_code == 2 and outcome.stdout == "", outcome.output
    assert all(word in outcome.stderr for word in words), outcome.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["my.toml"]


def test_a_list_without_values_is_a_mistake() -> None:
    with pytest.raises(weft.SpecError, match="at least one value"):
        grid("[traffic]\nload = []\n")


@pytest.mark.parametrize("value", [0.5, "0.5", {"a": 1}])
def test_a_field_that_is_varied_has_a_list_of_values(value: object, tmp_path: Path) -> None:
    with pytest.raises(weft.SpecError, match=r"vary: traffic\.load = .*: expected a list of values, as in \["):
        weft.sweep("", tmp_path / "out", vary={"traffic.load": value})  # type: ignore[dict-item]


@pytest.mark.parametrize("seeds", ["3", 0, [1, 1], [-1], ["1"], 1.5])
def test_seeds_are_a_number_of_them_or_a_list(seeds: Any, tmp_path: Path) -> None:
    for call in (
        lambda: weft.sweep("", tmp_path / "out", vary={"traffic.load": [0.5]}, seeds=seeds),
        lambda: weft.compare(["ecmp"], seeds=seeds),
    ):
        with pytest.raises(weft.SpecError, match="seeds: expected one or more different numbers from 0, not"):
            call()


def test_schemes_of_a_sweep_are_a_list(tmp_path: Path) -> None:
    with pytest.raises(weft.SpecError, match=r"schemes = 'ecmp,drill': expected a list"):
        weft.sweep("", tmp_path / "out", schemes="ecmp,drill")


def test_each_distinct_spec_is_checked_once_and_progress_is_shown_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checked: list[str] = []
    resolve = _core.resolve

    def counted(text: str, **how: Any) -> str:
        checked.append(text)
        return resolve(text, **how)

    monkeypatch.setattr(_core, "resolve", counted)
    monkeypatch.setattr(planning, "_BETWEEN_S", 0.0)
    told: list[SweepProgress] = []
    weft.sweep(SPEC, tmp_path / "out", jobs=1, progress=told.append)
    assert len(checked) == POINTS / 3, "three seeds of each"
    checks = [state for state in told if state.event == "checking"]
    assert [state.checked for state in checks] == list(range(1, POINTS + 1))
    assert {state.total for state in checks} == {POINTS}
    first_run = next(place for place, state in enumerate(told) if state.event != "checking")
    assert first_run == len(checks), "before any run"
    with show_sweep() as show:
        show(replace(checks[-2], elapsed_s=3.0))
    assert "17/18 specs checked" in capsys.readouterr().err


def test_points_that_are_not_checked_again_are_the_same_runs() -> None:
    swept = grid(SPEC)
    for run, places in zip(planning.plan(swept, 1), swept.places(), strict=True):
        alone = resolved_run(swept.spec, 0, {}, overrides=swept.overrides_at(places))
        assert (run.id, run.spec, run.seed, run.threads) == (alone.id, alone.spec, alone.seed, alone.threads)


def test_a_full_disk_stops_a_sweep_and_is_no_failed_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: Any, **__: Any) -> weft.Result:
        raise OSError(errno.ENOSPC, "results cannot be kept in /tmp (TMPDIR): no space")

    monkeypatch.setattr("weft.runs.run.run_text", full)
    with pytest.raises(OSError, match="no space"):
        weft.sweep(SPEC, tmp_path / "out", jobs=1, progress=False)
    assert weft.load_sweep(tmp_path / "out").runs == []
