"""Order of jobs: the longest first, lost ones again, and stragglers a second time.

This decides and remembers; it starts nothing and reads no clock. Times are seconds since anything,
as whoever asks counts them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

TRIES = 4
"""Times that a job is begun before it counts as one that takes its workers down; as a straggler, it
is begun as many times more."""

STRAGGLER_FACTOR = 3.0
"""Factor over the expected time after which a job is begun a second time."""

STRAGGLER_SECONDS = 30.0
"""A job that has taken less is no straggler."""


@dataclass
class _Begun:
    """A job that is running, as often as it is, and when it was begun first."""

    since: float
    times: int = 1


@dataclass
class Dispatcher:
    """Jobs by their number, and what has become of them.

    Attributes:
        costs: Expected time of each, in seconds or in any other unit: how these relate to time is
            learnt from those that are done.
        redoes: True if stragglers are begun a second time.
    """

    costs: Sequence[float]
    redoes: bool = True
    _order: list[int] = field(init=False, repr=False)
    _next: int = 0
    _again: deque[int] = field(default_factory=deque)
    _running: dict[int, _Begun] = field(default_factory=dict)
    _begun: dict[int, int] = field(default_factory=dict)
    _redone: dict[int, int] = field(default_factory=dict)
    _is_over: bytearray = field(init=False, repr=False)
    _over: int = 0
    _cost_over: float = 0.0
    _seconds: float = 0.0
    _cost_timed: float = 0.0
    _cost: float = 0.0

    def __post_init__(self) -> None:
        """Puts the longest first; of equal ones, the first."""
        self._order = sorted(range(len(self.costs)), key=lambda at: -self.costs[at])
        self._is_over = bytearray(len(self.costs))
        self._cost = sum(self.costs)

    @property
    def done(self) -> int:
        """Number of jobs that are done, or have failed."""
        return self._over

    @property
    def is_over(self) -> bool:
        """True if all jobs are done, or have failed."""
        return self._over == len(self.costs)

    @property
    def running(self) -> list[int]:
        """Numbers of the jobs that run."""
        return list(self._running)

    @property
    def fraction(self) -> float:
        """Share that is done, by what jobs are expected to take."""
        if self._cost > 0.0:
            return min(1.0, self._cost_over / self._cost)
        return self._over / len(self.costs) if self.costs else 1.0

    def take(self, now: float) -> int | None:
        """The job that is to be begun now; none if there is nothing to begin."""
        while self._again:
            at = self._again.popleft()
            if not self._is_over[at]:
                return self._start(at, now)
        while self._next < len(self._order):
            at = self._order[self._next]
            self._next += 1
            if not self._is_over[at]:
                return self._start(at, now)
        return self._straggler(now) if self.redoes else None

    def _start(self, at: int, now: float) -> int:
        self._running[at] = _Begun(now)
        self._begun[at] = self._begun.get(at, 0) + 1
        return at

    def _straggler(self, now: float) -> int | None:
        """Of those that run once and take far too long, the one that does so most."""
        pace = self._seconds / self._cost_timed if self._cost_timed > 0.0 else None
        if pace is None:
            return None
        worst, found = 1.0, None
        for at, begun in self._running.items():
            if begun.times > 1 or self._redone.get(at, 0) >= TRIES:
                continue
            patience = max(STRAGGLER_SECONDS, STRAGGLER_FACTOR * pace * self.costs[at])
            if (now - begun.since) / patience > worst:
                worst, found = (now - begun.since) / patience, at
        if found is not None:
            self._running[found].times += 1
            self._redone[found] = self._redone.get(found, 0) + 1
        return found

    def finish(self, at: int, now: float, seconds: float | None = None) -> bool:
        """A job is done, or has failed for good; whether it had not been before.

        Args:
            at: Which.
            now: The time.
            seconds: How long it took, if that is known better than from when it was begun.
        """
        if self._is_over[at]:
            return False
        begun = self._running.pop(at, None)
        self._is_over[at] = 1
        self._over += 1
        self._cost_over += self.costs[at]
        if seconds is None and begun is not None:
            seconds = now - begun.since
        if seconds is not None:
            self._seconds += seconds
            self._cost_timed += self.costs[at]
        self._begun.pop(at, None)
        self._redone.pop(at, None)
        return True

    def lose(self, at: int) -> bool:
        """A job's worker is gone: it is begun again; whether it still may be.

        One that is begun a `TRIES`th time is not.
        """
        if self._is_over[at] or at not in self._running:
            return True
        begun = self._running[at]
        begun.times -= 1
        if begun.times > 0:
            return True
        del self._running[at]
        if self._begun[at] >= TRIES:
            return False
        self._again.append(at)
        return True
