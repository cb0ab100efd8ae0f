"""Real programs: captured by their recipes, their properties, what designs make of them, crashed.

A task has a program. Traces are in `graven-results`, and made once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from graven.api.options import sound_designs
from graven.api.traces import trace_info, trace_properties
from graven.basics.numbers import exact
from graven.capture.recipes import capture_recipe, recipes
from graven.engine.machine import Machine
from graven.laboratory.crashes import CrashCampaign, CrashJob, Shares
from graven.running.experiment import Experiment
from graven.running.job import Job, matrix
from graven.running.progress import Display
from graven.running.work import How

from .runner import STATES, Campaign, Given, Rows, whole
from .tables import ROOT, Row, Table, table_of

MACHINES = ("silo", "morlog", "hoop")
"""Those of papers with programs of their own."""

BASELINE = "base"
DESIGNS = (
    "base", "undo-clwb", "redo-clwb", "fwb", "morlog-slde", "lad", "opt-redo", "osp", "lsm", "hoop",
    "silo", "lalea",
)  # fmt: skip

SETTINGS = {"base.log_bytes_per_thread": "4 MB"}
"""A statement of SQLite stores more words than the default holds records."""

REPAIRS = {
    "silo": {"silo.log_ignorance": "false"},
    "fwb-slde": {"fwb.dirty_flags": "false"},
    "morlog-slde": {"morlog.dirty_flags": "false"},
    "morlog-dp": {"morlog.dirty_flags": "false"},
}
"""Settings with which a design logs silent stores (docs/results/findings.md): those that are
convicted as printed are crashed once more with them."""

CRASH_TRANSACTIONS = 12
"""Transactions of each program, after those that fill its store."""

CRASH_EVERY = 8
"""Power fails at each crash point of that number: LMDB's transactions store hundreds of words."""

CAPTURED = Table(
    "real-programs-captured",
    (
        "program", "transactions", "several", "outside", "stores_mean", "stores_p99", "words_mean",
        "lines_mean", "silent_share", "clean_share", "again_share", "instructions_per_store",
        "access_share", "volatile_share", "loads_checked", "bytes_compared", "unexplained",
    ),
    ("program",),
)  # fmt: skip
COMPARED = Table(
    "real-programs-compared",
    ("program", "machine", "design", "throughput", "writes", "refusal"),
    ("program", "machine"),
)
CRASHED = Table(
    "real-programs-crashed",
    (
        "program", "design", "repair", "crash_points", "recoveries", "outside", "verdict",
        "violation", "refusal",
    ),
    ("program",),
)  # fmt: skip


def trace_of(name: str, *, short: bool = False) -> Path:
    """Returns a recipe's trace, which is made if there is none yet."""
    path = STATES / "captures" / f"{name}{'-short' if short else ''}.gvt"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        most = CRASH_TRANSACTIONS if short else None
        capture_recipe(name, path, transactions_max=most)
    return path


def captured_row(name: str) -> Row:
    """Makes the row of a program's properties."""
    path = trace_of(name)
    report = trace_info(path).header["capture"]["report"]
    found = trace_properties(path)
    of = found["transactions"]
    values = (
        report["transactions"], report["transactions_of_several"],
        report["words_stored_outside"], of["stores"]["mean"], of["stores"]["p99"],
        of["words"]["mean"], of["lines"]["mean"], found["silent_share"], found["clean_share"],
        found["again_share"], found["instructions_per_store"], found["access_share"],
        (found["volatile_loads"] + found["volatile_stores"]) / found["instructions"],
        report["loads"], report["bytes_compared"],
        report["bytes_unexplained"] + report["loads_unexplained"],
    )  # fmt: skip
    return CAPTURED.row(name, *map(_text, values))


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def compared_rows(name: str, display: Display) -> list[Row]:
    """Makes rows of throughput and writes of the media, over those of the baseline."""
    rows: list[Row] = []
    path = str(trace_of(name))
    for machine in MACHINES:
        jobs = matrix(DESIGNS, [path], Machine.find(machine), settings=SETTINGS)
        result = Experiment.prepare(jobs).run(How(observe=display))
        if result.interrupted:
            raise KeyboardInterrupt
        found = {record.design: record for record in result.records}
        failed = {failure.label: failure.message for failure in result.failures}
        base = found.get(BASELINE)
        for design in DESIGNS:
            record = found.get(design)
            ratios = [
                None if record is None or base is None else _ratio(record.number(s), base.number(s))
                for s in ("throughput_tx_per_s", "media_write_requests")
            ]
            cells = ["" if ratio is None else f"{ratio:.3f}" for ratio in ratios]
            why = failed.get(f"{design} on {path}", "")
            rows.append(COMPARED.row(name, machine, design, *cells, why.replace(path, name)))
    return rows


