"""Reports: what the crash laboratory returns.

A report says what was checked and what was covered, and has the timeline of each violation. It is
the same on every computer, save for the host's time in `seconds`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeAlias

from graven._engine import __version__
from graven.basics.numbers import counted
from graven.results.views import Picture, backend

FAILURE_MODES = ("plain", "torn", "in_flight", "recovery", "structures", "lives")
"""Checks at crash points; `structures` are walks of the workload's structures, `lives` uses of the
machine after a recovery."""

Verdict: TypeAlias = Literal["kept", "violated", "refused"]
"""`refused`: the design ended the run as configured, so that nothing is known of it."""


@dataclass(frozen=True)
class Event:
    """One row of a timeline; rows without a cycle belong to the one above.

    Examples:
        >>> report = graven.crash("fwb-literal", "queue", machine="cramped", transactions=100)
        >>> for event in report.violations[0].timeline[-4:]:
        ...     print(event.cycle, event.who, event.what)
        155 design enters the buffer: commit of transaction 0 of thread 0
        155 thread 0 receives the acknowledgement of transaction 0
        155 power fails (crash point 0)
        None verdict word w85040 holds 0x0, committed is 0xa5100, and no open transaction wrote it
    """

    cycle: int | None
    who: str
    what: str


@dataclass(frozen=True)
class Violation:
    """A guarantee that was broken, and the power failure that shows it.

    Attributes:
        what: Which guarantee, and a word that shows it.
        point: Number of the crash point in the program of `replay`, else in the run.
        failure_mode: `plain`, `torn 0x…`, `in-flight …` or `recovery …`.
        cycle: When.
        seed: The adversary's seed, if it was one of its schedules.
        timeline: What led to it, what recovery did, and the verdict.
        left_out: Events that the timeline leaves out, as earlier or unrelated.
        replay: A litmus program that replays it, if it could be made.
        minimised: Of that program: `runs` and judged `failures` that minimising has taken, and how
            it `ended`: `least` (nothing that is tried makes the program smaller), `limit` or
            `interrupted` (the program is the smallest until then). `None` if it is as it was found.

    Examples:
        >>> report = graven.crash("fwb-literal", "queue", machine="cramped", transactions=100)
        >>> violation = report.violations[0]
        >>> violation.what
        'word 0x1000 holds 0x0, committed is 0xa5100, and no open transaction wrote it'
        >>> violation.cycle, violation.failure_mode, len(violation.timeline)
        (155, 'plain', 8)

        The program that replays it, on its design and on one that keeps what it guarantees:

        >>> replayed = graven.litmus(violation.replay, "fwb-literal,fwb")
        >>> [(result.design, result.verdict) for result in replayed.results]
        [('fwb-literal', 'violated'), ('fwb', 'kept')]

        The program is the smallest that minimising has found:

        >>> violation.minimised["ended"]
        'least'
        >>> violation.line.endswith("(crash point 0, plain, cycle 155)")
        True
    """

    what: str
    point: int
    failure_mode: str
    cycle: int
    seed: int | None
    timeline: tuple[Event, ...] = field(repr=False)
    left_out: int
    replay: str | None = field(repr=False)
    minimised: Mapping[str, Any] | None = None

    @property
    def line(self) -> str:
        """The broken guarantee and the place, in a line."""
        seed = "" if self.seed is None else f"seed {self.seed}, "
        where = f"{seed}crash point {self.point}, {self.failure_mode}, cycle {self.cycle}"
        return f"{self.what} ({where})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """Base of all reports.

    Attributes:
        design: The design.
        guarantee: What it guarantees: `none`, `prefix` or `durable`.
        safe: True if it guarantees anything.
        sound: True if it does, and is not known to break it.
        crash_points: Changes of the durable state.
        recoveries: Power failures that were checked.
        failure_modes: The same by failure mode, and how often structures were walked.
        violations: Guarantees that were broken.
        covered: How often each state worth reaching was covered, by name.
        runs: Programs that were run.
        refused: Those that the design refused, as configured.
        refusal: Its reason, the first time.

    Examples:
        >>> report = graven.crash("fwb-literal", "queue", machine="cramped", transactions=100)
        >>> isinstance(report, graven.Report)
        True
        >>> report.verdict, report.is_refused
        ('violated', False)

        How often each failure mode was checked, and states that were not reached:

        >>> report.failure_modes["plain"], report.failure_modes["torn"]
        (1, 1)
        >>> report.not_covered[:3]
        ('back-to-back', 'bit-came-along', 'buffer-full')

        What led to the violation, as a picture and its data, and everything as a document:

        >>> [path.name for path in report.plot().save("counterexample.svg")]
        ['counterexample.svg', 'counterexample.csv']
        >>> report.to_dict()["violations"][0]["cycle"]
        155
    """

    design: str
    guarantee: str
    safe: bool
    sound: bool
    crash_points: int
    recoveries: int
    failure_modes: Mapping[str, int]
    violations: tuple[Violation, ...]
    covered: Mapping[str, int]
    runs: int
    refused: int
    refusal: str | None

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {self._what()}: {self.verdict}, "
            f"{counted(self.recoveries, 'power failure')}>"
        )

    def _what(self) -> str:
        """What was tried, as `repr` says it."""
        return self.design

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        if self.violations:
            return "violated"
        return "refused" if self.is_refused else "kept"

    @property
    def is_refused(self) -> bool:
        """True if nothing is known, since the design refused."""
        return self.refused > 0

    @property
    def not_covered(self) -> tuple[str, ...]:
        """States of which this report says nothing."""
        return tuple(name for name, count in self.covered.items() if count == 0)

    def plot(
        self,
        violation: int = 0,
        *,
        width: str | float = "column",
        theme: str = "light",
        style: object = None,
    ) -> Picture:
        """A picture of what led to a violation: who did what, and when.

        Args:
            violation: Which of the violations.
            width: `column` (3.3 in), `text` (7 in), or inches.
            theme: `light` or `dark`.
            style: A style of matplotlib that applies on top: a file, a name, or settings.

        Raises:
            ConfigError: there is no such violation, or an argument is not allowed.
        """
        return backend().picture(self, width, theme, style, violation=violation)

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        document = asdict(self)
        document["not_covered"] = list(self.not_covered)
        return document


@dataclass(frozen=True, kw_only=True, repr=False)
class Campaign(Report):
    """Report of `crash` or `adversary`.

    Attributes:
        workload: The workload; `adversary` if programs were drawn.
        machine: The machine; the adversary draws from it.
        mutant: The mutant that was in force, if any.
        variant: The name of the variant that the design was with these settings, if it has one.
        settings: Configuration that was set, by `SECTION.KEY`.
        version: Graven's.
        seconds: Host time that it took, over all host threads.
    """

    workload: str
    machine: str
    mutant: str | None
    settings: Mapping[str, str]
    version: str = __version__
    seconds: float
    variant: str | None = None

    def _what(self) -> str:
        return f"{self._tried} on {self.workload}, machine {self.machine}"

    @property
    def _tried(self) -> str:
        return self.called if self.mutant is None else f"{self.called} with mutant {self.mutant}"

    @property
    def called(self) -> str:
        """The design's name, or that of the variant."""
        return self.variant or self.design

    @property
    def claims_safety(self) -> bool:
        """True if a violation is news: the design is sound, and nothing was mutated."""
        return self.sound and self.mutant is None

    @property
    def name(self) -> str:
        """Name in messages and files."""
        mutant = "" if self.mutant is None else f"-{self.mutant}"
        return f"{self.called}{mutant}-{self.workload}"

    def to_dict(self) -> dict[str, Any]:
        """As a document; `seconds`, the only part that differs from run to run, comes last."""
        document = super().to_dict()
        if self.variant is None:
            del document["variant"]
        first = {"design": self.design, "workload": self.workload}
        return (
            first
            | {k: v for k, v in document.items() if k != "seconds"}
            | {"seconds": self.seconds}
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class CrashReport(Campaign):
    """A run that was crashed at its crash points.

    Attributes:
        threads: Program threads.
        transactions: Transactions over all threads.
        seed: Seed of the workload, and of what is torn and what lands.
        every: Power failed at every n-th crash point.
        shares: How often the more expensive failure modes were checked.
        lives: Most lives in a row that could follow a recovery.
        garbage: True if the log region held noise at first.
        words_stored_outside: Words that the program stored to outside transactions: until a
            transaction stored to one, it was only held to what had been stored to it.

    Examples:
        >>> report = graven.crash("silo", "queue", machine="cramped", transactions=50, seed=3)
        >>> report
        <CrashReport: silo on queue, machine cramped: kept, 2,108 power failures>
        >>> report.crash_points, report.threads, report.every
        (1252, 8, 1)
        >>> report.name, report.called, report.claims_safety
        ('silo-queue', 'silo', True)
        >>> report.to_dict()["shares"]
        {'torn': 1, 'in_flight': 4, 'recovery': 256, 'recovery_depth': 2, 'structures': 65536}
    """

    threads: int
    transactions: int
    seed: int
    every: int
    shares: Mapping[str, int]
    lives: int
    garbage: bool
    words_stored_outside: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class AdversaryReport(Campaign):
    """Schedules of the adversary, from `first_seed` up to before `next_seed`.

    Attributes:
        first_seed: The first one.
        seeds: Number of schedules that were asked for.
        next_seed: First seed of the schedules that follow.
        draws: Bounds of what was drawn, by name.

    Examples:
        >>> report = graven.adversary("silo", schedules=5)
        >>> report
        <AdversaryReport: silo, 5 schedules: kept, 55,981 power failures>
        >>> report.schedules, report.next_seed, report.is_refused
        (5, 6, False)
        >>> report.name, report.called, report.claims_safety
        ('silo-adversary', 'silo', True)

        A mutant, which is a design with one rule broken, is found out by the first schedules:

        >>> report = graven.adversary("silo", schedules=5, mutant="undo-oldest-first")
        >>> report.verdict, report.violations[0].seed
        ('violated', 2)
    """

    first_seed: int
    seeds: int
    next_seed: int
    draws: Mapping[str, int]

    def _what(self) -> str:
        return f"{self._tried}, {counted(self.schedules, 'schedule')}"

    @property
    def is_refused(self) -> bool:
        """True if all were; that some do not fit is in the nature of what is drawn."""
        return self.refused > 0 and self.recoveries == 0

    @property
    def schedules(self) -> int:
        """Schedules that were tried."""
        return self.next_seed - self.first_seed


@dataclass(frozen=True, kw_only=True, repr=False)
class LitmusResult(Report):
    """A litmus program on one design.

    Attributes:
        expected: `kept` or `violated`, as the program says.
        as_expected: True if it came out so.

    Examples:
        >>> kept, lost = graven.litmus("any/atomic", "silo,ideal").results
        >>> lost
        <LitmusResult: ideal: violated, 1 power failure>
        >>> lost.verdict, lost.expected, lost.as_expected
        ('violated', 'violated', True)
        >>> kept.recoveries, kept.is_refused
        (20, False)
    """

    expected: str
    as_expected: bool


@dataclass(frozen=True)
class ModelAnswer:
    """The answer of a persistency model to one image of a litmus program.

    Attributes:
        model: Name of the model.
        image: The image, as the program has it.
        answer: `allowed` if some execution leaves the image, else `forbidden`.
        order: Steps of a shortest execution that leaves the image, in the order in which they act;
            steps that are missing have not acted when power fails.
        expected: The answer that the program says, if it says one for this model.
        as_expected: True if the answer is that, or the program says none.

    Examples:
        >>> report = graven.litmus("persistency/04-clflush-before-store")
        >>> for answer in report.answers:
        ...     print(answer.model, answer.image, answer.answer, sep=": ")
        x86-adr: y = 1, x = 0: forbidden
        x86-adr-amd: y = 1, x = 0: allowed
        x86-eadr: y = 1, x = 0: forbidden
        >>> report.answers[0].expected, report.answers[0].as_expected
        ('forbidden', True)
        >>> report.answers[1].order
        ('thread 0: x = 1', 'thread 0: y = 1', 'power fails, and leaves x = 0, y = 1')
    """

    model: str
    image: str
    answer: Literal["allowed", "forbidden"]
    order: tuple[str, ...]
    expected: Literal["allowed", "forbidden"] | None
    as_expected: bool


@dataclass(frozen=True)
class LitmusReport:
    """A litmus program on its designs, or under its persistency models.

    Attributes:
        file: Name of the program.
        title: The subject.
        results: Results on designs.
        answers: Answers of persistency models.
        left_out: Designs that a program for all designs does not fit, with the reason of each.

    Examples:
        >>> report = graven.litmus("any/atomic", "silo,fwb,ideal")
        >>> report.title
        'all of a transaction or nothing, wherever power fails'
        >>> [(result.design, result.verdict) for result in report.results]
        [('silo', 'kept'), ('fwb', 'kept'), ('ideal', 'violated')]

        Of the design without any logging, the program says that it loses data:

        >>> report.as_expected
        True
        >>> report.to_dict()["results"][2]["expected"]
        'violated'

        A program that names no design runs on those that it fits:

        >>> program = '''graven litmus 1
        ... title "a small log region"
        ... set pm.log_region_bytes = 64 KB
        ... A = 1
        ... thread
        ...   begin
        ...   A = 2
        ...   commit
        ... '''
        >>> list(graven.litmus(program).left_out)
        ['lsm', 'opt-undo', 'osp', 'silo']
    """

    file: str
    title: str
    results: tuple[LitmusResult, ...] = field(repr=False)
    answers: tuple[ModelAnswer, ...] = field(repr=False, default=())
    left_out: Mapping[str, str] = field(repr=False, default_factory=dict)

    @property
    def as_expected(self) -> bool:
        """True if all designs did, and all models answered, what the program says."""
        designs = all(result.as_expected for result in self.results)
        return designs and all(answer.as_expected for answer in self.answers)

    def to_dict(self) -> dict[str, Any]:
        """As a document; of a program for persistency models it has `answers`, not `results`."""
        document: dict[str, Any] = {"file": self.file, "title": self.title}
        if self.answers:
            return document | {"answers": [asdict(answer) for answer in self.answers]}
        document["results"] = [result.to_dict() for result in self.results]
        return document | {"left_out": dict(self.left_out)}


def _violation(raw: Mapping[str, Any]) -> Violation:
    timeline = tuple(Event(row["cycle"], row["who"], row["what"]) for row in raw["timeline"])
    return Violation(**{**raw, "timeline": timeline})


def parse_violations(text: str) -> tuple[Violation, ...]:
    """The violations in the engine's JSON of a run."""
    return tuple(_violation(item) for item in json.loads(text)["violations"])


def _known(kind: type[Report], raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a kind of report, of what the engine gives or `to_dict` gave."""
    names = {item.name for item in fields(kind)}
    values = {name: value for name, value in raw.items() if name in names}
    return values | {"violations": tuple(_violation(item) for item in raw["violations"])}


def parse_crash_report(text: str, **known: Any) -> CrashReport:  # noqa: ANN401 - fields
    """Reads the engine's JSON of a run; `known` are the fields that the engine does not give."""
    return CrashReport(**_known(CrashReport, json.loads(text)) | known)


def parse_adversary_report(raw: Mapping[str, Any]) -> AdversaryReport:
    """Reads the engine's object of some schedules."""
    return AdversaryReport(**_known(AdversaryReport, raw))


def parse_litmus_report(text: str, file: str) -> LitmusReport:
    """Reads the engine's JSON of a litmus program."""
    raw = json.loads(text)
    if raw["results"] and "model" in raw["results"][0]:
        answers = tuple(
            ModelAnswer(**item | {"order": tuple(item["order"])}) for item in raw["results"]
        )
        return LitmusReport(file, raw["title"], (), answers)
    results = (LitmusResult(**_known(LitmusResult, item)) for item in raw["results"])
    return LitmusReport(file, raw["title"], tuple(results), left_out=raw.get("left_out", {}))
