"""Requests for a capture: which memory, what a transaction is, which part of a program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path

from graven._engine import ConfigError

ADDRESS_BITS = 47
"""Bits of a program's addresses."""

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


@dataclass(frozen=True)
class Transactions:
    """Functions between which a program's stores are one transaction.

    Attributes:
        begin: Function whose entry begins one; within another it counts as part of that.
        commit: Function whose return ends one; without, each call of `begin` is one.
        abort: Function whose return ends one that was undone, by stores of the program's.
        begin_returns_zero: True if none has begun where `begin` does not return 0.
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
        """Functions, with their roles."""
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
        transactions: Functions between which they are.
        about: One of them, in words.
        persistence: Functions that do nothing but what makes transactions atomic and durable, like
            the log that the library has of its own.
        also: More of them. A program then needs to have one of all, since it may be linked with
            some of them only.
    """

    transactions: Transactions
    about: str
    persistence: tuple[str, ...] = ()
    also: tuple[Transactions, ...] = ()

    @property
    def all(self) -> tuple[Transactions, ...]:
        """All transactions."""
        return (self.transactions, *self.also)


def _calls(names: str) -> tuple[Transactions, ...]:
    """Transactions that are calls of one function each."""
    return tuple(map(Transactions, names.split()))


def _tokyo() -> tuple[Transactions, ...]:
    """Changes of Tokyo Cabinet's four kinds of databases, and their transactions."""
    common = "put putkeep putcat putproc out addint adddouble"
    more = {"tchdb": "putasync", "tcbdb": "putdup putdup3 putdupback", "tcfdb": "", "tctdb": ""}
    found: list[Transactions] = []
    for kind, others in more.items():
        ends = (f"{kind}trancommit", f"{kind}tranabort")
        found.append(Transactions(f"{kind}tranbegin", *ends))
        found += [Transactions(f"{kind}{name}") for name in f"{common} {others}".split()]
    return tuple(found)


_TOKYO = _tokyo()


KNOWN: Mapping[str, Preset] = {
    "bdb": Preset(
        Transactions("__txn_begin", "__txn_commit", "__txn_abort"),
        "a transaction of Berkeley DB, or a put or del of a database or cursor outside; its cache "
        "is persistent memory (--pm-file '*/__db.*'), for data and log are written by calls",
        also=_calls("__db_put_pp __db_del_pp __dbc_put_pp __dbc_del_pp"),
    ),
    "gdbm": Preset(
        Transactions("gdbm_store"),
        "a call of gdbm_store or gdbm_delete",
        also=_calls("gdbm_delete"),
    ),
    "kyoto": Preset(
        Transactions("kcdbbegintran", "kcdbendtran"),
        "of Kyoto Cabinet's C interface, a transaction from kcdbbegintran to kcdbendtran, or a "
        "change outside (kcdbset, kcdbremove and the like)",
        also=_calls(
            "kcdbset kcdbadd kcdbreplace kcdbappend kcdbremove kcdbcas kcdbincrint kcdbincrdouble "
            "kcdbaccept kcdbacceptbulk kcdbsetbulk kcdbremovebulk"
        ),
    ),
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
    "rrd": Preset(
        Transactions("rrd_update_r"),
        "an update of RRDtool (rrd_update and the like)",
        also=_calls("rrd_update rrd_updatex_r rrd_update_v rrd_update_v_r"),
    ),
    "sqlite": Preset(
        Transactions("sqlite3_step"),
        "a call of sqlite3_step: a statement that commits by itself, or a step of others",
    ),
    "tdb": Preset(
        Transactions(
            "tdb_transaction_start", "tdb_transaction_commit", "tdb_transaction_cancel", True
        ),
        "a transaction of TDB, from tdb_transaction_start to the end of tdb_transaction_commit or "
        "tdb_transaction_cancel, or a change outside (tdb_store, tdb_delete and the like)",
        also=_calls("tdb_store tdb_storev tdb_append tdb_delete"),
    ),
    "tokyo": Preset(
        _TOKYO[0],
        "a change of a database of Tokyo Cabinet (tchdbput, tcbdbout and the like), or a "
        "transaction from tranbegin to trancommit or tranabort",
        also=_TOKYO[1:],
    ),
}
"""Libraries and programs whose transactions are known."""


