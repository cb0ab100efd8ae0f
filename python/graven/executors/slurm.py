"""Jobs of Slurm: `--on slurm`.

Job arrays, whose elements run a chunk of simulations each, one after the other: so many that an
element takes minutes and not seconds, the longest first. All goes by way of the store, which has to
be on a file system that the nodes share: an element keeps each result there as it comes, and this
process looks for results there and nowhere else.

Slurm's own numbers are not relied on: after a crash of its controller it has forgotten jobs that it
had accepted, and gives their numbers again. Each array has a name that no other has. What is in
the queue under that name is running or waiting; what is not, and has left simulations without a
result, is gone, and these are submitted again, each by itself. An array that another process had
submitted for the same simulations, and that is still in the queue, is waited for.

Slurm's own variables name partition, account, time limit and so on: `SBATCH_PARTITION`,
`SBATCH_ACCOUNT`, `SBATCH_TIMELIMIT`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graven._engine import ConfigError
from graven.basics import output
from graven.executors import estimates, units
from graven.executors.dispatch import STRAGGLER_FACTOR, TRIES
from graven.executors.units import Shared, Unit
from graven.running.pool import Failure, Snapshot
from graven.running.work import Ended, Todo
from graven.store import Store
from graven.store.keeper import Keeper

JOBS = "jobs"
"""The folder of a store that has what was submitted, a folder for each array."""

PREFIX = "graven-"
"""Beginning of the names of arrays."""

CHUNK_SECONDS = 300.0
"""Expected time of an element of an array, if there is enough to do."""

CHUNKS_LEAST = 64
"""Least number of chunks, even if each is shorter then: nodes have something to do."""

CHUNK_SECONDS_LEAST = 10.0
"""Least expected time of an element: Slurm and Python take a second to start one."""

ELEMENTS_MOST = 2_000
"""Elements of arrays that are in the queue at a time."""

OVERHEAD_BYTES = 256 << 20
"""Memory of an element besides what the simulation needs."""

LOOK_SECONDS = 2.0
"""Time between two looks at the queue and the store."""

GONE_LOOKS = 3
"""Looks in a row that do not find an element in the queue until it counts as gone."""

SILENT_SECONDS = 900.0
"""Time without an answer of Slurm after which it is given up."""

BEGIN_SECONDS = 900.0
"""Time in which Slurm takes a simulation and forgets it before it begins, until it is given up."""

AGAIN_SECONDS_MOST = 60.0
"""Longest wait before what Slurm has forgotten is submitted again; each is twice the last."""

STRAGGLER_SECONDS = 600.0
"""An element that has run for less is no straggler."""

COMMAND_SECONDS = 60.0
"""Longest time that a command of Slurm takes."""


HELD = "HELD"
"""The state of an element that Slurm holds back after it could not launch it."""

HELD_REASONS = ("launch failed requeued held", "job requeued in held state")
"""Slurm's words for that; an element that a person holds is left to that person."""

ORDINARY_REASONS = ("None", "Priority", "Resources", "BeginTime", "Cleaning", "")
"""Why elements wait when all is well: others are first, or nodes are busy."""


@dataclass(frozen=True)
class Element:
    """An element in the queue.

    Attributes:
        state: As Slurm names it, or `HELD`.
        reason: Why it waits, in Slurm's words.
    """

    state: str
    reason: str = ""


class NoAnswer(Exception):
    """Slurm does not answer, or refuses; the message is its own."""


def _command(*words: str) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{words[0]} has not answered for {COMMAND_SECONDS:.0f} s") from None
    except OSError as error:
        raise NoAnswer(f"{words[0]}: {error.strerror or error}") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NoAnswer(said[-1])
    return done.stdout


@dataclass
class Chunk:
    """An element of an array: simulations that it runs one after the other.

    Attributes:
        array: The name of the array.
        element: Its number there.
        digests: What its results are found by.
        cost: How long it is expected to take, in seconds.
        missed: How many looks in a row have not found it in the queue.
        running_since: When it was first seen running.
        again: Whether what is left of it was submitted once more, since it takes too long.
    """

    array: str
    element: int
    digests: list[str]
    cost: float
    missed: int = 0
    running_since: float | None = None
    again: bool = False


