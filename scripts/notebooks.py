"""The notebooks of docs/notebooks: `python scripts/notebooks.py` runs them and keeps what each cell printed.

A test runs them again and holds the files to it. Cells run one after the other in this process, each notebook in a
scope and a folder of its own; they show what they find by print, so that a page has it as text.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PLACE = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(PLACE.glob("*.ipynb"))


def outputs(path: Path) -> list[list[dict[str, Any]]]:
    """What each code cell prints, as a notebook keeps it; a cell that fails raises."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        return [_printed(cell, f"{path.name}, cell {i}", scope) for i, cell in enumerate(code_cells(path))]


def code_cells(path: Path) -> list[dict[str, Any]]:
    """The cells with code, in order."""
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def _printed(cell: dict[str, Any], name: str, scope: dict[str, Any]) -> list[dict[str, Any]]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile("".join(cell["source"]), name, "exec"), scope)
    lines = said.getvalue().splitlines(keepends=True)
    return [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


def rewrite(path: Path) -> None:
    """The file with what its cells print today."""
    content, found = json.loads(path.read_text("utf-8")), iter(outputs(path))
    for number, cell in enumerate(content["cells"]):
        cell["id"] = f"cell-{number}"
        if cell["cell_type"] == "code":
            cell |= {"outputs": next(found), "execution_count": None, "metadata": {}}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for each in NOTEBOOKS:
        rewrite(each)
        print(each.name)
