"""Careless lines of public programs, as others have published them, and what hygiene finds there.

`careless.toml` names the lines. The programs are not part of Graven: `--traces FOLDER` has a trace
of each that `graven capture --only-pm` has made, under the name of the program (`p-clht.gvt`).
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from graven import _engine
from graven.basics.numbers import exact
from graven.laboratory.hygiene import Hygiene, judge

from .runner import Campaign, Failed, Given, Rows
from .tables import ROOT, Row, Table, table_of

NAMED = Path(__file__).with_suffix(".toml")
"""The lines."""

CLASSES = {
    "unpersisted": ("never-flushed", "held-lock"),
    "extra flush": ("flushed-twice", "clean-flush"),
    "extra fence": ("idle-fence",),
}
"""Classes of findings, by the kinds of the published lists."""

LINES = Table(
    "careless",
    ("program", "at", "list", "kind", "what", "answer", "class", "count", "place", "why"),
    ("program", "at"),
)

OTHERS = Table(
    "careless-others",
    ("program", "kind", "lines", "found", "unseen", "missed"),
    ("program", "kind"),
)


def named() -> Mapping[str, Any]:
    """Reads the lines."""
    return tomllib.loads(NAMED.read_text(encoding="utf-8"))


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the option of this campaign."""
    parser.add_argument(
        "--traces", type=Path, default=Path("careless"), metavar="FOLDER", help="the traces"
    )


def names(_: Given) -> Iterable[str]:
    """Names the tasks: the programs."""
    lists = named()
    return dict.fromkeys(of["program"] for of in (*lists["line"], *lists["others"]))


class Judged:
    """A program whose trace was looked through."""

    def __init__(self, path: Path) -> None:
        self.hygiene: Hygiene = judge(path)
        history = json.loads(_engine.trace_history(str(path), 0, 0, True))
        self.executed = {
            at for site in history["sites"] for at in map(place, site.get("lines", []))
        }

    def finding(self, at: str, classes: Sequence[str]) -> Mapping[str, Any] | None:
        """The first finding of a class on a line, or of what a line of a helper does."""
        for finding in self.hygiene.findings:
            frames = (finding["place"], *finding["calls"])
            if finding["class"] in classes and at in map(place, frames):
                return finding
        return None

    def answer(self, at: str, classes: Sequence[str]) -> str:
        """`found`, `missed`, or `not executed`."""
        if self.finding(at, classes):
            return "found"
        return "missed" if at in self.executed else "not executed"


def place(frame: Mapping[str, Any]) -> str:
    """The line of a frame: `FILE:LINE`."""
    return f"{PurePath(frame.get('file') or '').name}:{frame.get('line')}"


def look(program: str, given: Given) -> Rows:
    """Looks through the trace of a program, and for each of its lines among the findings."""
    path = given.traces / f"{program.lower().replace(' ', '-').replace('_', '-')}.gvt"
    if not path.exists():
        raise Failed(f"there is no trace {path}")
    judged = Judged(path)
    lists = named()
    lines = [line_row(judged, of) for of in lists["line"] if of["program"] == program]
    others = [others_row(judged, of) for of in lists["others"] if of["program"] == program]
    return {LINES: lines, OTHERS: others}


def line_row(judged: Judged, line: Mapping[str, Any]) -> Row:
    """The row of a named line."""
    at, classes = line["at"], line["classes"]
    finding = judged.finding(at, classes) or {}
    count = exact(finding["count"]) if finding else ""
    said = [line[key] for key in ("list", "kind", "what")]
    answer = judged.answer(at, classes)
    why = "" if finding else line.get("why", "")
    found = [finding.get("class", ""), count, finding.get("where", ""), why]
    return LINES.row(line["program"], at, *said, answer, *found)


def others_row(judged: Judged, others: Mapping[str, Any]) -> Row:
    """The row of all lines of a kind in a published list."""
    answers: dict[str, list[str]] = {"found": [], "missed": [], "not executed": []}
    for at in others["lines"]:
        answers[judged.answer(at, CLASSES[others["kind"]])].append(at)
    unseen, missed = (", ".join(answers[answer]) for answer in ("not executed", "missed"))
    sizes = len(others["lines"]), len(answers["found"])
    return OTHERS.row(others["program"], others["kind"], *sizes, unseen, missed)


def blocks(lines: Sequence[Row], others: Sequence[Row]) -> list[str]:
    """Makes the table of named lines, and that of all others."""
    found = [row for row in lines if row["answer"] == "found"]
    cells = [
        [
            row["program"],
            f"`{row['at']}`",
            row["list"],
            row["kind"],
            row["what"],
            "; ".join(filter(None, (row["answer"], row["why"]))) if not row["class"] else "",
            f"`{row['class']}`" if row["class"] else "",
            f"`{row['place'].partition(' ')[0]}`" if row["class"] else "",
            row["count"],
        ]
        for row in lines
    ]
    head = ("program", "line", "list", "kind", "what", "not found", "class", "blamed", "count")
    first = f"{len(found)} of {len(lines)} lines are found.\n\n{table_of(head, cells, texts=8)}"
    return [first, "".join(others_table(others))]


def others_table(rows: Sequence[Row]) -> Iterator[str]:
    """Makes the table of whole lists, with their sum before."""
    listed, found, unseen = (
        sum(int(row["lines"]) for row in rows),
        sum(int(row["found"]) for row in rows),
        sum(len(row["unseen"].split(",")) for row in rows if row["unseen"]),
    )
    yield f"{found} of {listed} lines are found; {unseen} were not executed.\n\n"
    head = ("program", "kind", "not executed", "missed", "listed", "found")
    columns = ("program", "kind", "unseen", "missed", "lines", "found")
    yield table_of(head, [[row[name] for name in columns] for row in rows], texts=4)


def wrong(lines: Sequence[Row], others: Sequence[Row]) -> list[str]:
    """Names lines that are missed without a reason."""
    del others
    lacking = [row for row in lines if row["answer"] != "found" and not row["why"]]
    return [
        f"{row['program']} {row['at']}: {row['answer']}, and nothing says why" for row in lacking
    ]


CAMPAIGN = Campaign(
    names,
    look,
    [LINES, OTHERS],
    ROOT / "docs/results/hygiene.md",
    blocks,
    wrong,
    options=options,
)
