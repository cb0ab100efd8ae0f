"""Programs that are traced as they are: run under QEMU's user mode, and made a program trace.

A plugin of QEMU's sees every load and store of an unmodified program. Which memory is persistent,
and what a transaction is, is said by the names of files and functions, by its locks, or by markers
in the program (`HEADER`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from graven import _engine
from graven._engine import Cancelled, ConfigError
from graven.basics.output import apart, check, growing
from graven.capture.folder import Left, write_setup
from graven.capture.guests import CaptureError
from graven.capture.process import command, execute
from graven.capture.request import (
    KNOWN,
    Persistent,
    Preset,
    Request,
    Served,
    Transactions,
    persistence_of,
    transactions_of,
)
from graven.running.pool import Observer, Pool

HEADER = Path(__file__).with_name("include") / "graven.h"
"""Markers for programs that can be compiled anew: transactions and the region of interest."""

ROOM = 64 << 20
"""Room to ask for before a program runs; what it leaves may well take more."""


@dataclass(frozen=True)
class Captured:
    """What came of it.

    Attributes:
        trace: The trace's file.
        exit_code: The program's; negative: the signal that ended it.
        report: What was captured, what was left out, and what the capture cannot explain.
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
        """Whether all bytes at the end, and all loads, are explained by what was recorded."""
        return not (self.report["bytes_unexplained"] or self.report["loads_unexplained"])

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return {**vars(self), "trace": str(self.trace), "explained": self.explained}


def capture(
    arguments: Sequence[str],
    trace: str | PathLike[str],
    *,
    pm_files: Iterable[str] = (),
    pm_heap: bool = False,
    pm_ranges: Iterable[str] = (),
    transactions: Iterable[Transactions | str] = (),
    like: str | None = None,
    critical_sections: bool = False,
    from_function: str | None = None,
    until_function: str | None = None,
    leave_out: Iterable[str] = (),
    without_persistence: bool = False,
    only_pm: bool = False,
    sysroot: str | PathLike[str] | None = None,
    skip: int = 0,
    transactions_max: int | None = None,
    observe: Observer | None = None,
) -> Captured:
    """Runs a program, and makes a trace of what it did with its persistent memory.

    Args:
        arguments: The program, as it is, and its arguments.
        trace: The file to write.
        pm_files: Patterns of paths: shared mappings of such files are persistent memory.
        pm_heap: What `malloc` gives is persistent memory.
        pm_ranges: Names of variables, or `ADDRESS:BYTES`, that are persistent memory.
        transactions: `BEGIN:COMMIT` or `BEGIN:COMMIT:ABORT`, names of functions.
        like: A library or program whose transactions are known, one of `KNOWN`.
        critical_sections: Each critical section of a thread is a transaction, from the acquisition
            of its first lock to the release of its last.
        from_function: The trace begins with its first entry.
        until_function: The trace ends with the end of its first call after that.
        leave_out: Functions whose loads, stores and instructions are not in the trace.
        without_persistence: The log that the library `like` has of its own is not in it.
        only_pm: Loads and stores of volatile memory are not in it, but instructions like others.
        sysroot: The folder that has the program's loader and libraries, if `/` has not.
        skip: Transactions before the trace begins, counted from there.
        transactions_max: Transactions in it at most; all if not given.
        observe: Called several times a second while the trace is put together.

    Raises:
        ConfigError: something was refused; nothing has run.
        CaptureError: the program cannot be run, or gave nothing to trace.
        OutputError: the trace cannot be written; nothing has run.
    """
    parsed = transactions_of(transactions, like)
    persistent = Persistent.of(pm_files, pm_heap, pm_ranges)
    if skip < 0 or (transactions_max is not None and transactions_max < 1):
        raise ConfigError("skip is 0 or more, and transactions_max 1 or more")
    request = Request(
        tuple(arguments),
        persistent,
        parsed,
        skip,
        transactions_max,
        critical_sections=critical_sections,
        from_function=from_function,
        until_function=until_function,
        left_out=tuple(leave_out),
        left_out_if_there=persistence_of(like) if without_persistence else (),
        only_pm=only_pm,
        sysroot=None if sysroot is None else Path(sysroot),
    )
    return run(request, Path(trace), observe)


def run(request: Request, trace: Path, observe: Observer | None = None) -> Captured:
    """As `capture`."""
    read = [("arguments", Path(word)) for word in request.arguments]
    read += [("pm_files", Path(pattern)) for pattern in request.persistent.files]
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
