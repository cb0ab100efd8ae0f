"""Request traces that both sides of a comparison read, drawn from a seed.

A trace is a list of requests in the order in which they are offered. Addresses are built from
rows, banks and columns of the compared geometry: eight banks, rows of 2 KB, consecutive rows in
consecutive banks. No line is used twice, so that neither merging of writes nor reads answered
from a write queue can occur, which one side has and the other has not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

BANKS = 8
LINES_PER_ROW = 32
"""Lines of 64 B in a row of 2 KB."""
ROWS = 8192
"""Rows of a bank that traces touch: 128 MB in all banks."""


@dataclass(frozen=True)
class Request:
    """One request of a line of 64 B."""

    cycle: int
    """When it is offered, in cycles of the memory."""
    write: bool
    row: int
    bank: int
    column: int

    @property
    def address(self) -> int:
        """The physical address: row, bank, column, from high to low."""
        return ((self.row * BANKS + self.bank) * LINES_PER_ROW + self.column) * 64


Place = tuple[int, int, int]
"""Row, bank, column."""


class Places:
    """Draws places; one that was given is not given again."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.given: set[Place] = set()

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return int(self.random.random() * limit)

    def gap(self, mean: float) -> int:
        """An exponentially distributed number of cycles, at least 1."""
        return max(1, round(self.random.expovariate(1 / mean)))

    def line(self, bank: int | None = None) -> Place:
        """A line of any row of the bank, or of any bank."""
        while True:
            place = (
                self.below(ROWS),
                self.below(BANKS) if bank is None else bank,
                self.below(LINES_PER_ROW),
            )
            if place not in self.given:
                self.given.add(place)
                return place

    def run(self, lines: int) -> list[Place]:
        """Consecutive lines of a row of which nothing was given."""
        while True:
            row, bank = self.below(ROWS), self.below(BANKS)
            places = [(row, bank, column) for column in range(lines)]
            if not self.given.intersection(places):
                self.given.update(places)
                return places


Make = Callable[[Places], Iterator[Request]]


def _at_once(draw: Callable[[Places], Place], writes: float) -> Make:
    """All at cycle 0: as fast as the memory takes them."""

    def make(places: Places) -> Iterator[Request]:
        while True:
            write = places.random.random() < writes
            yield Request(0, write, *draw(places))

    return make


def _sequential(writes: bool) -> Make:
    def make(_: Places) -> Iterator[Request]:
        for line in range(BANKS * ROWS * LINES_PER_ROW):
            unit, column = divmod(line, LINES_PER_ROW)
            row, bank = divmod(unit, BANKS)
            yield Request(0, writes, row, bank, column)

    return make


def _runs(lines: int, writes: float) -> Make:
    def make(places: Places) -> Iterator[Request]:
        while True:
            write = places.random.random() < writes
            for place in places.run(lines):
                yield Request(0, write, *place)

    return make


def _spread(gap: float, writes: float) -> Make:
    """Random lines, at exponentially distributed distances."""

    def make(places: Places) -> Iterator[Request]:
        cycle = 0
        while True:
            cycle += places.gap(gap)
            yield Request(cycle, places.random.random() < writes, *places.line())

    return make


def _bursts(gap: float, period: int, size: int) -> Make:
    """Random reads, and every so often many random writes in one cycle."""

    def make(places: Places) -> Iterator[Request]:
        cycle, burst = 0, period
        while True:
            cycle += places.gap(gap)
            if cycle >= burst:
                for _ in range(size):
                    yield Request(burst, True, *places.line())
                burst += period
            yield Request(cycle, False, *places.line())

    return make


def _log(gap: float, writes: float) -> Make:
    """Writes to consecutive lines, from the first row that reads do not touch; reads anywhere."""

    def make(places: Places) -> Iterator[Request]:
        cycle, line = 0, ROWS * BANKS * LINES_PER_ROW
        while True:
            cycle += places.gap(gap)
            if places.random.random() < writes:
                unit, column = divmod(line, LINES_PER_ROW)
                row, bank = divmod(unit, BANKS)
                yield Request(cycle, True, row, bank, column)
                line += 1
            else:
                yield Request(cycle, False, *places.line())

    return make


@dataclass(frozen=True)
class Trace:
    """A named trace."""

    name: str
    what: str
    requests: int
    make: Make

    def draw(self) -> list[Request]:
        """Draws the requests; they are always the same, as the name is the seed."""
        return list(islice(self.make(Places(self.name)), self.requests))


TRACES = [
    Trace("sequential-reads", "consecutive lines, saturating", 10_000, _sequential(writes=False)),
    Trace("sequential-writes", "consecutive lines, saturating", 10_000, _sequential(writes=True)),
    Trace("random-reads", "random lines, saturating", 10_000, _at_once(Places.line, 0)),
    Trace("random-writes", "random lines, saturating", 10_000, _at_once(Places.line, 1)),
    Trace("random-mixed", "random, half writes, saturating", 10_000, _at_once(Places.line, 0.5)),
    Trace(
        "bank-reads", "random rows of bank 3, saturating", 4_000, _at_once(lambda p: p.line(3), 0)
    ),
    Trace(
        "bank-writes", "random rows of bank 3, saturating", 4_000, _at_once(lambda p: p.line(3), 1)
    ),
    Trace("row-reads", "8 lines of a random row at a time, saturating", 10_000, _runs(8, 0)),
    Trace("row-writes", "8 lines of a random row at a time, saturating", 10_000, _runs(8, 1)),
    Trace("row-mixed", "8 lines, all read or all written, saturating", 10_000, _runs(8, 0.5)),
    Trace("sparse-reads", "random, one in 200 cycles", 4_000, _spread(200, 0)),
    Trace("sparse-mixed", "random, a third writes, one in 100 cycles", 4_000, _spread(100, 1 / 3)),
    Trace("loaded-mixed", "random, a third writes, one in 16 cycles", 10_000, _spread(16, 1 / 3)),
    Trace(
        "write-bursts",
        "random reads, one in 40 cycles; 96 writes every 8,000 cycles",
        10_000,
        _bursts(40, 8_000, 96),
    ),
    Trace(
        "log-and-reads",
        "consecutive writes and random reads, 1 to 2, one in 40 cycles",
        10_000,
        _log(40, 1 / 3),
    ),
]
"""All traces, by name of what they are for."""


def write_nvmain(requests: list[Request], path: Path) -> None:
    """Writes NVMain's format: `CYCLE R|W ADDRESS DATA THREAD`, with random data."""
    data = random.Random("data")
    with path.open("w", encoding="ascii") as file:
        file.write("NVMV0\n")
        for request in requests:
            operation = "W" if request.write else "R"
            words = f"{data.getrandbits(512):0128x}"
            file.write(f"{request.cycle} {operation} 0x{request.address:x} {words} 0\n")
