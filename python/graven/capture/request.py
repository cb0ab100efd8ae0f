"""What is to be captured: which memory, what a transaction is, which part of a program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graven._engine import ConfigError

ADDRESS_BITS = 47
"""Of a program's addresses."""

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
        address: Where the program listens: a socket of the file system, or a port.
        clients: Commands that run one after the other; the last one has the program end.
    """

    address: Path | int
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
        only_pm: Whether the trace has no loads and stores of volatile memory.
        sysroot: The folder that has its loader and libraries, if `/` has not.
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
    only_pm: bool = False
    sysroot: Path | None = None

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

    def beginning(self) -> set[str]:
        """What functions are for with whose entry the trace may begin."""
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
        names = [name for t in self.transactions for name in (t.begin, t.commit)]
        edges = (self.from_function, self.until_function, *self.left_out)
        return [name for name in (*names, *edges) if name is not None]


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
