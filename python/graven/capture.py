"""Programs that are traced as they are: run under QEMU's user mode, and made a program trace.

A plugin of QEMU's sees every load and store of an unmodified program. Which memory is persistent,
and what a transaction is, is said by the names of files and functions, by its locks, or by markers
in the program (`HEADER`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from graven import _engine
from graven._engine import Cancelled, ConfigError
from graven.experiment import Observer, Pool
from graven.output import check, growing

QEMU = "qemu-x86_64"
"""The program that runs others, and is slow enough to watch them."""

PLUGIN = Path(__file__).with_name("_capture.so")
"""What it loads. `make install` builds it."""

HEADER = Path(__file__).parent / "include" / "graven.h"
"""Markers for programs that can be compiled anew: transactions and the region of interest."""

ROOM = 64 << 20
"""Room to ask for before a program runs; what it leaves may well take more."""

X86_64 = 62
"""The machine of an executable, as its header has it."""

ADDRESS_BITS = 47
"""Of a program's addresses."""

SERVES_SECONDS = 60
"""How long it may take until a program that serves listens."""

CLIENT_SECONDS = 600
"""How long each of its clients may take."""

STDERR = 2
"""The descriptor of standard error, wherever Python has its own."""

LOCKS = {
    "pthread_mutex_lock": "lock",
    "pthread_mutex_trylock": "lock",
    "pthread_mutex_timedlock": "lock",
    "pthread_spin_lock": "lock",
    "pthread_spin_trylock": "lock",
    "pthread_rwlock_wrlock": "lock",
    "pthread_rwlock_trywrlock": "lock",
    "pthread_rwlock_timedwrlock": "lock",
    "pthread_rwlock_rdlock": "lock-shared",
    "pthread_rwlock_tryrdlock": "lock-shared",
    "pthread_rwlock_timedrdlock": "lock-shared",
    "pthread_mutex_unlock": "unlock",
    "pthread_spin_unlock": "unlock",
    "pthread_rwlock_unlock": "unlock",
    "pthread_cond_wait": "wait",
    "pthread_cond_timedwait": "wait",
    "pthread_cond_clockwait": "wait",
    "sem_wait": "acquire",
    "sem_trywait": "acquire",
    "sem_timedwait": "acquire",
    "sem_clockwait": "acquire",
    "sem_post": "release",
    "pthread_barrier_wait": "order",
}
"""Functions that acquire and release the lock that their first argument points to; those that wait
and release their second meanwhile; those that order threads without a lock. What they do themselves
to order threads is taken as done right."""


class CaptureError(Exception):
    """A program cannot be captured; the message says why."""


@dataclass(frozen=True)
class Transactions:
    """Functions between which a program's stores are one transaction.

    Attributes:
        begin: Its entry begins one; within another it counts as part of that.
        commit: Its return ends one; without, the return of `begin` does: each call is one.
        abort: Its return ends one that was undone, by stores of the program's.
        begin_returns_zero: It has begun none if `begin` does not return 0.
    """

    begin: str
    commit: str | None = None
    abort: str | None = None
    begin_returns_zero: bool = False

    @staticmethod
    def parse(text: str) -> Transactions:
        """From `BEGIN:COMMIT` or `BEGIN:COMMIT:ABORT`, or `FUNCTION`, each call of which is one.

        Raises:
            ConfigError: it has another form.
        """
        names = text.split(":")
        if len(names) > 3 or not all(map(_is_name, names)):
            raise ConfigError(
                f"{text} is no transaction: allowed is BEGIN:COMMIT or BEGIN:COMMIT:ABORT, or one "
                "function, names as the symbols of the program or its libraries have them"
            )
        return Transactions(*names)  # type: ignore[arg-type]  # there are no more than three

    def roles(self) -> list[tuple[str, str]]:
        """Functions, and what they are for."""
        if self.commit is None:
            return [(self.begin, "call")]
        begin = "begin-returns-zero" if self.begin_returns_zero else "begin"
        aborts = [] if self.abort is None else [(self.abort, "abort")]
        return [(self.begin, begin), (self.commit, "commit"), *aborts]


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_.$][\w.$]*", text) is not None


