"""Tables that campaigns keep, and the pages of the documentation that show them."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from graven.basics import output

ROOT = Path(__file__).parents[2]
STATES = ROOT / "graven-results"
"""Where campaigns keep what they go on from."""

BEGIN, END = "<!-- table -->", "<!-- end of table -->"
"""Between these a page shows its tables."""

Row = Mapping[str, str]

_NO_BREAK = "\0"
"""In place of a space at which no line ends."""


def state_file(name: str) -> Path:
    """Where a campaign keeps what it goes on from, in a folder that is there."""
    STATES.mkdir(exist_ok=True)
    return STATES / f"{name}.json"


def read_rows(table: Path) -> list[dict[str, str]]:
    """A table as it is stored; nothing if there is none yet."""
    if not table.exists():
        return []
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(table: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Replaces a table, whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    output.write(table, text.getvalue().encode())


def replaced(before: Iterable[Row], rows: Iterable[Row], key: Sequence[str]) -> list[Row]:
    """Rows before, each with the row of the same key in its place if there is one; new ones follow.

    So a campaign that begins anew, on another computer, replaces a row when it has one.
    """
    all_rows = {tuple(row[name] for name in key): row for row in before}
    all_rows.update((tuple(row[name] for name in key), row) for row in rows)
    return list(all_rows.values())


def page_with(page: str, *shown: str) -> str:
    """A page that shows these, each between the next two marks."""
    first, *rest = page.split(BEGIN)
    afters = [after.split(END)[1] for after in rest]
    tables = (f"{BEGIN}\n\n{each}\n{END}{after}" for each, after in zip(shown, afters, strict=True))
    return first + "".join(tables)


def write_page(page: Path, *shown: str) -> None:
    """Has a page show these."""
    output.write(page, page_with(page.read_text(encoding="utf-8"), *shown).encode())


def wrapped(text: str, *, indent: str = "") -> str:
    """Prose in lines of 100 columns, broken neither within code nor before a percent sign.

    Args:
        text: A paragraph or an item of a list.
        indent: The beginning of every line but the first.
    """
    joined = re.sub(r"`[^`]*`|\d %", lambda found: found[0].replace(" ", _NO_BREAK), text)
    lines = textwrap.wrap(
        joined, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace(_NO_BREAK, " ")


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """A table as Markdown has it, whose first columns are texts and all others numbers."""
    rule = "|" + "---|" * texts + "---:|" * (len(head) - texts)
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"
