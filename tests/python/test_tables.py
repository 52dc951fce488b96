"""Tables and columns are those that the core declares, wherever they are named."""

import pytest

import weft
from conftest import Weft
from weft.catalog import entries
from weft.schemas import TABLES, empty_table


def test_tables_of_a_run_have_the_declared_columns(small: dict[str, int]) -> None:
    asked = {"run.sample_every": "50us", "run.paths_of": "1KB", "run.trace_flows": 2}
    fault = {"fabric.fault": [{"link": "leaf0-spine0", "loss": 0.1}]}
    core = weft.run("", set=small | asked | fault).core
    assert core is not None
    import polars as pl

    # A run without Linux hosts has no rows of these.
    of_kernels = {
        "programs",
        "connections",
        "subflows",
        "classes",
        "pauses",
        "shared_buffers",
        "collectives",
        "critical_path",
    }
    for name in TABLES:
        table = pl.DataFrame(core.table(name))
        assert bool(table.height) == (name not in of_kernels) and table.schema == empty_table(name).schema, name


def test_a_column_that_is_not_always_there_is_declared_with_what_it_comes(small: dict[str, int]) -> None:
    declared = {column["name"]: column["only"] for table in entries("tables") for column in table.raw["columns"]}
    assert "several transports" in declared["transport"]
    assert "transport" not in empty_table("flows").columns
    several = {
        "transport": [{"name": "dctcp"}, {"name": "tcp"}],
        "traffic.classes": {"short_below": "20KB", "transport": {"long": "tcp"}},
    }
    flows = weft.run("", set={**small, **several}).flows
    assert [name for name in flows.columns if name not in empty_table("flows").columns] == ["transport"]
    assert flows.columns[-1] == "transport"
    assert set(flows["transport"]) == {"dctcp", "tcp"}


def test_a_wrong_table_is_answered_with_all_that_there_are(small: dict[str, int]) -> None:
    core = weft.run("", set=small).core
    assert core is not None
    with pytest.raises(ValueError, match="there is no table") as error:
        core.table("trace")
    assert all(name in str(error.value) for name in TABLES) and 'did you mean "traces"?' in str(error.value)


def test_the_command_lists_tables_and_their_columns(weft_command: Weft) -> None:
    listed = weft_command("tables").stdout
    assert all(f"{name}.parquet" in listed for name in TABLES)
    flows = weft_command("tables", "flows")
    assert all(column in flows.stdout for column in empty_table("flows").columns)
    assert "](" not in flows.stdout, "links of the guide are of no use here"
