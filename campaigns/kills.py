"""Commands that are killed at random: files that they leave, and the same command again.

A task has the tries of a case. Each try begins a command that keeps or writes something, in a
folder of its own, and kills its process group with SIGKILL: every other try at a random instant,
the others at, in the middle of or after a random operation on files (`campaigns.struck`).
Afterwards

- `graven results verify` finds nothing damaged, and no result that was acknowledged or was there
  before has gone;
- each file that the command writes has what it had before, or what it is to have, whole;
- whatever else lies about has a name with a dot in front, which nothing reads as a result;
- the same command again ends as it does undisturbed: output, files and results are the same, byte
  for byte, but for times of the host.

A try is the same whenever it is repeated, but for what a random instant hits. The exit code is 1
if a try found something wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from graven import _engine
from graven.laboratory.state_file import StateFile
from graven.store import DamagedRecord, Store, StoredRecord, segments
from graven.store.running import FOLDER as RUNNING
from graven.store.store import SEGMENTS, STATES
from graven.store.upkeep import lines_of, verify

from .runner import Campaign, Given, Rows
from .struck import PARTS
from .tables import ROOT, Row, Table

TABLE = Table(
    "kills",
    (
        "try", "case", "build", "at", "struck_ms", "inside_commit", "cut_off", "temporaries",
        "files", "results", "lost", "again", "wrong",
    ),
    ("try",),
    lambda: ((str(number),) for number in range(TRIES)),
)  # fmt: skip

TRIES = 200
OLD = "what was there before\n"
ATTEMPTS = 8
"""Times that a command is begun anew at most that has ended before it was struck."""

LIMIT_SECONDS = 300


@dataclass(frozen=True)
class Case:
    """A command, and what it needs (`kills.toml`).

    Attributes:
        name: Name in the table.
        command: Arguments of `graven`.
        before: Commands that make what it needs.
        writes: Files that it replaces, with something in them before in half of the tries.
        copies: Files of this repository that it needs, or folders.
        store: Folder where it keeps results.
    """

    name: str
    command: str
    before: Sequence[str] = ()
    writes: Sequence[str] = ()
    copies: Sequence[str] = ()
    store: str = "graven-results/store"

    @property
    def arguments(self) -> list[str]:
        """Arguments of `graven`."""
        return self.command.split()


CASES = [
    Case(name, **of)
    for name, of in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
]


def environment() -> dict[str, str]:
    """Returns the environment of the commands."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "python")])
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "100", "GRAVEN_STORE": ""}


