"""Commands that are killed at random: what they leave, and whether the same command goes on.

    python -m tests.campaigns.kills [--tries N] [--only CASE] [--anew]

Each try begins a command that keeps or writes something, in a folder of its own, and kills its
process group with SIGKILL: every other try at a random instant, the others at, in the middle of or
after a random operation on files (`tests.campaigns.struck`). Afterwards

- `graven results verify` finds nothing damaged, and no result that was acknowledged or was there
  before has gone;
- each file that the command writes has what it had before, or what it is to have, whole;
- whatever else lies about has a name with a dot in front, which nothing reads as a result;
- the same command again ends as it does undisturbed: output, files and results are the same, byte
  for byte, but for times of the host.

A try is the same whenever it is repeated, but for what a random instant hits. Rows of kills.csv,
one for each try, are written as they come; those of this build are not tried again. The exit code
is 1 if a try found something wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.campaigns.struck import PARTS
from tests.campaigns.tables import ROOT, read_rows, replaced, write_rows

from graven import _engine
from graven.laboratory.state_file import StateFile
from graven.store import DamagedRecord, Store, StoredRecord, segments
from graven.store.running import FOLDER as RUNNING
from graven.store.store import SEGMENTS, STATES
from graven.store.upkeep import lines_of, verify

TABLE = Path(__file__).parent / "kills.csv"
COLUMNS = (
    "try", "case", "build", "at", "struck_ms", "inside_commit", "cut_off", "temporaries", "files",
    "results", "lost", "again", "wrong",
)  # fmt: skip

TRIES = 200
OLD = "what was there before\n"
STORE = Path("graven-results/store")
ATTEMPTS = 8
"""How often a command is begun anew at most that has ended before it was struck."""

LIMIT_SECONDS = 300


@dataclass(frozen=True)
class Case:
    """A command, and what it needs.

    Attributes:
        name: What the table calls it.
        arguments: Of `graven`.
        before: Commands that make what it needs.
        writes: Files that it replaces, with something in them before in half of the tries.
        copies: Files of this repository that it needs, or folders.
        store: Where it keeps results.
    """

    name: str
    arguments: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    writes: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    store: Path = STORE


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _case(
    name: str,
    command: str,
    *,
    before: Sequence[str] = (),
    writes: str = "",
    copies: str = "",
    store: Path = STORE,
) -> Case:
    commands = tuple(map(_words, before))
    return Case(name, _words(command), commands, _words(writes), _words(copies), store)


_RUN = "run --design silo --workload hash --transactions 200"
_MANY = "compare --designs base,silo,fwb --workloads hash,array --transactions 100"

CASES = (
    _case("run", f"{_RUN} --format json"),
    _case("files", f"{_RUN} --request-trace r.grt --bank-loads b.csv", writes="r.grt b.csv"),
    _case(
        "compare",
        f"{_MANY} --out out --report page.html",
        writes="out/results.json out/results.csv out/results.parquet page.html",
    ),
    _case(
        "many",
        "compare --designs all --workloads hash --transactions 40 --format csv --out many.json",
        writes="many.json",
    ),
    _case("crash", "crash --design silo,hoop,fwb --workload hash --transactions 40 --format json"),
    _case(
        "violated",
        "crash --design silo-literal --workload btree --machine cramped --format json",
        writes="graven-results/silo-literal-btree.litmus",
    ),
    _case("adversary", "adversary --design silo,fwb --schedules 100 --format json"),
    _case("state", "adversary --design silo --schedules 100 --state s.json --format json"),
    _case("check", "check silo --transactions 2 --departures 1 --format json"),
    _case("check-state", "check silo --transactions 2 --departures 1 --state c.json"),
    _case("litmus", "litmus litmus --format json", copies="litmus/silo litmus/lad litmus/any"),
    _case("mutants", "mutants lad --schedules 20 --only own --format json"),
    _case("faults", "faults silo lad fwb --schedules 10 --format json"),
    _case("memory", "memory r.grt --format json", before=[f"{_RUN} --request-trace r.grt"]),
    _case(
        "reproduce",
        "reproduce morlog fig5 --quick --out rep",
        writes="rep/quick/morlog/fig5.svg rep/quick/morlog/fig5.png",
        store=Path("rep/store"),
    ),
    _case(
        "gc",
        "results gc",
        before=[_MANY, f"{_RUN} --seed 2", f"{_RUN} --seed 3 --fresh", f"{_RUN} --seed 4"],
    ),
    _case(
        "merge",
        "results merge other",
        before=[f"{_MANY} --store other", f"{_RUN} --store other", _RUN],
    ),
    _case("export", "results export all.csv", before=[_MANY], writes="all.csv"),
    _case("record", "trace record t.gvt --design silo --workload btree --transactions 300",
          writes="t.gvt"),
    _case("convert", "trace convert r.grt --to r.nvt", before=[f"{_RUN} --request-trace r.grt"],
          writes="r.nvt"),
)  # fmt: skip


def environment() -> dict[str, str]:
    """Of the commands."""
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
    """What a folder has in it, without times of the host.

    Attributes:
        files: What is in files that are not the store's.
        results: By digest.
        temporaries: Names with a dot in front.
    """

    files: Mapping[str, bytes]
    results: Mapping[str, str]
    temporaries: tuple[str, ...]

    @staticmethod
    def of(folder: Path, store: Path) -> Contents:
        """What is there now."""
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
    """All results of a store, read from its segments alone."""
    folder = store / SEGMENTS
    if not folder.is_dir():
        return {}
    names = segments.names(folder)
    records = (record for _, _, record in lines_of(folder, names))
    return {r.request.digest: r.result for r in records if isinstance(r, StoredRecord)}


# ---- a command undisturbed -----------------------------------------------------------------------


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
        for arguments in self.case.before:
            done = graven((*arguments, *_no_report(arguments)), self.template)
            assert done.returncode == 0, done.stderr
        self.before = Contents.of(self.template, self.case.store)

    def folder(self, name: str, *, old: bool) -> Path:
        """A new folder in which the command can run, with old content in what it is to replace."""
        folder = self.root / name
        shutil.copytree(self.template, folder)
        for name in self.case.writes if old else ():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(OLD)
        return folder

    @cached_property
    def _whole(self) -> tuple[int, str, float, list[str], Contents]:
        folder = self.folder("undisturbed", old=False)
        log = self.root / "undisturbed.log"
        started = time.monotonic()
        process = begin(self.case, folder, log, "never")
        out, errors = process.communicate(timeout=LIMIT_SECONDS)
        took = time.monotonic() - started
        assert process.returncode in (0, 1), errors.decode()
        operations = [line[6:] for line in log.read_text().splitlines() if line[:6] == "began "]
        contents = Contents.of(folder, self.case.store)
        return process.returncode, without_times(out), took, operations, contents

    @property
    def code(self) -> int:
        """The exit code."""
        return self._whole[0]

    @property
    def out(self) -> str:
        """Standard output."""
        return self._whole[1]

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self._whole[2]

    @property
    def operations(self) -> list[str]:
        """Operations on files, in their order."""
        return self._whole[3]

    @property
    def after(self) -> Contents:
        """What it leaves."""
        return self._whole[4]


def _no_report(arguments: Sequence[str]) -> tuple[str, ...]:
    return ("--no-report",) if arguments[0] == "compare" else ()


def without_times(out: bytes) -> str:
    """Standard output without times of the host."""
    return _HOST_TIME.sub(b"", out).decode()


def begin(case: Case, folder: Path, log: Path, when: str) -> subprocess.Popen[bytes]:
    """Begins a command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.campaigns.struck", str(log), when, *case.arguments],
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
        when: What was chosen.
        milliseconds: Since it began.
        log: What its log says.
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
        """Whether a record was being kept, or segments were being put together."""
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
    """When to strike: at an operation, or after so many seconds."""
    if not by_operation or not of.operations:
        return "never", draw.uniform(0.1, 1.0) * of.seconds
    at = draw.randrange(len(of.operations))
    operation = of.operations[at]
    number = of.operations[: at + 1].count(operation)
    parts = PARTS if operation == "append" else ("before", "after")
    return f"{operation}:{number}:{draw.choice(parts)}", 0.0