@dataclass(frozen=True)
class Preset:
    """A library or program whose transactions are known.

    Attributes:
        transactions: What they are between.
        about: What one is, in words.
        persistence: Functions that do nothing but what makes transactions atomic and durable, like
            the log that the library has of its own.
    """

    transactions: Transactions
    about: str
    persistence: tuple[str, ...] = ()


KNOWN: Mapping[str, Preset] = {
    "lmdb": Preset(
        Transactions("mdb_txn_begin", "mdb_txn_commit", "mdb_txn_abort", True),
        "a transaction of LMDB, from mdb_txn_begin to the end of mdb_txn_commit or mdb_txn_abort",
    ),
    "pmemobj": Preset(
        Transactions("pmemobj_tx_begin", "pmemobj_tx_end", None, True),
        "a transaction of libpmemobj, from pmemobj_tx_begin to the end of pmemobj_tx_end",
        (
            "pmemobj_tx_add_range",
            "pmemobj_tx_add_range_direct",
            "pmemobj_tx_xadd_range",
            "pmemobj_tx_xadd_range_direct",
        ),
    ),
    "redis": Preset(
        Transactions("call"),
        "a command of redis-server, a call of its function `call`; those of a script, or of "
        "MULTI and EXEC, are part of the outermost",
    ),
    "sqlite": Preset(
        Transactions("sqlite3_step"),
        "a call of sqlite3_step: a statement that commits by itself, or a step of others",
    ),
}
"""Libraries and programs whose transactions are known."""


@dataclass(frozen=True)
class Persistent:
    """Which memory is persistent, beside what markers in the program say.

    Attributes:
        files: Patterns of paths: shared mappings of such files.
        heap: What `malloc` gives: memory before the break, anonymous mappings that are no stacks.
        variables: Names of variables of the program or its libraries.
        ranges: First addresses, and how many bytes from there on.
    """

    files: tuple[str, ...] = ()
    heap: bool = False
    variables: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(files: Iterable[str], heap: bool, ranges: Iterable[str]) -> Persistent:
        """From patterns, and ranges that are `VARIABLE` or `ADDRESS:BYTES`.

        Raises:
            ConfigError: a pattern or range that is none.
        """
        patterns, texts = tuple(files), tuple(ranges)
        for pattern in patterns:
            if not pattern or "\n" in pattern:
                raise ConfigError(f"pm_files: {pattern!r} is no pattern of paths")
        pairs = tuple(_range(text) for text in texts if not _is_name(text))
        return Persistent(patterns, heap, tuple(filter(_is_name, texts)), pairs)

    def setup(self) -> list[str]:
        """Lines of what the plugin is told."""
        return [
            *(f"file {pattern}" for pattern in self.files),
            *(["heap yes"] if self.heap else []),
            *(f"object {name}" for name in self.variables),
            *(f"range {start} {count}" for start, count in self.ranges),
        ]


def _range(text: str) -> tuple[int, int]:
    number = r"0x[0-9a-fA-F]+|[0-9]+"
    found = re.fullmatch(f"({number}):({number})", text)
    start, count = (int(n, 0) for n in found.groups()) if found else (0, 0)
    if not count or start + count > 1 << ADDRESS_BITS:
        raise ConfigError(
            f"{text} is no range of persistent memory: allowed is the name of a variable, or "
            f"ADDRESS:BYTES, numbers like 0x10000:4096 that end below 2^{ADDRESS_BITS}"
        )
    return start, count


