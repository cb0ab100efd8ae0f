"""Programs of loads and stores as ChampSim's traces; each is drawn from its name as the seed.

A trace has three parts. The first brings translations and caches of both simulators to the same
state: it touches every page, in order, so that Graven's import gives each page the place that it
has here, and then reads lines that nothing else touches, until no cache holds anything else. The
second is what is compared. Instructions without memory separate the parts and follow the last, more
of them than a reorder buffer has.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

LINE_BYTES = 64
PAGE_BYTES = 4096
START = PAGE_BYTES
"""The first address; also the first of PM that Graven's import gives away."""
DATA_BYTES = 12 << 20
"""Bytes that programs touch, from the first address on."""
SWEPT_BYTES = 5 << 18
"""Bytes that are read after them to fill the caches: 1.25 MB, more than the largest one."""
PADDING = 1000
"""Instructions without memory between the parts."""
ACCESSES = 20_000
"""Accesses of a program that names no other number."""

_INSTRUCTION = struct.Struct("<QBB2B4B2Q4Q")
INSTRUCTION_BYTES = _INSTRUCTION.size
_CODE = 0x7F00_0000_0000
_REGISTER = 1


@dataclass(frozen=True)
class Access:
    """One load or store of a word."""

    write: bool
    address: int


Make = Callable[[random.Random], Iterator[Access]]


def _at(byte: int) -> int:
    return START + byte // 8 * 8


def _words(size: int, writes: float) -> Make:
    """Random words of so many bytes."""

    def make(draw: random.Random) -> Iterator[Access]:
        while True:
            write = draw.random() < writes
            yield Access(write, _at(int(draw.random() * size)))

    return make


