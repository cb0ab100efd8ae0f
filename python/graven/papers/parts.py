"""Workloads of an experiment whose keys have values of their own.

A paper that runs its macro-benchmarks on fewer threads than its micro-benchmarks, or with values of
other sizes, still draws them in one figure and takes one mean over all. Such workloads are a part
of the experiment: the designs are the same, and what is varied is, with other values. Programs
whose transactions are as large as a hundred of the others' run fewer of them. Where that depends on
what is varied, as with the size of an item, a workload is in a part for each of the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graven._engine import ConfigError
from graven.basics.toml import Table
from graven.engine.selection import Variation


@dataclass(frozen=True)
class Part:
    """Workloads apart from the others of their experiment.

    Attributes:
        workloads: Their names.
        threads: Numbers of program threads; `None` for those of the experiment.
        transactions: Of one simulation, over all threads; `None` for those of the experiment.
        settings: Keys that are set for them, over those of the experiment.
        vary: Keys that the experiment varies, with the values that they have here.
        quick: What takes the place of `threads`, `transactions`, `settings` and `vary` when there
            are minutes only.
    """

    workloads: tuple[str, ...]
    threads: tuple[int, ...] | None
    transactions: int | None
    settings: tuple[tuple[str, str], ...]
    vary: tuple[Variation, ...]
    quick: Mapping[str, Any] = field(default_factory=dict)

    def sized(self, workloads: Sequence[str], *, quick: bool) -> Part:
        """At its full size or at the one that takes minutes; of its workloads, those that run."""
        own = replace(self, **self.quick) if quick else self
        return replace(own, workloads=tuple(name for name in self.workloads if name in workloads))

    def differs(self, other: Part) -> bool:
        """Tells whether a key that both vary has no common value, at either size."""
        return all(
            any(
                mine.key == theirs.key and not set(mine.values) & set(theirs.values)
                for mine in self.sized(self.workloads, quick=quick).vary
                for theirs in other.sized(other.workloads, quick=quick).vary
            )
            for quick in (False, True)
        )

    def varied(self, of_all: Sequence[Variation]) -> tuple[Variation, ...]:
        """Keys that are varied here, in the order of the experiment."""
        own = {item.key: item for item in self.vary}
        return tuple(own.get(item.key, item) for item in of_all)


def parts(table: Table, workloads: Sequence[str], vary: Sequence[Variation]) -> tuple[Part, ...]:
    """The parts of an experiment with these workloads, which varies these keys.

    Raises:
        ConfigError: the experiment has not a workload, or does not vary a key; or a workload is in
            two parts that have a simulation in common.
    """
    found: list[Part] = []
    for item in table.tables("part", "workloads"):
        part = _part(item)
        item.end()
        if any(name not in workloads for name in part.workloads):
            raise item.refusal("workloads", f"some of {', '.join(workloads)}")
        for other in found:
            shared = [name for name in part.workloads if name in other.workloads]
            if shared and not part.differs(other):
                raise ConfigError(
                    f"{item.where}: {', '.join(shared)}: in two parts, which must have different "
                    "values of a key that both vary, at full size and at the quick one"
                )
        keys = [one.key for one in vary]
        for one in (*part.vary, *part.quick.get("vary", ())):
            if one.key not in keys:
                known = ", ".join(keys) or "none"
                raise ConfigError(
                    f"{item.where}: the experiment does not vary `{one.key}`; it varies {known}"
                )
        found.append(part)
    return tuple(found)


def _part(table: Table) -> Part:
    workloads = table.texts("workloads")
    if workloads is None:
        raise ConfigError(f"{table.where}: `workloads` is missing")
    quick = table.table("quick")
    own: dict[str, Any] = {}
    if quick is not None:
        own = {
            "threads": quick.counts("threads"),
            "transactions": quick.count("transactions"),
            "settings": quick.settings() if quick.has("set") else None,
            "vary": Variation.read(quick),
        }
        quick.end()
    return Part(
        workloads,
        table.counts("threads"),
        table.count("transactions"),
        table.settings(),
        Variation.read(table) or (),
        {key: value for key, value in own.items() if value is not None},
    )
