"""Claims and their counts in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from graven.basics.numbers import ratio
from graven.cli.tables import folded, numbers, plain_table, whole
from graven.cli.terminal import results_console
from graven.papers.counts import CLASSES, COLUMNS, HEADS, by_class, three_counts
from graven.papers.rules import (
    AGREES,
    BY_DEFAULT,
    CONTRADICTED,
    DEPENDS,
    DIRECTION,
    DIRECTION_DEPENDS,
    METHOD_MEANS,
    NOT_INDEPENDENT,
    READING_MEANS,
    VERDICTS,
    legend,
)
from graven.papers.verdicts import Verdict, missing_text

STYLES = {
    **dict.fromkeys(AGREES, "green"),
    **dict.fromkeys((DEPENDS, DIRECTION, DIRECTION_DEPENDS, NOT_INDEPENDENT), "yellow"),
    **dict.fromkeys((BY_DEFAULT, CONTRADICTED), "red"),
}
"""Colours of verdicts; of others, dim."""


def print_claims(title: str, assessed: Sequence[Verdict]) -> None:
    """Every claim of a paper, class by class."""
    console = results_console()
    console.print(Text(title, style="bold"))
    for kind in CLASSES:
        chosen = [verdict for verdict in assessed if verdict.kind == kind]
        if not chosen:
            continue
        console.print(f"{kind}:")
        table = plain_table(
            *folded("claim", "where", "paper", "ours, by default"),
            *folded("paper's method", "over all readings", "verdict", "why"),
        )
        for verdict in chosen:
            table.add_row(*_row(verdict))
        console.print(table)
    print_legend(assessed)


def print_beside(assessed: Sequence[Verdict]) -> None:
    """Claims about a figure: the paper's number beside ours, and why one is not met."""
    console = results_console()
    table = plain_table(*folded("claim", "it says", "paper", "ours", "verdict"))
    for verdict in assessed:
        table.add_row(
            Text(verdict.claim.id),
            Text(verdict.claim.says),
            Text(verdict.paper),
            Text(verdict.ours or missing_text(verdict.default.missing)),
            Text(verdict.text, style=STYLES.get(verdict.verdict, "dim")),
        )
    console.print(table)
    for verdict in assessed:
        if verdict.note and verdict.ours:
            console.print(Text(f"{verdict.claim.id}: {verdict.note}"), soft_wrap=True)
    print_legend(assessed)


def print_legend(assessed: Sequence[Verdict], *, about: Iterable[str] = ()) -> None:
    """Explains the words of a table: its verdicts, what they are made of, and others."""
    words = {item.verdict for item in assessed} | set(about)
    words |= {found.verdict for item in assessed for found in item.outcomes.values()}
    lines = legend(words)
    if any(item.readings for item in assessed):
        lines += [READING_MEANS, METHOD_MEANS]
    for line in lines:
        results_console().print(Text(line, style="dim"))


def _row(verdict: Verdict) -> list[Text]:
    ours = verdict.ours
    if verdict.ratio is not None:
        ours += f", {ratio(verdict.ratio)} of the paper's"
    if verdict.mark:
        ours += f"\n* {verdict.mark}"
    decision = Text(verdict.text, style=STYLES.get(verdict.verdict, "dim"))
    if verdict.tried_text:
        decision.append(f"\n{verdict.tried_text}", style="dim")
    return [
        Text(verdict.claim.id),
        Text(verdict.claim.where),
        Text(verdict.paper),
        Text(ours),
        Text(verdict.authors_text),
        Text(verdict.interval),
        decision,
        Text(verdict.note or verdict.how),
    ]


def print_counts(assessed: Mapping[str, Sequence[Verdict]]) -> None:
    """Claims by paper and class, and the three counts of what was measured."""
    papers = dict(assessed)
    if len(papers) > 1:
        papers["all"] = [verdict for of_paper in assessed.values() for verdict in of_paper]
    _print_classes(papers)
    _print_three(papers)


def _print_classes(papers: Mapping[str, Sequence[Verdict]]) -> None:
    counted = {name: by_class(of_paper) for name, of_paper in papers.items()}
    there = [
        verdict
        for verdict in VERDICTS
        if any(verdict in counts for classes in counted.values() for counts in classes.values())
    ]
    table = plain_table("paper", whole("class"), *numbers(*there, "claims"))
    for name, classes in counted.items():
        for kind, counts in classes.items():
            cells = [str(counts[verdict]) if verdict in counts else "" for verdict in there]
            table.add_row(name, kind, *cells, str(sum(counts.values())))
            name = ""
    results_console().print(table)


def _print_three(papers: Mapping[str, Sequence[Verdict]]) -> None:
    every = {name: three_counts(of_paper) for name, of_paper in papers.items()}
    console = results_console()
    for kind, heads in HEADS.items():
        counted = {
            name: counts[kind]
            for name, counts in every.items()
            if any(count.judged or count.untried for count in counts[kind])
        }
        if not counted:
            continue
        table = plain_table(whole(kind), whole("under"), *numbers(*heads))
        for name, counts in counted.items():
            for count in counts:
                table.add_row(name, count.name, *(str(cell or "") for cell in count.cells))
                name = ""
        console.print(table)
    for line in COLUMNS:
        console.print(Text(line, style="dim"))
