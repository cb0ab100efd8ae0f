"""Conditions: what a table or a picture was made with, as it stands on it.

Everything comes from the records: machine, threads, transactions, seeds, each setting that was
changed, and each variant with what it sets. Varied values are not among them, since each
combination has a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from graven.basics.numbers import exact
from graven.engine.catalogue import catalogue
from graven.results.record import KIND

if TYPE_CHECKING:
    from graven.basics.numbers import Value
    from graven.engine.variants import Variant
    from graven.results.comparison import Comparison
    from graven.results.record import Record

T = TypeVar("T")


@dataclass(frozen=True)
class Conditions:
    """Conditions of some results.

    Attributes:
        machines: Names of machines; usually one.
        threads: Numbers of program threads.
        transactions: Transactions that are measured of a simulation, over all its threads.
        measured: Of what simulations these are: regions in steady state, whole runs, or both.
        seeds: Seeds.
        settings: What was set for all designs, by key, as a person reads it.
        of_designs: By design, what was set for it and not for all.
        variants: By name, the design that each variant is, and what it sets; and of a name that
            stands for several designs those that were the fastest.
    """

    machines: Sequence[str]
    threads: Sequence[int]
    transactions: Sequence[int]
    measured: str
    seeds: Sequence[int]
    settings: Mapping[str, str]
    of_designs: Mapping[str, Mapping[str, str]]
    variants: Mapping[str, str]

    @staticmethod
    def of(comparison: Comparison) -> Conditions:
        """Those of a comparison."""
        records = comparison.records
        common = _common(records) if any(r.settings for r in records) else comparison.settings
        return Conditions(
            _each(record.machine for record in records),
            _each(record.threads for record in records),
            sorted(_each(record.transactions for record in records)),
            _measured(records),
            _each(record.seed for record in records),
            _shown(common),
            {
                design: _shown(own)
                for design in comparison.designs
                if (own := _own([r for r in records if r.design == design], common))
            },
            {
                name: _variant(variant)
                for name, variant in comparison.variants.items()
                if any(record.design == name for record in records)
            }
            | _fastest(records),
        )

    @property
    def facts(self) -> dict[str, str]:
        """Each by what it is called: `threads`, `pm.write_ns`, the variant's name."""
        seed = "seed" if len(self.seeds) == 1 else "seeds"
        return {
            "machine": ", ".join(self.machines),
            "threads": _listed(self.threads),
            "transactions": f"{_listed(self.transactions, 2)}, {self.measured}",
            seed: ", ".join(map(str, self.seeds)),
            **self.settings,
            **{
                f"{design}, {key}": value
                for design, own in self.of_designs.items()
                for key, value in own.items()
            },
            **self.variants,
        }

    @property
    def line(self) -> str:
        """All of it in one line."""
        threads = _listed(self.threads)
        transactions = _listed(self.transactions, 2)
        seeds = ", ".join(map(str, self.seeds))
        one = "" if len(self.seeds) == 1 else "s"
        parts = [
            f"machine {', '.join(self.machines)}",
            f"{threads} thread" + ("" if threads == "1" else "s"),
            f"{transactions} transaction"
            + ("" if transactions == "1" else "s")
            + f" {self.measured}",
            f"seed{one} {seeds}",
            *_pairs(self.settings),
        ]
        own = [f"{name}: {', '.join(_pairs(of))}" for name, of in self.of_designs.items()]
        variants = [f"{name}: {what}" for name, what in self.variants.items()]
        return "; ".join([", ".join(parts), *own, *variants])


def _measured(records: Sequence[Record]) -> str:
    """What part of runs results are of, in words."""
    kinds = {bool(record.measured) for record in records}
    if kinds == {True}:
        return "in steady state"
    if kinds == {True, False}:
        return "in steady state, or from the start"
    return "from the start"


def _each(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def _listed(numbers: Sequence[int], few: int = 8) -> str:
    """Numbers in words: a few one by one, many from the least to the greatest."""
    if len(numbers) > few:
        return f"{exact(min(numbers))} to {exact(max(numbers))}"
    *first, last = map(exact, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def _common(records: Sequence[Record]) -> dict[str, Value]:
    """What is set, to one value, for every record whose design reads it, but for variants' own."""
    found: dict[str, Value] = {}
    reads = catalogue().reads
    for key in _each(key for record in records for key in record.settings):
        free = [r for r in records if key not in r.variant]
        readers = [r for r in free if reads(r.simulated, key)] or free
        values = _each(r.settings.get(key) for r in readers)
        if len(values) == 1 and values[0] is not None:
            found[key] = values[0]
    return found


def _own(records: Sequence[Record], common: Mapping[str, Value]) -> dict[str, Value]:
    """What is set for one design and not for all."""
    return {
        key: value
        for record in records
        for key, value in record.settings.items()
        if key not in common and catalogue().reads(record.simulated, key)
    }


def _shown(settings: Mapping[str, Value]) -> dict[str, str]:
    """Values with their units."""
    return {key: _value(key, value) for key, value in settings.items() if key != KIND}


def _value(key: str, value: Value) -> str:
    parameter = catalogue().parameters.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    unit = parameter.unit if parameter is not None and is_number else ""
    return f"{exact(value)} {unit}".strip()


def _variant(variant: Variant) -> str:
    pairs = _pairs({key: _value(key, value) for key, value in variant.settings.items()})  # type: ignore[arg-type]
    return f"{variant.design} with {', '.join(pairs)}" if pairs else variant.design


def _fastest(records: Sequence[Record]) -> dict[str, str]:
    """Of names that stand for several designs, the one that was the fastest, and where."""
    found: dict[str, str] = {}
    for name in _each(r.design for r in records if len(catalogue().members(r.design)) > 1):
        of = [record for record in records if record.design == name]
        designs = _each(record.simulated for record in of)
        places = [
            design
            if len(designs) == 1
            else f"{design} on {', '.join(_each(r.workload for r in of if r.simulated == design))}"
            for design in designs
        ]
        found[name] = f"the fastest is {' and '.join(places)}"
    return found


def _pairs(settings: Mapping[str, str]) -> list[str]:
    return [f"{key} = {value}" for key, value in settings.items()]
