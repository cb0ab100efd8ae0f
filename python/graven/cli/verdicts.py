"""Findings of the crash laboratory, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column
from rich.text import Text

from graven.basics.numbers import counted, exact
from graven.cli.tables import folded, marked, numbers, plain_table, whole
from graven.engine.catalogue import Named, catalogue
from graven.laboratory.checker import Kept, of_threads
from graven.laboratory.reports import (
    FAILURE_MODES,
    AdversaryReport,
    Campaign,
    CrashReport,
    LitmusReport,
    ModelAnswer,
    Report,
    Violation,
)

_WHO_STYLES = {
    "caches": "blue",
    "PM": "cyan",
    "design": "magenta",
    "power": "bold yellow",
    "saved": "yellow",
    "recovery": "yellow",
    "verdict": "bold red",
}
"""Colours of a timeline; threads are green."""

_STATE, _COUNT = 24, 12
"""Columns of the terminal that the name of a state and a design's counts take."""


def print_campaigns(
    console: Console,
    reports: Sequence[Campaign],
    replays: Mapping[int, Path],
    kept: Mapping[int, Kept],
) -> None:
    """Verdicts, the timeline of each violation, and what was covered.

    `replays` are the files that programs were written to, `kept` what there is of violations that
    checkers have found, by the number of the report.
    """
    if not reports:
        return
    _print_verdicts(console, reports)
    for number, report in enumerate(reports):
        for nth, violation in enumerate(report.violations):
            title = f"{_called(report)} {_where(report)} violates its guarantee"
            print_violation(console, title, violation)
            if (text := _minimised(violation)) is not None:
                console.print(text)
            if nth == 0 and number in replays:
                # Not wrapped: it is to be copied.
                console.print(f"Replay: graven litmus {replays[number]}\n", soft_wrap=True)
            if nth == 0 and number in kept:
                of = kept[number]
                text = f"Recovered files: {of.folder}\nReplay: sh {of.script}\n  {of.command}\n"
                if of.threads > 1:
                    words = of_threads(of.threads)
                    text += f"{words[0].upper()}{words[1:]}.\n"
                console.print(Text(text), soft_wrap=True)
    _print_covered(console, reports)


def _print_verdicts(console: Console, reports: Sequence[Campaign]) -> None:
    unsafe = catalogue().unsafe_designs()
    schedules = any(isinstance(report, AdversaryReport) for report in reports)
    table = plain_table(
        whole("design"),
        *(numbers("schedules") if schedules else ["workload"]),
        *numbers("crash points", *(mode.replace("_", "-") for mode in FAILURE_MODES)),
        whole("verdict"),
    )
    for report in reports:
        second = report.workload
        if isinstance(report, AdversaryReport):
            second = exact(report.schedules)
        counts = (report.crash_points, *(report.failure_modes[mode] for mode in FAILURE_MODES))
        table.add_row(
            marked(_called(report), {_called(report)} if report.design in unsafe else set()),
            second,
            *(exact(count) for count in counts),
            _verdict(report),
        )
    console.print(table)
    console.print(
        "Power failures checked, by failure mode: plain, with a torn write, with writes on their "
        "way, in recovery; and walks of structures. Runs begin with empty caches and logs."
    )
    for drawn in dict.fromkeys(_drawn(r) for r in reports if isinstance(r, AdversaryReport)):
        console.print(f"Drawn: {drawn}.")
    sampled = {report.every for report in reports if isinstance(report, CrashReport)} - {1}
    for every in sampled:
        console.print(f"Sampled: of {every} crash points, power failed at one.", style="bold")
    for report in reports:
        if isinstance(report, CrashReport) and report.words_stored_outside:
            words = exact(report.words_stored_outside)
            console.print(
                f"{_called(report)} {_where(report)}: {words} words were stored to outside "
                "transactions, where any value stored since the last promise will do."
            )
    for report in reports:
        if report.refused:
            of = (
                f"{report.refused} of {report.schedules} schedules"
                if isinstance(report, AdversaryReport)
                else "the run"
            )
            why = f"{_called(report)} {_where(report)} refused {of}: {report.refusal}"
            console.print(Text(why))
    console.print()


