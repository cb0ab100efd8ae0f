"""All small programs: executed, crashed in every way and judged, with a state to continue from.

The engine executes programs by their numbers; here they are dealt to host cores in parts. What each
part came to is kept in the store as it comes, or in a file that is replaced as a whole, so that an
interrupted check continues where it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any

from graven import _engine
from graven.laboratory.crashes import Told
from graven.laboratory.fitting import Fitting
from graven.laboratory.state_file import StateFile
from graven.running.pool import Failure, Snapshot, host_cores
from graven.running.requests import Asked, campaign, run_asked
from graven.running.work import HERE, How, Local

PROGRAMS_OF_PART = 16
"""Programs that are executed together."""

PARTS_OF_WORKER = 4
"""Parts of each host core after which the state is written."""

BATCH_ELSEWHERE = 1024
"""Parts that are given to other hosts together."""

FORMAT = 2
"""Format of the state."""


@dataclass(frozen=True)
class LifeBound:
    """Bound of the programs of the second life.

    Attributes:
        transactions: Of all threads together, each with one at most; 0: no second life.
        stores: Of each.
    """

    transactions: int = 1
    stores: int = 1


@dataclass(frozen=True)
class Bound:
    """Bound of programs, and of the departures of their runs from the usual one.

    Attributes:
        threads: Each has a transaction at least.
        transactions: Of all threads together.
        stores: Of each transaction.
        words: Of each line.
        hand_overs: True if words may be stored to by several threads, under a lock.
        departures: Evictions, late writes, threads that wait, other orders in memory, of a run.
        life: The second life.
    """

    threads: int = 2
    transactions: int = 3
    stores: int = 2
    words: tuple[int, ...] = (2, 2)
    hand_overs: bool = True
    departures: int = 2
    life: LifeBound = LifeBound()

    def __str__(self) -> str:
        """As a sentence has it."""
        lines = " and ".join(str(count) for count in self.words)
        shared = "" if self.hand_overs else ", none of them shared"
        second = "no second life"
        if self.life.transactions:
            second = (
                f"second lives of up to {self.life.transactions} transactions "
                f"of up to {self.life.stores} stores"
            )
        return (
            f"up to {self.transactions} transactions of up to {self.stores} stores on up to "
            f"{self.threads} threads, to lines of {lines} words{shared}; up to {self.departures} "
            f"departures from the usual run; {second}"
        )


@dataclass(frozen=True)
class Violation:
    """A guarantee that was broken.

    Attributes:
        what: Which.
        program: A litmus program that shows it.
        timeline: What led to it.
    """

    what: str
    program: str | None
    timeline: str


@dataclass(frozen=True)
class Checked:
    """Result of executing and judging programs on a design.

    Attributes:
        design: Which.
        programs: Programs within the bound.
        programs_done: Those that were executed.
        schedules: Runs of them.
        choices_max: Choices of the longest usual run.
        failures: Power failures judged, those included that found what an earlier one had found.
        equal: Those that did.
        torn: Of the failures, those with a torn write.
        landed: With writes that were under way.
        recovery: In recovery.
        lives: Second lives.
        crowded: Crash points with more writes under way than sets are made of.
        refused: Runs that the design refuses, and programs.
        refusal: Why the first was.
        violation: The first in the order of programs.
        full_size: True if the design had its default parameters; false if those that it declares
            for small programs, but for what the user set.
        settings: Those parameters, and the user's.
        covered: How often the design was in each state worth reaching.
    """

    design: str
    programs: int
    programs_done: int = 0
    schedules: int = 0
    choices_max: int = 0
    failures: int = 0
    equal: int = 0
    torn: int = 0
    landed: int = 0
    recovery: int = 0
    lives: int = 0
    crowded: int = 0
    refused: int = 0
    refusal: str | None = None
    violation: Violation | None = None
    full_size: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    covered: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """True if all programs were executed."""
        return self.programs_done == self.programs

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return asdict(self)


_SUMS = (
    "schedules", "failures", "equal", "torn", "landed", "recovery", "lives", "crowded", "refused",
)  # fmt: skip


@dataclass
class Check:
    """Designs, a bound, and what is done of it.

    Attributes:
        mutant: Of the designs, that is enabled.
        settings: The user's, on top of the machine `miniature` and of each design's for small
            programs.
        full_size: True if designs have their default parameters instead of those.
        in_force: All settings of each design.
        parts: What each part came to, by design and number of its first program.
        found: How many parts had a result before.
        left_out: A line for each design that the settings do not fit and that is left out.
    """

    designs: tuple[str, ...]
    bound: Bound
    mutant: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    full_size: bool = False
    in_force: dict[str, dict[str, str]] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)
    parts: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    found: int = 0
    left_out: tuple[str, ...] = ()
    _told: set[str] = field(default_factory=set)

    @staticmethod
    def prepare(
        designs: Sequence[str],
        bound: Bound,
        *,
        mutant: str | None = None,
        settings: Mapping[str, str] | None = None,
        full_size: bool = False,
        state: str | None = None,
        leave_out: bool = False,
    ) -> Check:
        """Has the engine check everything; nothing runs.

        Args:
            designs: Their names.
            bound: How large programs may be.
            mutant: Of the designs, that is enabled.
            settings: On top of the machine `miniature` and of what designs declare for small
                programs.
            full_size: Leaves out what designs declare: structures have their default sizes.
            state: A state that `state` gave, to continue from there.
            leave_out: True to leave out designs that the settings do not fit, if they fit any.

        Raises:
            ConfigError: the engine refuses something, or the state is of another check.
        """
        check = Check((), bound, mutant, dict(settings or {}), full_size)

        def prepared(design: str) -> tuple[str, dict[str, Any]]:
            task = _engine.Campaign("programs", json.dumps(check._spec(design, 0, 0)))
            return design, json.loads(task.run())

        asked = [(design, design) for design in designs]
        fitting = Fitting.of(asked, prepared, leave_out=leave_out)
        check.left_out = fitting.left_out
        for design, found in fitting.taken:
            check.programs[design] = found["programs"]
            check.in_force[design] = dict(found["settings"])
            check.parts[design] = {}
        check.designs = tuple(check.programs)
        if state is not None:
            check.go_on(state)
        return check

    def _request(self) -> dict[str, Any]:
        bound = {**asdict(self.bound), "words": list(self.bound.words)}
        settings = [list(pair) for pair in self.settings.items()]
        return {
            "bound": bound,
            "mutant": self.mutant,
            "set": settings,
            "full_size": self.full_size,
        }

    def _spec(self, design: str, first: int, count: int) -> dict[str, Any]:
        return {"design": design, **self._request(), "first": first, "count": count}

    def go_on(self, text: str) -> None:
        """Takes over what `state` gave.

        Raises:
            ConfigError: it is none, or of another check.
        """
        state = json.loads(text)
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise _engine.ConfigError(f"the state is of another format than {FORMAT}")
        if state.get("version") != _engine.__version__:
            raise _engine.ConfigError(
                f"the state is of version {state.get('version')} of graven, "
                f"this is {_engine.__version__}"
            )
        if state.get("request") != self._request():
            raise _engine.ConfigError(
                "the state is of a check with another bound, mutant or settings"
            )
        designs = state.get("designs")
        if not isinstance(designs, dict):
            raise _engine.ConfigError("the state has no `designs`")
        for design, parts in designs.items():
            # Of other designs, too: they are kept.
            self.parts[design] = _parts_of(design, parts)

    def state(self) -> str:
        """Results so far, as a document to continue from."""
        document = {
            "format": FORMAT,
            "version": _engine.__version__,
            "request": self._request(),
            "designs": {
                design: {str(first): part for first, part in sorted(parts.items())}
                for design, parts in self.parts.items()
            },
        }
        return json.dumps(document, indent=1) + "\n"

    def whole(self, design: str, label: str) -> Asked:
        """All programs on one of the designs, up to the first violation, as one."""
        return self._part(design, 0, self.programs[design], label)

    def _part(self, design: str, first: int, count: int, label: str) -> Asked:
        return campaign("check", label, self._spec(design, first, count))

    @property
    def part_count(self) -> int:
        """Parts of all designs."""
        return sum(-(-self.programs[design] // PROGRAMS_OF_PART) for design in self.designs)

    def _left(self) -> Iterator[tuple[str, int, int]]:
        for design in self.designs:
            done = self.parts[design]
            if any(part["violation"] for part in done.values()):
                continue
            for first in range(0, self.programs[design], PROGRAMS_OF_PART):
                if first not in done:
                    yield design, first, min(PROGRAMS_OF_PART, self.programs[design] - first)

    def run(
        self, how: How = HERE, save: Callable[[str], None] | None = None
    ) -> tuple[tuple[Failure, ...], bool]:
        """Runs what is left; a design with a violation is left alone then.

        Returns:
            What failed in the engine, and whether it was interrupted.
        """
        count = BATCH_ELSEWHERE
        if isinstance(how.executor, Local):
            count = PARTS_OF_WORKER * (how.executor.workers or host_cores())
        total = self.part_count
        failures: list[Failure] = []
        while not failures and (left := list(self._left())):
            batch = left[:count]
            asked = [
                self._part(design, first, number, label=design) for design, first, number in batch
            ]
            with Told(how, partial(self._violation, batch), here=True) as told:
                of_all = _of_all(told.how, total - len(left), total)
                outcome = run_asked(asked, of_all, told.came)
            self.found += outcome.found
            for index, text in outcome.texts.items():
                design, first, _ = batch[index]
                self.parts[design][first] = json.loads(text)
            if save is not None:
                save(self.state())
            failures.extend(outcome.failures)
            if outcome.interrupted:
                return tuple(failures), True
        return tuple(failures), False

    def _violation(self, batch: Sequence[tuple[str, int, int]], at: int, text: str) -> str | None:
        """The violation of a part, in a line, if it is the first that its design shows."""
        design, violation = batch[at][0], json.loads(text)["violation"]
        if violation is None or design in self._told:
            return None
        self._told.add(design)
        mutant = "" if self.mutant is None else f" with {self.mutant}"
        return f"{design}{mutant} violates its guarantee: {violation['what']}"

    @property
    def results(self) -> tuple[Checked, ...]:
        """Result of each design, up to its first violation."""
        return tuple(self._result(design) for design in self.designs)

    def _result(self, design: str) -> Checked:
        sums: dict[str, int] = dict.fromkeys(_SUMS, 0)
        done, choices, refusal, violation = 0, 0, None, None
        covered: Counter[str] = Counter()
        for _, part in sorted(self.parts[design].items()):
            for name in _SUMS:
                sums[name] += part[name]
            covered.update(part["covered"])
            done += part["programs"]
            choices = max(choices, part["choices_max"])
            refusal = refusal or part["refusal"]
            if part["violation"] is not None:
                violation = Violation(**part["violation"])
                break
        return Checked(
            design,
            self.programs[design],
            done,
            choices_max=choices,
            refusal=refusal,
            violation=violation,
            full_size=self.full_size,
            settings=self.in_force[design],
            covered=dict(covered),
            **sums,
        )


def _of_all(how: How, done: int, total: int) -> How:
    """Lets the observer of a batch learn how far all is."""
    observe = how.observe
    if observe is None:
        return how

    def told(snapshot: Snapshot) -> None:
        fraction = (done + snapshot.fraction * snapshot.total) / total
        whole = replace(snapshot, done=done + snapshot.done, total=total, fraction=fraction)
        observe(replace(whole, fraction_before=done / total))

    return replace(how, observe=told)


def _parts_of(design: str, parts: object) -> dict[int, dict[str, Any]]:
    """The parts of a design in a state, by the number of their first program.

    Raises:
        ConfigError: one is none.
    """
    if not isinstance(parts, dict):
        raise _engine.ConfigError(f"the state is damaged: `{design}` has no parts")
    for first, part in parts.items():
        if not (first.isascii() and first.isdecimal() and len(first) < 20 and _is_part(part)):
            raise _engine.ConfigError(
                f"the state is damaged: part `{first}` of `{design}` is not what a part is"
            )
    return {int(first): part for first, part in parts.items()}


def _is_part(part: object) -> bool:
    if not isinstance(part, dict) or not {"refusal", "violation"} <= part.keys():
        return False
    covered = part.get("covered")
    if not isinstance(covered, dict):
        return False
    names = ("programs", "choices_max", *_SUMS)
    numbers = (*(part.get(name) for name in names), *covered.values())
    violation = part.get("violation")
    return (
        all(type(number) is int and number >= 0 for number in numbers)
        and isinstance(part.get("refusal"), str | None)
        and (violation is None or _is_violation(violation))
    )


def _is_violation(violation: object) -> bool:
    names = {item.name for item in fields(Violation)}
    return (
        isinstance(violation, dict)
        and violation.keys() == names
        and isinstance(violation["program"], str | None)
        and all(isinstance(violation[name], str) for name in names - {"program"})
    )


def go_on_from(check: Check, file: StateFile) -> None:
    """Takes over the state in a file, if there is one.

    Raises:
        ConfigError: it cannot be gone on from; the message names the file.
        OutputError: it cannot be read.
    """
    text = file.read()
    if text is None:
        return
    try:
        check.go_on(text)
    except _engine.ConfigError as error:
        raise file.refused(error) from None