@dataclass
class Judged:
    """What was found after a command was killed, and after it ran again."""

    of: Reference
    folder: Path
    struck: Struck
    old: bool
    wrong: list[str] = field(default_factory=list)

    def after_it_was_killed(self) -> dict[str, str]:
        """Looks at what there is; part of a row."""
        case, reference = self.of.case, self.of.after
        there = Contents.of(self.folder, case.store)
        checked = graven(("results", "verify", "--store", str(case.store)), self.folder)
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
            if name in self.of.after.files:
                self.wrong.append(f"taken for a result: {name}")

    def _state_of(self, name: str, content: bytes | None) -> str:
        if content is None:
            if self.old:
                self.wrong.append(f"{name} has gone")
            return "missing"
        if self.old and content == OLD.encode():
            return "old"
        if content == self.of.after.files.get(name):
            return "new"
        self.wrong.append(f"{name} is half-written: {len(content)} bytes")
        return "half"

    def again(self) -> str:
        """Runs the same command to its end; how it compares with the undisturbed one."""
        case, reference = self.of.case, self.of.after
        before = len(self.wrong)
        done = graven(case.arguments, self.folder)
        if done.returncode != self.of.code:
            self.wrong.append(f"again: exit code {done.returncode}: {done.stderr}")
        # Upkeep says what it did, which is less if it had been done.
        elif case.arguments[0] != "results" and without_times(done.stdout.encode()) != self.of.out:
            self.wrong.append("again: another output")
        there = Contents.of(self.folder, case.store)
        for name in sorted(there.files.keys() | reference.files.keys()):
            if there.files.get(name) != reference.files.get(name):
                self.wrong.append(f"again: another {name}")
        if there.results != reference.results:
            self.wrong.append("again: other results")
        checked = graven(("results", "verify", "--store", str(case.store)), self.folder)
        if checked.returncode != 0 and "there is no store" not in checked.stderr:
            self.wrong.append(f"again: verify: {checked.stdout} {checked.stderr}")
        return "identical" if len(self.wrong) == before else "differs"


