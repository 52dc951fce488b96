"""`weft p4`: schemes of switches as P4 programs, held against Weft decision by decision."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli import options
from weft.cli.console import answers, data, log, print_json
from weft.cli.layout import new_table
from weft.errors import SpecError

if TYPE_CHECKING:
    from weft.p4.check import Checked
    from weft.recording import Recording
    from weft.spec import SpecText

__all__ = ["register"]

EXIT_DIFFERENT = 1

_DEFAULT_MOST = 10_000

Programs = Annotated[
    Path | None,
    typer.Option("--programs", metavar="DIR", help="Folder of the programs. Default: p4/ of the source tree."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Schemes of switches as P4 programs for BMv2.")
    group.command("check")(answers(check))
    group.command("stages")(answers(stages))
    app.add_typer(group, name="p4")


def check(
    scheme: Annotated[str, typer.Argument(help="Scheme, with parameters if not their defaults: letflow:gap=100us.")],
    spec: Annotated[
        Path | None,
        typer.Argument(help="Spec file (TOML). Without it, a small fabric with a fault.", show_default=False),
    ] = None,
    switch: Annotated[int | None, typer.Option(metavar="N", min=0, help="This switch alone. Default: all.")] = None,
    most: Annotated[int, typer.Option(metavar="N", min=1, help="Decisions of each switch, the first of the run.")] = (
        _DEFAULT_MOST
    ),
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the compiled programs and their tables in this directory.")
    ] = None,
    programs: Programs = None,
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    seed: options.Seed = None,
    json: options.Json = False,
) -> None:
    """Replay a recorded run through a scheme's P4 program on BMv2, and compare every decision.

    Weft runs the spec and records at each switch what the scheme was told, saw and drew, and what it decided. The
    program is compiled with the tables of that switch and gets the same packets, in their order, on BMv2's
    `simple_switch`. Needs `p4c-bm2-ss` and `simple_switch` on the PATH. Exit code: 0 if all decisions are equal, 1 if
    one is not, 2 if there is nothing to compare.

    **Examples**

    - `weft p4 check ecmp`
    - `weft p4 check letflow:gap=50us my.toml --switch 0 --most 50000`
    """
    from weft.p4.check import check as compare
    from weft.p4.samples import sample
    from weft.p4.schemes import find
    from weft.p4.tools import find_programs, find_tools
    from weft.spec import load_spec

    program = find(scheme.split(":", 1)[0])
    folder, tools = find_programs(programs), find_tools()
    text = load_spec(spec) if spec is not None else sample(is_steady=program.replays_queues)
    recording = _record(text, scheme, set_ or [], seed, most)
    checked = []
    for one in compare(recording, tools, folder, only=switch, keep=keep):
        checked.append(one)
        log().print(f"switch {one.switch}: {one.equal:,} of {one.decisions:,} equal")
    if not checked:
        where = "no switch" if switch is None else f"switch {switch}"
        raise SpecError(f"there is nothing to compare: {where} had a packet with several next hops")
    if json:
        print_json(_document(scheme, checked))
    else:
        _print(scheme, checked)
    if any(one.equal != one.decisions for one in checked):
        raise typer.Exit(EXIT_DIFFERENT)


def _record(text: "SpecText", scheme: str, set_: list[str], seed: int | None, most: int) -> "Recording":
    from weft.recording import record
    from weft.spec import parse_assignments

    return record(text, set=parse_assignments(set_), seed=seed, scheme=scheme, most=most)


def _document(scheme: str, checked: "list[Checked]") -> dict[str, Any]:
    return {
        "scheme": scheme,
        "decisions": sum(one.decisions for one in checked),
        "equal": sum(one.equal for one in checked),
        "switches": [
            {
                "switch": one.switch,
                "tier": one.tier,
                "ports": one.ports,
                "packets": one.packets,
                "decisions": one.decisions,
                "equal": one.equal,
                "beyond": one.beyond,
                "first_difference": None if one.first is None else one.first.text(),
            }
            for one in checked
        ],
    }


def _print(scheme: str, checked: "list[Checked]") -> None:
    console = data()
    table = new_table("switch", "tier", "ports", "packets replayed", "decisions", "equal")
    for one in checked:
        numbers = (one.switch, one.tier, one.ports, one.packets, one.decisions, one.equal)
        table.add_row(*(f"{number:,}" for number in numbers))
    console.print(table)
    decisions, equal = sum(one.decisions for one in checked), sum(one.equal for one in checked)
    console.print(f"{scheme}: {equal:,} of {decisions:,} decisions are equal")
    beyond = sum(one.beyond for one in checked)
    if beyond:
        console.print(f"{beyond:,} later decisions of the run were not recorded (--most)", style="dim")
    for one in checked:
        if one.first is not None:
            console.print(f"switch {one.switch}, {one.first.text()}")


def stages(
    scheme: Annotated[str, typer.Argument(help="Scheme: see the guide's page on P4.")],
    define: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", metavar="NAME=VALUE", help="A macro of the program, such as PORTS=32."),
    ] = None,
    programs: Programs = None,
    json: options.Json = False,
) -> None:
    """Count what a scheme's program takes of a switch: tables, registers, bytes and stages.

    Everything is counted in what the compiler makes of the program for a real switch. Stages are the longest chain of
    operations of which each needs the one before it. Needs `p4c-bm2-ss` on the PATH.

    **Examples**

    - `weft p4 stages letflow`
    - `weft p4 stages qall --define IS_BY_FLOWLET=1`
    """
    from weft.p4.schemes import find
    from weft.p4.stages import count
    from weft.p4.tools import find_compiler, find_programs

    program = find(scheme)
    folder = find_programs(programs)
    found = count(find_compiler(), folder / program.file, _macros(define or []))
    if json:
        print_json(found.document())
        return
    console = data()
    table = new_table("pipeline", "tables", "conditions", "operations", "stages", left=("pipeline",))
    for pipeline in found.pipelines:
        row = (pipeline.tables, pipeline.conditions, pipeline.operations, pipeline.stages)
        table.add_row(pipeline.name, *map(str, row))
    console.print(table)
    registers = new_table("register", "entries", "bits", "bytes", "reads and writes", left=("register",))
    for register_ in found.registers:
        numbers = (register_.entries, register_.bits, register_.bytes, register_.accesses)
        registers.add_row(register_.name, *(f"{number:,}" for number in numbers))
    if found.registers:
        console.print(registers)
    console.print(f"{found.register_bytes:,} bytes of registers")


def _macros(define: list[str]) -> dict[str, str]:
    """Split `NAME=VALUE`; raises `SpecError` for what is none."""
    found = {}
    for one in define:
        name, sign, value = one.partition("=")
        if not sign or not name.isidentifier() or not value:
            raise SpecError(f"--define {one}: expected NAME=VALUE, such as PORTS=32")
        found[name] = value
    return found
