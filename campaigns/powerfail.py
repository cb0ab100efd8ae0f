"""Power failures of programs: kinds of mistakes that are found, and rates of judges.

`graven powerfail` lets power fail in a small program of each kind of crash inconsistency and in its
repaired twin. Rates are those of one judge at a time on a program with an order that it forgets.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graven.basics.numbers import exact

from .kinds import KINDS, SOURCES, Kind
from .runner import Campaign, Failed, Given, Rows
from .tables import ROOT, Row, Table, table_of

GRAVEN = ROOT / ".venv/bin/graven"

RATE = "rate"
"""Beginnings of the names of tasks that measure."""

PEER = "peer"
"""Beginnings of the names of tasks that run another tool."""

JUDGES = ("command", "kept", "kept-2")
"""Judges whose rates are measured: a process for each image; one that is kept running; two."""

IMAGES = {"command": 6_000, "kept": 100_000, "kept-2": 200_000}
"""Images of a measurement."""

REPEATS = 3
"""Measurements of each judge; the table has the median."""

FOUND = Table(
    "powerfail-kinds",
    ("kind", "model", "missing", "left", "violations", "repair", "images", "twin", "twin_images"),
    ("kind",),
)

RATES = Table("powerfail-rates", ("judge", "images", "per_second", "alone", "bytes"), ("judge",))

PEERS = Table(
    "powerfail-peers", ("tool", "images", "seconds", "ended", "refused", "stories"), ("tool",)
)

ENGINES = ("ReorderFull", "ReorderAccumulative", "ReorderReverseAccumulative", "ReorderPartial")
"""Engines of pmreorder, which say which images are tried."""

PEER_SECONDS = 30
"""Longest time of each tool."""

MARKS = {"missing": "missing", "present": "left"}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this campaign: where pmreorder is, which is no part of Graven."""
    parser.add_argument("--valgrind", metavar="PROGRAM", help="a valgrind that has pmemcheck")
    parser.add_argument("--pmreorder", type=Path, metavar="FILE", help="pmreorder.py of PMDK")


def names(given: Given) -> Iterable[str]:
    """Names the tasks: the kinds, the judges, and other tools where they are."""
    kinds = [kind.name for kind in KINDS]
    peers = ["graven powerfail", *ENGINES] if given.pmreorder else []
    return [*kinds, *(f"{RATE} {judge}" for judge in JUDGES), *(f"{PEER} {of}" for of in peers)]


def look(name: str, given: Given) -> Rows:
    """Judges the programs of a kind, or measures a judge or a tool."""
    with tempfile.TemporaryDirectory(prefix="graven-kinds-") as place:
        folder = Path(place)
        if name.startswith(PEER):
            return {PEERS: [peer(name.removeprefix(f"{PEER} "), folder, given)]}
        if name.startswith(RATE):
            return {RATES: [rate(name.removeprefix(f"{RATE} "), folder)]}
        kind = next(kind for kind in KINDS if kind.name == name)
        return {FOUND: [found(kind, folder)]}


