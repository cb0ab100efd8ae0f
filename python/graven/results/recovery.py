"""Recovery in simulated time: how a run or a comparison is asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graven._engine import ConfigError
from graven.engine.machine import Machine
from graven.results.comparison import METRICS, Metric, metrics_of

POINTS = "recovery.points"
"""The key for a number of power failures, evenly spaced over each run."""

WHERE = (POINTS, "recovery.at_cycle", "recovery.at_percent")
"""The keys that say where power fails; where all are 0, recovery is not timed."""

PREFIX = "recovery_"
"""Prefix of the names of its statistics."""

TIME = Metric("recovery_ms", "Recovery time", higher_is_better=False)


def with_recovery(settings: Mapping[str, str], failures: int | None) -> dict[str, str]:
    """Returns settings that time recovery after a number of power failures, if one is given.

    Raises:
        ConfigError: the settings say where power fails, too.
    """
    if failures is None:
        return dict(settings)
    for key in WHERE:
        if key in settings:
            raise ConfigError(
                f"recovery: {failures} power failures are asked for, and {key} = {settings[key]} "
                "is set; one of them says where power fails"
            )
    return {**settings, POINTS: str(failures)}


def is_asked(settings: Mapping[str, str], varied: Iterable[str], machine: Machine) -> bool:
    """Tells whether recovery is timed under at least one of the varied values."""
    if any(key in WHERE for key in varied):
        return True
    said = {key: value.value for key, value in machine.values().items() if key in WHERE}
    values = [settings.get(key, said.get(key, 0)) for key in WHERE]
    return any(str(value) not in ("0", "0.0", "None") for value in values)


def shown(stats: Sequence[str] | None, *, asked: bool) -> tuple[Metric, ...]:
    """Returns the metrics of these statistics, or the default ones.

    Raises:
        ConfigError: there is no such statistic, or it is one of recovery, which is not timed.
    """
    if stats is None:
        return (*METRICS, TIME) if asked else METRICS
    for stat in stats:
        if stat.startswith(PREFIX) and not asked:
            raise ConfigError(
                f"metrics: `{stat}` is there only if recovery is timed: --recovery N, or "
                f"one of {', '.join(WHERE)} (graven list parameters recovery)"
            )
    return tuple(TIME if metric.stat == TIME.stat else metric for metric in metrics_of(stats))
