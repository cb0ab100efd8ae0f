"""Commands that run: a small file beside the results for each one that makes some.

A command replaces its file every second or so and takes it away as it ends; one that was killed
leaves a file that soon counts no more. Nothing depends on these files: what cannot be written is
left out, and results are the same with and without them.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from graven.basics import output
from graven.basics.errors import OutputError
from graven.store import segments

if TYPE_CHECKING:
    from graven.running.pool import Snapshot

FOLDER = "running"
"""The folder of a store that has these files."""

EVERY_SECONDS = 1.0
"""Time between two reports of a command."""

EXPIRES_SECONDS = 60.0
"""Time for which the last report counts; longer than clocks of hosts are apart."""

NAMED = 16
"""Running jobs that a report names, at most."""

_ENDING = ".json"


@dataclass(frozen=True)
class Running:
    """Report of a command on its progress.

    Attributes:
        command: The command, as it was typed.
        noun: Unit that it counts.
        host: Host that it runs on.
        process: Number of its process there.
        started_at: Time at which it began to run jobs, UTC.
        said_at: Time of this report, UTC.
        done: Jobs that are done.
        total: All jobs, without those that had a result before.
        fraction: Share that is done, with a part of what is running.
        jobs: Some of those that run.
        elapsed_s: Time for which it has run jobs, in seconds.
        left_s: Time that is left, about, in seconds; `None` if that is not known yet.
        checked: Power failures that were checked, where power fails.
    """

    command: str
    noun: str
    host: str
    process: int
    started_at: str
    said_at: str
    done: int
    total: int
    fraction: float
    jobs: tuple[str, ...]
    elapsed_s: float
    left_s: float | None
    checked: int | None

    @property
    def per_second(self) -> float | None:
        """Jobs done in a second, since it began."""
        return self.done / self.elapsed_s if self.done and self.elapsed_s > 0 else None

    @staticmethod
    def parse(text: str) -> Running:
        """Reads a report.

        Raises:
            ValueError: it is not what a command has written.
        """
        raw = json.loads(text)
        try:
            found = Running(**{**raw, "jobs": tuple(map(str, raw["jobs"]))})
            if datetime.fromisoformat(found.said_at).tzinfo is None:
                raise ValueError("said_at has no time zone")
            datetime.fromisoformat(found.started_at)
            numbers = (found.done, found.total, found.fraction, found.elapsed_s, found.process)
            optional = (found.left_s, found.checked)
            if not all(isinstance(number, int | float) for number in numbers):
                raise TypeError(numbers)
            if not all(isinstance(number, int | float | None) for number in optional):
                raise TypeError(optional)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(str(error)) from None
        return found

    def age_s(self, now: datetime) -> float:
        """Age of the report, in seconds."""
        return (now - datetime.fromisoformat(self.said_at)).total_seconds()

    def counts(self, now: datetime) -> bool:
        """Tells whether it may still run: the report is new, and a process of this host exists."""
        if abs(self.age_s(now)) > EXPIRES_SECONDS:
            return False
        return self.host != platform.node() or _is_process(self.process)


def running(store: Path) -> list[Running]:
    """The commands that make results for a store, the first that began first."""
    now = datetime.now(UTC)
    found = [said for _, said in _files(store) if said is not None and said.counts(now)]
    return sorted(found, key=lambda said: (said.started_at, said.host, said.process))


class Announcement:
    """Says beside a store how far a command is, until it ends; use it as a context.

    It is silent until there is a store.
    """

    def __init__(self, store: Path, noun: str) -> None:
        self._store = store
        self._noun = noun
        name = f"{segments.host(32)}-{os.getpid()}-{uuid.uuid4().hex[:8]}{_ENDING}"
        self._file = store / FOLDER / name
        self._started = datetime.now(UTC)
        self._said = -EVERY_SECONDS

    def __enter__(self) -> Announcement:
        _forget_expired(self._store)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)

    def __call__(self, snapshot: Snapshot) -> None:
        """Says how far it is, unless it has just done so."""
        if time.monotonic() - self._said < EVERY_SECONDS or not self._store.is_dir():
            return
        self._said = time.monotonic()
        said = Running(
            shlex.join(["graven", *sys.argv[1:]]),
            self._noun,
            platform.node(),
            os.getpid(),
            self._started.isoformat(timespec="seconds"),
            datetime.now(UTC).isoformat(timespec="seconds"),
            snapshot.done,
            snapshot.total,
            snapshot.fraction,
            snapshot.running[:NAMED],
            snapshot.elapsed_seconds,
            snapshot.seconds_left,
            snapshot.checked,
        )
        with contextlib.suppress(OSError, OutputError):
            self._file.parent.mkdir(exist_ok=True)
            output.write(self._file, json.dumps(asdict(said)).encode(), durable=False)


def _files(store: Path) -> Iterator[tuple[Path, Running | None]]:
    """The files that are there, and what they say; nothing of one that is no such file."""
    with contextlib.suppress(OSError):
        for path in sorted((store / FOLDER).glob(f"[!.]*{_ENDING}")):
            with contextlib.suppress(OSError):
                try:
                    yield path, Running.parse(path.read_text(encoding="utf-8"))
                except ValueError:
                    yield path, None


def _forget_expired(store: Path) -> None:
    """Takes away what commands have left that were killed."""
    now = datetime.now(UTC)
    for path, said in _files(store):
        if said is None or not said.counts(now):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_process(number: int) -> bool:
    """Whether there is a process of this host with a number."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