def graven(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "graven", *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


# ---- what a folder has in it ---------------------------------------------------------------------

_OF_STORE = re.compile(r"store\.json|index-")
_HOST_TIME = re.compile(rb'"seconds": ?[0-9.e-]+')


@dataclass(frozen=True)
class Contents:
    """Contents of a folder, without times of the host.

    Attributes:
        files: Contents of files that are not the store's.
        results: Results of the store, by digest.
        temporaries: Names with a dot in front.
    """

    files: Mapping[str, bytes]
    results: Mapping[str, str]
    temporaries: tuple[str, ...]

    @staticmethod
    def of(folder: Path, store: str) -> Contents:
        """Reads a folder."""
        files: dict[str, bytes] = {}
        temporaries: list[str] = []
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            inside = path.relative_to(folder)
            if path.name.startswith("."):
                temporaries.append(str(inside))
            elif STATES in inside.parts:
                files[str(inside)] = _state(path)
            elif {SEGMENTS, RUNNING}.isdisjoint(inside.parts) and not _OF_STORE.match(path.name):
                files[str(inside)] = _content(path)
        return Contents(files, results_of(folder / store), tuple(temporaries))


def _content(path: Path) -> bytes:
    """What is in a file; of a state of `--state`, whose checksum is of times, too, the state."""
    content = path.read_bytes()
    if content.startswith(b'{\n "sha256"'):
        try:
            content = (StateFile(path).read() or "").encode()
        except _engine.ConfigError as error:
            content = f"damaged: {error}".encode()
    return _HOST_TIME.sub(b"", content)


def _state(path: Path) -> bytes:
    """What is in the file of something under way."""
    try:
        return _HOST_TIME.sub(b"", StoredRecord.parse(path.read_bytes()).result.encode())
    except DamagedRecord as error:
        return f"damaged: {error}".encode()


def results_of(store: Path) -> dict[str, str]:
    """Returns all results of a store, read from its segments alone."""
    folder = store / SEGMENTS
    if not folder.is_dir():
        return {}
    names = segments.names(folder)
    records = (record for _, _, record in lines_of(folder, names))
    return {r.request.digest: r.result for r in records if isinstance(r, StoredRecord)}


# ---- a command undisturbed -----------------------------------------------------------------------


@dataclass(frozen=True)
class Whole:
    """A command that ran to its end.

    Attributes:
        code: The exit code.
        out: Standard output.
        seconds: Seconds that it took.
        operations: Operations on files, in their order.
        after: Contents of the folder afterwards.
    """

    code: int
    out: str
    seconds: float
    operations: list[str]
    after: Contents


@dataclass
class Reference:
    """A case as it is undisturbed."""

    case: Case
    root: Path
    template: Path = field(init=False)

    def __post_init__(self) -> None:
        """Makes what the command needs."""
        self.template = self.root / "template"
        self.template.mkdir()
        for name in self.case.copies:
            shutil.copytree(ROOT / name, self.template / name)
        for command in self.case.before:
            arguments = command.split()
            done = graven((*arguments, *_no_report(arguments)), self.template)
            assert done.returncode == 0, done.stderr
        self.before = Contents.of(self.template, self.case.store)

    def folder(self, name: str, *, old: bool) -> Path:
        """Makes a folder for the command, with old content in files that it replaces."""
        folder = self.root / name
        shutil.copytree(self.template, folder)
        for name in self.case.writes if old else ():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(OLD)
        return folder

    @cached_property
    def whole(self) -> Whole:
        """The command to its end."""
        folder = self.folder("undisturbed", old=False)
        log = self.root / "undisturbed.log"
        started = time.monotonic()
        process = begin(self.case, folder, log, "never")
        out, errors = process.communicate(timeout=LIMIT_SECONDS)
        took = time.monotonic() - started
        assert process.returncode in (0, 1), errors.decode()
        operations = [line[6:] for line in log.read_text().splitlines() if line[:6] == "began "]
        contents = Contents.of(folder, self.case.store)
        return Whole(process.returncode, without_times(out), took, operations, contents)


def _no_report(arguments: Sequence[str]) -> tuple[str, ...]:
    return ("--no-report",) if arguments[0] == "compare" else ()


def without_times(out: bytes) -> str:
    """Returns standard output without times of the host."""
    return _HOST_TIME.sub(b"", out).decode()


def begin(case: Case, folder: Path, log: Path, when: str) -> subprocess.Popen[bytes]:
    """Begins a command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "campaigns.struck", str(log), when, *case.arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


# ---- a try ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Struck:
    """A command that was killed.

    Attributes:
        when: Operation or instant that was chosen.
        milliseconds: Since it began.
        log: Lines of its log.
    """

    when: str
    milliseconds: float
    log: tuple[str, ...]

    @property
    def acknowledged(self) -> set[str]:
        """Digests of results that the store said it keeps."""
        return {line.split()[1] for line in self.log if line.startswith("acknowledged")}

    @property
    def inside_commit(self) -> bool:
        """True if a record was being kept, or segments were being put together."""
        for line in reversed(self.log):
            if line == "began append":
                return True
            if line == "whole" or line.startswith("acknowledged"):
                break
        return False


def strike(of: Reference, folder: Path, log: Path, when: str, after: float) -> Struck | None:
    """Runs a command and kills it; nothing if it has ended before."""
    started = time.monotonic()
    process = begin(of.case, folder, log, when)
    try:
        process.communicate(timeout=after if when == "never" else LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    took = 1000 * (time.monotonic() - started)
    if process.returncode != -signal.SIGKILL:
        return None
    lines = log.read_text().splitlines() if log.exists() else []
    at = f"{after * 1000:.0f} ms" if when == "never" else when
    return Struck(at, took, tuple(lines))


def chosen(of: Reference, draw: random.Random, *, by_operation: bool) -> tuple[str, float]:
    """Returns when to strike: at an operation, or after a number of seconds."""
    operations = of.whole.operations
    if not by_operation or not operations:
        return "never", draw.uniform(0.1, 1.0) * of.whole.seconds
    at = draw.randrange(len(operations))
    operation = operations[at]
    number = operations[: at + 1].count(operation)
    parts = PARTS if operation == "append" else ("before", "after")
    return f"{operation}:{number}:{draw.choice(parts)}", 0.0


@dataclass
class Judged:
    """Findings after a command was killed, and after it ran again."""

    of: Reference
    folder: Path
    struck: Struck
    old: bool
    wrong: list[str] = field(default_factory=list)

    def after_it_was_killed(self) -> dict[str, str]:
        """Looks at what there is; part of a row."""
        case, reference = self.of.case, self.of.whole.after
        there = Contents.of(self.folder, case.store)
        checked = graven(("results", "verify", "--store", case.store), self.folder)
        no_store = "there is no store" in checked.stderr
        if checked.returncode != 0 and not no_store:
            self.wrong.append(f"verify: {checked.stdout} {checked.stderr}")
        if there.temporaries:
            self._look_past(there.temporaries)
        files = Counter(self._state_of(name, there.files.get(name)) for name in case.writes)
        for name in there.files.keys() - reference.files.keys():
            self.wrong.append(f"a file of no name that it has undisturbed: {name}")
        for digest, result in there.results.items():
            known = {**self.of.before.results, **reference.results}
            if known.get(digest) != result:
                self.wrong.append(f"a result that it has not undisturbed: {digest}")
        lost = (self.of.before.results.keys() | self.struck.acknowledged) - there.results.keys()
        if lost:
            self.wrong.append(f"lost: {' '.join(sorted(lost))}")
        found = verify(Store(self.folder / case.store)) if not no_store else None
        return {
            "cut_off": str(len(found.cut_off) if found else 0),
            "temporaries": str(len(there.temporaries)),
            "files": " ".join(f"{n} {state}" for state, n in sorted(files.items())),
            "results": f"{len(there.results)} of {len(reference.results)}",
            "lost": str(len(lost)),
        }

    def _look_past(self, temporaries: Sequence[str]) -> None:
        """What lies about is no segment, no program, and no file that was asked for."""
        for name in temporaries:
            if name in self.of.whole.after.files:
                self.wrong.append(f"taken for a result: {name}")

    def _state_of(self, name: str, content: bytes | None) -> str:
        if content is None:
            if self.old:
                self.wrong.append(f"{name} has gone")
            return "missing"
        if self.old and content == OLD.encode():
            return "old"
        if content == self.of.whole.after.files.get(name):
            return "new"
        self.wrong.append(f"{name} is half-written: {len(content)} bytes")
        return "half"

    def again(self) -> str:
        """Runs the same command to its end; how it compares with the undisturbed one."""
        case, reference = self.of.case, self.of.whole.after
        before = len(self.wrong)
        done = graven(case.arguments, self.folder)
        if done.returncode != self.of.whole.code:
            self.wrong.append(f"again: exit code {done.returncode}: {done.stderr}")
        # Upkeep says what it did, which is less if it had been done.
        elif (
            case.arguments[0] != "results"
            and without_times(done.stdout.encode()) != self.of.whole.out
        ):
            self.wrong.append("again: another output")
        there = Contents.of(self.folder, case.store)
        for name in sorted(there.files.keys() | reference.files.keys()):
            if there.files.get(name) != reference.files.get(name):
                self.wrong.append(f"again: another {name}")
        if there.results != reference.results:
            self.wrong.append("again: other results")
        checked = graven(("results", "verify", "--store", case.store), self.folder)
        if checked.returncode != 0 and "there is no store" not in checked.stderr:
            self.wrong.append(f"again: verify: {checked.stdout} {checked.stderr}")
        return "identical" if len(self.wrong) == before else "differs"


def attempt(of: Reference, number: int) -> Row:
    """Makes one try; returns its row."""
    draw = random.Random(number)
    old = draw.random() < 0.5
    for count in range(ATTEMPTS):
        when, after = chosen(of, draw, by_operation=number % 2 == 1)
        name = f"try-{number}-{count}"
        folder, log = of.folder(name, old=old), of.root / f"{name}.log"
        struck = strike(of, folder, log, when, after)
        if struck is not None:
            judged = Judged(of, folder, struck, old)
            found = judged.after_it_was_killed()
            again = judged.again()
            if not judged.wrong:
                shutil.rmtree(folder)
            inside = "yes" if struck.inside_commit else "no"
            return TABLE.row(
                number, of.case.name, _engine.build()[:16], struck.when,
                f"{struck.milliseconds:.0f}", inside, *found.values(), again,
                "; ".join(judged.wrong),
            )  # fmt: skip
        shutil.rmtree(folder)
    raise AssertionError(f"{of.case.name} always ends before it is struck")


def case_of(number: int) -> Case:
    """Returns the case of a try; each has one at a random instant and one at an operation."""
    return CASES[number // 2 % len(CASES)]


def measure(name: str, given: Given) -> Rows:
    """Makes the tries of a case."""
    (case,) = (case for case in CASES if case.name == name)
    root = Path(tempfile.mkdtemp(prefix="graven-kills-"))
    reference = Reference(case, root)
    numbers = [number for number in range(given.tries) if case_of(number) is case]
    rows = [attempt(reference, number) for number in numbers]
    if any(row["wrong"] for row in rows):
        print(f"{name}: what the tries left is in {root}")
    else:
        shutil.rmtree(root)
    return {TABLE: rows}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the number of tries."""
    parser.add_argument("--tries", type=int, default=TRIES, metavar="N", help=f"({TRIES})")


def wrong(rows: Sequence[Row]) -> list[str]:
    """Names the tries that found something wrong."""
    return [f"try {row['try']}, {row['case']}: {row['wrong']}" for row in rows if row["wrong"]]


CAMPAIGN = Campaign(
    lambda _: (case.name for case in CASES),
    measure,
    [TABLE],
    wrong=wrong,
    options=options,
    sizes=("tries",),
)