def _ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def crashed_rows(
    name: str, designs: Sequence[str], display: Display, *, repaired: bool
) -> list[Row]:
    """Makes the rows of designs that are crashed, as printed or with their repairs."""
    path = str(trace_of(name, short=True))
    machine = Machine.find("silo")
    shares = Shares(torn=4, in_flight=8, recovery=0, structures=0)
    repairs = {design: REPAIRS[design] if repaired else {} for design in designs}
    jobs = [
        CrashJob(
            Job(design, path, machine, settings=tuple((SETTINGS | repair).items())),
            every=CRASH_EVERY,
            shares=shares,
            lives=0,
        )
        for design, repair in repairs.items()
    ]
    result = CrashCampaign.prepare(jobs).run(How(observe=display))
    whole(result.failures, result.interrupted)
    rows = []
    for report in result.reports:
        repair = ", ".join(f"{key} = {value}" for key, value in repairs[report.design].items())
        violation = report.violations[0].what if report.violations else ""
        row = CRASHED.row(
            name, report.design, repair, report.crash_points, report.recoveries,
            report.words_stored_outside, report.verdict, violation, report.refusal or "",
        )  # fmt: skip
        rows.append(row)
    return rows


def convicted(rows: Sequence[Row]) -> list[str]:
    """Returns the designs that are convicted as printed, and have a repair."""
    of = (row["design"] for row in rows if row["verdict"] == "violated")
    return [design for design in of if design in REPAIRS]


def measure(name: str, _: Given) -> Rows:
    """Captures, compares and crashes a program."""
    with Display("simulations") as display:
        compared = compared_rows(name, display)
        printed = crashed_rows(name, sound_designs(), display, repaired=False)
        again = convicted(printed)
        repaired = crashed_rows(name, again, display, repaired=True) if again else []
    return {
        CAPTURED: [captured_row(name)],
        COMPARED: compared,
        CRASHED: [*printed, *repaired],
    }


def _percent(text: str) -> str:
    return "-" if text in ("", "None") else f"{100 * float(text):.1f}"


def blocks(captured: list[Row], compared: list[Row], crashed: list[Row]) -> list[str]:
    """Makes the part of the page that is not written by hand."""
    out = ["## Properties", ""]
    head = (
        "program", "transactions", "of several words", "words stored outside", "stores each",
        "99 % below",
        "distinct words", "distinct lines", "silent stores (%)", "clean bytes (%)",
        "stored again (%)", "instructions per store", "accesses (%)", "of volatile memory (%)",
    )  # fmt: skip
    out.append(table_of(head, (_captured_cells(row) for row in captured)))
    loads, compared_bytes = (
        exact(sum(int(row[n]) for row in captured)) for n in ("loads_checked", "bytes_compared")
    )
    unexplained = exact(sum(int(row["unexplained"]) for row in captured))
    out += [
        f"Captures are verified: {loads} loads returned the value that the trace has, and "
        f"{compared_bytes} B of files were compared at the end; {unexplained} are unexplained.",
        "",
    ]
    for machine in MACHINES:
        of_machine = [row for row in compared if row["machine"] == machine]
        out += [f"## Throughput on the machine `{machine}`, over that of `{BASELINE}`", ""]
        names = list(dict.fromkeys(row["program"] for row in of_machine))
        cells = {(row["program"], row["design"]): row["throughput"] or "-" for row in of_machine}
        lines = ([name, *(cells[name, design] for design in DESIGNS)] for name in names)
        out.append(table_of(("program", *DESIGNS), lines))
    out += ["## Refused", "", *_refused(compared), "", "## Crashed", ""]
    names = list(dict.fromkeys(row["program"] for row in crashed))
    head = (
        "program", "designs", "crash points", "power failures", "kept", "violated as printed",
        "of these kept with the repair", "refused",
    )  # fmt: skip
    out.append(table_of(head, (_crashed_cells(name, crashed) for name in names)))
    out += [_violated(crashed), *_refused(crashed), ""]
    return ["\n".join(out)]


