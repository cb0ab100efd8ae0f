"""Notebooks in examples/, run from their first cell to their last by Jupyter's own machinery.

Their results are deterministic, so that a test (`python/tests/test_notebooks.py`) runs them and
compares what comes out with what is in the files: texts as they are, and the kinds of pictures.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from .runner import Campaign, Given, Rows
from .tables import ROOT

FOLDER = ROOT / "examples"

SECONDS_MOST = 900
"""Seconds that a cell may take."""


def notebooks() -> list[Path]:
    """Returns the files of all notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path, work: Path) -> Any:  # noqa: ANN401 - nbformat has no types
    """Runs a notebook in a folder; returns it with its outputs."""
    book = nbformat.read(path, as_version=4)
    client = NotebookClient(
        book,
        timeout=SECONDS_MOST,
        kernel_name="python3",
        resources={"metadata": {"path": str(work)}},
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
            cell.metadata.pop("execution", None)
    book.metadata["kernelspec"] = {
        "display_name": "Python 3", "language": "python", "name": "python3",
    }  # fmt: skip
    book.metadata["language_info"] = {"name": "python"}
    return book


def _is_progress(output: Any) -> bool:  # noqa: ANN401
    text = output.get("data", {}).get("text/html", "")
    return "<progress " in text


def came_out(book: Any) -> list[list[tuple[str, str]]]:  # noqa: ANN401
    """Returns the outputs of each cell of code: kinds, with the text of those of text alone."""
    found = []
    for cell in book.cells:
        if cell.cell_type != "code":
            continue
        of_cell = []
        for output in cell.outputs:
            if output.output_type == "stream":
                of_cell.append((output.name, output.text))
                continue
            for kind, content in sorted(output.get("data", {}).items()):
                # A picture's text names an object; pictures are compared by others.
                is_text = kind == "text/plain" and len(output.data) == 1
                of_cell.append((kind, content if is_text else ""))
        found.append(of_cell)
    return found


def renew(name: str, _: Given) -> Rows:
    """Runs a notebook, and writes it with its outputs."""
    path = FOLDER / f"{name}.ipynb"
    with tempfile.TemporaryDirectory(prefix="graven-notebook-") as work:
        nbformat.write(executed(path, Path(work)), path)
    return {}


CAMPAIGN = Campaign(lambda _: (path.stem for path in notebooks()), renew, repeats=lambda *_: True)
