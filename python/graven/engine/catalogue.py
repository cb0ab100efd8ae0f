"""Names that the engine knows: designs, workloads, machines, statistics, parameters.

The engine declares each of them once; this is a typed view of its declarations, and nothing is
declared a second time here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from typing import Any, TypeVar

from graven import _engine
from graven.basics.arguments import known, text
from graven.basics.numbers import counted
from graven.engine.selection import Selection

T = TypeVar("T")


@dataclass(frozen=True)
class Parameter:
    """A configuration key, as `--set` takes it: SECTION.KEY."""

    key: str
    doc: str
    unit: str
    allowed: str
    default: str


@dataclass(frozen=True)
class Named:
    """A name with one line about it: a mutant, or a state worth reaching."""

    name: str
    summary: str


@dataclass(frozen=True)
class Draw:
    """A bound of what the adversary draws.

    Attributes:
        name: Name that `--draw` takes.
        summary: The bounded thing, as it stands after the number.
        default: The default.
        least: The least that is allowed.
        most: The most.
    """

    name: str
    summary: str
    default: int
    least: int
    most: int


@dataclass(frozen=True)
class Rule:
    """A rule of a persistency model: a pair of steps of one thread that act in program order.

    Attributes:
        name: Name of the rule.
        sentence: The rule in a sentence.
        source: Publication or manual.
    """

    name: str
    sentence: str
    source: str


@dataclass(frozen=True)
class PersistencyModel:
    """A persistency model of a processor.

    Attributes:
        name: Name that `--model` takes.
        summary: The platform in a sentence.
        source: Publications and manuals.
        rules: Rules of the order in which a thread's steps act.
    """

    name: str
    summary: str
    source: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Order:
    """An order of stores that a design may promise, in place of durable transactions.

    Attributes:
        name: Name of the order, which is the guarantee of designs that promise it.
        summary: The promise in a sentence.
        source: Publications.
    """

    name: str
    summary: str
    source: str


@dataclass(frozen=True)
class Design:
    """A persistence design.

    Attributes:
        name: Name for users.
        summary: One line about it.
        paper: Paper that describes it.
        safe: True if it keeps what it guarantees, as far as is known.
        default: True if comparisons include it by default.
        guarantee: Guarantee for acknowledged transactions: `none`, `prefix` (the first N survive)
            or `durable` (all do); or the name of an order of stores (`Catalogue.orders`).
        settings: The parameter set that its name stands for, as `--set` takes it.
        mutants: Single-point changes for the worse that it knows.
        cover_points: States of this design that are worth reaching in a campaign.
        statistics: Names of the statistics that it adds to the machine's.
        parameters: Its configuration.
    """

    name: str
    summary: str
    paper: str
    safe: bool
    default: bool
    guarantee: str
    settings: tuple[str, ...]
    mutants: tuple[Named, ...]
    cover_points: tuple[Named, ...]
    statistics: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def keys(self) -> set[str]:
        """The keys of its configuration."""
        return {parameter.key for parameter in self.parameters}


@dataclass(frozen=True)
class Alias:
    """Another name: for one design, or in comparisons for the better of several."""

    name: str
    summary: str
    paper: str
    of: tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    """A workload of the `micro` or the `macro` group.

    Attributes:
        settings: The parameter set that its name stands for, as `--set` takes it.
    """

    name: str
    summary: str
    group: str
    settings: tuple[str, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class MachineValue:
    """One value of a machine, with the table it is from or the reason it was assumed."""

    key: str
    value: object
    unit: str
    doc: str
    source: str | None
    assumed: str | None


@dataclass(frozen=True)
class MachinePart:
    """A file that sets some parameters of machines, which extend it: a part of DRAM."""

    name: str
    title: str
    file: str
    _said: Sequence[Mapping[str, Any]] = field(repr=False)

    @cached_property
    def values(self) -> tuple[MachineValue, ...]:
        """Every value, with its source."""
        declared = catalogue().parameters
        return tuple(
            MachineValue(
                item["key"],
                item["value"],
                declared[item["key"]].unit,
                declared[item["key"]].doc,
                item["source"],
                item["assumed"],
            )
            for item in self._said
        )


@dataclass(frozen=True)
class MachinePreset(MachinePart):
    """A machine that ships with Graven; `comparison` is what is compared on it by default."""

    comparison: Selection

    def value(self, key: str) -> object:
        """The value of a key, as the file writes it; `None` if it says nothing of it.

        Raises:
            ConfigError: there is no such key on any machine.
        """
        found = next((item["value"] for item in self._said if item["key"] == key), None)
        if found is None:
            catalogue().check_key(key)
        return found


@dataclass(frozen=True)
class Statistic:
    """A number that simulations report: all of them, or those of the `designs` that declare it."""

    name: str
    unit: str
    kind: str
    description: str
    group: str
    designs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A table of the configuration."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]


_GROUPS: Sequence[tuple[str, str]] = (
    ("Cores", r"core[\dN*]*\."),
    ("Recovery", r"recovery_"),
    ("Transactions", r"committed|throughput|transaction_|commit_|last_issue_"),
    ("Stalls", r"stall_|interrupts|tag_port_"),
    ("Transactional stores", r"transactional_|silent_|write_distance_|words_written|stored_bytes"),
    ("Execution", r"cycles$|instructions$|ipc$|loads$|(\w+_)?stores$|store_|fences|clwb_"),
    ("Write combining", r"write_combining_"),
    ("Caches", r"(l1|l2|llc)_|upgrades|snoops|forced_writebacks|residual_|fills?_|fills$"),
    ("Logging", r"log_|in_place_|scan"),
    ("Energy", r"\w*energy_pj$"),
    ("Persistent memory", r"media_|pm_|peak_|rows_written|write_row|bank|footprint"),
    (
        "Memory controller",
        r"controller_|written_|(read|write)_(queue|drain|latency|order)|reads_|writes_|row_",
    ),
    ("DRAM", r"dram_"),
    ("Final image", r"image_"),
)


def _group(name: str, designs: Sequence[str] = ()) -> str:
    """The heading for a statistic whose declaration does not name one."""
    other = "Of some designs" if designs else "Other"
    return next((title for title, pattern in _GROUPS if re.match(pattern, name)), other)


class Catalogue:
    """All names, in the engine's order.

    Attributes:
        raw: The engine's document.

    Examples:
        Names, and what they stand for:

        >>> catalogue = graven.catalogue()
        >>> catalogue.design_names[:4]
        ['ideal', 'base', 'fwb', 'fwb-literal']
        >>> catalogue.workload_names[:4]
        ['array', 'btree', 'chain-queue', 'ctree']
        >>> catalogue.workload_groups()["micro"][:4]
        ['array', 'btree', 'chain-queue', 'hash']
        >>> catalogue.members("unsafe-base")
        ('unsafe-redo', 'unsafe-undo')
        >>> "silo-literal" in catalogue.unsafe_designs()
        True

        Keys that a design reads: its own, the machine's and the workloads'.

        >>> keys = ["silo.log_buffer_entries", "fwb.log_bytes", "pm.write_ns"]
        >>> [catalogue.reads("silo", key) for key in keys]
        [True, False, True]
        >>> [catalogue.is_of_designs(key) for key in keys]
        [True, True, False]

        A design, and the states that are worth reaching when it is crashed:

        >>> design = catalogue.design("silo")
        >>> design.guarantee, design.statistics[:2]
        ('durable', ('log_entries', 'log_entries_merged'))
        >>> [state.name for state in catalogue.states_of("silo")][:3]
        ['crash-while-ending', 'crash-while-open', 'steal']

        A machine and its parameters:

        >>> catalogue.machine("silo").value("pm.read_ns")
        50.0
        >>> catalogue.parameters["pm.read_ns"].allowed
        'a number from 0.1 to 10000'
        >>> catalogue.check_key("pm.read_nanoseconds")
        Traceback (most recent call last):
            ...
        graven.ConfigError: key: unknown name `pm.read_nanoseconds`; did you mean pm.read_ns?

        Statistics, of single cores too; of columns that are not declared nothing is known:

        >>> catalogue.statistic("core3.ipc").unit
        'instructions/cycle'
        >>> catalogue.described("config.pm.read_ns").description
        ''
        >>> "adr_overflows" in catalogue.design_statistics
        True

        Everything of a kind, and the whole as the engine says it:

        >>> len(catalogue.designs), len(catalogue.workloads), len(catalogue.machines)
        (40, 24, 7)
        >>> {alias.name: alias.of for alias in catalogue.aliases}["unsafe-base"]
        ('unsafe-redo', 'unsafe-undo')
        >>> [part.name for part in catalogue.parts]
        ['ddr4-2400', 'ddr4-3200', 'ddr5-4800']
        >>> [section.name for section in catalogue.sections][:3]
        ['core', 'l1', 'l2']
        >>> [statistic.name for statistic in catalogue.stats][:2]
        ['cycles', 'instructions']
        >>> [state.name for state in catalogue.states][:2]
        ['crash-while-ending', 'crash-while-open']
        >>> [draw.name for draw in catalogue.draws][:2]
        ['threads', 'locks']
        >>> [model.name for model in catalogue.models]
        ['x86-adr', 'x86-adr-amd', 'x86-eadr', 'arm-pop', 'arm-podp']
        >>> [order.name for order in catalogue.orders][:4]
        ['strict', 'buffered-strict', 'epoch', 'epoch-dependence']
        >>> catalogue.models[0].rules[1].sentence
        'Stores become visible in program order.'
        >>> sorted(catalogue.raw)[:3]
        ['aliases', 'designs', 'draws']
    """

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    @cached_property
    def designs(self) -> tuple[Design, ...]:
        """The persistence designs."""
        lists = {"mutants": _named, "cover_points": _named, "parameters": _parameters}
        return tuple(
            _made(Design, item, **{name: read(item[name]) for name, read in lists.items()})
            for item in self.raw["designs"]
        )

    @cached_property
    def aliases(self) -> tuple[Alias, ...]:
        """Other names for designs."""
        return tuple(_made(Alias, item) for item in self.raw["aliases"])

    @cached_property
    def workloads(self) -> tuple[Workload, ...]:
        """The workloads, each with the parameters that all have in front of its own."""
        shared = [section.parameters for section in self.sections if section.name == "workload"]
        return tuple(
            _made(Workload, item, parameters=tuple(chain(*shared, _parameters(item["parameters"]))))
            for item in self.raw["workloads"]
        )

    @cached_property
    def machines(self) -> tuple[MachinePreset, ...]:
        """The machines that ship with Graven."""
        return tuple(
            MachinePreset(
                item["name"],
                item["title"],
                item["file"],
                item["values"],
                Selection.parse(item["comparison"]),
            )
            for item in self.raw["machines"]
        )

    @cached_property
    def parts(self) -> tuple[MachinePart, ...]:
        """The parts that machines extend."""
        return tuple(
            MachinePart(item["name"], item["title"], item["file"], item["values"])
            for item in self.raw["parts"]
        )

    @cached_property
    def stats(self) -> tuple[Statistic, ...]:
        """The statistics: the machine's, then those of designs."""
        return tuple(
            _made(Statistic, item, group=_group(item["name"], item["designs"]))
            for item in self.raw["stats"]
        )

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The tables of the configuration: the machine's, designs' and workloads'."""
        return tuple(
            _made(Section, item, parameters=_parameters(item["parameters"]))
            for item in self.raw["sections"]
        )

    @cached_property
    def states(self) -> tuple[Named, ...]:
        """States of any design that are worth reaching when it is crashed."""
        return _named(self.raw["states"])

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """Orders of stores that designs may promise."""
        return tuple(_made(Order, item) for item in self.raw["orders"])

    @cached_property
    def draws(self) -> tuple[Draw, ...]:
        """Bounds of what the adversary draws."""
        return tuple(Draw(**item) for item in self.raw["draws"])

    @cached_property
    def models(self) -> tuple[PersistencyModel, ...]:
        """Persistency models of processors."""
        return tuple(
            PersistencyModel(**item | {"rules": tuple(Rule(**rule) for rule in item["rules"])})
            for item in self.raw["models"]
        )

    def __repr__(self) -> str:
        return (
            f"<Catalogue: {counted(len(self.designs), 'design')}, "
            f"{counted(len(self.workloads), 'workload')}, "
            f"{counted(len(self.machines), 'machine')}, {counted(len(self.stats), 'statistic')}>"
        )

    def workload_groups(self) -> dict[str, list[str]]:
        """The groups that `--workloads` accepts, with their members."""
        groups: dict[str, list[str]] = {"micro": [], "macro": []}
        for workload in self.workloads:
            groups.setdefault(workload.group, []).append(workload.name)
        groups["all"] = [workload.name for workload in self.workloads]
        return groups

    def members(self, name: str) -> tuple[str, ...]:
        """The designs that a name stands for: itself, if it is not an alias."""
        return next((alias.of for alias in self.aliases if alias.name == name), (name,))

    @cached_property
    def _keys(self) -> dict[str, frozenset[str]]:
        return {design.name: frozenset(design.keys) for design in self.designs}

    @cached_property
    def _keys_of_designs(self) -> frozenset[str]:
        return frozenset().union(*self._keys.values())

    def is_of_designs(self, key: str) -> bool:
        """Tells whether a key is declared for designs, so that others do not read it."""
        return key in self._keys_of_designs

    def reads(self, design: str, key: str) -> bool:
        """Tells whether a design reads a key; all keys but those of other designs are read by it.

        Args:
            design: The name of one design.
            key: A configuration key.
        """
        return key not in self._keys_of_designs or key in self._keys.get(design, ())

    @property
    def design_names(self) -> list[str]:
        """Names of the designs, and those that stand for some of them."""
        return [design.name for design in self.designs] + [alias.name for alias in self.aliases]

    @property
    def workload_names(self) -> list[str]:
        """Names of the workloads."""
        return [workload.name for workload in self.workloads]

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Every parameter by its key: of the machine's sections, of designs and of workloads."""
        every = (section.parameters for section in self.sections)
        return {parameter.key: parameter for parameter in chain.from_iterable(every)}

    def check_key(self, key: str) -> None:
        """Refuses a configuration key that there is not.

        Raises:
            ConfigError: there is none.
        """
        if key not in self.parameters:
            raise known("key", key, self.parameters)

    def design(self, name: str) -> Design:
        """The design of a name; of an alias, the first that it stands for, under that name.

        Raises:
            ConfigError: there is none.
        """
        alias = next((alias for alias in self.aliases if alias.name == name), None)
        meant = name if alias is None else alias.of[0]
        found = next((design for design in self.designs if design.name == meant), None)
        if found is None:
            raise known("design", name, self.design_names)
        if alias is None:
            return found
        return replace(found, name=name, summary=alias.summary, paper=alias.paper)

    def unsafe_designs(self) -> set[str]:
        """Names of the designs that lose committed data at a power failure."""
        unsafe = {design.name for design in self.designs if not design.safe}
        return unsafe | {alias.name for alias in self.aliases if unsafe.intersection(alias.of)}

    def machine(self, name: str) -> MachinePreset:
        """The preset of a name.

        Raises:
            ConfigError: there is none.
        """
        presets = {preset.name: preset for preset in self.machines}
        if text("machine", name) not in presets:
            raise known("machine", name, presets)
        return presets[name]

    def states_of(self, design: str) -> tuple[Named, ...]:
        """States worth reaching: those of any design, then this one's.

        Raises:
            ConfigError: there is no such design.
        """
        return self.states + self.design(design).cover_points

    @cached_property
    def design_statistics(self) -> frozenset[str]:
        """Names of the statistics that are not the machine's, but of designs that declare them."""
        return frozenset(statistic.name for statistic in self.stats if statistic.designs)

    def statistic(self, name: str) -> Statistic:
        """The declaration of a statistic; of `core0.ipc` the one of `core*.ipc`.

        Raises:
            ConfigError: there is none.
        """
        found = self._declared(text("statistic", name))
        if found is None:
            raise known("statistic", name, [statistic.name for statistic in self.stats])
        return found

    def described(self, name: str) -> Statistic:
        """The same of the name of any column, of which there need not be a declaration."""
        return self._declared(name) or Statistic(name, "", "gauge", "", _group(name))

    def _declared(self, name: str) -> Statistic | None:
        for candidate in (name, re.sub(r"\d+\.", "N.", name), re.sub(r"\d+\.", "*.", name)):
            for statistic in self.stats:
                if statistic.name == candidate:
                    group = "Cores" if "." in name else statistic.group
                    return replace(statistic, name=name, group=group)
        return None


def _made(kind: Callable[..., T], item: Mapping[str, Any], **own: object) -> T:
    """A declaration with what the engine says under the same names, except for `own`."""
    plain = {name: tuple(v) if isinstance(v, list) else v for name, v in item.items()}
    return kind(**plain | own)


def _named(items: Sequence[Mapping[str, Any]]) -> tuple[Named, ...]:
    return tuple(Named(**item) for item in items)


def _parameters(items: Sequence[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(item["key"], item["doc"], item["unit"], item["allowed"], str(item["default"]))
        for item in items
    )


@cache
def catalogue() -> Catalogue:
    """The engine's catalogue.

    Examples:
        >>> catalogue = graven.catalogue()
        >>> [design.name for design in catalogue.designs if design.name.startswith("silo")]
        ['silo', 'silo-literal']
        >>> catalogue.parameters["pm.write_ns"].default
        '150.0'
    """
    return Catalogue(json.loads(_engine.catalogue()))