def _lines(size: int, writes: float) -> Make:
    """The lines of so many bytes in a random order, again and again in the same."""

    def make(draw: random.Random) -> Iterator[Access]:
        order = list(range(size // LINE_BYTES))
        draw.shuffle(order)
        while True:
            for line in order:
                yield Access(draw.random() < writes, START + line * LINE_BYTES)

    return make


def _stride(step: int, size: int, write: bool) -> Make:
    """One access at each step through so many bytes, again and again."""

    def make(_: random.Random) -> Iterator[Access]:
        while True:
            for byte in range(0, size, step):
                yield Access(write, START + byte)

    return make


def _updates(size: int) -> Make:
    """A random word is read, then stored to."""

    def make(draw: random.Random) -> Iterator[Access]:
        while True:
            address = _at(int(draw.random() * size))
            yield Access(False, address)
            yield Access(True, address)

    return make


def _copy(size: int) -> Make:
    """Words are read in order, and stored to another place in order."""

    def make(_: random.Random) -> Iterator[Access]:
        while True:
            for byte in range(0, size, 8):
                yield Access(False, START + byte)
                yield Access(True, START + DATA_BYTES // 2 + byte)

    return make


def _hot_and_cold(hot: int, cold: int, share: float, writes: float) -> Make:
    """Random words of a small part, this share of them, or of a large one behind it."""

    def make(draw: random.Random) -> Iterator[Access]:
        while True:
            write = draw.random() < writes
            at = draw.random()
            byte = at * hot if draw.random() < share else hot + at * (cold - hot)
            yield Access(write, _at(int(byte)))

    return make


def _zipf(size: int, writes: float) -> Make:
    """Words by Zipf's law: each power of two of ranks is as frequent, and ranks lie at random."""

    def make(draw: random.Random) -> Iterator[Access]:
        words = list(range(0, size, 8))
        draw.shuffle(words)
        while True:
            rank = int(len(words) ** draw.random())
            yield Access(draw.random() < writes, START + words[rank - 1])

    return make


def _transpose(rows: int) -> Make:
    """A matrix of words is read by rows, and another stored to by columns."""

    def make(_: random.Random) -> Iterator[Access]:
        while True:
            for row in range(rows):
                for column in range(rows):
                    yield Access(False, START + 8 * (row * rows + column))
                    at = 8 * (column * rows + row)
                    yield Access(True, START + DATA_BYTES // 2 + at)

    return make


def _columns(rows: int, columns: int) -> Make:
    """A matrix of words is read by columns."""

    def make(_: random.Random) -> Iterator[Access]:
        while True:
            for column in range(columns):
                for row in range(rows):
                    yield Access(False, START + 8 * (row * columns + column))

    return make


def _descent(levels: int, fan: int) -> Make:
    """Paths from the root of a tree to a random leaf: a line of each level."""

    def make(draw: random.Random) -> Iterator[Access]:
        while True:
            first, node = 0, 0
            for level in range(levels):
                yield Access(False, START + 64 * (first + node))
                first += fan**level
                node = node * fan + draw.randrange(fan)

    return make


def _none(_: random.Random) -> Iterator[Access]:
    return iter(())


@dataclass(frozen=True)
class Program:
    """A named program."""

    name: str
    what: str
    make: Make
    dependent: bool = False
    """True if each access waits for the one before on an out-of-order core, too."""
    accesses: int = ACCESSES

    def draw(self) -> list[Access]:
        """Draws the accesses; they are always the same, as the name is the seed."""
        return list(islice(self.make(random.Random(self.name)), self.accesses))


KB, MB = 1 << 10, 1 << 20

PROGRAMS = [
    Program("sequential-reads", "consecutive words", _stride(8, 12 * MB, write=False)),
    Program("sequential-writes", "consecutive words", _stride(8, 12 * MB, write=True)),
    Program(
        "line-writes", "a word of each line of 12 MB", _stride(64, 12 * MB, True), accesses=60_000
    ),
    Program("stride-256", "one word in 256 B of 8 MB", _stride(256, 8 * MB, write=False)),
    Program(
        "stride-4k", "24 words 4 KB apart, in one set of the L1", _stride(4096, 96 * KB, False)
    ),
    Program("l1-reads", "random words of 24 KB", _words(24 * KB, 0)),
    Program("l2-reads", "random words of 192 KB", _words(192 * KB, 0)),
    Program("llc-reads", "random words of 768 KB", _words(768 * KB, 0)),
    Program("memory-reads", "random words of 12 MB", _words(12 * MB, 0)),
    Program("l2-chase", "lines of 128 KB in a random cycle", _lines(128 * KB, 0), dependent=True),
    Program("llc-chase", "lines of 640 KB in a random cycle", _lines(640 * KB, 0), dependent=True),
    Program("memory-chase", "lines of 4 MB in a random cycle", _lines(4 * MB, 0), dependent=True),
    Program("l1-mixed", "random words of 24 KB, half stores", _words(24 * KB, 0.5)),
    Program("l2-mixed", "random words of 192 KB, half stores", _words(192 * KB, 0.5)),
    Program("llc-mixed", "random words of 768 KB, half stores", _words(768 * KB, 0.5)),
    Program(
        "memory-mixed", "random words of 12 MB, half stores", _words(12 * MB, 0.5), accesses=40_000
    ),
    Program(
        "memory-lines",
        "lines of 1.5 MB in a random cycle, half stores",
        _lines(3 * MB // 2, 0.5),
        accesses=40_000,
    ),
    Program("updates", "random words of 2 MB, read and stored to", _updates(2 * MB)),
    Program("copy", "words read in order, and stored elsewhere in order", _copy(6 * MB)),
    Program(
        "hot-and-cold",
        "random words, half of them of 16 KB, the others of 8 MB; a quarter stores",
        _hot_and_cold(16 * KB, 8 * MB, 0.5, 0.25),
        accesses=40_000,
    ),
    Program("zipf-reads", "words of 8 MB by Zipf's law", _zipf(8 * MB, 0)),
    Program("zipf-mixed", "words of 8 MB by Zipf's law, half stores", _zipf(8 * MB, 0.5)),
    Program("transpose", "384 rows of 384 words, stored to by columns", _transpose(384)),
    Program("columns", "240 rows of 384 words, read by columns", _columns(240, 384)),
    Program("descent", "paths in a tree of 7 levels of 6", _descent(7, 6), dependent=True),
]
"""All programs, by name of what they are for."""
EMPTY = Program(
    "empty", "no accesses: its cycles and counts are those of what is around a program", _none
)


def find(name: str) -> Program:
    """A program by its name."""
    return next(each for each in (EMPTY, *PROGRAMS) if each.name == name)


class Trace:
    """A trace of ChampSim's as it is written."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def padding(self) -> None:
        """Instructions without memory."""
        for _ in range(PADDING):
            self._instruction((), (), 0)

    def access(self, access: Access, dependent: bool) -> None:
        """A load or a store; it may wait for the one before."""
        register = _REGISTER if dependent else 0
        places = (access.address,)
        loads, stores = ((), places) if access.write else (places, ())
        self._instruction(loads, stores, register)

    def _instruction(self, loads: tuple[int, ...], stores: tuple[int, ...], register: int) -> None:
        ip = _CODE + len(self.parts) % 16 * 4
        stored = (*stores, 0, 0)[:2]
        loaded = (*loads, 0, 0, 0, 0)[:4]
        registers = (register, 0, register, 0, 0, 0)
        self.parts.append(_INSTRUCTION.pack(ip, 0, 0, *registers, *stored, *loaded))

    def write(self, path: Path) -> int:
        """Writes the file; returns the number of instructions."""
        path.write_bytes(b"".join(self.parts))
        return len(self.parts)


def write(accesses: list[Access], dependent: bool, path: Path) -> int:
    """Writes a program's trace; returns how many instructions come before the second part."""
    trace = Trace()
    for address in range(START, START + DATA_BYTES + SWEPT_BYTES, PAGE_BYTES):
        trace.access(Access(False, address), True)
    for byte in range(0, SWEPT_BYTES, LINE_BYTES):
        trace.access(Access(False, START + DATA_BYTES + byte), True)
    trace.padding()
    before = len(trace.parts)
    for access in accesses:
        trace.access(access, dependent)
    trace.padding()
    trace.write(path)
    return before - PADDING // 2
