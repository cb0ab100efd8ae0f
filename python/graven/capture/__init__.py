"""Programs that are traced as they are: run under QEMU's user mode, and made a program trace.

A plugin of QEMU's sees every load and store of an unmodified program. Names of files and functions,
locks, or markers in the program (`HEADER`) tell which memory is persistent, and what a transaction
is.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from graven import _engine
from graven._engine import Cancelled
from graven.basics.errors import CaptureError
from graven.basics.output import apart, check, growing
from graven.capture.folder import Left, write_setup
from graven.capture.process import command, execute
from graven.capture.request import KNOWN, Persistent, Preset, Request, Served, Transactions
from graven.running.pool import Observer, Pool

HEADER = Path(__file__).with_name("include") / "graven.h"
"""Markers for programs that can be compiled anew: transactions and the region of interest."""

ROOM = 64 << 20
"""Bytes to ask for before a program runs; what it leaves may well take more."""


@dataclass(frozen=True)
class Captured:
    """Result of a capture.

    Attributes:
        trace: The trace's file.
        exit_code: Exit code of the program; negative: the signal that ended it.
        report: Counts of what was captured, was left out, and cannot be explained.
        counts: Instructions, loads, stores, flushes, fences, calls of msync of the whole program;
            empty if it did not come to its end.
        files: The files that were persistent memory.
        missing: Functions that were to be followed and are in no symbols.
        never_entered: Functions that were named, are in the symbols, and were never entered: the
            program has not called them, or the compiler has inlined them.
    """

    trace: Path
    exit_code: int
    report: Mapping[str, Any]
    counts: Mapping[str, int]
    files: tuple[str, ...]
    missing: tuple[str, ...]
    never_entered: tuple[str, ...] = ()

    @property
    def explained(self) -> bool:
        """True if the recorded stores explain all bytes at the end, and all loads."""
        return not (self.report["bytes_unexplained"] or self.report["loads_unexplained"])

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return {**vars(self), "trace": str(self.trace), "explained": self.explained}


def capture(
    arguments: Sequence[str],
    trace: str | PathLike[str],
    *,
    observe: Observer | None = None,
    **asked: Any,  # noqa: ANN401 - attributes of `Request`
) -> Captured:
    """Runs a program, and makes a trace of what it did with its persistent memory.

    Args:
        arguments: The program, as it is, and its arguments.
        trace: The file to write.
        observe: Called several times a second while the trace is put together.
        **asked: Attributes of `Request`, which describes them: `pm_files`, `pm_heap` and
            `pm_ranges` say which memory is persistent, `transactions`, `like` and
            `critical_sections` what a transaction is, the others which part the trace has.

    Raises:
        ConfigError: something was refused; nothing has run.
        CaptureError: the program cannot be run, or gave nothing to trace.
        OutputError: the trace cannot be written; nothing has run.
    """
    return run(Request(arguments, **asked), Path(trace), observe)


def run(request: Request, trace: Path, observe: Observer | None = None) -> Captured:
    """Captures as `capture` does."""
    read = [("arguments", Path(word)) for word in request.arguments]
    read += [("pm_files", Path(pattern)) for pattern in request.pm_files]
    apart([("trace", trace)], read)
    roles = request.roles()
    arguments = command(request.arguments, request.sysroot)
    check([trace], ROOM)
    with (
        tempfile.TemporaryDirectory(prefix=f".{trace.name}.", dir=trace.parent) as raw,
        growing(trace) as place,
    ):
        folder = Path(raw).resolve()
        write_setup(request, roles, folder)
        ended = execute(arguments, folder, request)
        left = Left.read(folder, request)
        try:
            left.check(request, ended.words())
        except CaptureError as error:
            # What is missing may have come later.
            raise ended.interrupted or error from None
        spec = left.spec(request, place)
        outcome = Pool([(trace.name, _engine.CaptureAssembly(spec))], workers=1).run(observe)
        if outcome.interrupted:
            raise KeyboardInterrupt
        for failure in outcome.failures:
            refused = CaptureError(f"{failure.message}{ended.words()}")
            raise ended.interrupted or refused from failure.error
        if 0 not in outcome.texts:
            raise Cancelled("it was cancelled")
        report = json.loads(outcome.texts[0])
    names = tuple(path for _, _, path in left.regions)
    # Of functions that only a known library may have, it is not said that they are there.
    never = tuple(name for name in report["never_entered"] if name in request.needed())
    return Captured(trace, ended.exit_code, report, left.counts, names, left.missing, never)


__all__ = [
    "HEADER",
    "KNOWN",
    "CaptureError",
    "Captured",
    "Persistent",
    "Preset",
    "Request",
    "Served",
    "Transactions",
    "capture",
    "run",
]