def attempt(of: Reference, number: int) -> dict[str, str]:
    """One try: its row."""
    draw = random.Random(number)
    old = draw.random() < 0.5
    for count in range(ATTEMPTS):
        when, after = chosen(of, draw, by_operation=number % 2 == 1)
        name = f"try-{number}-{count}"
        folder, log = of.folder(name, old=old), of.root / f"{name}.log"
        struck = strike(of, folder, log, when, after)
        if struck is not None:
            judged = Judged(of, folder, struck, old)
            row = judged.after_it_was_killed()
            row |= {"again": judged.again(), "wrong": "; ".join(judged.wrong)}
            if not judged.wrong:
                shutil.rmtree(folder)
            return {
                "try": str(number),
                "case": of.case.name,
                "build": _engine.build()[:16],
                "at": struck.when,
                "struck_ms": f"{struck.milliseconds:.0f}",
                "inside_commit": "yes" if struck.inside_commit else "no",
                **row,
            }
        shutil.rmtree(folder)
    raise AssertionError(f"{of.case.name} always ends before it is struck")


def case_of(number: int) -> Case:
    """The case of a try: each gets one at a random instant and one at an operation in turn."""
    return CASES[number // 2 % len(CASES)]


def tried(
    numbers: Sequence[int], root: Path, told: Callable[[str], None] = print
) -> Iterator[dict[str, str]]:
    """Makes tries, those of one case together."""
    for case in CASES:
        mine = [number for number in numbers if case_of(number) is case]
        if not mine:
            continue
        folder = root / case.name
        folder.mkdir()
        of = Reference(case, folder)
        for number in mine:
            row = attempt(of, number)
            told(json.dumps(row))
            yield row


def main(arguments: list[str]) -> int:
    """Makes the tries that are left."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.kills")
    parser.add_argument("--tries", type=int, default=TRIES, help=f"how many ({TRIES})")
    parser.add_argument("--only", metavar="CASE", help=", ".join(case.name for case in CASES))
    parser.add_argument("--anew", action="store_true", help="make all again")
    given = parser.parse_args(arguments)
    build = _engine.build()[:16]
    done = {int(row["try"]) for row in read_rows(TABLE) if row["build"] == build}
    wanted = [
        number
        for number in range(given.tries)
        if given.only in (None, case_of(number).name) and (given.anew or number not in done)
    ]
    root = Path(tempfile.mkdtemp(prefix="graven-kills-"))
    failed = 0
    for row in tried(wanted, root):
        rows = replaced(read_rows(TABLE), [row], ("try",))
        write_rows(TABLE, COLUMNS, sorted(rows, key=lambda row: int(row["try"])))
        failed += bool(row["wrong"])
    if failed:
        print(f"{failed} tries found something wrong; what they left is in {root}")
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
