"""Signals that ask a command to stop: it keeps what has finished, and says how to go on.

Ctrl-C (SIGINT), what a scheduler of jobs sends before it kills (SIGTERM), and what a terminal sends
that goes away (SIGHUP) do the same; the exit code says which it was. One that was ignored when the
command began, as `nohup` does with SIGHUP, stays ignored.
"""

from __future__ import annotations

import signal
from types import FrameType

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

CAUGHT = ("SIGTERM", "SIGHUP")
"""Signals that are as Ctrl-C; not every system has all."""


class Stopped(KeyboardInterrupt):
    """A signal other than Ctrl-C has asked to stop."""


_received: signal.Signals | None = None


def catch() -> None:
    """From now on these signals do what Ctrl-C does."""
    global _received
    _received = None
    for name in CAUGHT:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    global _received
    _received = signal.Signals(number)
    raise Stopped


def exit_code() -> int:
    """The exit code of what was stopped."""
    return INTERRUPTED if _received is None else 128 + _received


def words() -> str:
    """What has happened, in words."""
    return "interrupted" if _received is None else f"stopped by {_received.name}"