@dataclass(frozen=True)
class Persistent:
    """Memory that is persistent, beside what markers in the program say.

    Attributes:
        files: Patterns of paths: shared mappings of such files.
        heap: True for the heap: memory before the break, anonymous mappings that are no stacks.
        variables: Names of variables of the program or its libraries.
        ranges: First addresses, and bytes from there on.
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
        """Lines for the plugin."""
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
    """Clients of a program that serves, while it is captured.

    Attributes:
        address: Address at which the program listens: a socket of the file system, or a port.
        clients: Commands that run one after the other; the last one has the program end.
    """

    address: Path | int
    clients: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Request:
    """A program to capture, and which part of what it does.

    Attributes:
        arguments: The program, as it is, and its arguments.
        pm_files: Patterns of paths: shared mappings of such files are persistent memory.
        pm_heap: True if memory that `malloc` gives is persistent.
        pm_ranges: Names of variables, or `ADDRESS:BYTES`, that are persistent memory.
        transactions: `BEGIN:COMMIT`, `BEGIN:COMMIT:ABORT`, or one function, names of functions;
            beside those of markers in the program.
        like: A library or program whose transactions are known, one of `KNOWN`.
        critical_sections: True if each critical section of a thread is a transaction, from the
            acquisition of its first lock to the release of its last.
        from_function: Function with whose first entry the trace begins.
        until_function: Function with the end of whose first call after that the trace ends.
        leave_out: Functions whose loads, stores and instructions are not in the trace.
        without_persistence: True to leave out the log that the library `like` has of its own.
        only_pm: True to leave out loads and stores of volatile memory; they are instructions like
            others.
        sysroot: The folder that has the program's loader and libraries, if `/` has not.
        skip: Transactions before the trace begins, counted from there.
        transactions_max: Transactions in it at most; all if not given.
        input: Standard input of the program; that of this process if not given.
        environment: Variables that it gets besides.
        served: Clients of a program that serves.

    Raises:
        ConfigError: something is refused.
    """

    arguments: Sequence[str]
    pm_files: Iterable[str] = ()
    pm_heap: bool = False
    pm_ranges: Iterable[str] = ()
    transactions: Iterable[Transactions | str] = ()
    like: str | None = None
    critical_sections: bool = False
    from_function: str | None = None
    until_function: str | None = None
    leave_out: Iterable[str] = ()
    without_persistence: bool = False
    only_pm: bool = False
    sysroot: str | PathLike[str] | None = None
    skip: int = 0
    transactions_max: int | None = None
    input: bytes | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    served: Served | None = None

    def __post_init__(self) -> None:
        """Checks what is known without running the program."""
        if self.skip < 0 or (self.transactions_max is not None and self.transactions_max < 1):
            raise ConfigError("skip is 0 or more, and transactions_max 1 or more")
        for name in ("arguments", "pm_files", "pm_ranges", "transactions", "leave_out"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        _ = self.all_transactions, self.persistent, self.left_out_if_there

    @cached_property
    def persistent(self) -> Persistent:
        """Memory that is persistent, beside what markers in the program say."""
        return Persistent.of(self.pm_files, self.pm_heap, self.pm_ranges)

    @cached_property
    def all_transactions(self) -> tuple[Transactions, ...]:
        """Transactions as they are given, and those of a library that is known."""
        if self.like is not None and self.like not in KNOWN:
            raise ConfigError(f"like: {self.like} is not known; allowed: {', '.join(KNOWN)}")
        given = (
            t if isinstance(t, Transactions) else Transactions.parse(t) for t in self.transactions
        )
        return (*given, *(() if self.like is None else KNOWN[self.like].all))

    @cached_property
    def left_out_if_there(self) -> tuple[str, ...]:
        """Functions that are left out if the program has them: a library's own persistence."""
        if not self.without_persistence:
            return ()
        preset = KNOWN.get(self.like or "")
        if not preset or not preset.persistence:
            known = ", ".join(name for name, preset in KNOWN.items() if preset.persistence)
            raise ConfigError(
                "without_persistence: no functions are known that only log, of "
                f"{self.like or 'nothing'}; known: {known}; any function can be named (leave_out)"
            )
        return preset.persistence

    def roles(self) -> dict[str, list[str]]:
        """Functions that are followed, with their roles.

        Raises:
            ConfigError: transactions contradict each other, or a name is none.
        """
        if self.critical_sections and self.all_transactions:
            raise ConfigError(
                "critical sections are transactions, or those between functions: not both "
                "(--tx-locks goes with no --tx and no --like)"
            )
        found: dict[str, list[str]] = {}
        for name, role in (pair for t in self.all_transactions for pair in t.roles()):
            roles = found.setdefault(name, [role])
            if roles != [role]:
                raise ConfigError(
                    f"{name} is given two meanings for transactions: {roles[0]} and {role}"
                )
        edges = (
            ("from", self.from_function),
            ("until", self.until_function),
            *(("left-out", name) for name in (*self.leave_out, *self.left_out_if_there)),
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

    def beginning(self) -> set[str]:
        """Roles of functions with whose entry the trace may begin."""
        if self.from_function is not None:
            return {"from"}
        return {
            "begin",
            "begin-returns-zero",
            "call",
            *(["lock"] if self.critical_sections else []),
        }

    def needed(self) -> list[str]:
        """Functions without which there is no such trace."""
        of = [t for t in self.all_transactions if t not in self._alternatives]
        names = [name for t in of for name in (t.begin, t.commit)]
        edges = (self.from_function, self.until_function, *self.leave_out)
        return [name for name in (*names, *edges) if name is not None]

    def needs_one_of(self) -> list[str]:
        """Functions of a preset with several; the program must have one of them."""
        return [t.begin for t in self._alternatives]

    @property
    def _alternatives(self) -> tuple[Transactions, ...]:
        """Transactions of a preset with several."""
        preset = KNOWN.get(self.like or "")
        return preset.all if preset and preset.also else ()
