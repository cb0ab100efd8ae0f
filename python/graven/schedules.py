"""The adversary's schedules: in chunks on several threads, with sums that one can go on from.

Chunks always begin at the same seeds, and are added up in their order, so that the result is the
same whatever the number of threads and however often a campaign was interrupted. A design's
campaign ends with the chunk in which it has been violated often enough; the violations that are
kept are those of the lowest seeds.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from graven import _engine
from graven._engine import Cancelled, ConfigError
from graven.campaign import CampaignResult
from graven.experiment import Observer, Pool, Snapshot, Task, host_cores
from graven.reports import AdversaryReport, parse_adversary_report

CHUNK = 250
"""Schedules of one task."""

STATE_FORMAT = 1
"""Version of the state's layout."""


@dataclass(frozen=True)
class AdversaryRequest:
    """What is asked of the adversary.

    Attributes:
        designs: Designs, each with all schedules.
        seeds: Schedules for each.
        first_seed: Seed of the first.
        mutant: A mutant of the designs that is put in force.
        settings: Configuration on top of what is drawn, by `SECTION.KEY`.
        violations: A design's campaign ends after so many.
    """

    designs: tuple[str, ...]
    seeds: int
    first_seed: int = 1
    mutant: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    violations: int = 1

    @property
    def chunks(self) -> int:
        """Chunks of each design."""
        return -(-self.seeds // CHUNK)

    def chunk(self, design: str, index: int) -> _engine.Campaign:
        """Hands a chunk to the engine, which checks it.

        Raises:
            ConfigError: the engine refuses it.
        """
        spec = {
            "design": design,
            "set": [list(setting) for setting in self.settings],
            "mutant": self.mutant,
            "first_seed": self.first_seed + index * CHUNK,
            "seeds": min(CHUNK, self.seeds - index * CHUNK),
            "violations": self.violations,
        }
        return _engine.Campaign("adversary", json.dumps(spec))

    def arguments(self) -> dict[str, Any]:
        """What must be the same for a campaign to go on, by the option that gives it."""
        return {
            "--design": list(self.designs),
            "--seeds": self.seeds,
            "--first-seed": self.first_seed,
            "--mutant": self.mutant,
            "--set": dict(self.settings),
            "--violations": self.violations,
        }


class ChunkAccumulator:
    """What is known of one design: the sum of its first chunks, and later ones that wait."""

    def __init__(self, plan: AdversaryRequest, before: AdversaryReport | None) -> None:
        self.plan = plan
        self.report = before
        self.next_chunk = 0
        if before is not None:
            self.next_chunk = -(-(before.next_seed - plan.first_seed) // CHUNK)
        self.waiting: dict[int, AdversaryReport] = {}
        self.limit = plan.chunks
        self._bound()

    @property
    def is_done(self) -> bool:
        """Whether no chunk is needed any more."""
        return self.next_chunk >= self.limit

    @property
    def schedules(self) -> int:
        """Schedules that need no more work."""
        if self.is_done:
            return self.plan.seeds
        tried = 0 if self.report is None else self.report.schedules
        return tried + sum(report.schedules for report in self.waiting.values())

    def add(self, index: int, report: AdversaryReport) -> None:
        """Takes in a chunk."""
        if index >= self.limit:
            return
        self.waiting[index] = report
        self._bound()
        while self.next_chunk < self.limit and self.next_chunk in self.waiting:
            chunk = self.waiting.pop(self.next_chunk)
            whole = replace(chunk, seeds=self.plan.seeds)
            self.report = whole if self.report is None else _sum(self.report, whole)
            self.next_chunk += 1
        if self.report is not None:
            kept = self.report.violations[: self.plan.violations]
            self.report = replace(self.report, violations=kept)

    def _bound(self) -> None:
        """Finds the chunk with which there are violations enough; none after it is needed."""
        found = 0 if self.report is None else len(self.report.violations)
        if found >= self.plan.violations:
            self.limit = self.next_chunk
        for index in sorted(self.waiting):
            found += len(self.waiting[index].violations)
            if found >= self.plan.violations:
                self.limit = min(self.limit, index + 1)
        for index in [index for index in self.waiting if index >= self.limit]:
            del self.waiting[index]


def _sum(one: AdversaryReport, other: AdversaryReport) -> AdversaryReport:
    return replace(
        one,
        crash_points=one.crash_points + other.crash_points,
        recoveries=one.recoveries + other.recoveries,
        failure_modes={
            form: count + other.failure_modes[form] for form, count in one.failure_modes.items()
        },
        violations=one.violations + other.violations,
        covered={name: count + other.covered[name] for name, count in one.covered.items()},
        runs=one.runs + other.runs,
        refused=one.refused + other.refused,
        refusal=one.refusal if one.refusal is not None else other.refusal,
        next_seed=other.next_seed,
        seconds=round(one.seconds + other.seconds, 3),
    )


@dataclass
class _Chunk:
    """A task: one chunk of one design, unless it turns out not to be needed."""

    campaign: AdversaryCampaign
    design: str
    index: int
    engine: _engine.Campaign | None = None
    cancelled: bool = False

    def run(self) -> str:
        """Runs it, and adds it up; the result is not in the text."""
        started = time.monotonic()
        engine = self.campaign.begin(self)
        try:
            raw = json.loads(engine.run())
        except BaseException as error:
            self.campaign.drop(self, failed=not isinstance(error, Cancelled))
            raise
        self.campaign.end(self, raw, time.monotonic() - started)
        return ""

    def cancel(self) -> None:
        """Makes `run`, now or later, raise `Cancelled`."""
        self.cancelled = True
        if self.engine is not None:
            self.engine.cancel()

    def progress(self) -> tuple[int, int]:
        """Schedules so far, and in all."""
        return (0, CHUNK) if self.engine is None else self.engine.progress()


@dataclass(frozen=True)
class _Chunks(Sequence[tuple[str, Task]]):
    """Chunks by design and number; their tasks are made when they are taken."""

    campaign: AdversaryCampaign
    places: Sequence[tuple[str, int]]

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, at: int) -> tuple[str, Task]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[str, Task]]: ...
    def __getitem__(self, at: int | slice) -> tuple[str, Task] | Sequence[tuple[str, Task]]:
        if isinstance(at, slice):
            return _Chunks(self.campaign, self.places[at])
        design, index = self.places[at]
        return design, _Chunk(self.campaign, design, index)


