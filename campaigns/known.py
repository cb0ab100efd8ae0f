"""Known crash-consistency bugs of public programs, and what powerfail finds of them.

`known.toml` names the bugs. The programs and their drivers are not part of Graven: `--found FOLDER`
has what `graven powerfail --format json` has printed of each, under the name of its run.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from graven.basics.numbers import exact

from .runner import Campaign, Failed, Given, Rows
from .tables import ROOT, Row, Table, table_of

NAMED = Path(__file__).with_suffix(".toml")
"""The bugs, and programs that are right."""

BUGS = Table(
    "known",
    ("run", "number", "program", "bug", "kind", "what", "model", "answer", "missing", "present",
     "repair", "images", "others", "why"),
    ("run",),
)  # fmt: skip

RIGHT = Table(
    "known-right", ("run", "program", "commit", "model", "end", "images", "violations"), ("run",)
)


def named() -> Mapping[str, Any]:
    """Reads the bugs."""
    return tomllib.loads(NAMED.read_text(encoding="utf-8"))


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the option of this campaign."""
    parser.add_argument(
        "--found", type=Path, default=Path("known"), metavar="FOLDER", help="what powerfail printed"
    )


def names(_: Given) -> Iterable[str]:
    """Names the tasks: the runs of drivers."""
    of = named()
    return [each["run"] for each in (*of["bug"], *of["right"])]


def look(run: str, given: Given) -> Rows:
    """Looks for the bug of a run among its violations."""
    path = given.found / f"{run}.json"
    if not path.exists():
        raise Failed(f"there is no {path}")
    found = json.loads(path.read_text(encoding="utf-8"))
    of = named()
    for bug in of["bug"]:
        if bug["run"] == run:
            return {BUGS: [bug_row(bug, found)]}
    right = next(each for each in of["right"] if each["run"] == run)
    counts = found["counts"]
    numbers = counts["end"], counts["images"], len(found["violations"])
    said = right["program"], right["commit"], found["model"]
    return {RIGHT: [RIGHT.row(run, *said, *numbers)]}


def bug_row(bug: Mapping[str, Any], found: Mapping[str, Any]) -> Row:
    """The row of a bug: the first violation that is on its lines."""
    lines = {at for span in bug["lines"] for at in lines_of(span)}
    is_it = [violation for violation in found["violations"] if lines & set(places(violation))]
    seen: Mapping[str, Any] = is_it[0] if is_it else {"missing": [], "present": []}
    stores = [
        ", ".join(dict.fromkeys(place(store["place"]) for store in seen[key]))
        for key in ("missing", "present")
    ]
    repair = (seen.get("repair") or {}).get("kind", "")
    others = len(found["violations"]) - len(is_it)
    said = [bug[key] for key in ("number", "program", "bug", "kind", "what")]
    answer, why = ("found", "") if is_it else ("not found", bug.get("why", ""))
    numbers = found["counts"]["images"], others
    story = *stores, repair
    return BUGS.row(bug["run"], *said, found["model"], answer, *story, *numbers, why)


def lines_of(span: str) -> Iterator[str]:
    """Lines of `FILE:LINE`, `FILE:FIRST-LAST`, or `FILE`, which is all of it."""
    file, _, numbers = span.partition(":")
    first, _, last = numbers.partition("-")
    if not numbers:
        yield file
    else:
        yield from (f"{file}:{line}" for line in range(int(first), int(last or first) + 1))


def places(violation: Mapping[str, Any]) -> Iterator[str]:
    """Lines, and files, of its stores and their calls; where none is missing, of the failure."""
    for store in (*violation["missing"], *violation["present"]):
        for frame in (store["place"], *store["calls"]):
            yield from (place(frame), place(frame).partition(":")[0])
    if not violation["missing"] and violation["after"]:
        yield place(violation["after"])


def place(frame: Mapping[str, Any]) -> str:
    """The line of a frame: `FILE:LINE`."""
    return f"{PurePath(frame.get('file') or '').name}:{frame.get('line')}"


def blocks(bugs: Sequence[Row], right: Sequence[Row]) -> list[str]:
    """Makes the table of bugs, and that of programs that are right."""
    count = sum(row["answer"] == "found" for row in bugs)
    cells = [
        [
            row["number"], row["program"], row["bug"], row["kind"], row["model"],
            "; ".join(filter(None, (row["answer"], row["why"]))),
            code(row["missing"]), code(row["present"]), row["repair"],
            exact(int(row["images"])), row["others"],
        ]
        for row in sorted(bugs, key=lambda row: int(row["number"]))
    ]  # fmt: skip
    head = ("no.", "program", "bug", "kind", "model", "answer", "missing", "left", "repair",
            "images", "others")  # fmt: skip
    first = f"{count} of {len(bugs)} bugs are found.\n\n{table_of(head, cells, texts=9)}"
    others = ("program", "version", "model", "end", "images", "violations")
    keys = ("program", "commit", "model", "end")
    rows = [
        [*(row[key] for key in keys), exact(int(row["images"])), row["violations"]] for row in right
    ]
    return [first, table_of(others, rows, texts=4)]


def code(places_: str) -> str:
    """Lines as code."""
    return ", ".join(f"`{each}`" for each in places_.split(", ")) if places_ else ""


def wrong(bugs: Sequence[Row], right: Sequence[Row]) -> list[str]:
    """Names bugs that are missed without a reason, and alarms about programs that are right."""
    missed = [row for row in bugs if row["answer"] != "found" and not row["why"]]
    alarms = [row for row in right if row["violations"] != "0"]
    return [
        *(f"{row['run']}: not found, and nothing says why" for row in missed),
        *(f"{row['run']}: {row['violations']} violations" for row in alarms),
    ]


CAMPAIGN = Campaign(
    names, look, [BUGS, RIGHT], ROOT / "docs/results/known.md", blocks, wrong, options=options
)
