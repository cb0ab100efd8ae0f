"""Tables that campaigns keep, and the pages of the documentation that show them."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graven.basics import output

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"

BEGIN, END = "<!-- table -->", "<!-- end of table -->"
"""Between these a page shows its tables."""

Row = Mapping[str, str]

_NO_BREAK = "\0"
"""In place of a space at which no line ends."""


@dataclass(frozen=True)
class Table:
    """File of rows. A campaign replaces the rows that it has measured again.

    Attributes:
        name: Name of the file in `campaigns/results`, without its ending.
        columns: Names of all columns.
        key: Columns that name what is measured at once. Rows with the same values there are
            replaced together.
        order: Gives the keys in the order of the table; rows of other keys are dropped. Without it
            rows stay where they are, and new ones follow.
        folder: Folder of the file.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    order: Callable[[], Iterable[tuple[str, ...]]] | None = None
    folder: Path = RESULTS

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / f"{self.name}.csv"

    def row(self, *values: object) -> Row:
        """Makes a row of values in the order of the columns."""
        return dict(zip(self.columns, map(str, values), strict=True))

    def read(self) -> list[Row]:
        """Reads all rows; none if there is no file yet."""
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def replace(self, rows: Iterable[Row]) -> None:
        """Writes the file with these rows in place of those with the same keys."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.replaced(self.read(), rows))
        output.write(self.path, text.getvalue().encode())

    def replaced(self, before: Iterable[Row], rows: Iterable[Row]) -> list[Row]:
        """Returns rows with others in place of those with the same keys."""
        groups = self._by_key(before) | self._by_key(rows)
        keys = groups if self.order is None else filter(groups.__contains__, self.order())
        return [row for key in keys for row in groups[key]]

    def _by_key(self, rows: Iterable[Row]) -> dict[tuple[str, ...], list[Row]]:
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in self.key), []).append(row)
        return groups


def page_with(page: str, *shown: str) -> str:
    """Returns a page with these between its marks, one after the other."""
    first, *rest = page.split(BEGIN)
    afters = [after.split(END)[1] for after in rest]
    tables = (f"{BEGIN}\n\n{each}\n{END}{after}" for each, after in zip(shown, afters, strict=True))
    return first + "".join(tables)


def wrapped(text: str, *, indent: str = "") -> str:
    """Breaks prose into lines of 100 columns, neither within code nor before a percent sign.

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
    """Returns a table in Markdown; its first columns are texts, the others numbers."""
    rule = "|" + "---|" * texts + "---:|" * (len(head) - texts)
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"