def compiled(kind: Kind, folder: Path, *flags: str) -> Path:
    """Compiles the program of a kind, or its twin."""
    program = folder / ("twin" if flags else "program")
    command = ["cc", "-g", "-O1", "-pthread", *kind.flags, *flags, "-o", str(program)]
    done = subprocess.run(
        [*command, str(SOURCES / f"{kind.source}.c")], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(done.stderr)
    return program


def judged(kind: Kind, program: Path) -> Mapping[str, Any]:
    """Lets power fail in a program."""
    pool = program.parent / "pool"
    words = [word.replace("{program}", str(program)) for word in (*kind.judge, *kind.model)]
    command = [str(GRAVEN), "powerfail", *kind.memory, *words, "--format", "json", "--"]
    done = subprocess.run(
        [*command, str(program), "run", str(pool)], capture_output=True, text=True, check=False
    )
    for left in pool.parent.glob("pool*"):
        left.unlink()
    if done.returncode not in (0, 1):
        raise Failed(done.stderr)
    document: Mapping[str, Any] = json.loads(done.stdout)
    return document


def found(kind: Kind, folder: Path) -> Row:
    """The row of a kind."""
    document = judged(kind, compiled(kind, folder))
    twin = judged(kind, compiled(kind, folder, "-DREPAIRED"))
    violations = document["violations"]

    def lines(which: str) -> str:
        places = {
            f"{store['where'].partition(' ')[0]}" for found in violations for store in found[which]
        }
        return ", ".join(sorted(places))

    repairs = [violation["repair"]["kind"] for violation in violations if violation["repair"]]
    return {
        "kind": kind.name,
        "model": document["model"],
        "missing": lines("missing"),
        "left": lines("present"),
        "violations": str(len(violations)),
        "repair": ", ".join(dict.fromkeys(repairs)),
        "images": str(_images(document)),
        "twin": str(len(twin["violations"])),
        "twin_images": str(_images(twin)),
    }


def _images(document: Mapping[str, Any]) -> int:
    in_recovery = (recovery.get("images", 0) for recovery in document["recoveries"])
    return int(document["counts"]["images"]) + sum(in_recovery)


LOG = """
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
struct log { uint64_t used; char padding[56]; uint64_t entries[100][8]; };
static struct log file;
static int check(const char *path) {
    int from = open(path, O_RDONLY);
    long bytes = read(from, &file, sizeof file);
    close(from);
    for (uint64_t i = 0; bytes == sizeof file && i < file.used; i++)
        if (!file.entries[i][0])
            return 1;
    return 0;
}
int main(int count, char **arguments) {
    char line[4096];
    if (count == 1) {
        while (fgets(line, sizeof line, stdin)) {
            line[strcspn(line, "\\n")] = 0;
            puts(check(line) ? "an entry is empty" : "ok");
            fflush(stdout);
        }
        return 0;
    }
    if (count == 2)
        return check(arguments[1]);
    int to = open(arguments[2], O_RDWR | O_CREAT, 0600);
    if (ftruncate(to, sizeof file))
        return 1;
    struct log *log = mmap(NULL, sizeof *log, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);
    for (int i = 0; i < 60; i++) {
        log->entries[i][0] = i + 1;
        log->used++;
        _mm_clflush(&log->used);
        _mm_sfence();
    }
}
"""
"""A log of 60 entries that forgets to flush them; its check is a process that takes little time."""


def rate(judge: str, folder: Path) -> Row:
    """Measures the rate of a judge on one core, and that of its command alone."""
    source, program, trace = folder / "log.c", folder / "log", folder / "log.gvt"
    source.write_text(LOG)
    subprocess.run(["cc", "-O1", "-static", "-o", program, source], check=True)
    data = folder / "data"
    captured = ["capture", "--only-pm", "--pm-file", "*/data", "--to", trace, "--"]
    subprocess.run([GRAVEN, *captured, program, "run", data], check=True, capture_output=True)
    options = ["--verify", f"{program} {{image}}"] if judge == "command" else ["--loop", program]
    rates, alone = [], []
    options += ["--jobs", "2" if judge == "kept-2" else "1"]
    for _ in range(REPEATS):
        few, many = (
            _timed(trace, options, images) for images in (IMAGES[judge] // 10, IMAGES[judge])
        )
        rates.append((many[0] - few[0]) / (many[1] - few[1]))
        alone.append(_alone(program, data) if judge == "command" else 0.0)
    return {
        "judge": judge,
        "images": str(IMAGES[judge]),
        "per_second": f"{sorted(rates)[REPEATS // 2]:.0f}",
        "alone": f"{sorted(alone)[REPEATS // 2]:.0f}" if judge == "command" else "",
        "bytes": str(data.stat().st_size),
    }


def _timed(trace: Path, options: Sequence[str | Path], images: int) -> tuple[int, float]:
    """Images that were judged, and the time of the whole command in seconds."""
    limits = ["--images", str(images), "--limit", "3600", "--no-mend"]
    begun = time.monotonic()
    done = subprocess.run(
        [GRAVEN, "powerfail", trace, *options, *limits, "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise Failed(done.stderr)
    return json.loads(done.stdout)["counts"]["judged"], time.monotonic() - begun


SPAWNS = 3_000
"""Runs of a command that is measured alone."""

SPAWN = """
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
extern char **environ;
int main(int count, char **arguments) {
    for (int i = atoi(arguments[1]); i > 0; i--) {
        pid_t child;
        int status;
        if (posix_spawn(&child, arguments[2], NULL, NULL, arguments + 2, environ))
            return 1;
        waitpid(child, &status, 0);
    }
}
"""
"""A program that runs another one, N times."""


def _alone(program: Path, data: Path) -> float:
    """Runs of the command alone, on one file, per second."""
    spawn = program.parent / "spawn"
    if not spawn.exists():
        source = program.parent / "spawn.c"
        source.write_text(SPAWN)
        subprocess.run(["cc", "-O1", "-o", spawn, source], check=True)
    begun = time.monotonic()
    subprocess.run([spawn, str(SPAWNS), program, data], check=True)
    return SPAWNS / (time.monotonic() - begun)


PERSISTED = """
#include <fcntl.h>
#include <libpmem.h>
#include <stdint.h>
#include <unistd.h>
struct log { uint64_t used; char padding[56]; uint64_t entries[100][8]; };
static struct log file;
static void count(void) {
    int to = open("CHECKED", O_WRONLY | O_APPEND | O_CREAT, 0600);
    (void)!write(to, "x", 1);
    close(to);
}
int main(int arguments, char **values) {
    if (values[1][0] == 'c') {
        count();
        int from = open(values[arguments - 1], O_RDONLY);
        (void)!read(from, &file, sizeof file);
        for (uint64_t i = 0; i < file.used; i++)
            if (!file.entries[i][0])
                return 1;
        return 0;
    }
    struct log *log = pmem_map_file(values[2], sizeof *log, PMEM_FILE_CREATE, 0600, 0, 0);
    for (int i = 0; i < 12; i++) {
        for (int j = 0; j < 8; j++)
            log->entries[i][j] = i + 1;
        pmem_flush(log->entries[i], 64);
        log->used++;
        pmem_persist(&log->used, 8);
    }
}
"""
"""A log of 12 entries on libpmem that are flushed and not fenced before they are counted; its check
counts how often it is asked."""


def peer(tool: str, folder: Path, given: Given) -> Row:
    """Runs a tool on a program with an order that it forgets."""
    source, program, data = folder / "log.c", folder / "log", folder / "data"
    checked = folder / "checked"
    source.write_text(PERSISTED.replace("CHECKED", str(checked)))
    subprocess.run(["cc", "-g", "-O1", "-o", program, source, "-lpmem"], check=True)
    if tool in ENGINES:
        log, said = folder / "stores.log", folder / "said.log"
        with data.open("wb") as file:
            file.truncate(6464)
        stores = ["--log-stores=yes", f"--log-file={log}", "--log-stores-stacktraces=yes"]
        stores += ["--log-stores-stacktraces-depth=2", "--expect-fence-after-clflush=yes"]
        traced = [given.valgrind, "--tool=pmemcheck", "-q", *stores, program, "run", data]
        subprocess.run(traced, check=True)
        with data.open("wb") as file:
            file.truncate(6464)
        command = [sys.executable, given.pmreorder, "-l", log, "-o", said, "-r", tool]
        command += ["-p", f"{program} c"]
    else:
        command = [GRAVEN, "powerfail", "--pm-file", "*/data", "--jobs", "1", "--verify"]
        command += [f"{program} c {{image}}", "--format", "json", "--", program, "run", data]
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=PEER_SECONDS, cwd=folder
        )
    except subprocess.TimeoutExpired:
        ended, stdout = "its time was over", ""
    else:
        ended, stdout = "all", done.stdout
    seconds = time.monotonic() - begun
    if tool in ENGINES:
        text = said.read_text(errors="replace") if said.exists() else ""
        refused, stories = text.count(" inconsistent"), ""
    else:
        document = json.loads(stdout)
        refused = sum(found["count"] for found in document["violations"])
        stories, ended = str(len(document["violations"])), document["counts"]["end"]
    images = checked.stat().st_size if checked.exists() else 0
    return {
        "tool": tool,
        "images": str(images),
        "seconds": f"{seconds:.1f}",
        "ended": ended,
        "refused": str(refused),
        "stories": stories,
    }


def blocks(kinds: Sequence[Row], rates: Sequence[Row], peers: Sequence[Row]) -> list[str]:
    """Makes the tables of the page."""
    return ["".join(table(rows)) for table, rows in zip(TABLES, (kinds, rates, peers), strict=True)]


def kinds_table(rows: Sequence[Row]) -> Iterator[str]:
    """Makes the table of kinds, with its sum before."""
    bugs = sum(row["violations"] != "0" for row in rows)
    blamed = sum(row["twin"] != "0" for row in rows)
    yield f"{bugs} of {len(rows)} are found; {blamed} of {len(rows)} twins are blamed.\n\n"
    head = ("kind", "model", "missing", "left", "repair", "images", "twin's images")
    cells = [
        [
            row["kind"],
            f"`{row['model']}`",
            *(f"`{row[which]}`" if row[which] else "" for which in MARKS.values()),
            row["repair"],
            exact(int(row["images"])),
            exact(int(row["twin_images"])),
        ]
        for row in rows
    ]
    yield table_of(head, cells, texts=5)


def rates_table(rows: Sequence[Row]) -> Iterator[str]:
    """Makes the table of rates."""
    what = {
        "command": "a command for each image (`--verify`)",
        "kept": "a command that is kept running (`--loop`)",
        "kept-2": "two of them (`--jobs 2`)",
    }
    head = ("judge", "images", "bytes of a file", "per second", "the command alone")
    cells = [
        [
            what[row["judge"]],
            exact(int(row["images"])),
            exact(int(row["bytes"])),
            exact(int(row["per_second"])),
            exact(int(row["alone"])) if row["alone"] else "",
        ]
        for row in rows
    ]
    yield table_of(head, cells, texts=1)


def peers_table(rows: Sequence[Row]) -> Iterator[str]:
    """Makes the table of tools."""
    head = ("tool", "ended", "images", "seconds", "images per second", "refused images", "told as")
    cells = [
        [
            row["tool"] if row["tool"] not in ENGINES else f"pmreorder, `{row['tool']}`",
            row["ended"],
            exact(int(row["images"])),
            row["seconds"],
            exact(round(int(row["images"]) / float(row["seconds"]))),
            exact(int(row["refused"])),
            f"{row['stories']} violation" if row["stories"] else "each image",
        ]
        for row in rows
    ]
    yield table_of(head, cells, texts=2)


TABLES = (kinds_table, rates_table, peers_table)


def wrong(kinds: Sequence[Row], rates: Sequence[Row], peers: Sequence[Row]) -> list[str]:
    """Names kinds that are missed, and twins that are blamed."""
    del rates, peers
    missed = [f"{row['kind']}: missed" for row in kinds if row["violations"] == "0"]
    return missed + [f"{row['kind']}: its twin is blamed" for row in kinds if row["twin"] != "0"]


CAMPAIGN = Campaign(
    names,
    look,
    [FOUND, RATES, PEERS],
    ROOT / "docs/results/powerfail.md",
    blocks,
    wrong,
    options=options,
)
"""The campaign."""
