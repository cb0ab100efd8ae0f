"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping

from graven.records import Value

MISSING = "–"


def ratio(value: float | None) -> str:
    """A multiple of the baseline: three significant digits, at least two after the point."""
    if value is None:
        return MISSING
    if value >= 1000 or 0 < value < 0.005:
        return f"{value:.2e}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def scaled(value: float | None) -> str:
    """A number of any size in few digits: `1.24 M`."""
    if value is None:
        return MISSING
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g}"


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


def caption(varied: Mapping[str, Value]) -> str:
    """A combination of varied values: `workload.element_bytes = 4 KB, pm.write_ns = 300`."""
    return ", ".join(f"{key} = {exact(value)}" for key, value in varied.items())
