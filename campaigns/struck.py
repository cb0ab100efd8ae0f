"""The `graven` command, which kills itself and all of its processes on purpose.

    python -m campaigns.struck LOG WHEN ARGUMENT...

Runs `graven ARGUMENT...`. WHEN is `never`, or OPERATION:NUMBER:PART as in `append:2:half`: at the
second operation of that kind the process group gets SIGKILL, before it, after half of it, or after
it. Operations are those on files on which promises rest: a record is appended to a segment, a file
or folder is synchronised, a file takes another's name, a file is taken away.

LOG has a line for each operation that has begun, for each result that the store says it keeps, and
for each segment that upkeep has put together.
It is written so that nothing of it is lost when the process is killed.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTS = ("before", "half", "after")

_log = -1
_when = ("", 0, "")
_counts: Counter[str] = Counter()


def say(*words: str) -> None:
    """Adds a line to the log."""
    os.write(_log, (" ".join(words) + "\n").encode())


def strike() -> None:
    """Kills the process group, which is this one's alone."""
    say("struck")
    os.killpg(0, signal.SIGKILL)


def reached(operation: str, part: str) -> bool:
    """Returns True if the process is to be struck here; `before` counts the operation."""
    if part == "before":
        _counts[operation] += 1
        say("began", operation)
    return _when == (operation, _counts[operation], part)


def watched(operation: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """An operation before or after which everything may end."""

    def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of any function
        if reached(operation, "before"):
            strike()
        came = real(*arguments, **named)
        if reached(operation, "after"):
            strike()
        return came

    return call


def install() -> None:
    """Puts watched operations in place of those of the store and of `output`."""
    from graven.store import disk, upkeep
    from graven.store.segments import Writer

    real_append = disk.append

    def append(descriptor: int, content: bytes) -> None:
        if reached("append", "before"):
            strike()
        if reached("append", "half"):
            real_append(descriptor, content[: len(content) // 2])
            strike()
        real_append(descriptor, content)
        if reached("append", "after"):
            strike()

    disk.append = append
    disk.create = watched("create", disk.create)
    disk.remove = watched("remove", disk.remove)
    # What is written through `output` is synchronised and renamed by these, and the store, too.
    os.fsync = watched("synchronise", os.fsync)
    Path.replace = watched("replace", Path.replace)  # type: ignore[method-assign]

    real_keep = Writer.append

    def keep(self: Writer, record: Any) -> Any:  # noqa: ANN401 - as it is
        place = real_keep(self, record)
        say("acknowledged", record.request.digest)
        return place

    Writer.append = keep  # type: ignore[method-assign]

    real_segment = upkeep._write_segment

    def segment(*arguments: Any) -> int:  # noqa: ANN401 - as it is
        size = real_segment(*arguments)
        say("whole")
        return size

    upkeep._write_segment = segment


SAVE_SECONDS = 0.2
"""Seconds after which schedules that are under way are kept, in place of a few."""


def main(log: str, when: str, arguments: list[str]) -> None:
    """Runs the command."""
    global _log, _when
    _log = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)
    if when != "never":
        operation, number, part = when.split(":")
        _when = (operation, int(number), part)
    install()
    if arguments[0] == "adversary":
        from graven.cli import adversary

        adversary.SAVE_SECONDS = SAVE_SECONDS
    say("started")
    sys.argv = ["graven", *arguments]
    runpy.run_module("graven", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
