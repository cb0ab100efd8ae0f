"""Stores on mapped files, mode by mode: what a power failure leaves, by `graven powerfail`.

`stores_by_mode.toml` names stores and modes, `stores_by_mode/` has a driver for each. A task is a
store in a mode. It builds the driver with the distribution's library, captures a run of `PUTS`
puts, and has images judged under the model `page-cache`, with sectors of 4,096 and of 512 B:

- the driver prints the records, which must be those before or after the put under way; where the
  manual promises it, puts that have returned must be among them;
- if they can be read, one more put must work, and leave the others as they were.

A mode in which the store has something in a file that it does not map is not judged: its images
would lack that file's content. `mdb_stat`, `tdbtool` and their kind are for people: each violation
of the tables was seen once more by hand (`hand` in the TOML file), and the exit code is 1 if one
was not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from graven import _engine
from graven.basics.numbers import exact

from .runner import STATES, Campaign, Failed, Given, Rows
from .tables import ROOT, Row, Table, table_of

NAMED = Path(__file__).with_suffix(".toml")
"""The stores."""

SOURCES = Path(__file__).with_suffix("")
"""Their drivers."""

PUTS = 8
"""Operations of a run: one of them takes a record away."""

SECTORS = (4096, 512)

SECONDS = 15.0
"""Longest exploration of a mode and sector."""

VIOLATIONS = 12
"""Violations after which an exploration ends."""

COMMAND_SECONDS = 3
LIMIT_SECONDS = 900

SAID_CHARACTERS = 110

PROMISES = {"all": "return", "consistent": "never", "nothing": "never"}
"""What a manual promises, and the value of `--acknowledge` that asks for it."""

SURVIVES = "survives"
LOSES = "loses acknowledged writes"
REFUSES = "refuses to open"
UNREADABLE = "opens, refuses to read"
UNSOUND = "reads, fails its own check"
WRONG = "wrong records"
LATER = "damaged later"
UNSOUND_LATER = "later fails its own check"
CRASHES = "reader crashes"
HANGS = "reader hangs"

OPENS = re.compile(
    r"(mdb_env_open|mdb_dbi_open|tdb_open|gdbm_open|tchdbopen|dpopen|open|managed_mapped_file|find|"
    r"sqlite3_open|PRAGMA [a-z_]+ =)\b"
)
"""What a driver says first that cannot open the file."""

JUDGED = Table(
    "stores-by-mode",
    (
        "store", "version", "mode", "acknowledged", "promises", "manual", "sector", "points",
        "images", "end", "outcome", "not_judged",
    ),
    ("store", "mode"),
    lambda: ((of.store, of.mode) for of in modes()),
)  # fmt: skip

VIOLATED = Table(
    "stores-by-mode-violations",
    ("store", "mode", "sector", "outcome", "images", "edge", "missing", "present", "said"),
    ("store", "mode"),
    lambda: ((of.store, of.mode) for of in modes()),
)


@dataclass(frozen=True)
class Mode:
    """A store in a mode.

    Attributes:
        key: Name of the store in the TOML file.
        store: Name of the store.
        mode: Name of the mode, which its driver knows.
        of_store: What the TOML file says of the store.
        of_mode: What it says of the mode.
    """

    key: str
    store: str
    mode: str
    of_store: Mapping[str, Any]
    of_mode: Mapping[str, Any]

    @property
    def task(self) -> str:
        """Name of the task."""
        return f"{self.key}/{self.mode}"

    def said(self) -> tuple[str, str, str]:
        """What is acknowledged, what is promised, and the manual's words."""
        return self.of_mode["acknowledged"], self.of_mode["promises"], self.of_mode["manual"]


@cache
def named() -> Mapping[str, Any]:
    """Reads the stores."""
    return tomllib.loads(NAMED.read_text(encoding="utf-8"))


def modes() -> Iterator[Mode]:
    """Yields all modes of all stores."""
    for key, store in named().items():
        if key != "hand":
            for mode in store["modes"]:
                yield Mode(key, store["name"], mode["mode"], store, mode)


