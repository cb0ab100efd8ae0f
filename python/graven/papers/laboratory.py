"""Findings of the crash laboratory in a paper's designs, each crashed at every point of a run.

Beside a design stands its literal reading, if there is one: the design as its text has it, where
that loses data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graven.engine.catalogue import catalogue
from graven.engine.machine import Machine
from graven.laboratory.crashes import CrashJob
from graven.laboratory.reports import CrashReport
from graven.papers.data import Paper
from graven.running.job import Job
from graven.store import Store
from graven.store.keeper import digest

MACHINE, WORKLOAD, TRANSACTIONS = "cramped", "btree", 60
THREADS = 4
"""As in the design contract: with the defaults of every design, its log fits the small machine."""

LITERAL = "-literal"


@dataclass(frozen=True)
class Finding:
    """Result of crashing a design.

    Attributes:
        report: The laboratory's report; `None` if there is none yet.
        design: The design.
        literal: True if it is a literal reading.
    """

    design: str
    literal: bool
    report: CrashReport | None


def crash_jobs(paper: Paper) -> list[CrashJob]:
    """The runs that are crashed, of a paper's designs that guarantee something."""
    names = [name for study in paper.studies.values() for name in study.designs]
    members = [member for name in dict.fromkeys(names) for member in catalogue().members(name)]
    known = {design.name: design for design in catalogue().designs}
    both = [n for name in dict.fromkeys(members) for n in (name, name + LITERAL) if n in known]
    with_guarantee = [name for name in both if known[name].guarantee != "none"]
    return [
        CrashJob(Job(name, WORKLOAD, Machine(MACHINE), THREADS, TRANSACTIONS))
        for name in with_guarantee
    ]


def command(findings: Sequence[Finding]) -> str:
    """The command that does the same."""
    designs = ",".join(item.design for item in findings)
    return (
        f"graven crash --machine {MACHINE} --workload {WORKLOAD} --threads {THREADS} "
        f"--transactions {TRANSACTIONS} --design {designs}"
    )


def findings(paper: Paper, store: Store) -> list[Finding]:
    """Findings in the store, one for each run."""
    found = []
    for job in crash_jobs(paper):
        text = store.get(digest(job))
        report = None if text is None else job.report(text, 0.0)
        found.append(Finding(job.job.design, job.job.design.endswith(LITERAL), report))
    return found
