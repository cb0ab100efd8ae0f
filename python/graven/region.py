"""Regions in steady state: settings that ask for them, and results that are of none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from graven._engine import ConfigError
from graven.recovery import WHERE

if TYPE_CHECKING:
    from graven.records import Record

KIND = "region.kind"
STEADY = "steady"


def in_steady_state(settings: Mapping[str, str], *, asked: bool) -> dict[str, str]:
    """Settings that have a region in steady state measured, if that is asked for.

    Raises:
        ConfigError: `region.kind` is set to something else, or recovery is timed, whose power
            failures strike a run from its beginning.
    """
    if not asked:
        return dict(settings)
    if settings.get(KIND, STEADY) != STEADY:
        raise ConfigError(
            f"steady: a region in steady state is asked for, and {KIND} = {settings[KIND]}; "
            "one of them is to go"
        )
    timed = [key for key in WHERE if settings.get(key, "0") != "0"]
    if timed:
        raise ConfigError(
            f"steady: recovery ({timed[0]}) is timed in runs from their beginning; one of them is "
            "to go"
        )
    return {**settings, KIND: STEADY}


def not_steady(records: Iterable[Record]) -> list[str]:
    """Lines that say which results are of no steady state, and why."""
    return [
        f"{record.design} on {record.workload}"
        + "".join(f", {key} = {value}" for key, value in record.varied.items())
        + f": {'; '.join(record.why_not_steady)}"
        for record in records
        if record.why_not_steady
    ]
