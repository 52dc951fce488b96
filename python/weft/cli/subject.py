"""Subject of a command: a spec file, a preset in its place, or neither."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.errors import SpecError
from weft.spec import SpecText, load_spec

__all__ = ["chosen_spec", "only_one", "telling_sweeps"]


def only_one(spec: Path | None, preset: str | None) -> None:
    """Raise `SpecError` if there are both."""
    if preset is not None and spec is not None:
        raise SpecError(f"--preset {preset} stands in place of a spec: give it or {spec}, not both")


def chosen_spec(spec: Path | None, preset: str | None) -> SpecText:
    """Return the spec of the file or the preset; without either, one that says nothing."""
    from weft.catalog import preset as find_preset

    only_one(spec, preset)
    return find_preset(preset).spec if preset is not None else load_spec(spec if spec is not None else "")


@contextmanager
def telling_sweeps() -> Iterator[None]:
    """Name the command that takes a list, where a spec has one in the place of a value."""
    try:
        yield
    except SpecError as error:
        if error.found != "a list" or error.origin == "--set":
            raise
        raise SpecError(f"{error}; weft sweep runs each value of a list") from None
