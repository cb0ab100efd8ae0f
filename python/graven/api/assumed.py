"""Things that a trace of requests does not say, and its reader is told; how one is written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from graven._engine import ConfigError
from graven.api.recognised import DRAMSYS, GEM5, VECTORS, recognised
from graven.basics import arguments
from graven.basics.compressed import Reading
from graven.running.job import is_binary

_UNITS = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9, "THz": 10**12}

_CLOCK = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})\s*", re.ASCII)

CLOCK_HZ_MAX = 10**15

LINES_MAX = 1 << 58
"""Lines that 64 bits of an address can tell apart."""


@dataclass(frozen=True)
class Assumed:
    """Assumptions about a trace of requests.

    Attributes:
        clock_hz: Cycles of the trace in a second; nothing: its cycles are the core's.
        levels: Numbers of channels, ranks and so on, down to columns, of addresses that are
            vectors.
        is_relative: Cycles of DRAMSys count from the request before, as in `.rstl`.
    """

    clock_hz: int | None = None
    levels: tuple[int, ...] = ()
    is_relative: bool = False

    @classmethod
    def of(cls, clock: object, levels: object, relative: object) -> Assumed:
        """The assumptions of the arguments.

        Raises:
            ConfigError: one is refused.
        """
        return cls(_clock_hz("clock", clock), _levels(levels), arguments.flag("relative", relative))

    def spec(self) -> dict[str, Any]:
        """Entries of a specification; none if nothing is assumed."""
        found: dict[str, Any] = {}
        if self.clock_hz is not None:
            found["clock_hz"] = self.clock_hz
        if self.levels:
            found["levels"] = list(self.levels)
        if self.is_relative:
            found["relative"] = True
        return found

    def check(self, file: Reading) -> None:
        """Refuses assumptions that do not go with a trace.

        Raises:
            ConfigError: one is made.
        """
        found = recognised(file.beginning)
        if self.levels and found is not VECTORS:
            allowed = f"only {VECTORS.name} has addresses of levels"
            raise ConfigError(f"levels: {file.path} is not allowed with them; {allowed}")
        if self.is_relative and found is not DRAMSYS:
            allowed = f"only {DRAMSYS.name} may have relative cycles"
            raise ConfigError(f"relative: {file.path} is not allowed with it; {allowed}")
        if self.clock_hz is not None and found is GEM5:
            allowed = f"{GEM5.name} says its own"
            raise ConfigError(f"clock: {file.path} is not allowed with it; {allowed}")


FORMATS = ("graven", "nvmain", "dramsim3", "ramulator", "ramulator2", "dramsys", "gem5")
"""Formats that a trace of requests is written in."""


@dataclass(frozen=True)
class WrittenAs:
    """The way in which a trace of requests is written.

    Attributes:
        format: One of `FORMATS`; nothing: the one that the file's name says.
        clock_hz: Cycles of it in a second; nothing: they are the core's.
    """

    format: str | None = None
    clock_hz: int | None = None

    @classmethod
    def of(cls, format: object, clock: object) -> WrittenAs:
        """The way that the arguments say.

        Raises:
            ConfigError: one is refused.
        """
        name = arguments.text_or_none("format", format)
        if name is not None and name not in FORMATS:
            raise ConfigError(f"format: {name!r} is not allowed; {', '.join(FORMATS)}")
        return cls(name, _clock_hz("to_clock", clock))

    def spec(self, out: Path) -> dict[str, Any]:
        """Entries of a specification that writes to a file."""
        by_name = "graven" if is_binary(out) else "nvmain"
        found: dict[str, Any] = {"format": self.format or by_name}
        return found if self.clock_hz is None else {**found, "to_clock_hz": self.clock_hz}


def _clock_hz(name: str, clock: object) -> int | None:
    text = arguments.text_or_none(name, clock)
    if text is None:
        return None
    found = _CLOCK.fullmatch(text)
    frequency = Fraction(found[1]) * _UNITS[found[2]] if found else Fraction(0)
    if frequency.denominator != 1 or not 1 <= frequency <= CLOCK_HZ_MAX:
        allowed = f"a number of {', '.join(_UNITS)}, from 1 Hz to 1000 THz and whole in Hz"
        raise ConfigError(f"{name}: {text!r} is not allowed; {allowed}")
    return int(frequency)


def _levels(levels: object) -> tuple[int, ...]:
    if levels is None:
        return ()
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise ConfigError(f"levels: {levels!r} is not a list of integers")
    found = tuple(arguments.integer("levels", level, 1, LINES_MAX) for level in levels)
    if not found:
        raise ConfigError("levels: the list is empty")
    if math.prod(found) > LINES_MAX:
        raise ConfigError(f"levels: {list(found)} is not allowed; their product is at most 2^58")
    return found
