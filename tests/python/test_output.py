"""Result directories are whole or absent, and nothing else is ever deleted."""

import subprocess
import sys
from pathlib import Path

import pytest

from weft import OutputError
from weft.output import check_target, staged_directory, write_file


def old_result(path: Path) -> Path:
    path.mkdir()
    (path / "summary.json").write_text("{}", encoding="utf-8")
    return path


def test_a_finished_block_leaves_the_directory_and_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    with staged_directory(target, force=False) as staging:
        assert staging.parent == target.parent
        (staging / "x").write_text("1", encoding="utf-8")
        assert not target.exists()
    assert [path.name for path in target.parent.iterdir()] == ["b"]
    assert (target / "x").read_text(encoding="utf-8") == "1"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_broken_block_leaves_nothing_not_even_parents(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), staged_directory(tmp_path / "a" / "b", force=False) as staging:
        (staging / "x").write_text("1", encoding="utf-8")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_an_older_result_stays_when_the_new_one_fails(tmp_path: Path) -> None:
    target = old_result(tmp_path / "out")
    with pytest.raises(ValueError, match="no"), staged_directory(target, force=True):
        raise ValueError("no")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (target / "summary.json").is_file()


def test_force_replaces_an_older_result_whole(tmp_path: Path) -> None:
    target = old_result(tmp_path / "out")
    with staged_directory(target, force=True) as staging:
        (staging / "compare.json").write_text("{}", encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in target.iterdir()] == ["compare.json"]


def test_an_older_result_is_kept_without_force(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already; --force replaces it"):
        check_target(old_result(tmp_path / "out"), force=False)


def test_force_is_not_named_where_it_would_replace_nothing(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine", encoding="utf-8")
    for force in (False, True):
        with pytest.raises(OutputError, match="not an earlier result of weft") as refused:
            check_target(tmp_path, force=force)
        assert "--force" not in str(refused.value)


def test_force_never_deletes_what_is_not_a_result(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(OutputError, match="not an earlier result"):
        check_target(tmp_path, force=True)


def test_force_keeps_a_result_that_somebody_has_added_to(tmp_path: Path) -> None:
    target = old_result(tmp_path / "out")
    (target / "notes.txt").write_text("read this", encoding="utf-8")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        check_target(target, force=True)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("", encoding="utf-8")
    for target in (path, path / "below"):
        with pytest.raises(OutputError, match="file"):
            check_target(target, force=True)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    write_file(tmp_path / "r.html", "one")
    write_file(tmp_path / "r.html", "two")
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("r.html", "two")]


def test_a_file_in_a_missing_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        write_file(tmp_path / "missing" / "r.html", "x")


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_makes_is_not(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom weft.output import staged_directory\n"
        "with staged_directory(Path(sys.argv[1]), force=False) as staging:\n"
        "    (staging / 'x').write_text('1')\n"
        "    print(staging.name, flush=True)\n"
        "    time.sleep(60)\n"
    )
    target, other = tmp_path / "out", tmp_path / ".out.mine.part"
    other.mkdir()
    command = [sys.executable, "-c", script, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = tmp_path / process.stdout.readline().strip()
        with staged_directory(target, force=False):
            assert (left / "x").is_file(), "its process lives"
        process.kill()
    assert left.is_dir()
    with staged_directory(target, force=True) as staging:
        (staging / "summary.json").write_text("{}", encoding="utf-8")
        assert not left.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "out"]