def hand(row: Row) -> str:
    """What was seen by hand of the outcome of a violation."""
    fits = (
        entry["seen"]
        for entry in named().get("hand", ())
        if named()[entry["store"]]["name"] == row["store"]
        and row["mode"] in entry["modes"]
        and entry["outcome"] == row["outcome"]
    )
    return next(fits, "")


def names(_: Given) -> Iterable[str]:
    """Names the tasks."""
    return (of.task for of in modes())


def build(of: Mode, folder: Path) -> Path:
    """Builds a driver.

    Raises:
        Failed: the compiler or the library is missing.
    """
    source, program = SOURCES / of.of_store["source"], folder / of.key
    flags = ["-g", "-O1", "-I", str(SOURCES)]
    if "include" in of.of_store:
        flags += ["-I", of.of_store["include"]]
    part = folder / "driver.o"
    libraries = [f"-l{library}" for library in of.of_store["libraries"]]
    commands = [["gcc", *flags, "-c", "-o", str(part), str(SOURCES / "driver.c")]]
    if crate := of.of_store.get("crate"):
        manifest, target = SOURCES / crate / "Cargo.toml", STATES / "stores-by-mode" / crate
        commands.append(
            ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", str(manifest),
             "--target-dir", str(target), *of.of_mode.get("cargo", ())]
        )  # fmt: skip
        source = target / "release" / f"lib{crate}_store.a"
    compiler = "g++" if source.suffix == ".cc" else "gcc"
    commands.append([compiler, *flags, "-o", str(program), str(part), str(source), *libraries])
    for command in commands:
        done = ran(command, folder)
        if done.returncode != 0:
            package = of.of_store["package"]
            raise Failed(f"{source.name} cannot be built (package {package}): {done.stderr[:300]}")
    return program


