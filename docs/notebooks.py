"""Makes pages of the guide from the notebooks of examples/notebooks, with what their cells showed when they were printed."""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

NOTEBOOKS = Path(__file__).resolve().parent.parent / "examples" / "notebooks"


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each notebook, its pictures, and the notebook itself."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        pictures: dict[str, bytes] = {}
        page = "\n\n".join(_page(path, pictures))
        made: dict[str, str | bytes] = {f"{path.stem}.md": page, path.name: path.read_bytes(), **pictures}
        for name, content in made.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def _page(path: Path, pictures: dict[str, bytes]) -> Iterator[str]:
    """The parts of a page; `pictures` gets those that it shows."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for place, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
        else:
            yield f"```python\n{source}\n```"
            for output in cell["outputs"]:
                yield _shown(output, f"{path.stem}-{place}", pictures)
        if place == 0:
            yield f"This page is a notebook: [{path.name}]({path.name}), in `examples/notebooks`."


def _shown(output: Mapping[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    """Return the output below a cell: of the forms of a value, the best that a page can have."""
    data = output.get("data", {})
    if "image/png" in data:
        pictures[f"{name}.png"] = base64.b64decode("".join(data["image/png"]))
        width = output.get("metadata", {}).get("image/png", {}).get("width", "")
        return f'<img class="shown" src="{name}.png" width="{width}" alt="The figure of the cell above">'
    if "text/html" in data:
        return f'<div class="shown">{"".join(data["text/html"])}</div>'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```"
