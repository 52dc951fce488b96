"""`weft packets`: what links send, packet by packet, and as a file for Wireshark."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from weft.cli import completion, options
from weft.cli.console import answers, data, log
from weft.cli.layout import new_table
from weft.errors import SpecError
from weft.output import check_file, write_file

__all__ = ["register"]

_KINDS = (".pcapng", ".parquet", ".csv")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("packets")(answers(packets))


def packets(
    spec: options.SpecFile = None,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A host, a switch or a link: host0, leaf0, leaf0>spine1. May be repeated."),
    ] = None,
    flow: Annotated[
        list[int] | None,
        typer.Option(metavar="N", min=0, help="Of this flow alone; without --at, at every link. May be repeated."),
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(
            metavar="A",
            help="A variant, as for weft compare: linux+letflow.",
            autocompletion=completion.variants,
        ),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="So many packets at most, the first ones queued.")] = 1_000_000,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write them to .pcapng, .parquet or .csv.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file in --out.")] = False,
    set_: options.Set = None,
    _no_code: options.NoCode = False,
    seed: options.Seed = None,
) -> None:
    """List the packets that links send, one by one, of simulated and of Linux hosts.

    A host or a switch stands for all links from and to it. A `.pcapng` file opens in Wireshark: an interface a link;
    packets of Linux hosts are the kernel's own. Without `--out` the first twenty are printed.

    **Examples**

    - `weft packets --at host0 --out host0.pcapng`
    - `weft packets my.toml --flow 42 --out flow42.pcapng`
    - `weft packets examples/linux.toml --at host0 --at leaf0>spine1 --scheme linux+letflow --out real.pcapng`
    """
    import polars as pl

    from weft import _core
    from weft.spec import load_spec, parse_assignments

    if not at and not flow:
        raise SpecError("--at is missing: name a host, a switch or a link, as in --at host0 or --at leaf0>spine1")
    if out is not None and out.suffix not in _KINDS:
        raise SpecError(f"--out {out}: expected a name that ends in {', '.join(_KINDS)}")
    if out is not None:
        check_file(out, force=force)
    text = load_spec(spec if spec is not None else "")
    asked: dict[str, Any] = {
        "base_dir": text.base_dir,
        "overrides": parse_assignments(set_ or []),
        "seed": seed,
        "origin": text.origin,
        "variant": scheme,
        "at": at or [],
        "flows": flow,
        "most": most if out is not None else 20,
    }
    if out is not None and out.suffix == ".pcapng":
        _write(out, _core.pcapng(text.text, **asked))
        return
    listed = pl.DataFrame(_core.packets(text.text, **asked))
    if out is None:
        _print(listed.to_dicts())
    elif out.suffix == ".csv":
        _write(out, listed.write_csv().encode())
    else:
        from io import BytesIO

        content = BytesIO()
        listed.write_parquet(content)
        _write(out, content.getvalue())


def _write(out: Path, content: bytes) -> None:
    write_file(out, content)
    log().print(f"written to {out}")


def _print(rows: list[dict[str, Any]]) -> None:
    titles = ("time (µs)", "link", "flow", "kind", "segment", "bytes", "flags")
    table = new_table(*titles, left=("link", "kind", "flags"))
    for row in rows:
        flags = [name for name in ("marked", "echo", "retransmission") if row[name]]
        cells = (f"{row['flow']}", row["kind"], f"{row['segment']:,}", f"{row['bytes']:,}", ", ".join(flags))
        table.add_row(f"{row['time_us']:,.3f}", Text(row["link"]), *cells)
    data().print(table)