def _drawn(report: AdversaryReport) -> str:
    bounds = (f"{exact(report.draws[b.name])} {b.summary}" for b in catalogue().draws)
    return "up to " + ", ".join(bounds)


def _called(report: Campaign) -> str:
    return report.called if report.mutant is None else f"{report.called} with {report.mutant}"


def _where(report: Campaign) -> str:
    if isinstance(report, AdversaryReport):
        return "under the adversary"
    return f"on {report.workload}"


def _verdict(report: Campaign) -> Text:
    if report.verdict == "refused":
        return Text("refused", style="yellow")
    if report.verdict == "violated":
        return Text("VIOLATED", style="bold red" if report.claims_safety else "bold")
    if report.mutant is not None:
        return Text("SURVIVED", style="bold red")
    if not report.sound:
        return Text("survived", style="yellow")
    return Text("kept", style="green")


def _minimised(violation: Violation) -> str | None:
    """What is to be said of how small the program of a violation is."""
    found = violation.minimised
    if violation.replay is None:
        return None
    if found is None:
        return "The program is as it was found: it is not minimised."
    if found["ended"] == "least":
        return None
    if found["ended"] == "interrupted":
        return "Minimising was interrupted: the program is the smallest until then."
    return (
        f"Minimising has reached its limit after {counted(found['runs'], 'run')} and "
        f"{counted(found['failures'], 'power failure')}: the program is the smallest until then "
        "(--minimise)."
    )


def print_violation(console: Console, title: str, violation: Violation) -> None:
    """Prints the guarantee that was broken, and the timeline that led to it."""
    console.print(Text(title, style="bold"))
    console.print(Text(violation.line))
    cycle_column = Column("cycle", justify="right", no_wrap=True)
    table = plain_table(cycle_column, whole("who"), "what")
    for event in violation.timeline:
        style = _WHO_STYLES.get(event.who, "green" if event.who.startswith("thread") else "")
        cycle = "" if event.cycle is None else exact(event.cycle)
        table.add_row(cycle, Text(event.who, style=style), Text(event.what, style=style))
    console.print(table)
    if violation.left_out:
        console.print(
            f"{violation.left_out} events are left out, as earlier or unrelated.", style="dim"
        )


