"""Signals that ask a command to stop: it keeps what has finished, and says how to continue.

Ctrl-C (SIGINT), what a scheduler of jobs sends before it kills (SIGTERM), and what a terminal sends
that goes away (SIGHUP) do the same; the exit code says which it was. One that was ignored when the
command began, as `nohup` does with SIGHUP, stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

CAUGHT = ("SIGTERM", "SIGHUP")
"""Signals that are as Ctrl-C; not every system has all."""


class Stopped(KeyboardInterrupt):
    """A signal other than Ctrl-C has asked to stop."""


_received: signal.Signals | None = None


def is_command() -> bool:
    """Tells whether this process is the command, and not one that imports the package."""
    called = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 - nothing more to import
    return called == "graven" or sys.orig_argv[1:3] == ["-m", "graven"]


def end_quietly() -> None:
    """Until `catch`, Ctrl-C ends the process as it is, without a traceback of what it imports."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def catch() -> None:
    """From now on these signals do what Ctrl-C does."""
    global _received
    _received = None
    if is_command() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
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
    """The signal, in words."""
    return "interrupted" if _received is None else f"stopped by {_received.name}"
