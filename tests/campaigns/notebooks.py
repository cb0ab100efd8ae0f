"""The notebooks in examples/, run from their first cell to their last by Jupyter's own machinery.

    python -m tests.campaigns.notebooks [NAME ...]     run them, and keep what comes out in them

Their results are deterministic, so that a test (`python/tests/test_notebooks.py`) runs them and
compares what comes out with what is in the files: texts as they are, and the kinds of pictures.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples"

SECONDS_MOST = 900
"""How long a cell may take."""


def notebooks() -> list[Path]:
    """All of them."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path, work: Path) -> Any:  # noqa: ANN401 - nbformat has no types
    """A notebook with what comes out of it, run in a folder."""
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
    """What came out of each cell of code: kinds, with the text of what is text alone."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs all, or what is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.notebooks")
    names = [path.stem for path in notebooks()]
    parser.add_argument("names", metavar="NAME", nargs="*", choices=[*names, []])
    given = parser.parse_args(arguments)
    for path in notebooks():
        if not given.names or path.stem in given.names:
            with tempfile.TemporaryDirectory(prefix="graven-notebook-") as work:
                nbformat.write(executed(path, Path(work)), path)
            print(path)


if __name__ == "__main__":
    main()