def _print_covered(console: Console, reports: Sequence[Campaign]) -> None:
    """States down, designs across, and what nothing can be said about."""
    counts = _covered(reports)
    designs = list(counts)
    room = max(1, (console.width - _STATE) // _COUNT)
    for start in range(0, len(designs), room):
        chunk = designs[start : start + room]
        table = plain_table(whole("covered"))
        for design in chunk:
            table.add_column(design, justify="right", min_width=_COUNT - 2)
        table.add_column("what it is")
        states: dict[Named, None] = {}
        for design in chunk:
            states |= dict.fromkeys(catalogue().states_of(design))
        general = len(catalogue().states)
        for number, state in enumerate(states):
            cells = [counts[design].get(state.name) for design in chunk]
            known = [state in catalogue().states_of(design) for design in chunk]
            table.add_row(
                state.name,
                *(_count(cell if has else None) for cell, has in zip(cells, known, strict=True)),
                Text(state.summary),
                end_section=number == general - 1,
            )
        console.print(table)
    for design in designs:
        missing = [name for name, count in counts[design].items() if count == 0]
        if missing:
            text = f"{design}: this campaign says nothing about: {', '.join(missing)}."
            console.print(Text(text, style="yellow"))
    if not any(0 in of.values() for of in counts.values()):
        console.print("Every state was covered.")


def _covered(reports: Sequence[Campaign]) -> dict[str, dict[str, int]]:
    """Counts by design and state, in the order of the catalogue, over all workloads."""
    counts: dict[str, dict[str, int]] = {}
    for report in reports:
        names = [state.name for state in catalogue().states_of(report.design)]
        of = counts.setdefault(report.called, dict.fromkeys(names, 0))
        for name, count in report.covered.items():
            of[name] = of.get(name, 0) + count
    return counts


def _count(count: int | None) -> Text:
    if count is None:
        return Text("")
    return Text(exact(count), style="yellow" if count == 0 else "")


def print_litmus(
    console: Console, reports: Sequence[LitmusReport], *, timelines: bool | None
) -> None:
    """A row for each program and design, then timelines: all, none, or of what was not expected.

    Programs for persistency models follow, with a row for each image.
    """
    of_designs = [report for report in reports if not report.answers]
    if of_designs or not reports:
        _print_results(console, of_designs, timelines=timelines)
    if of_models := [report for report in reports if report.answers]:
        _print_answers(console, of_models, orders=timelines)


def _print_answers(
    console: Console, reports: Sequence[LitmusReport], *, orders: bool | None
) -> None:
    """A row for each image of a program and each model, then executions that leave images."""
    table = plain_table(
        *folded("program"), "image", whole("model"), whole("answer"), whole("as expected")
    )
    for report in reports:
        last = None
        for number, answer in enumerate(report.answers):
            table.add_row(
                Text(report.file if number == 0 else ""),
                Text(answer.image if answer.image != last else ""),
                answer.model,
                Text(answer.answer, style="green" if answer.answer == "forbidden" else "yellow"),
                _as_expected(answer),
                end_section=number == len(report.answers) - 1,
            )
            last = answer.image
    console.print(table)
    for report in reports:
        for answer in report.answers:
            if answer.order and (not answer.as_expected if orders is None else orders):
                console.print(Text(f"{answer.image} in {report.file} under {answer.model}", "bold"))
                console.print(Text("\n".join(f"  {step}" for step in answer.order) + "\n"))
    answers = [answer for report in reports for answer in report.answers]
    wrong = sum(not answer.as_expected for answer in answers)
    said = f"{counted(len(answers), 'answer')} of {counted(len(reports), 'program')}"
    console.print(f"{said}, all as expected." if not wrong else f"{said}, {wrong} not as expected.")


def _as_expected(answer: ModelAnswer) -> Text:
    if answer.expected is None:
        return Text("not said", style="dim")
    if answer.as_expected:
        return Text("yes", style="green")
    return Text(f"NO: must be {answer.expected}", style="bold red")


def _print_results(
    console: Console, reports: Sequence[LitmusReport], *, timelines: bool | None
) -> None:
    table = plain_table(
        *(*folded("program"), whole("design")),
        *numbers("crash points", "power failures"),
        *(whole("verdict"), whole("as expected")),
    )
    for report in reports:
        for number, result in enumerate(report.results):
            table.add_row(
                Text(report.file if number == 0 else ""),
                result.design,
                exact(result.crash_points),
                exact(result.recoveries),
                _result(result),
                Text("yes", style="green")
                if result.as_expected
                else Text(f"NO: must be {result.expected}", style="bold red"),
                end_section=number == len(report.results) - 1,
            )
    console.print(table)
    for report in reports:
        for result in report.results:
            where = f"{result.design} in {report.file} ({report.title})"
            if result.verdict == "refused":
                console.print(Text(f"{where}: refused: {result.refusal}\n"))
            shown = not result.as_expected if timelines is None else timelines
            for violation in result.violations if shown else ():
                print_violation(console, f"{where} violates its guarantee", violation)
    results = [result for report in reports for result in report.results]
    wrong = sum(not result.as_expected for result in results)
    what = f"{counted(len(results), 'result')} of {counted(len(reports), 'program')}"
    console.print(f"{what}, all as expected." if not wrong else f"{what}, {wrong} not as expected.")


def _result(result: Report) -> Text:
    styles = {"kept": "green", "violated": "bold", "refused": "yellow"}
    text = "VIOLATED" if result.verdict == "violated" else result.verdict
    return Text(text, style=styles[result.verdict])