@dataclass
class Losses:
    """Counts of how often a simulation has left the queue without a result.

    Attributes:
        begun: Its element had begun: the simulation may be what ends it.
        forgotten: Its element had not; a controller that was killed forgets what it took, and a
            node that is just back refuses it.
        since: When it was forgotten first.
    """

    begun: int = 0
    forgotten: int = 0
    since: float = 0.0


@dataclass(frozen=True)
class Slurm:
    """The Slurm whose commands are in the path.

    Attributes:
        look_seconds: Time between two looks at the queue and the store.
        chunk_seconds: Most expected time of an element of an array, unless it is of one simulation.
    """

    look_seconds: float = LOOK_SECONDS
    chunk_seconds: float = CHUNK_SECONDS

    def run(self, todo: Todo) -> Ended:
        """Does what is left of some work.

        Raises:
            ConfigError: there is no Slurm, no store that nodes could see, or a job that cannot be
                sent.
        """
        for name in ("sbatch", "squeue", "scancel"):
            if shutil.which(name) is None:
                raise ConfigError(
                    f"--on slurm: there is no `{name}` here; Slurm's commands are needed "
                    "(Debian: slurm-client)"
                )
        keep = todo.keep
        if not isinstance(keep, Keeper):
            raise ConfigError("--on slurm: results come by way of the store; not with --no-store")
        if keep.fresh:
            raise ConfigError(
                "--on slurm: not with --fresh: a result is there when it is in the store; give "
                "another --store"
            )
        waiting: dict[str, list[int]] = {}
        for at in todo.left:
            waiting.setdefault(Unit.of(todo.work[at]).request.digest, []).append(at)
        return _Run(self, keep.store, todo, waiting).all()


