"""Runs the notebooks of examples/notebooks and writes what their cells show into them: `python docs/print_notebooks.py [NAME...]`.

Each runs in a directory of its own. Nothing is kept that would differ from one time to the next, such as times or a bar of progress.
"""

import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat

NOTEBOOKS = Path(__file__).resolve().parent.parent / "examples" / "notebooks"


def main(names: list[str]) -> None:
    """Run the notebooks with these names, or all."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.stem in names:
            print(path.name, file=sys.stderr)
            nbformat.write(printed(nbformat.read(path, 4)), path)


def printed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with what its cells show now."""
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _is_shown(output)]
    return notebook


def _is_shown(output: nbformat.NotebookNode) -> bool:
    """Whether there is anything to see: a bar that is gone has left an empty place."""
    return output.output_type != "display_data" or any(output.data.values())


if __name__ == "__main__":
    main(sys.argv[1:])
