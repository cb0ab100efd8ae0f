"""Completion of names in a shell: those of the catalogue and of the papers.

Each function is what click asks: `shell_complete` of an option or an argument. Lists that are
separated by commas are completed at their last name; settings up to their `=`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from graven.engine.catalogue import catalogue

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

Named = Iterable[tuple[str, str]]
"""Names, and what they mean in a few words."""


def _one(named: Callable[[], Named]) -> Complete:
    """A name; or a file, if there is no such name."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        found = [(name, text) for name, text in named() if name.startswith(begun)]
        if not found:
            return [CompletionItem(begun, type="file")]
        return [CompletionItem(name, help=text) for name, text in found]

    return complete


def _several(named: Callable[[], Named]) -> Complete:
    """Names that are separated by commas."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        before, comma, last = begun.rpartition(",")
        given = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{name}", help=text)
            for name, text in named()
            if name.startswith(last) and name not in given
        ]

    return complete


def _designs() -> Named:
    known = catalogue()
    yield from ((design.name, design.summary) for design in known.designs)
    yield from ((alias.name, alias.summary) for alias in known.aliases)


def _designs_or_all() -> Named:
    yield "all", "every design"
    yield from _designs()


def _workloads() -> Named:
    yield from ((workload.name, workload.summary) for workload in catalogue().workloads)


def _workloads_or_groups() -> Named:
    for group, members in catalogue().workload_groups().items():
        yield group, ", ".join(members)
    yield from _workloads()


def _machines() -> Named:
    yield from ((machine.name, machine.title) for machine in catalogue().machines)


def _keys() -> Named:
    for parameter in catalogue().parameters.values():
        yield f"{parameter.key}=", f"{parameter.doc} [{parameter.default}]"


def _papers() -> Named:
    from graven.papers.files import papers

    yield "all", "every paper"
    yield from ((name, paper.title) for name, paper in papers().items())


def _claims() -> Named:
    from graven.papers.files import papers

    for paper in papers().values():
        yield from ((claim.id, claim.says) for claim in paper.claims)


def _litmus() -> Named:
    from graven.laboratory.programs import own_programs

    yield "all", "every program that comes with Graven"
    yield from ((program.name, program.title) for program in own_programs())


def _models() -> Named:
    yield from ((model.name, model.summary) for model in catalogue().models)


def _statistics() -> Named:
    yield from ((item.name, item.description) for item in catalogue().stats)


def figure(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """A figure or table of the paper that was named before."""
    from graven.papers.files import papers

    named = papers().get(str(context.params.get("paper_name")))
    figures = {} if named is None else named.figures
    return [
        CompletionItem(name, help=item.title)
        for name, item in figures.items()
        if name.startswith(begun)
    ]


design = _one(_designs)
designs = _several(_designs_or_all)
workload = _one(_workloads)
workloads = _several(_workloads_or_groups)
machine = _one(_machines)
key = _one(_keys)
paper = _one(_papers)
claim = _one(_claims)
litmus = _one(_litmus)
models = _several(_models)
statistics = _several(_statistics)
