"""Comparisons that were made apart, put together into one: refused unless they are comparable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from graven._engine import ConfigError
from graven.basics.arguments import in_python
from graven.basics.numbers import Value, caption, exact
from graven.engine.catalogue import catalogue
from graven.results.comparison import Comparison
from graven.results.record import Record


@in_python
def combine(*comparisons: Comparison) -> Comparison:
    """Puts comparisons together that were made apart, or were read from files.

    All have to be of one machine, one version of Graven, the same threads, transactions, seeds and
    varied values, and the same settings, but for the keys that only one design or variant reads.
    A result that several have stands there once.

    Args:
        *comparisons: At least one; metrics, machine and baseline are those of the first.

    Raises:
        ConfigError: they are not comparable, or two results of one name differ; the message says in
            what.

    Examples:
        >>> ours = graven.compare("base,silo", "hash", transactions=200, from_start=True)
        >>> ours.save("ours.json")
        >>> small = {"small": ("silo", {"silo.log_buffer_entries": 4})}
        >>> other = graven.compare(
        ...     "base", "hash", transactions=200, variants=small, from_start=True
        ... )
        >>> both = graven.combine(graven.load("ours.json"), other)
        >>> both.designs
        ['base', 'silo', 'small']
        >>> (ours + other).designs
        ['base', 'silo', 'small']

        With another machine, the numbers have nothing to do with each other:

        >>> ours + graven.compare(
        ...     "lad", "hash", transactions=200, pm__write_ns=300, from_start=True
        ... )
        Traceback (most recent call last):
            ...
        graven.ConfigError: combine: not comparable: pm.write_ns is 150 and 300
    """
    for item in comparisons:
        if not isinstance(item, Comparison):
            raise ConfigError(f"combine: {item!r} is not a graven.Comparison")
    filled = [item for item in comparisons if item.records]
    if not filled:
        raise ConfigError("combine: there are no results to put together")
    first, *others = filled
    for other in others:
        for difference in _differences(first, other):
            raise ConfigError(f"combine: not comparable: {difference}")
    records = _joined([record for item in filled for record in item.records])
    settings = {key: value for item in reversed(filled) for key, value in item.settings.items()}
    machine = next((item.machine for item in filled if item.machine is not None), None)
    return replace(first, records=records, whole=None, machine=machine, settings=settings)


def _differences(one: Comparison, other: Comparison) -> Iterator[str]:
    """What makes two comparisons not comparable, in words, the most obvious first."""
    if len({bool(record.measured) for item in (one, other) for record in item.records}) > 1:
        yield "one is of whole runs, and the other of regions in steady state"
    for what in ("machine", "version", "threads", "asked_transactions", "seed"):
        values = [_values(item.records, what) for item in (one, other)]
        if set(values[0]) != set(values[1]):
            name = what.removeprefix("asked_")
            yield f"{name} is {_listed(values[0])} and {_listed(values[1])}"
    if one.machine and other.machine and one.machine.text != other.machine.text:
        yield f"machine: the two files named {one.machine.name} have different content"
    if _combinations(one) != _combinations(other):
        said = [_varied(item) for item in (one, other)]
        yield f"what is varied is {said[0]} and {said[1]}"
    for name in one.variants.keys() & other.variants.keys():
        if one.variants[name] != other.variants[name]:
            yield f"the variant {name} is not the same in both; give one another name"
    first = one.records[0]
    of_designs: dict[str, Record] = {}
    for record in one.records:
        of_designs.setdefault(record.design, record)
    for record in other.records:
        yield from _settings(first, record, own=False)
        if record.design in of_designs:
            yield from _settings(of_designs[record.design], record, own=True)


def _settings(one: Record, other: Record, *, own: bool) -> Iterator[str]:
    """Keys whose values differ, of all designs or (`own`) also those of the design itself."""
    names = catalogue()
    free = {*one.varied, *other.varied, *one.variant, *other.variant}
    free |= _stands_for(one, other)
    for section, values in one.config.items():
        for name, value in values.items():
            key = f"{section}.{name}"
            theirs = other.config.get(section, {}).get(name)
            if value == theirs or key in free:
                continue
            if names.is_of_designs(key) and not (own and names.reads(one.simulated, key)):
                continue
            place = f" of {one.design}" if names.is_of_designs(key) else ""
            yield f"{key}{place} is {exact(value)} and {exact(theirs)}"


def _stands_for(one: Record, other: Record) -> set[str]:
    """Keys that the names of designs and workloads set themselves, where the two differ in them."""
    names = catalogue()
    pairs: list[str] = []
    if one.simulated != other.simulated:
        for record in (one, other):
            pairs += names.design(record.simulated).settings
    if one.workload != other.workload:
        chosen = {one.workload, other.workload}
        pairs += [pair for w in names.workloads if w.name in chosen for pair in w.settings]
    return {pair.partition("=")[0].strip() for pair in pairs}


def _joined(records: Sequence[Record]) -> tuple[Record, ...]:
    """All records, each once.

    Raises:
        ConfigError: two of one design, workload, threads, seed and varied values differ.
    """
    found: dict[tuple[object, ...], Record] = {}
    for record in records:
        varied = tuple(sorted(record.varied.items()))
        key = (record.design, record.workload, record.threads, record.seed, varied)
        there = found.setdefault(key, record)
        if there.stats != record.stats:
            raise ConfigError(
                f"combine: there are two results of {record.design} on {record.workload} with "
                f"{record.threads} threads and seed {record.seed}, and they differ"
            )
    return tuple(found.values())


def _values(records: Sequence[Record], what: str) -> list[Value]:
    return list(dict.fromkeys(getattr(record, what) for record in records))


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(map(exact, values))


def _combinations(comparison: Comparison) -> set[tuple[tuple[str, Value], ...]]:
    return {tuple(sorted(item.items())) for item in comparison.combinations}


def _varied(comparison: Comparison) -> str:
    """Combinations in words."""
    said = [caption(item) for item in comparison.combinations if item]
    return "; ".join(said) if said else "nothing"
