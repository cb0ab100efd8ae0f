"""Runner of all campaigns: it runs their tasks, keeps what is done, and writes tables and pages.

A task that has ended is not run again by the same build at the same sizes, so that an interrupted
campaign continues with the next one; `graven-results` has the names. Its rows are in their tables
at once.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from graven import _engine
from graven.api.options import keeper_of
from graven.basics import output
from graven.running.pool import Failure, failures_text, host_cores
from graven.running.work import Keep

from .tables import ROOT, Row, Table, page_with

STATES = ROOT / "graven-results"

MADE = re.compile(r"of\s+\d{4}-\d\d-\d\d\s+\(commit\s+[0-9a-f]+\)")
"""Date and commit of a page's numbers, which change when the last task has ended."""

Given = argparse.Namespace
Rows = Mapping[Table, Sequence[Row]]


class Failed(Exception):
    """A task did not end well. The campaign continues with the next one."""


@dataclass(frozen=True)
class Campaign:
    """Tasks, and a page that shows the tables with their rows.

    Attributes:
        names: Names all tasks, for the options that were given.
        run: Runs a task; returns the rows that replace those with the same keys. `Failed` if it
            cannot.
        tables: Tables of the page.
        page: Page of the documentation, if there is one.
        blocks: Makes the parts of the page that stand between marks, from the rows of each table.
        wrong: Names what a campaign must not find, from the rows of each table.
        others: Makes other files of the documentation, by path.
        options: Adds options of its own.
        sizes: Options on which results depend; another value runs tasks again.
        repeats: Tells for the options that were given if a task runs again each time.
    """

    names: Callable[[Given], Iterable[str]]
    run: Callable[[str, Given], Rows]
    tables: Sequence[Table] = ()
    page: Path | None = None
    blocks: Callable[..., Sequence[str]] = lambda *_: ()
    wrong: Callable[..., Iterable[str]] = lambda *_: ()
    others: Callable[..., Mapping[Path, bytes]] = lambda *_: {}
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    sizes: Sequence[str] = ()
    repeats: Callable[[str, Given], bool] = lambda *_: False

    def shown(self) -> str:
        """Returns the page as the stored tables give it."""
        assert self.page is not None
        return page_with(self.page.read_text(encoding="utf-8"), *self.blocks(*self.stored()))

    def stored(self) -> list[list[Row]]:
        """Returns the rows of each table."""
        return [table.read() for table in self.tables]

    def main(self, name: str, about: str, arguments: Sequence[str]) -> int:
        """Does what the command line says; returns the exit code."""
        given = self._parser(name, about).parse_args(arguments)
        everything = list(self.names(given))
        tasks = fnmatch.filter(everything, given.only)
        if given.list:
            print(*tasks, sep="\n")
            return 0
        failed: list[str] = []
        is_new = False
        try:
            if not given.stored:
                sizes = {size: str(getattr(given, size)) for size in self.sizes}
                done = Done(STATES / f"{name}.jsonl", {"build": _engine.build(), **sizes})
                failed = list(self._run(tasks, done, given))
                is_new = done.has_grown and done.names.issuperset(everything)
        except KeyboardInterrupt:
            return 130
        finally:
            self._write(is_new=is_new)
        wrong = [*failed, *self.wrong(*self.stored())]
        for line in wrong:
            print(line)
        return 1 if wrong else 0

    def _parser(self, name: str, about: str) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"python -m campaigns {name}",
            description=about,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("--stored", action="store_true", help="run nothing, write the page")
        parser.add_argument("--list", action="store_true", help="run nothing, name the tasks")
        parser.add_argument("--only", default="*", metavar="PATTERN", help="tasks to run (a glob)")
        what = "run again what this build has done at these sizes"
        parser.add_argument("--anew", action="store_true", help=what)
        what = "begin no task after so long"
        parser.add_argument("--minutes", type=float, default=float("inf"), help=what)
        what = "simulations at a time, where a task has several"
        parser.add_argument("--jobs", type=int, default=host_cores(), metavar="N", help=what)
        self.options(parser)
        return parser

    def _run(self, tasks: Sequence[str], done: Done, given: Given) -> Iterator[str]:
        """Runs the tasks that are left; yields why some failed."""
        until = time.monotonic() + 60 * given.minutes
        repeated = [name for name in tasks if given.anew or self.repeats(name, given)]
        left = [name for name in tasks if name in repeated or name not in done.names]
        for number, name in enumerate(left):
            if time.monotonic() > until:
                yield f"{len(left) - number} tasks are left"
                return
            print(f"{number} of {len(left)}: {name}", file=sys.stderr, flush=True)
            try:
                for table, rows in self.run(name, given).items():
                    table.replace(rows)
            except Failed as error:
                yield f"{name}: {error}"
            else:
                if not self.repeats(name, given):
                    done.put(name)

    def _write(self, *, is_new: bool) -> None:
        rows = self.stored()
        for path, content in self.others(*rows).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            output.write(path, content)
        if self.page is not None:
            page = self.shown()
            if is_new:
                commit = ("git", "log", "-1", "--format=%h", "--abbrev=8")
                name = subprocess.run(commit, cwd=ROOT, capture_output=True, text=True, check=True)
                made = f"of {date.today()} (commit {name.stdout.strip()})"
                page = MADE.sub(made, page, count=1)
            output.write(self.page, page.encode())


@dataclass
class Done:
    """Tasks of a campaign that have ended, in a file that grows by a line for each.

    Attributes:
        path: The file.
        of: Build and sizes. Tasks of others do not count, and are removed.
        names: Names of the tasks.
        has_grown: True if a task has ended since the file was read.
    """

    path: Path
    of: Mapping[str, str]
    names: set[str] = field(init=False, default_factory=set)
    has_grown: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Reads the file, without a last line that was cut off."""
        lines = self.path.read_text(encoding="utf-8").split("\n")[:-1] if self.path.exists() else []
        if lines[:1] == [json.dumps(self.of)]:
            self.names.update(map(json.loads, lines[1:]))
        kept = [json.dumps(self.of), *map(json.dumps, sorted(self.names))]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        output.write(self.path, "".join(f"{line}\n" for line in kept).encode())

    def put(self, name: str) -> None:
        """Keeps that a task has ended."""
        self.names.add(name)
        self.has_grown = True
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(name) + "\n")


def whole(failures: Sequence[Failure], interrupted: bool) -> None:
    """Refuses simulations that are not complete.

    Raises:
        KeyboardInterrupt: They were interrupted.
        Failed: Some failed.
    """
    if interrupted:
        raise KeyboardInterrupt
    if failures:
        raise Failed(failures_text(failures))


def keep() -> Keep | None:
    """Returns what keeps the parts of a task, so that it continues after an interrupt."""
    return keeper_of(STATES / "campaigns", fresh=False)
