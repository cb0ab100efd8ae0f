"""Request traces that both sides of a comparison read, drawn from a seed.

A trace is a list of requests in the order in which they are offered, drawn for a geometry: rows,
banks and channels that a comparison has. Consecutive rows are in consecutive banks, after the
channels. Named traces are always the same. Of a *kind* two traces are drawn, sizes and distances
included: one by the kind's name, and one by the number in `seed.txt` as well, which changes with
each release, so that nothing is fitted to files that stay.

Only kinds that say so use a line twice. Elsewhere neither merging of writes nor reads answered from
a write queue can occur, which one side may have and the other not.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import accumulate, islice
from pathlib import Path

SEED = int(Path(__file__).with_name("seed.txt").read_text(encoding="ascii"))
"""The seed of this release. With another one every peer is measured again."""


@dataclass(frozen=True)
class Request:
    """One request of a line of 64 B."""

    cycle: int
    """When it is offered, in cycles of the memory."""
    write: bool
    row: int
    bank: int
    column: int
    channel: int = 0


Place = tuple[int, int, int, int]
"""Row, bank, column, channel."""


@dataclass(frozen=True)
class Geometry:
    """Places of a memory."""

    banks: int
    """Banks of a channel, of all ranks and groups."""
    lines: int
    """Lines of 64 B in a row."""
    channels: int = 1
    rows: int = 8192
    """Rows of a bank that traces touch."""

    @property
    def all_lines(self) -> int:
        """Number of lines that traces touch."""
        return self.rows * self.banks * self.channels * self.lines

    def address(self, request: Request) -> int:
        """The physical address: row, bank, channel, column, from high to low."""
        row = (request.row * self.banks + request.bank) * self.channels + request.channel
        return (row * self.lines + request.column) * 64

    def place(self, line: int) -> Place:
        """The place of a line, by its number from the first address on."""
        unit, column = divmod(line, self.lines)
        unit, channel = divmod(unit, self.channels)
        row, bank = divmod(unit, self.banks)
        return row, bank, column, channel


class Places:
    """Draws places; one that was given is not given again."""

    def __init__(self, seed: str, geometry: Geometry) -> None:
        self.random = random.Random(seed)
        self.geometry = geometry
        self.given: set[Place] = set()

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return int(self.random.random() * limit)

    def between(self, low: float, high: float) -> int:
        """A number from low to high; small ones are as likely as large ones, by ratio."""
        return round(low * math.pow(high / low, self.random.random()))

    def chance(self, of: float) -> bool:
        """True in so many cases."""
        return self.random.random() < of

    def gap(self, mean: float) -> int:
        """An exponentially distributed number of cycles, at least 1."""
        return max(1, round(self.random.expovariate(1 / mean)))

    def _row(self, bank: int | None) -> tuple[int, int, int]:
        row = self.below(self.geometry.rows)
        if bank is None:
            bank = self.below(self.geometry.banks)
        channels = self.geometry.channels
        return row, bank, self.below(channels) if channels > 1 else 0

    def line(self, bank: int | None = None) -> Place:
        """A line of any row of the bank, or of any bank."""
        while True:
            row, bank_, channel = self._row(bank)
            place = (row, bank_, self.below(self.geometry.lines), channel)
            if place not in self.given:
                self.given.add(place)
                return place

    def run(self, lines: int, bank: int | None = None) -> list[Place]:
        """Consecutive lines of a row of which nothing was given."""
        while True:
            row, bank_, channel = self._row(bank)
            places = [(row, bank_, column, channel) for column in range(lines)]
            if not self.given.intersection(places):
                self.given.update(places)
                return places

    def rows(self) -> Iterator[Place]:
        """All lines of a row of which nothing was given, in any order; then of another."""
        while True:
            places = self.run(self.geometry.lines)
            self.random.shuffle(places)
            yield from places


Make = Callable[[Places], Iterator[Request]]


def _at_once(draw: Callable[[Places], Place], writes: float) -> Make:
    """All at cycle 0: as fast as the memory takes them."""

    def make(places: Places) -> Iterator[Request]:
        while True:
            write = places.random.random() < writes
            yield Request(0, write, *draw(places))

    return make


def _sequential(writes: bool) -> Make:
    def make(places: Places) -> Iterator[Request]:
        for line in range(places.geometry.all_lines):
            yield Request(0, writes, *places.geometry.place(line))

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
        cycle, line = 0, places.geometry.all_lines
        while True:
            cycle += places.gap(gap)
            if places.random.random() < writes:
                yield Request(cycle, True, *places.geometry.place(line))
                line += 1
            else:
                yield Request(cycle, False, *places.line())

    return make


# ---- kinds -------------------------------------------------------------------------------------


def _idle_bursts(places: Places) -> Iterator[Request]:
    size, idle = places.between(8, 64), places.between(300, 2_000)
    writes = 0.5 * places.random.random()
    cycle = 0
    while True:
        for _ in range(size):
            yield Request(cycle, places.chance(writes), *places.line())
        cycle += places.gap(idle)


def _strides(places: Places) -> Iterator[Request]:
    geometry = places.geometry
    stride, gap = places.random.choice((3, 5, 7, 11, 17, 33, 65)), places.between(2, 30)
    writes = 0.4 * places.random.random()
    cycle, line = 0, places.below(geometry.all_lines)
    while True:
        yield Request(cycle, places.chance(writes), *geometry.place(line))
        cycle += places.gap(gap)
        line = (line + stride) % geometry.all_lines


def _zipf(places: Places, items: int) -> Iterator[int]:
    """Numbers below `items`, the first ones most often."""
    skew = 0.7 + 0.5 * places.random.random()
    weights = list(accumulate(1 / (rank + 1) ** skew for rank in range(items)))
    while True:
        yield from places.random.choices(range(items), cum_weights=weights, k=64)


def _zipf_rows(places: Places) -> Iterator[Request]:
    gap, writes = places.between(6, 40), 0.5 * places.random.random()
    rows = [places.rows() for _ in range(256)]
    cycle = 0
    for rank in _zipf(places, len(rows)):
        yield Request(cycle, places.chance(writes), *next(rows[rank]))
        cycle += places.gap(gap)


def _zipf_lines(places: Places) -> Iterator[Request]:
    gap, writes = places.between(8, 40), 0.5 * places.random.random()
    lines = [places.line() for _ in range(4_096)]
    cycle = 0
    for rank in _zipf(places, len(lines)):
        yield Request(cycle, places.chance(writes), *lines[rank])
        cycle += places.gap(gap)


def _updates(places: Places) -> Iterator[Request]:
    """Each line is read, and written some time after."""
    gap, later = places.between(16, 100), places.between(60, 600)
    cycle, writes = 0, list[tuple[int, Place]]()
    while True:
        place = places.line()
        yield Request(cycle, False, *place)
        heappush(writes, (cycle + places.gap(later), place))
        cycle += places.gap(gap)
        while writes[0][0] <= cycle:
            yield Request(writes[0][0], True, *heappop(writes)[1])
            if not writes:
                break


def _log_scatter(places: Places) -> Iterator[Request]:
    """Records of a log, then the lines that they are about, and reads meanwhile."""
    lines, changed = places.between(1, 8), places.between(1, 8)
    gap = places.between(15, 60) * (lines + changed)
    cycle, line = 0, places.geometry.all_lines
    while True:
        for _ in range(lines):
            yield Request(cycle, True, *places.geometry.place(line))
            line += 1
        for _ in range(changed):
            yield Request(cycle + 20, True, *places.line())
        for number in range(lines + changed):
            yield Request(cycle + 20 + 10 * number, False, *places.line())
        cycle += max(20 + 10 * (lines + changed), places.gap(gap))


def _row_conflicts(places: Places) -> Iterator[Request]:
    """Two rows of a bank in turn."""
    gap, writes = places.between(2, 60), places.random.choice((0, 0, 0.25))
    cycle = 0
    while True:
        bank = places.below(places.geometry.banks)
        for pair in zip(places.run(16, bank), places.run(16, bank), strict=True):
            for place in pair:
                yield Request(cycle, places.chance(writes), *place)
                cycle += places.gap(gap)


def _phases(places: Places) -> Iterator[Request]:
    """Random reads, writes of whole rows, mixes: each for a while, with its own distances."""
    cycle = 0
    while True:
        gap, writes = places.between(6, 60), places.random.choice((0, 0.2, 0.5, 1))
        lines = places.random.choice((1, 1, 8))
        for _ in range(places.between(100, 500) // lines):
            for place in places.run(lines):
                yield Request(cycle, places.chance(writes), *place)
                cycle += places.gap(gap)


def _ramp(places: Places) -> Iterator[Request]:
    """From a light load to a heavy one and back."""
    least, writes = places.between(4, 16), 0.4 * places.random.random()
    cycle, period = 0, places.between(600, 1_200)
    while True:
        for step in (*range(period), *reversed(range(period))):
            yield Request(cycle, places.chance(writes), *places.line())
            cycle += places.gap(least + 100 * (1 - step / period))


def _shared_rows(places: Places) -> Iterator[Request]:
    """Reads and writes of one row that come in one cycle."""
    lines, writes = places.between(2, 12), 0.2 + 0.4 * places.random.random()
    gap = places.between(12, 50) * lines
    cycle = 0
    while True:
        for place in places.run(lines):
            yield Request(cycle, places.chance(writes), *place)
        cycle += places.gap(gap)


def _light_mix(places: Places) -> Iterator[Request]:
    gap, writes = places.between(40, 200), 0.1 + 0.4 * places.random.random()
    yield from _spread(gap, writes)(places)


def _channels(places: Places) -> Iterator[Request]:
    """Runs of lines on all channels."""
    gap, writes = places.between(4, 20), 0.5 * places.random.random()
    cycle = 0
    while True:
        write = places.chance(writes)
        for place in places.run(places.between(1, 6)):
            yield Request(cycle, write, *place)
            cycle += places.gap(gap)


@dataclass(frozen=True)
class Trace:
    """A named trace."""

    name: str
    what: str
    requests: int
    make: Make
    seed: str
    channels: int = 1
    repeats: bool = False
    """True if a line may occur more than once."""

    def of(self, geometry: Geometry) -> Geometry:
        """The geometry with the channels that the trace is about."""
        return replace(geometry, channels=self.channels)

    def draw(self, geometry: Geometry) -> list[Request]:
        """Draws the requests; they are always the same."""
        return list(islice(self.make(Places(self.seed, self.of(geometry))), self.requests))


def _named(name: str, what: str, requests: int, make: Make) -> Trace:
    return Trace(name, what, requests, make, seed=name)


NAMED = [
    _named("sequential-reads", "consecutive lines, saturating", 10_000, _sequential(writes=False)),
    _named("sequential-writes", "consecutive lines, saturating", 10_000, _sequential(writes=True)),
    _named("random-reads", "random lines, saturating", 10_000, _at_once(Places.line, 0)),
    _named("random-writes", "random lines, saturating", 10_000, _at_once(Places.line, 1)),
    _named("random-mixed", "random, half writes, saturating", 10_000, _at_once(Places.line, 0.5)),
    _named(
        "bank-reads", "random rows of bank 3, saturating", 4_000, _at_once(lambda p: p.line(3), 0)
    ),
    _named(
        "bank-writes", "random rows of bank 3, saturating", 4_000, _at_once(lambda p: p.line(3), 1)
    ),
    _named("row-reads", "8 lines of a random row at a time, saturating", 10_000, _runs(8, 0)),
    _named("row-writes", "8 lines of a random row at a time, saturating", 10_000, _runs(8, 1)),
    _named("row-mixed", "8 lines, all read or all written, saturating", 10_000, _runs(8, 0.5)),
    _named("sparse-reads", "random, one in 200 cycles", 4_000, _spread(200, 0)),
    _named("sparse-mixed", "random, a third writes, one in 100 cycles", 4_000, _spread(100, 1 / 3)),
    _named("loaded-mixed", "random, a third writes, one in 16 cycles", 10_000, _spread(16, 1 / 3)),
    _named(
        "write-bursts",
        "random reads, one in 40 cycles; 96 writes every 8,000 cycles",
        10_000,
        _bursts(40, 8_000, 96),
    ),
    _named(
        "log-and-reads",
        "consecutive writes and random reads, 1 to 2, one in 40 cycles",
        10_000,
        _log(40, 1 / 3),
    ),
]
"""Traces by name of what they are for."""

_KINDS: list[tuple[str, str, Make, int, bool]] = [
    ("idle-bursts", "random lines, many in one cycle, then none", _idle_bursts, 1, False),
    ("strides", "each third to 65th line", _strides, 1, False),
    ("zipf-rows", "lines of 256 rows, some far more often", _zipf_rows, 1, False),
    ("zipf-lines", "4,096 lines, some far more often", _zipf_lines, 1, True),
    ("updates", "lines that are read and then written", _updates, 1, True),
    ("log-scatter", "a log, scattered writes, and reads", _log_scatter, 1, False),
    ("row-conflicts", "two rows of a bank in turn", _row_conflicts, 1, False),
    ("phases", "reads, writes and mixes, each for a while", _phases, 1, False),
    ("ramp", "from a light load to a heavy one and back", _ramp, 1, False),
    ("shared-rows", "reads and writes of a row in one cycle", _shared_rows, 1, False),
    ("light-mix", "random reads and writes, far apart", _light_mix, 1, False),
    ("two-channels", "reads and writes on two channels", _channels, 2, False),
    ("four-channels", "reads and writes on four channels", _channels, 4, False),
]

KINDS = [
    Trace(f"{name}{suffix}", what, 3_000, make, f"{name}{seed}", channels, repeats)
    for name, what, make, channels, repeats in _KINDS
    for suffix, seed in (("", ""), ("-drawn", f" {SEED}"))
]
"""Two traces of each kind, of which the second one is drawn by the release's seed."""

TRACES = {trace.name: trace for trace in (*NAMED, *KINDS)}


def digest(requests: list[Request]) -> int:
    """A number by which to recognize a trace."""
    return zlib.crc32(repr([vars(each) for each in requests]).encode("ascii"))


def write_nvmain(requests: list[Request], geometry: Geometry, path: Path) -> None:
    """Writes NVMain's format: `CYCLE R|W ADDRESS DATA THREAD`, with random data."""
    data = random.Random("data")
    with path.open("w", encoding="ascii") as file:
        file.write("NVMV0\n")
        for request in requests:
            operation = "W" if request.write else "R"
            words = f"{data.getrandbits(512):0128x}"
            file.write(f"{request.cycle} {operation} 0x{geometry.address(request):x} {words} 0\n")


def write_dramsim(requests: list[Request], geometry: Geometry, path: Path) -> None:
    """Writes DRAMsim3's format: `ADDRESS READ|WRITE CYCLE`."""
    lines = (
        f"0x{geometry.address(each):X} {'WRITE' if each.write else 'READ'} {each.cycle}\n"
        for each in requests
    )
    path.write_text("".join(lines), encoding="ascii")
