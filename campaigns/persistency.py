"""Persistency models: their litmus programs, and their agreement with the enumerator.

Programs of up to three steps in each thread are compared one by one. Those of four steps are
compared in two ways: shares that their numbers draw, one by one, so that `--shares` continues
where the last run ended; and all of them in parts, by families that share their beginnings and
without those for which others stand.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from graven.basics.numbers import exact
from graven.engine.catalogue import catalogue
from graven.laboratory.programs import Program, program_files, run_programs
from graven.laboratory.reports import LitmusReport
from graven.running.requests import campaign, run_asked
from graven.running.work import How, Local

from .runner import Campaign, Failed, Given, Rows, keep, whole
from .tables import ROOT, Row, Table, table_of, wrapped

LIBRARY = ROOT / "litmus/persistency"
"""Folder of the litmus programs."""

LITMUS = "litmus"
"""Name of the task that runs them."""

MODELS = [model.name for model in catalogue().models]

STEPS_ALL = (2, 3)
"""Steps of each thread; all programs with as many are compared."""

STEPS_MOST = 4
"""Steps of each thread; shares of the programs with as many are compared one by one."""

ALL = "all"
"""Beginning of the shares that together are all programs of four steps."""

ALL_PARTS = 30
"""Their number for each model."""

SHARE = 100_000
"""Programs of a share."""

PARTS = 40
"""Parts of a task that run by themselves."""

ANSWERS = Table(
    "persistency", ("program", "image", *MODELS, "source", "status", "note"), ("program",)
)

AGREEMENT = Table(
    "agreement",
    ("steps", "model", "share", "programs", "compared", "of", "difference"),
    ("steps", "model", "share"),
)


def options(parser: argparse.ArgumentParser) -> None:
    """Adds the option of this campaign."""
    parser.add_argument(
        "--shares", type=int, default=1, metavar="N", help="shares of programs of four steps"
    )


def names(given: Given) -> Iterable[str]:
    """Names the tasks."""
    yield LITMUS
    for steps, model in product(STEPS_ALL, MODELS):
        yield f"{steps}/{model}"
    for share, model in product(range(given.shares), MODELS):
        yield f"{STEPS_MOST}/{model}/{share}"
    for model, part in product(MODELS, range(ALL_PARTS)):
        yield f"{STEPS_MOST}/{model}/{ALL}/{part}"


def measure(name: str, given: Given) -> Rows:
    """Runs the litmus programs, or compares programs."""
    if name == LITMUS:
        return {ANSWERS: answers(given)}
    steps, model, *share = name.split("/")
    found = compare(model, int(steps), parts(model, int(steps), share), given)
    different = [part["difference"] for part in found if part["difference"] is not None]
    row = AGREEMENT.row(
        steps,
        model,
        "/".join(share),
        sum(part["programs"] for part in found),
        sum(part["compared"] for part in found),
        found[0]["of"],
        "".join(different[:1]),
    )
    return {AGREEMENT: [row]}


def parts(model: str, steps: int, share: Sequence[str]) -> list[dict[str, object]]:
    """Cuts a task into parts: one of all programs, or of a share of them."""
    match share:
        case [_, part]:
            # The first families are the largest: each part has some of them.
            apart = ALL_PARTS * PARTS
            count = -(-size(model, steps, "families") // apart)
            firsts = range(int(part), apart, ALL_PARTS)
            return [{"families": {"first": f, "apart": apart}, "count": count} for f in firsts]
        case [number]:
            count = SHARE // PARTS
            firsts = range(int(number) * SHARE, (int(number) + 1) * SHARE, count)
            return [{"seed": first, "count": count} for first in firsts]
        case _:
            all_sequences = size(model, steps, "sequences")
            firsts = range(0, all_sequences, -(-all_sequences // PARTS))
            return [{"first": first, "count": firsts.step} for first in firsts]


def size(model: str, steps: int, what: str) -> int:
    """Returns the number of step sequences of a thread, or of families of programs."""
    spec: dict[str, object] = {"first": 0, "count": 0}
    return int(compare(model, steps, [spec], argparse.Namespace(jobs=1))[0][what])


def compare(
    model: str, steps: int, specs: Sequence[dict[str, object]], given: Given
) -> list[dict[str, Any]]:
    """Compares model and enumerator on some parts of the programs."""
    asked = [
        campaign("agreement", model, {"model": model, "steps": steps, **spec}) for spec in specs
    ]
    ran = run_asked(asked, How(keep(), Local(given.jobs)))
    whole(ran.failures, ran.interrupted)
    return [json.loads(ran.texts[at]) for at in range(len(asked))]


def answers(given: Given) -> list[Row]:
    """Runs the litmus programs."""
    programs = [Program.read(path) for path in program_files([LIBRARY])]
    result = run_programs([p.asked() for p in programs], How(keep(), Local(given.jobs)))
    whole(result.failures, result.interrupted)
    rows = []
    for program, report in zip(programs, result.reports, strict=True):
        rows += rows_of(program, report)
    return rows


def rows_of(program: Program, report: LitmusReport) -> list[Row]:
    """Makes a row for each image of a program."""
    if wrong := [answer for answer in report.answers if not answer.as_expected]:
        raise Failed(f"{program.name}: {wrong[0]}")
    images: dict[str, dict[str, str]] = {}
    for answer in report.answers:
        images.setdefault(answer.image, {})[answer.model] = answer.answer
    said = [program.said(word) for word in ("source", "status", "note")]
    return [
        ANSWERS.row(program.name.rpartition("/")[2], image, *(of.get(m, "") for m in MODELS), *said)
        for image, of in images.items()
    ]


def steps_of(name: str) -> str:
    """Returns the threads of a program in one line."""
    lines = [line.strip() for line in (LIBRARY / f"{name}.litmus").read_text().splitlines()]
    threads: list[list[str]] = []
    for line in lines:
        if line == "thread":
            threads.append([])
        elif threads and line and not line.startswith(("allows", "forbids")):
            threads[-1].append(line)
    return " ‖ ".join("; ".join(steps) for steps in threads)


def blocks(rows: Sequence[Row], compared: Sequence[Row]) -> list[str]:
    """Makes the table of litmus programs, their notes, and the table of comparisons."""
    cells, notes, last = [], [], ""
    for row in rows:
        number, _, name = row["program"].partition("-")
        is_new = row["program"] != last
        last = row["program"]
        threads = f"`{steps_of(row['program'])}`" if is_new else ""
        sources = [row["source"], row["status"]] if is_new else ["", ""]
        said = [row[model] for model in MODELS]
        cells.append([number if is_new else "", threads, f"`{row['image']}`", *said, *sources])
        if is_new and row["note"]:
            notes.append(wrapped(f"- {number} ({name}): {row['note']}", indent="  "))
    head = ("", "program", "image", *MODELS, "source", "status")
    table = table_of(head, cells, texts=len(head))
    count = len({row["program"] for row in rows})
    said_all = f"{exact(count)} programs, {exact(len(rows))} images.\n\n{table}\nNotes:\n\n"
    return [said_all + "\n".join(notes) + "\n", agreement_table(compared)]


def agreement_table(rows: Sequence[Row]) -> str:
    """Makes the table of comparisons, with the shares and the parts of a model as one."""
    sums: dict[tuple[str, str, bool], list[Row]] = {}
    for row in rows:
        is_drawn = row["share"].isdecimal()
        sums.setdefault((row["steps"], row["model"], is_drawn), []).append(row)
    order = {model: at for at, model in enumerate(MODELS)}
    ordered = sorted(sums, key=lambda key: (key[0], key[2], order[key[1]]))
    cells = []
    for steps, model, is_drawn in ordered:
        of = sums[steps, model, is_drawn]
        programs = sum(int(row["programs"]) for row in of)
        compared = sum(int(row["compared"]) for row in of)
        different = sum(bool(row["difference"]) for row in of)
        total = int(of[0]["of"])
        is_whole = programs == total
        kind = "drawn" if is_drawn else "all" if is_whole else f"{len(of)} of {ALL_PARTS} parts"
        cells.append(
            [steps, model, kind, *map(exact, (total, programs, compared)), exact(different)]
        )
    head = ("steps of each thread", "model", "programs", "of", "covered", "compared", "differences")
    return table_of(head, cells, texts=3)


def wrong(rows: Sequence[Row], compared: Sequence[Row]) -> list[str]:
    """Names programs on which model and enumerator differ."""
    del rows
    return [f"{row['model']}: {row['difference']}" for row in compared if row["difference"]]


CAMPAIGN = Campaign(
    names,
    measure,
    [ANSWERS, AGREEMENT],
    ROOT / "docs/results/persistency.md",
    blocks,
    wrong,
    options=options,
)
