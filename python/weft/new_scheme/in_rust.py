"""A new scheme in Rust: its file, its page, and a line wherever the tree lists its schemes."""

from collections.abc import Callable
from pathlib import Path

from weft import catalog
from weft.errors import SpecError
from weft.new_scheme.writing import Change, check_name, class_name, filled
from weft.palette import free_home

__all__ = ["rust_scheme"]

_SWITCH = Path("crates/balance/src/switch")
_KEYWORDS = frozenset({
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct",
    "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while",
    "yield",
})  # fmt: skip
"""Those in use and those that are reserved, by the Rust reference."""


def rust_scheme(name: str, root: Path) -> list[Change]:
    """Return what a scheme of this name adds to a tree of Weft.

    Raises `SpecError` for a name that cannot be, or where there is no such tree.
    """
    check_name(name)
    if not (root / _SWITCH / "mod.rs").is_file():
        raise SpecError(f"{root}: is no source tree of Weft, where a scheme in Rust goes; name it with --dir")
    taken = {one.name for one in (*catalog.schemes(), *catalog.transports())}
    if name in taken:
        raise SpecError(f"{name}: is the name of a scheme or transport that there is; choose another")
    module = name.replace("-", "_")
    if module in _KEYWORDS:
        raise SpecError(f"{name}: is a word of Rust's own, and no module can be called so; choose another name")
    own, page = _SWITCH / f"{module}.rs", Path(f"docs/schemes/{name}.md")
    words = {"name": name, "Class": class_name(name), "module": module, "file": str(own)}
    # The guide's generator writes the table in between.
    parameters = f"<!-- parameters {name} -->\n\n<!-- end -->"
    lines = _lines(name, module, class_name(name))
    added = [_added(root / path, *how) for path, how in lines.items()]
    return [
        Change(root / own, filled("scheme.rs.txt", **words)),
        Change(root / page, filled("page.md.txt", **words, choose=f"{words['Class']}::choose", parameters=parameters)),
        *added,
    ]


def _lines(name: str, module: str, type_name: str) -> dict[str, tuple[str, Callable[[list[str]], int]]]:
    """Return what to add to each file, and the place for it: the number of the line that it comes before."""
    known = module if module == name else f'{module} as "{name}"'
    title = f'"{type_name}: every packet takes the next hop that would send it first."'
    colour, marker = free_home()
    return {
        str(_SWITCH / "mod.rs"): (f"pub mod {module};", lambda text: _in_alphabet(text, module)),
        "crates/balance/src/registry.rs": (
            f'        {known}: {type_name}, Sprays, {title}, "docs/schemes/{name}.md";',
            lambda text: _before(text, "    host {") - 1,
        ),
        "crates/lab/tests/fingerprints/pins.toml": (
            f'\n[[pin]]\nname = "{name}, a slow link, observed"\nset = [\n    "scheme={{ name = \'{name}\' }}",\n'
            "    \"fabric.fault=[{ link = 'leaf0-spine1', rate = '1Gbps' }]\",\n    \"run.sample_every=100us\",\n]",
            len,
        ),
        "crates/fabric/tests/all/conservation.rs": (
            f'    ("{name}", &[""]),',
            lambda text: _before(text, '    ("drb"'),
        ),
        "python/weft/palette.py": (
            f'    "{name}": ({colour}, "{marker}"),',
            lambda text: _before(text, "}  # fmt: skip"),
        ),
        "docs/schemes/index.md": (
            f"| [`{name}`]({name}.md) | switch | packet | its own queues | (source) |",
            lambda text: _behind_table(text, "| scheme | decides at"),
        ),
        "mkdocs.yml": (
            f"      - {name}: schemes/{name}.md",
            lambda text: _before(text, "      - Add your own: schemes/adding.md"),
        ),
    }


def _added(path: Path, line: str, place: Callable[[list[str]], int]) -> Change:
    """Return a file with a line more."""
    try:
        text = path.read_text(encoding="utf-8").splitlines()
        text.insert(place(text), line)
    except (OSError, StopIteration):
        raise SpecError(
            f"{path}: is not what it is in a source tree of Weft; {line.strip()!r} would go there"
        ) from None
    return Change(path, "\n".join(text) + "\n", is_new=False)


def _before(text: list[str], beginning: str) -> int:
    """Return the place of the first line that begins so."""
    return next(place for place, line in enumerate(text) if line.startswith(beginning))


def _behind_table(text: list[str], head: str) -> int:
    """Return the place behind the table with this head."""
    first = _before(text, head)
    return next(place for place in range(first, len(text)) if not text[place].startswith("|"))


def _in_alphabet(text: list[str], module: str) -> int:
    """Return the place of a module among others."""
    names = [(line.split()[-1].rstrip(";"), place) for place, line in enumerate(text) if line.endswith(";")]
    return next((place for name, place in names if name > module), len(text))