@dataclass
class _Run:
    """One list of jobs.

    Attributes:
        waiting: Positions of jobs that have no result yet, by digest.
    """

    slurm: Slurm
    store: Store
    todo: Todo
    waiting: dict[str, list[int]]
    _chunks: list[Chunk] = field(default_factory=list)
    _queued: list[list[str]] = field(default_factory=list)
    _later: list[tuple[float, str]] = field(default_factory=list)
    _arrays: set[str] = field(default_factory=set)
    _lost: dict[str, Losses] = field(default_factory=dict)
    _failures: list[Failure] = field(default_factory=list)
    _why: str = ""
    _obstacle: str = ""
    _row: int = 0
    _seconds: float = 0.0
    _cost_done: float = 0.0

    def all(self) -> Ended:
        self.store.ensure()
        self._folder = (self.store.folder / JOBS).absolute()
        self._total = len(self.waiting)
        self._costs = {
            digest: estimates.seconds(self.todo.work[places[0]].job)
            for digest, places in self.waiting.items()
        }
        self._cost = sum(self._costs.values())
        self._started = self._answered = time.monotonic()
        self._array_size = _array_size()
        self._adopt()
        taken = {digest for chunk in self._chunks for digest in chunk.digests}
        self._queued = self._chunked(digest for digest in self.waiting if digest not in taken)
        try:
            while self.waiting:
                self._submit()
                time.sleep(self.slurm.look_seconds)
                self._look()
                self._tell()
                if time.monotonic() - self._answered > SILENT_SECONDS:
                    self._failures.append(self._silent())
                    break
        except KeyboardInterrupt:
            self._cancel()
            return Ended(tuple(self._failures), interrupted=True)
        self._cancel()
        self._clean()
        return Ended(tuple(self._failures))

    def _silent(self) -> Failure:
        why = f"Slurm has not answered for {SILENT_SECONDS / 60:.0f} min ({self._why});"
        return units.gone("Slurm", why, len(self.waiting))

    # ---- chunks -----------------------------------------------------------------------------

    def _chunked(self, digests: Iterable[str]) -> list[list[str]]:
        """Jobs that need about as much memory together, the longest first."""
        by_memory: dict[int, list[str]] = {}
        for digest in digests:
            by_memory.setdefault((self._memory(digest) or 0).bit_length(), []).append(digest)
        cost = sum(self._costs[digest] for each in by_memory.values() for digest in each)
        target = min(self.slurm.chunk_seconds, max(CHUNK_SECONDS_LEAST, cost / CHUNKS_LEAST))
        chunks: list[list[str]] = []
        for each in by_memory.values():
            chunk: list[str] = []
            so_far = 0.0
            for digest in sorted(each, key=lambda digest: -self._costs[digest]):
                chunk.append(digest)
                so_far += self._costs[digest]
                if so_far >= target:
                    chunks.append(chunk)
                    chunk, so_far = [], 0.0
            if chunk:
                chunks.append(chunk)
        return sorted(chunks, key=self._cost_of, reverse=True)

    def _cost_of(self, digests: Iterable[str]) -> float:
        return sum(self._costs[digest] for digest in digests)

    def _memory(self, digest: str) -> int | None:
        return estimates.memory_bytes(self.todo.work[self.waiting[digest][0]].job)

    # ---- to Slurm ---------------------------------------------------------------------------

    def _submit(self) -> None:
        now = time.monotonic()
        self._queued += [[digest] for due, digest in self._later if due <= now]
        self._later = [(due, digest) for due, digest in self._later if due > now]
        while self._queued and len(self._chunks) < ELEMENTS_MOST:
            room = min(self._array_size, ELEMENTS_MOST - len(self._chunks))
            first = self._chunk_memory(self._queued[0])
            several: list[list[str]] = []
            while self._queued and len(several) < room:
                if self._chunk_memory(self._queued[0]) != first:
                    break
                several.append(self._queued.pop(0))
            self._submit_array(several, first)

    def _chunk_memory(self, digests: Sequence[str]) -> int | None:
        """What an element declares, in bytes, in steps of a power of two."""
        needs = [self._memory(digest) for digest in digests if digest in self.waiting]
        known = [need for need in needs if need is not None]
        if not known:
            return None
        return 1 << (max(known) + OVERHEAD_BYTES - 1).bit_length()

    def _submit_array(self, chunks: list[list[str]], memory: int | None) -> None:
        name = f"{PREFIX}{uuid.uuid4().hex}"
        folder = self._folder / name
        (folder / "logs").mkdir(parents=True)
        for number, digests in enumerate(chunks):
            sent = [Unit.of(self.todo.work[self.waiting[digest][0]]) for digest in digests]
            lines = "".join(f"{unit.line()}\n" for unit in sent)
            output.write(folder / f"{number}.jsonl", lines.encode(), durable=False)
        about = {"store": Shared.of(self.store).__dict__, "chunks": chunks}
        output.write(folder / "array.json", json.dumps(about).encode())
        script = shlex.join([sys.executable, "-m", "graven.executors.worker", str(folder)])
        words = [
            "sbatch",
            "--parsable",
            f"--job-name={name}",
            f"--array=0-{len(chunks) - 1}",
            "--ntasks=1",
            "--cpus-per-task=1",
            "--requeue",
            "--open-mode=append",
            f"--output={folder / 'logs' / '%a.log'}",
            *([] if memory is None else [f"--mem={-(-memory >> 20)}M"]),
            f"--wrap=exec {script}",
        ]
        try:
            _command(*words)
        except NoAnswer as error:
            if not self._is_in_queue(name):
                self._why = str(error)
                self._not_submitted(chunks, folder, error)
                return
        self._answered = time.monotonic()
        self._arrays.add(name)
        self._chunks += [
            Chunk(name, number, list(digests), self._cost_of(digests))
            for number, digests in enumerate(chunks)
        ]

    def _is_in_queue(self, name: str) -> bool:
        """Whether an array was accepted although its command says otherwise."""
        with contextlib.suppress(NoAnswer):
            return bool(_command("squeue", "--noheader", f"--name={name}").strip())
        return False

    def _not_submitted(self, chunks: list[list[str]], folder: Path, error: NoAnswer) -> None:
        """Later, if Slurm only does not answer; what it refuses will not run."""
        shutil.rmtree(folder, ignore_errors=True)
        refusals = ("Batch job submission failed", "error: ")
        if any(word in str(error) for word in refusals) and "Unable to contact" not in str(error):
            for digest in [digest for chunk in chunks for digest in chunk]:
                self._fail(digest, f"Slurm refuses it: {error}")
        else:
            self._queued += chunks
            time.sleep(self.slurm.look_seconds)

    # ---- from the store and the queue -------------------------------------------------------

    def _look(self) -> None:
        # The queue first: what has left it by then has kept what it has done.
        elements = self._elements()
        self._take_in()
        self._take_failures()
        if elements is not None:
            self._answered = time.monotonic()
            self._look_for_lost(elements)
            self._look_for_stragglers({at: found.state for at, found in elements.items()})
        self._chunks = [chunk for chunk in self._chunks if self._left_of(chunk)]

    def _elements(self) -> dict[tuple[str, int], Element] | None:
        """What is in the queue; nothing if Slurm does not answer."""
        names = ",".join({chunk.array for chunk in self._chunks})
        if not names:
            return {}
        try:
            elements = _elements_of(names)
        except NoAnswer as error:
            self._why = str(error)
            return None
        for (array, number), element in list(elements.items()):
            if element.state == HELD:
                # It will not run again by itself: it is as good as gone.
                del elements[array, number]
                with contextlib.suppress(NoAnswer):
                    _cancel_element(array, number)
        reasons = Counter(element.reason for element in elements.values())
        for ordinary in ORDINARY_REASONS:
            del reasons[ordinary]
        self._obstacle = reasons.most_common(1)[0][0] if reasons else ""
        return elements

    def _take_in(self) -> None:
        """Results that are new in the store."""
        self.store.refresh()
        newest = self.store.index.ask("SELECT coalesce(max(rowid), 0) FROM records")[0][0]
        if newest < self._row:  # the index was made anew
            self._row = 0
        found = self.store.index.ask(
            "SELECT digest FROM records WHERE rowid > ? AND rowid <= ?", [self._row, newest]
        )
        self._row = newest
        for (digest,) in found:
            if digest not in self.waiting:
                continue
            record = self.store.record(digest)
            if record is None:
                continue  # damaged; it has been said
            if record.host_s is not None:
                self._seconds += record.host_s
            self._cost_done += self._costs[digest]
            for at in self.waiting.pop(digest):
                self.todo.sink(at, record.result, record.host_s)

    def _take_failures(self) -> None:
        for name in {chunk.array for chunk in self._chunks}:
            for file in (self._folder / name).glob("failures-*.json"):
                with contextlib.suppress(OSError, ValueError):
                    for digest, message in json.loads(file.read_text(encoding="utf-8")).items():
                        self._fail(digest, message)

    def _fail(self, digest: str, message: str) -> None:
        places = self.waiting.pop(digest, [])
        self._cost_done += self._costs.get(digest, 0.0) if places else 0.0
        self._failures += [
            units.failure_of(Unit.of(self.todo.work[at]), message) for at in places[:1]
        ]

    def _left_of(self, chunk: Chunk) -> list[str]:
        return [digest for digest in chunk.digests if digest in self.waiting]

    def _look_for_lost(self, elements: Collection[tuple[str, int]]) -> None:
        for chunk in list(self._chunks):
            chunk.missed = 0 if (chunk.array, chunk.element) in elements else chunk.missed + 1
            if chunk.missed < GONE_LOOKS or not (left := self._left_of(chunk)):
                continue
            self._chunks.remove(chunk)
            elsewhere = {digest for other in self._chunks for digest in other.digests}
            said = self._said(chunk)
            for digest in left:
                losses = self._lost.setdefault(digest, Losses())
                if said:
                    losses.begun += 1
                    if digest in elsewhere:
                        continue
                    if losses.begun >= TRIES:
                        why = f"it was begun {TRIES} times and lost each time"
                        self._fail(digest, f"{why}: {said[-1]}")
                    else:
                        self._queued.insert(0, [digest])
                elif digest not in elsewhere:
                    self._submit_later(digest, losses)

    def _submit_later(self, digest: str, losses: Losses) -> None:
        """Slurm has forgotten it: it is not to blame, and Slurm may need a moment."""
        now = time.monotonic()
        losses.since = losses.since or now
        losses.forgotten += 1
        if now - losses.since > BEGIN_SECONDS:
            self._fail(
                digest,
                f"Slurm has taken it {losses.forgotten} times in "
                f"{(now - losses.since) / 60:.0f} min and never begun it",
            )
            return
        wait = min(AGAIN_SECONDS_MOST, self.slurm.look_seconds * 2 ** (losses.forgotten - 1))
        self._later.append((now + wait, digest))

    def _said(self, chunk: Chunk) -> list[str]:
        """The lines of an element's log: none if it never began, since it says that it does."""
        log = self._folder / chunk.array / "logs" / f"{chunk.element}.log"
        with contextlib.suppress(OSError):
            return log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return []

    def _look_for_stragglers(self, states: Mapping[tuple[str, int], str]) -> None:
        now = time.monotonic()
        for chunk in self._chunks:
            if (
                chunk.running_since is None
                and states.get((chunk.array, chunk.element)) == "RUNNING"
            ):
                chunk.running_since = now
        if self._queued or self._later or "PENDING" in states.values() or self._cost_done <= 0.0:
            return
        pace = self._seconds / self._cost_done
        for chunk in self._chunks:
            patience = max(STRAGGLER_SECONDS, STRAGGLER_FACTOR * pace * chunk.cost)
            since = chunk.running_since
            if since is not None and not chunk.again and now - since > patience:
                chunk.again = True
                self._queued += [[digest] for digest in self._left_of(chunk)]

    # ---- arrays of other processes ----------------------------------------------------------

    def _adopt(self) -> None:
        """Arrays that are in the queue for some of the same jobs, and whose process has gone."""
        arrays = sorted(self._folder.glob(f"{PREFIX}*/array.json"))
        if not arrays:
            return
        names = ",".join(path.parent.name for path in arrays)
        try:
            elements = _elements_of(names)
        except NoAnswer:
            return
        for path in arrays:
            with contextlib.suppress(OSError, ValueError, KeyError):
                chunks = json.loads(path.read_text(encoding="utf-8"))["chunks"]
                for number, digests in enumerate(chunks):
                    mine = [digest for digest in digests if digest in self.waiting]
                    if mine and (path.parent.name, number) in elements:
                        chunk = Chunk(path.parent.name, number, mine, self._cost_of(mine))
                        self._arrays.add(chunk.array)
                        self._chunks.append(chunk)

    # ---- the end ----------------------------------------------------------------------------

    def _cancel(self) -> None:
        """Takes back what is in the queue: what runs for a second time, too, or is held there."""
        for name in sorted(self._arrays):
            with contextlib.suppress(NoAnswer):
                _command("scancel", f"--name={name}")

    def _clean(self) -> None:
        """What was submitted is of no use any more; of what failed, the logs are."""
        if not self._failures:
            for path in self._folder.glob(f"{PREFIX}*"):
                with contextlib.suppress(OSError, ValueError, KeyError):
                    about = json.loads((path / "array.json").read_text(encoding="utf-8"))
                    done = [digest for chunk in about["chunks"] for digest in chunk]
                    if all(digest in self._costs for digest in done):
                        shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):
                self._folder.rmdir()

    def _tell(self) -> None:
        if self.todo.observe is None:
            return
        running = sum(chunk.running_since is not None for chunk in self._chunks)
        waiting = len(self._chunks) - running + len(self._queued) + len(self._later)
        obstacle = f" ({self._obstacle})" if waiting and self._obstacle else ""
        labels = (f"{running} jobs of Slurm running, {waiting} waiting{obstacle}",)
        if time.monotonic() - self._answered > 5 * self.slurm.look_seconds:
            labels = (f"Slurm does not answer: {self._why}",)
        self.todo.observe(
            Snapshot(
                self._total - len(self.waiting),
                self._total,
                min(1.0, self._cost_done / self._cost) if self._cost > 0.0 else 0.0,
                labels,
                time.monotonic() - self._started,
            )
        )