@dataclass(frozen=True)
class Served:
    """What asks a program that serves, while it is captured.

    Attributes:
        socket: Where the program listens: a socket of the file system.
        clients: Commands that run one after the other; the last one has the program end.
    """

    socket: Path
    clients: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Request:
    """What is to be captured.

    Attributes:
        arguments: The program and its arguments.
        persistent: Which memory is persistent.
        transactions: What a transaction is, beside what markers in the program say.
        skip: Transactions before the trace begins.
        transactions_max: Transactions in it at most; all if not given.
        input: What the program reads from standard input; its own if not given.
        environment: Variables that it is given besides.
        served: Of a program that serves, what asks it.
        critical_sections: Whether each critical section of a thread is a transaction.
        from_function: Its first entry begins the region of interest.
        until_function: The end of its first call after that ends the region.
        left_out: Functions whose loads, stores and instructions are not in the trace.
        left_out_if_there: The same, and the program may have none of them.
    """

    arguments: tuple[str, ...]
    persistent: Persistent
    transactions: tuple[Transactions, ...] = ()
    skip: int = 0
    transactions_max: int | None = None
    input: bytes | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    served: Served | None = None
    critical_sections: bool = False
    from_function: str | None = None
    until_function: str | None = None
    left_out: tuple[str, ...] = ()
    left_out_if_there: tuple[str, ...] = ()

    def roles(self) -> dict[str, list[str]]:
        """Functions that are followed, and what they are for.

        Raises:
            ConfigError: what is said of transactions contradicts itself, or a name is none.
        """
        if self.critical_sections and self.transactions:
            raise ConfigError(
                "critical sections are transactions, or those between functions: not both "
                "(--tx-locks goes with no --tx and no --like)"
            )
        found: dict[str, list[str]] = {}
        for name, role in (pair for t in self.transactions for pair in t.roles()):
            roles = found.setdefault(name, [role])
            if roles != [role]:
                raise ConfigError(
                    f"{name} is given two meanings for transactions: {roles[0]} and {role}"
                )
        edges = (
            ("from", self.from_function),
            ("until", self.until_function),
            *(("left-out", name) for name in (*self.left_out, *self.left_out_if_there)),
        )
        for role, edge in edges:
            if edge is None:
                continue
            if not _is_name(edge):
                raise ConfigError(
                    f"{role}: {edge} is no function: allowed is a name as the symbols of the "
                    "program or its libraries have it"
                )
            found.setdefault(edge, []).append(role)
        for name, role in LOCKS.items():
            found.setdefault(name, []).append(role)
        return found

    def needed(self) -> list[str]:
        """Functions without which there is no such trace."""
        names = [name for t in self.transactions for name in (t.begin, t.commit)]
        edges = (self.from_function, self.until_function, *self.left_out)
        return [name for name in (*names, *edges) if name is not None]


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
    """

    trace: Path
    exit_code: int
    report: Mapping[str, Any]
    counts: Mapping[str, int]
    files: tuple[str, ...]
    missing: tuple[str, ...]

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
    )
    return run(request, Path(trace), observe)


def transactions_of(
    given: Iterable[Transactions | str], like: str | None
) -> tuple[Transactions, ...]:
    """Transactions as they are given, and those of a library that is known.

    Raises:
        ConfigError: a text of another form, or an unknown library.
    """
    if like is not None and like not in KNOWN:
        raise ConfigError(f"like: {like} is not known; allowed: {', '.join(KNOWN)}")
    parsed = [t if isinstance(t, Transactions) else Transactions.parse(t) for t in given]
    return (*parsed, *(() if like is None else (KNOWN[like].transactions,)))


def persistence_of(like: str | None) -> tuple[str, ...]:
    """Functions of a library's own persistence.

    Raises:
        ConfigError: nothing is known of the library.
    """
    preset = KNOWN.get(like or "")
    found = preset.persistence if preset else ()
    if not found:
        known = ", ".join(name for name, preset in KNOWN.items() if preset.persistence)
        raise ConfigError(
            f"without_persistence: no functions are known that only log, of {like or 'nothing'}; "
            f"known: {known}; any function can be named (leave_out)"
        )
    return found


def run(request: Request, trace: Path, observe: Observer | None = None) -> Captured:
    """As `capture`."""
    roles = request.roles()
    command = _command(request.arguments)
    check([trace], ROOM)
    with (
        tempfile.TemporaryDirectory(prefix=f".{trace.name}.", dir=trace.parent) as raw,
        growing(trace) as place,
    ):
        folder = Path(raw).resolve()
        _write_setup(request, roles, folder)
        exit_code = _execute(command, folder, request)
        left = _Left.read(folder, request)
        left.check(request, exit_code)
        spec = left.spec(request, place)
        outcome = Pool([(trace.name, _engine.CaptureAssembly(spec))], workers=1).run(observe)
        if outcome.interrupted:
            raise KeyboardInterrupt
        for failure in outcome.failures:
            raise CaptureError(failure.message) from failure.error
        if 0 not in outcome.texts:
            raise Cancelled("it was cancelled")
        report = json.loads(outcome.texts[0])
    names = tuple(path for _, _, path in left.regions)
    return Captured(trace, exit_code, report, left.counts, names, left.missing)


def _command(arguments: Sequence[str]) -> list[str]:
    """QEMU, and the program that it is to run with its arguments.

    Raises:
        CaptureError: QEMU, the plugin or the program is not there, or is not what it should be.
    """
    if not arguments:
        raise CaptureError("there is no program to run")
    qemu = shutil.which(QEMU)
    if qemu is None:
        raise CaptureError(
            f"{QEMU} is not installed: it is in the distribution's package qemu-user "
            "(Debian, Ubuntu: apt install qemu-user; Fedora: dnf install qemu-user)"
        )
    if not PLUGIN.exists():
        raise CaptureError(f"{PLUGIN} is missing: `make install` builds it")
    return [qemu, *_resolved(arguments)]


def _resolved(arguments: Sequence[str]) -> list[str]:
    """A program that QEMU can run, and its arguments: of a script, what interprets it."""
    found = shutil.which(arguments[0])
    if found is None:
        raise CaptureError(f"{arguments[0]}: there is no such program, or it is not executable")
    # Not what links lead to: programs look at what they are called.
    path = Path(found).absolute()
    with path.open("rb") as file:
        head = file.read(256)
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].decode(errors="replace").split(None, 1)
        if not words:
            raise CaptureError(f"{path}: a script that names no interpreter")
        if Path(words[0]).name == "env" and len(words) > 1:
            words = words[1].split(None, 1)
        return _resolved([*words, str(path), *arguments[1:]])
    if not head.startswith(b"\x7fELF"):
        raise CaptureError(f"{path} is neither an executable (ELF) nor a script")
    machine = int.from_bytes(head[18:20], "little")
    if head[4] != 2 or machine != X86_64:
        raise CaptureError(f"{path} is no program for x86-64; programs for others are not captured")
    return [str(path), *arguments[1:]]


_WORDS = dict.fromkeys(LOCKS.values(), "synchronises") | {"wait": "waits"}
"""What the plugin calls functions of these roles; others are functions."""


def _write_setup(request: Request, roles: Mapping[str, Sequence[str]], folder: Path) -> None:
    lines = request.persistent.setup()
    for name, of in roles.items():
        words = [_WORDS[role] for role in of if role in _WORDS]
        lines.append(f"{words[0] if words else 'function'} {name}")
    (folder / "setup").write_text("".join(f"{line}\n" for line in lines))


def _execute(command: list[str], folder: Path, request: Request) -> int:
    """Runs it; an interrupt goes to the program, which is waited for."""
    plugin = f"{PLUGIN},dir={str(folder).replace(',', ',,')}"
    command = [command[0], "-plugin", plugin, *command[1:]]
    # Symbols are bound at the start, so that a call comes to its function at once.
    environment = {**os.environ, **request.environment, "LD_BIND_NOW": "1"}
    with tempfile.TemporaryFile() as file:
        file.write(request.input or b"")
        file.seek(0)
        stdin = None if request.input is None else file
        # What it prints is no result of a command that prints what was captured.
        process = subprocess.Popen(command, env=environment, stdin=stdin, stdout=STDERR)
    if request.served is not None:
        _ask(process, request.served)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # A terminal has sent it to the program, too.
            if process.poll() is None and not sys.stdin.isatty():
                process.send_signal(signal.SIGINT)


def _ask(process: subprocess.Popen[bytes], served: Served) -> None:
    """Runs the clients of a program that serves, once it does.

    Raises:
        CaptureError: it does not serve, or a client fails; the program has ended.
    """
    try:
        ends = time.monotonic() + SERVES_SECONDS
        while not _listens(served.socket):
            if process.poll() is not None:
                raise CaptureError(f"the program has ended before it listened at {served.socket}")
            if time.monotonic() > ends:
                raise CaptureError(f"the program does not listen at {served.socket}")
            time.sleep(0.05)
        for client in served.clients:
            done = subprocess.run(client, stdout=STDERR, timeout=CLIENT_SECONDS, check=False)
            if done.returncode:
                raise CaptureError(f"{client[0]} ended with exit code {done.returncode}")
    except BaseException as error:
        process.kill()
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            seconds = f"{CLIENT_SECONDS} s"
            raise CaptureError(f"{error.cmd[0]} has not ended within {seconds}") from error
        raise


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return False
    return True


@dataclass
class _Left:
    """What the plugin has left in its folder."""

    folder: Path
    threads: list[Path]
    regions: list[tuple[int, int, str]]
    """Device, inode, and path."""
    counts: dict[str, int]
    found: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    missing: tuple[str, ...] = ()

    @staticmethod
    def read(folder: Path, request: Request) -> _Left:
        count = len(list(folder.glob("thread-*")))
        threads = [folder / f"thread-{number}" for number in range(count)]
        regions = []
        for line in _lines(folder / "regions"):
            _, device, inode, path = line.split(" ", 3)
            regions.append((int(device), int(inode), path))
        counts = dict(line.split() for line in _lines(folder / "counts"))
        names = list(request.roles())
        found = {names[int(line.split()[0])] for line in _lines(folder / "functions")}
        of_setup = request.persistent.variables
        variables = {of_setup[int(line.split()[0])] for line in _lines(folder / "objects")}
        missing = tuple(name for name in names if name not in found and name not in LOCKS)
        numbers = {name: int(number) for name, number in counts.items()}
        return _Left(folder, threads, regions, numbers, found, variables, missing)

    def check(self, request: Request, exit_code: int) -> None:
        """Refuses what gives no trace.

        Raises:
            CaptureError: and why.
        """
        ended = f"; the program ended with exit code {exit_code}" if exit_code else ""
        persistent = request.persistent
        absent = [name for name in persistent.variables if name not in self.variables]
        if absent:
            raise CaptureError(
                f"no symbols of the program and its libraries have variables {', '.join(absent)}"
                f"{ended} (a program that was stripped has none of its own)"
            )
        if not self.regions and persistent.files and not persistent.heap:
            patterns = ", ".join(persistent.files)
            raise CaptureError(
                f"the program mapped no file, shared, whose path fits {patterns}{ended} "
                "(patterns are held against whole paths: */NAME fits anywhere)"
            )
        if not self.regions and persistent.heap:
            raise CaptureError(f"the program has no heap{ended}")
        if not self.regions and (persistent.ranges or persistent.variables):
            raise CaptureError(f"the program has mapped nothing in the ranges{ended}")
        if not self.regions:
            raise CaptureError(
                "nothing says what is persistent memory: neither files (pm_files) nor the heap "
                "(pm_heap) nor variables and ranges (pm_ranges) were named, and no marker in the "
                f"program (graven_pm) has named something{ended}"
            )
        missing = [name for name in request.needed() if name not in self.found]
        if missing:
            raise CaptureError(
                f"no symbols of the program and its libraries have {', '.join(missing)}{ended} "
                "(a program that was stripped has none of its own)"
            )

    def spec(self, request: Request, place: Path) -> str:
        """For the engine."""
        return json.dumps(
            {
                "threads": [str(path) for path in self.threads],
                "regions": [self._files(number) for number in range(len(self.regions))],
                "functions": list(request.roles().items()),
                "critical_sections": request.critical_sections,
                "skip": request.skip,
                "most": request.transactions_max,
                "description": {
                    "arguments": list(request.arguments),
                    "files": [path for _, _, path in self.regions],
                    "transactions": [vars(t) for t in request.transactions],
                    "critical_sections": request.critical_sections,
                    "from": request.from_function,
                    "until": request.until_function,
                    "left_out": [*request.left_out, *request.left_out_if_there],
                    "counts": self.counts,
                },
                "out": str(place),
            }
        )

    def _files(self, number: int) -> tuple[str, str | None]:
        """A region as it was, and as it is: of a program that was killed, the file itself."""
        before, after = (self.folder / f"region-{number}.{when}" for when in ("before", "after"))
        if after.exists():
            return str(before), str(after)
        device, inode, path = self.regions[number]
        try:
            now = Path(path).stat()
        except OSError:
            return str(before), None
        return str(before), path if (now.st_dev, now.st_ino) == (device, inode) else None


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


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
]