def ran(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "python")])
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def graven(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs `graven`."""
    return ran([sys.executable, "-m", "graven", *arguments], folder)


def version(of: Mode, program: Path) -> str:
    """Version of the library, and of the distribution's package."""
    if "crate" in of.of_store:
        return ran([str(program), "version"], program.parent).stdout.strip()
    package = ran(["dpkg-query", "-W", "-f", "${Version}", of.of_store["package"]], program.parent)
    said = ran([str(program), "version"], program.parent).stdout
    number = re.search(r"\d+[._]\d+([._]\d+)*", said)
    first = number[0].replace("_", ".") if number else ""
    return " ".join(filter(None, (first, f"({package.stdout.strip()})")))


def capture(of: Mode, program: Path, folder: Path) -> Path:
    """Captures a run of puts.

    Raises:
        Failed: the run fails, or the trace does not explain all bytes.
    """
    files = folder / "files"
    files.mkdir()
    trace = folder / "puts.gvt"
    options = ["--only-pm", "--tx", "operation", "--to", str(trace)]
    apart = of.of_store.get("apart", ())
    options += ["--pm-file", f"{files}/f"] if apart else ["--pm-file", f"{files}/*"]
    run = [str(program), "run", f"{files}/f", of.mode, str(PUTS)]
    done = graven(["capture", *options, "--", *run], folder)
    if done.returncode != 0:
        raise Failed(f"capture ends with {done.returncode}: {done.stderr[-500:]}")
    return trace


def outside(of: Mode, trace: Path) -> list[str]:
    """Files of a run that the images lack: the store has them, and does not map them."""
    header = json.loads(_engine.trace_info(str(trace)))["header"]["capture"]
    mapped = {PurePath(file).name for file in header["files"]}
    known = mapped | set(of.of_store.get("apart", ()))
    files = trace.parent / "files"
    left = {path.name for path in files.rglob("*") if path.is_file()}
    history = json.loads(_engine.trace_history(str(trace), 0, 1 << 30, False))
    paths = (PurePath(entry.get("path") or "") for entry in history["entries"])
    made = {path.name for path in paths if path.name and path.name != files.name}
    return sorted((left | made) - known)


def measure(task: str, given: Given) -> Rows:
    """Judges a store in a mode."""
    (of,) = (of for of in modes() if of.task == task)
    folder = Path(tempfile.mkdtemp(prefix="graven-stores-"))
    program = build(of, folder)
    known = (of.store, version(of, program), of.mode, *of.said())
    if (why := of.of_mode.get("not_judged")) is None:
        trace = capture(of, program, folder)
        if lacking := outside(of, trace):
            why = f"writes by pwrite to {', '.join(lacking)}"
    if why is not None:
        shutil.rmtree(folder)
        return {JUDGED: [JUDGED.row(*known, *[""] * 5, f"not judged: {why}")], VIOLATED: []}
    judged, violated = [], []
    for sector in SECTORS:
        try:
            parts = [
                explore(of, (program, trace), sector, judges, given) for judges in questions(of)
            ]
        except Undisturbed as error:
            shutil.rmtree(folder)
            why = f"not judged: a kill of the process leaves a file that is refused: {error}"
            return {JUDGED: [JUDGED.row(*known, *[""] * 5, why)], VIOLATED: []}
        (folder / f"found-{sector}.json").write_text(json.dumps(parts), encoding="utf-8")
        violations = [violation for found in parts for violation in found["violations"]]
        outcomes = {outcome_of(violation["said"]) for violation in violations}
        images = sum(found["counts"]["images"] for found in parts)
        end = "; ".join(dict.fromkeys(found["counts"]["end"] for found in parts))
        said = "; ".join(sorted(outcomes)) or SURVIVES
        points = parts[-1]["counts"]["points"]
        judged.append(JUDGED.row(*known, sector, points, images, end, said, ""))
        violated += [violation_row(of, sector, violation) for violation in violations]
    if given.keep_traces is not None:
        shutil.copytree(folder, given.keep_traces / task.replace("/", "-"), dirs_exist_ok=True)
    shutil.rmtree(folder)
    return {JUDGED: judged, VIOLATED: violated}


class Undisturbed(Exception):
    """The driver refuses files of a run in which power did not fail."""


def questions(of: Mode) -> list[list[str]]:
    """Options that name judges: one exploration for each question where something is promised."""
    later, dump = (f"{{program}} {verb} {{{{image}}}} {of.mode}" for verb in ("later", "dump"))
    if of.of_mode["promises"] == "nothing":
        return [["--verify", later, "--dump", dump]]
    return [["--verify", later], ["--dump", dump]]


def explore(
    of: Mode, captured: tuple[Path, Path], sector: int, judges: Sequence[str], given: Given
) -> dict[str, Any]:
    """Has images judged.

    Raises:
        Failed: `graven powerfail` refuses.
        Undisturbed: it does so because of files that are good.
    """
    program, trace = captured
    arguments = [
        "powerfail", str(trace), "--model", "page-cache", "--sector", str(sector),
        *(word.format(program=program) for word in judges),
        "--acknowledge", PROMISES[of.of_mode["promises"]],
        "--command-limit", str(COMMAND_SECONDS), "--limit", str(given.seconds),
        "--violations", str(VIOLATIONS), "--jobs", str(given.jobs), "--no-mend",
        "--format", "json",
    ]  # fmt: skip
    done = graven(arguments, trace.parent)
    if done.returncode == 2 and "which are good" in done.stderr:
        why = done.stderr.partition("exit code ")[2].partition(" (of the files")[0]
        raise Undisturbed(short(why.partition(" ")[2]))
    if done.returncode not in (0, 1):
        raise Failed(f"graven powerfail ends with {done.returncode}: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def outcome_of(said: str) -> str:
    """The outcome, by what the judge says of an image."""
    if " later {image}" in said.split("`")[1]:
        return UNSOUND_LATER if "exit code 7" in said.split("`")[2] else LATER
    if said.startswith("the state is that of no instant"):
        return WRONG
    if said.startswith("the state is"):
        return LOSES
    how = said.split("`")[2]
    if "exit code 6" in how:
        return UNSOUND
    if "exit code 3" in how:
        return REFUSES if OPENS.match(how.partition("3: ")[2]) else UNREADABLE
    if "exit code" in how:
        return WRONG
    return CRASHES if "was ended by" in how and "SIGALRM" not in how else HANGS


def violation_row(of: Mode, sector: int, violation: Mapping[str, Any]) -> Row:
    """The row of a violation."""
    outcome = outcome_of(violation["said"])
    places = (
        "; ".join(dict.fromkeys(place(store) for store in violation[key]))
        for key in ("missing", "present")
    )
    return VIOLATED.row(
        of.store, of.mode, sector, outcome, violation["count"], violation["edge"], *places,
        short(violation["said"]),
    )  # fmt: skip


def place(store: Mapping[str, Any]) -> str:
    """The instruction of a store, with the first function of the store's library that is known."""
    return f"{store['where']}: {store['at']}"


def short(said: str) -> str:
    """The beginning of what a judge says, without the paths and values of one run."""
    line = re.sub(r"`[^`]*`( ended with | says)?:?", "", said).splitlines()[0].strip(" ;")
    line = re.sub(r"/\S*/registry/src/[^/]*/|thread '[^']*' \(\d+\) ", "", line)
    line = re.sub(r"/tmp/\S*|/dev/shm/\S*", "FILE", line)
    line = re.sub(r"=value \d+ .*", "", line)
    return line[:SAID_CHARACTERS]


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the longest exploration, and a folder that keeps drivers and traces."""
    what = f"longest exploration of a mode and sector ({SECONDS:g})"
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help=what)
    what = "keep drivers and traces there, to look at violations by hand"
    parser.add_argument("--keep-traces", type=Path, metavar="FOLDER", help=what)


ENDS = {
    "all": "all",
    "nothing-new": "nothing new",
    "images": "most images",
    "time": "time",
    "violations": "violations",
}
"""Words for why an exploration ended."""


def blocks(judged: Sequence[Row], violated: Sequence[Row]) -> list[str]:
    """Makes the table of modes, that of violations, and that of modes that were not judged."""
    head = (
        "store", "mode", "acknowledged by", "promised", "outcome", "ended by", "sector, B",
        "crash points", "images",
    )  # fmt: skip
    cells = [
        [
            f"{row['store']} {row['version']}",
            f"`{row['mode']}`",
            row["acknowledged"],
            f"{row['promises']}: {row['manual']}",
            row["outcome"],
            ENDS.get(row["end"], row["end"]),
            *(exact(int(row[name])) for name in ("sector", "points", "images")),
        ]
        for row in judged
        if not row["not_judged"]
    ]
    lacking = [
        [f"{row['store']} {row['version']}", f"`{row['mode']}`", row["not_judged"]]
        for row in judged
        if row["not_judged"]
    ]
    first = table_of(head, cells, texts=6)
    second = table_of(("store", "mode", "why"), lacking, texts=3)
    return [first, violations_table(violated), second]


def violations_table(rows: Sequence[Row]) -> str:
    """Makes the table of violations: of each mode and outcome, that with the most images."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["store"], row["mode"], row["outcome"]), []).append(row)
    cells = []
    for (store, mode, outcome), group in groups.items():
        most = max(group, key=lambda row: int(row["images"]))
        sectors = ", ".join(sorted({row["sector"] for row in group}, key=int, reverse=True))
        images = sum(int(row["images"]) for row in group)
        said = [plain(text) for text in (most["edge"], most["said"], hand(most))]
        cells.append(
            [store, f"`{mode}`", outcome, *said, sectors, exact(len(group)), exact(images)]
        )
    head = ("store", "mode", "outcome", "place: what is left of what", "the judge says", "by hand",
            "sectors", "places", "images")  # fmt: skip
    return table_of(head, cells, texts=7)


def plain(text: str) -> str:
    """Text as it stands in a cell of Markdown."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def wrong(judged: Sequence[Row], violated: Sequence[Row]) -> list[str]:
    """Names violations that were not reproduced by hand."""
    del judged
    lacking = dict.fromkeys(
        f"{row['store']}, {row['mode']}: {row['outcome']} was not seen by hand"
        for row in violated
        if not hand(row)
    )
    return list(lacking)


CAMPAIGN = Campaign(
    names,
    measure,
    [JUDGED, VIOLATED],
    ROOT / "docs/results/stores.md",
    blocks,
    wrong,
    options=options,
    sizes=("seconds",),
)