def _elements_of(names: str) -> dict[tuple[str, int], Element]:
    """The elements in the queue, by array and number.

    Raises:
        NoAnswer: Slurm does not answer.
    """
    said = _command("squeue", "--noheader", "--array", f"--name={names}", "--format=%j|%K|%T|%r")
    found = {}
    for line in said.splitlines():
        name, element, state, why = (*line.strip().split("|"), "", "", "", "")[:4]
        if element.isdecimal():
            is_held = why in HELD_REASONS
            reason = why if state == "PENDING" else ""
            found[name, int(element)] = Element(HELD if is_held else state, reason)
    return found


def _cancel_element(array: str, element: int) -> None:
    """Takes one element out of the queue.

    Raises:
        NoAnswer: Slurm does not answer.
    """
    said = _command("squeue", "--noheader", "--array", f"--name={array}", "--format=%i|%K")
    for line in said.splitlines():
        number, _, found = line.strip().partition("|")
        if found == str(element):
            _command("scancel", number)


def _array_size() -> int:
    """How many elements an array may have."""
    with contextlib.suppress(NoAnswer, ValueError):
        for line in _command("scontrol", "show", "config").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "MaxArraySize":
                return max(1, int(value))
    return 1000


def element_of_this_process() -> int | None:
    """Number of the element of an array that this process is, if it is one."""
    given = os.environ.get("SLURM_ARRAY_TASK_ID", "")
    return int(given) if given.isdecimal() else None
