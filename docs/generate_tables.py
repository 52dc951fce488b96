"""Writes the tables of columns in docs/results.md from `weft tables`.

`python docs/generate_tables.py` writes what stands between `<!-- table NAME -->` and `<!-- end -->`: the columns of a
table, or for the name `*` the files of all tables. With `--check` it writes nothing, and exits 1 if the page is not what
the program says.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Table: TypeAlias = Mapping[str, Any]

PAGE = Path(__file__).with_name("results.md")
PART = re.compile(r"<!-- table (\S+) -->\n.*?<!-- end -->", re.DOTALL)


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    check = parser.parse_args().check
    before = PAGE.read_text(encoding="utf-8")
    page, missing = written(before, _tables())
    if missing:
        print(f"{PAGE.name} has no part for {', '.join(missing)}", file=sys.stderr)
        return 1
    if not check:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if page == before:
        return 0
    print(f"{PAGE.name} is out of date: run python docs/generate_tables.py", file=sys.stderr)
    return 1


def _tables() -> list[Table]:
    command = [sys.executable, "-m", "weft", "tables", "--json"]
    tables: list[Table] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return tables


def written(page: str, tables: list[Table]) -> tuple[str, list[str]]:
    """The page with the parts as they should be, and the tables that it has no part for."""
    parts = {table["name"]: "\n".join(_columns(table)) for table in tables}
    parts["*"] = "\n".join(_files(tables))
    missing = [name for name in parts if name not in PART.findall(page)]
    return PART.sub(lambda match: f"<!-- table {match[1]} -->\n\n{parts[match[1]]}\n\n<!-- end -->", page), missing


def _columns(table: Table) -> Iterator[str]:
    yield "| column | type | unit | meaning | null if |"
    yield "|---|---|---|---|---|"
    for column in table["columns"]:
        meaning = f"{column['doc']}; only {column['only']}" if column["only"] else column["doc"]
        cells = (f"`{column['name']}`", column["type"], column["unit"], meaning, column["null"] or "")
        yield f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |"


def _files(tables: list[Table]) -> Iterator[str]:
    yield "| file | what it holds | rows |"
    yield "|---|---|---|"
    for table in tables:
        asked = f"if `{table['asked_by']}` asks for them" if table["asked_by"] else "always"
        yield f"| [`{table['source']}`](#{table['source'].replace('.', '')}) | {table['title']} | {asked} |"


if __name__ == "__main__":
    sys.exit(main())