@dataclass
class AdversaryCampaign:
    """Schedules of the adversary on some designs; the engine has checked what is asked for."""

    plan: AdversaryRequest
    _sums: dict[str, ChunkAccumulator] = field(default_factory=dict)
    _running: dict[tuple[str, int], _Chunk] = field(default_factory=dict)
    _judged: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def prepare(
        plan: AdversaryRequest, state: Mapping[str, Any] | None = None
    ) -> AdversaryCampaign:
        """Has the engine check what is asked for; nothing runs.

        Args:
            plan: What is asked for.
            state: What `state` gave, to go on from there.

        Raises:
            ConfigError: the engine refuses something, or the state is of another campaign.
        """
        for design in plan.designs:
            plan.chunk(design, 0)
        before = {} if state is None else _reports(state, plan)
        campaign = AdversaryCampaign(plan)
        campaign._sums = {
            design: ChunkAccumulator(plan, before.get(design)) for design in plan.designs
        }
        return campaign

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as a document."""
        reports = {report.design: report.to_dict() for report in self.reports}
        return {
            "format": STATE_FORMAT,
            "version": _engine.__version__,
            "arguments": self.plan.arguments(),
            "reports": reports,
        }

    @property
    def reports(self) -> tuple[AdversaryReport, ...]:
        """What is known so far, by design; of one that has just begun, nothing."""
        with self._lock:
            return tuple(sums.report for sums in self._sums.values() if sums.report is not None)

    @property
    def schedules(self) -> int:
        """Schedules that need no more work, over all designs."""
        with self._lock:
            return sum(sums.schedules for sums in self._sums.values())

    @property
    def total(self) -> int:
        """Schedules in all, over all designs."""
        return self.plan.seeds * len(self.plan.designs)

    def run(
        self, *, workers: int | None = None, observe: Observer | None = None
    ) -> CampaignResult[AdversaryReport]:
        """Runs what is left; never raises for what failed or was interrupted."""
        # Each design's first before any's second, so that all get on.
        places = [
            (design, index)
            for index in range(self.plan.chunks)
            for design, sums in self._sums.items()
            if sums.next_chunk <= index < sums.limit
        ]
        before = self.schedules / self.total
        watch: Observer | None = None
        if observe is not None:
            watch = lambda snapshot: observe(self._snapshot(snapshot, before))  # noqa: E731
        outcome = Pool(_Chunks(self, places), workers or host_cores()).run(watch)
        return CampaignResult(self.reports, outcome.failures, outcome.interrupted)

    def begin(self, chunk: _Chunk) -> _engine.Campaign:
        """Makes a chunk's task, or raises `Cancelled` if it is not needed."""
        engine = self.plan.chunk(chunk.design, chunk.index)
        with self._lock:
            if chunk.cancelled or chunk.index >= self._sums[chunk.design].limit:
                raise Cancelled("not needed")
            chunk.engine = engine
            self._running[chunk.design, chunk.index] = chunk
        return engine

    def drop(self, chunk: _Chunk, *, failed: bool) -> None:
        """Forgets a chunk that did not end; after one that failed, none is needed."""
        with self._lock:
            self._running.pop((chunk.design, chunk.index), None)
            if failed:
                sums = self._sums[chunk.design]
                sums.limit = min(sums.limit, chunk.index)

    def end(self, chunk: _Chunk, raw: Mapping[str, Any], seconds: float) -> None:
        """Adds a chunk up; what is not needed any more is cancelled."""
        report = parse_adversary_report(
            raw,
            settings=dict(self.plan.settings),
            seconds=round(seconds, 3),
        )
        with self._lock:
            self._running.pop((chunk.design, chunk.index), None)
            self._judged += report.recoveries
            sums = self._sums[chunk.design]
            sums.add(chunk.index, report)
            surplus = [
                other
                for (design, index), other in self._running.items()
                if design == chunk.design and index >= sums.limit
            ]
        for other in surplus:
            other.cancel()

    def _snapshot(self, snapshot: Snapshot, before: float) -> Snapshot:
        """In schedules instead of chunks."""
        done = self.schedules
        with self._lock:
            engines = [chunk.engine for chunk in self._running.values() if chunk.engine is not None]
            judged = self._judged
        partial = sum(engine.progress()[0] for engine in engines)
        return replace(
            snapshot,
            done=done,
            total=self.total,
            fraction=min(1.0, (done + partial) / self.total),
            running=tuple(dict.fromkeys(snapshot.running)),
            fraction_before=before,
            judged=judged + sum(engine.judged() for engine in engines),
            minimising=sum(engine.minimising() for engine in engines),
        )


def _reports(state: Mapping[str, Any], plan: AdversaryRequest) -> dict[str, AdversaryReport]:
    """What a state holds.

    Raises:
        ConfigError: it is of another campaign; the message says what differs.
    """
    try:
        if state["format"] != STATE_FORMAT:
            raise ConfigError(
                f"it has format {state['format']}, this is Graven {_engine.__version__} "
                f"with format {STATE_FORMAT}"
            )
        if state["version"] != _engine.__version__:
            raise ConfigError(
                f"it is of Graven {state['version']}, this is {_engine.__version__}; "
                "results of different versions are not added up"
            )
        begun, now = state["arguments"], plan.arguments()
        differ = [key for key in now if begun[key] != now[key]]
        if differ:
            texts = [f"{key} was {_shown(begun[key])}, is {_shown(now[key])}" for key in differ]
            raise ConfigError(f"it is of another campaign: {'; '.join(texts)}")
        return {design: parse_adversary_report(raw) for design, raw in state["reports"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"it is not the state of a campaign ({error!r})") from None


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        value = [f"{key}={text}" for key, text in value.items()]
    if isinstance(value, list):
        value = ",".join(str(item) for item in value)
    return "not given" if value in (None, "") else str(value)
