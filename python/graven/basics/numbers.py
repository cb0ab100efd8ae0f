"""Numbers as people read them: one rule for terminals, reports and pictures.

Three significant digits. Very large numbers have a prefix, as in `1.24 M`; multiples of something
have none, and show no more than two digits after the point unless they are below 0.1. Numbers along
an axis have as many digits as tell them apart, and share the prefix of the axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = int | float | str | bool | None
"""A statistic (numbers; the image's digest is text) or a configuration value."""


MISSING = "–"


_LEAST, _MOST = 1e-4, 1e6
"""Range in which a multiple is written without an exponent."""


def _rounded(value: float) -> float:
    """A number with three significant digits."""
    return float(f"{value:.2e}")


def ratio(value: float | None) -> str:
    """A multiple of the baseline: three significant digits, or two of less than 0.1."""
    if value is None:
        return MISSING
    size = abs(_rounded(value))
    if size == 0.0:
        return "0"
    if not _LEAST <= size < _MOST:
        return f"{value:.2e}"
    if size < 0.1:
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def with_spread(number: str, half_width: float) -> str:
    """A number that is written, and half of its interval with as many digits after the point."""
    digits = len(number.partition(".")[2]) if "e" not in number else 0
    if "e" in number or (half_width and half_width < 0.5 * 10.0**-digits):
        return f"{number} ±{half_width:.1g}"
    return f"{number} ±{half_width:,.{digits}f}"


_PREFIXES = {5: "P", 4: "T", 3: "G", 2: "M", 1: "k", 0: "", -1: "m", -2: "µ", -3: "n", -4: "p"}
"""By the power of a thousand."""


_LARGE = [(1000.0**power, prefix) for power, prefix in _PREFIXES.items() if power > 0]


def scaled(value: float | None) -> str:
    """A number of any size in few digits: `1.24 M`."""
    if value is None:
        return MISSING
    for factor, prefix in _LARGE:
        if abs(_rounded(value)) >= factor:
            return f"{_rounded(value) / factor:.3g} {prefix}"
    return f"{_rounded(value):.3g}"


@dataclass(frozen=True)
class Scale:
    """A divisor of the numbers along an axis, and their unit then."""

    factor: float
    unit: str


_SYMBOLS = ("B", "J", "s")
"""Units that a prefix is written to without a space; they may have one already, as `pJ`."""


def scale(unit: str, top: float) -> Scale:
    """The scale of an axis that ends at `top`: of 3 × 10⁹ pJ, thousand millions and `mJ`."""
    power = math.floor(math.log10(abs(top)) / 3 + 1e-9) if top else 0
    symbol, slash, per = unit.partition("/")
    own = next((p for p, prefix in _PREFIXES.items() for s in _SYMBOLS if symbol == prefix + s), 0)
    if symbol[-1:] not in _SYMBOLS or symbol[:-1] not in _PREFIXES.values():
        power = min(max(power, 0), max(_PREFIXES))
        return Scale(1000.0**power, f"{_PREFIXES[power]} {unit}".strip())
    power = min(max(power, min(_PREFIXES) - own), max(_PREFIXES) - own)
    return Scale(1000.0**power, f"{_PREFIXES[own + power]}{symbol[-1]}{slash}{per}")


def steps(values: Sequence[float]) -> list[str]:
    """Numbers along an axis, all with as many digits after the point as tell them apart."""
    top = max((abs(value) for value in values), default=0.0)
    for digits in range(5):
        if all(abs(round(value, digits) - value) <= 1e-6 * top for value in values):
            return [_without_minus_zero(f"{value:,.{digits}f}") for value in values]
    return [f"{value:.3g}" for value in values]


def _without_minus_zero(text: str) -> str:
    return text.removeprefix("-") if not text.strip("-0.") else text


def exact(value: Value) -> str:
    """A statistic with all its digits: whole numbers in groups, six digits for others."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else exact(round(value))
    return value


def size_text(count: int) -> str:
    """Bytes as a person says them, in units of 1,024."""
    if count >= 1 << 30:
        return f"{count / (1 << 30):.1f} GB"
    return f"{count / (1 << 20):.1f} MB"


def counted(count: int, what: str) -> str:
    """A count with its noun: `1 design`, `1,234 results`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def caption(varied: Mapping[str, Value]) -> str:
    """A combination of varied values: `workload.element_bytes = 4 KB, pm.write_ns = 300`."""
    return ", ".join(f"{key} = {exact(value)}" for key, value in varied.items())