def _violated(rows: Sequence[Row]) -> str:
    """The table of convictions, and of the same designs with their repairs."""
    repaired = {(row["program"], row["design"]): row for row in rows if row["repair"]}
    lines = []
    for row in rows:
        if row["violation"] and not row["repair"]:
            cells = [row["program"], f"`{row['design']}`", row["violation"], "", ""]
            again = repaired.get((row["program"], row["design"]))
            if again is not None:
                found = again["violation"] or again["refusal"]
                failures = exact(int(again["recoveries"]))
                verdict = f"{again['verdict']}, in {failures} power failures"
                cells[3:] = [f"`{again['repair']}`", f"{verdict}{f': {found}' if found else ''}"]
            lines.append(cells)
    head = ("program", "design", "violation as printed", "repair", "verdict with the repair")
    return table_of(head, lines, texts=len(head)) if lines else ""


VARYING = (
    (re.compile(r"(?:a transaction|transaction \d+) of thread \d+"), "a transaction"),
    (re.compile(r"\bthread \d+ stores to 0x[0-9a-f]+"), "a thread stores"),
    (re.compile(r"\bthe program stores to 0x[0-9a-f]+"), "the program stores"),
)
"""Parts of reasons that differ from program to program, and the words that stand for them."""


def _refused(rows: Sequence[Row]) -> list[str]:
    """Reasons why designs refuse programs: each once, with the designs and their programs."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        why = row["refusal"].removeprefix(f"design {row['design']}: ")
        for pattern, words in VARYING:
            why = pattern.sub(words, why)
        if why:
            programs = reasons.setdefault(why, {}).setdefault(row["design"], [])
            programs += [] if row["program"] in programs else [row["program"]]
    lines = []
    for why, of in reasons.items():
        designs: dict[tuple[str, ...], list[str]] = {}
        for design, programs in of.items():
            designs.setdefault(tuple(programs), []).append(f"`{design}`")
        who = (
            f"{', '.join(names)} {'refuses' if len(names) == 1 else 'refuse'} {', '.join(of)}"
            for of, names in designs.items()
        )
        lines.append(f"- {'; '.join(who)}: {why}")
    return lines


def _captured_cells(row: Row) -> list[str]:
    def number(name: str) -> str:
        return f"{float(row[name]):,.1f}"

    return [
        row["program"], exact(int(row["transactions"])), exact(int(row["several"])),
        exact(int(row["outside"])), number("stores_mean"), exact(int(row["stores_p99"])),
        number("words_mean"), number("lines_mean"),
        *(_percent(row[f"{name}_share"]) for name in ("silent", "clean", "again")),
        number("instructions_per_store"), _percent(row["access_share"]),
        _percent(row["volatile_share"]),
    ]  # fmt: skip


def _crashed_cells(name: str, rows: list[Row]) -> list[str]:
    of_program = [row for row in rows if row["program"] == name]
    of = [row for row in of_program if not row["repair"]]
    points, failures = (
        exact(sum(int(row[n]) for row in of)) for n in ("crash_points", "recoveries")
    )
    kept, violated = (sum(row["verdict"] == v for row in of) for v in ("kept", "violated"))
    repaired = sum(row["verdict"] == "kept" and bool(row["repair"]) for row in of_program)
    refused = sum(bool(row["refusal"]) for row in of)
    return [
        name,
        exact(len(of)),
        points,
        failures,
        *map(exact, (kept, violated, repaired, refused)),
    ]


CAMPAIGN = Campaign(
    lambda _: recipes(),
    measure,
    [CAPTURED, COMPARED, CRASHED],
    ROOT / "docs/results/real-programs.md",
    blocks,
)
