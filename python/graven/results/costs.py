"""Costs of a design's hardware, as the engine derives them from the configuration."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from graven import _engine
from graven.basics.numbers import counted
from graven.engine.machine import Machine

Role: TypeAlias = Literal["built", "optional", "derived", "reference"]
"""Role of an item in its design: built in, built in under another configuration, derived from
another item, or part of another system."""

Verdict: TypeAlias = Literal["agrees", "differs", "other-parameters", "reported"]
"""Relation of a value to the printed one: it rounds to it or not, the printed one is for other
parameters, or the value is the paper's own and not derived."""


@dataclass(frozen=True)
class Printed:
    """Number that a paper prints of an item.

    Attributes:
        paper: How the paper is cited.
        at: The table or section.
        machine: The preset for which the paper prints it.
        text: The number as it stands there, in the item's unit.
        value: The number.
        verdict: Whether it is what is derived.
    """

    paper: str
    at: str
    machine: str
    text: str
    value: float
    verdict: Verdict


@dataclass(frozen=True)
class Per:
    """Number of equal items of a machine: one for `each` of `count`, by `formula`."""

    each: str
    formula: str
    numbers: str
    count: float


@dataclass(frozen=True)
class Item:
    """One line of what a design costs.

    Attributes:
        name: What it is known by, within its design.
        what: What it is, and what of.
        place: Where it sits: in the core, the L1, the controller, ...
        role: What it is to its design; storage of role `built` is counted in totals.
        formula: How much one is, in terms of parameters and of other items; `reported` if a paper's
            number is taken over.
        numbers: The same with numbers.
        value: What it amounts to, in `unit`.
        unit: `bit`, `B`, `KB` or `MB` for storage, or anything else.
        per: How many there are; `None` if a machine has one.
        total: All of them together.
        printed: What a paper prints.
        claim: Identifier of the claim that it answers.
        note: Why the two differ, or what else is to be known.
    """

    name: str
    what: str
    place: str
    role: Role
    formula: str
    numbers: str
    value: float
    unit: str
    per: Per | None
    total: float
    printed: Printed | None
    claim: str | None
    note: str | None


@dataclass(frozen=True, repr=False)
class Cost:
    """Cost of a design on a machine.

    Attributes:
        design: Name of the design.
        machine: Name of the machine; that of the design's paper unless another was asked for.
        items: Line by line.
        totals: Bytes that the design adds, by place, from the core outwards; 0 where it adds none.
        remarks: What holds for all items.

    Examples:
        >>> cost = graven.cost("silo")
        >>> cost
        <Cost: silo on machine silo, 32 items, 2,102,744 B>
        >>> item = cost["log-buffer"]
        >>> item.numbers, item.value, item.printed.verdict
        ('20 × (26 + 8)', 680, 'agrees')

        Bytes that it adds where it adds some:

        >>> {place: size for place, size in cost.totals.items() if size}
        {'core': 128, 'L1': 24, 'controller': 5440, 'PM': 2097152}

        As a document, and as rows of a table:

        >>> list(cost.to_dict())
        ['design', 'machine', 'items', 'totals', 'remarks']
        >>> [row["name"] for row in cost.to_rows()][:3]
        ['log-entry', 'log-buffer', 'log-buffers']
    """

    design: str
    machine: str
    items: tuple[Item, ...]
    totals: Mapping[str, float]
    remarks: tuple[str, ...]

    def __repr__(self) -> str:
        items = counted(len(self.items), "item")
        size = math.fsum(self.totals.values())
        return f"<Cost: {self.design} on machine {self.machine}, {items}, {size:,.0f} B>"

    def __getitem__(self, name: str) -> Item:
        """The item of a name."""
        for item in self.items:
            if item.name == name:
                return item
        known = ", ".join(item.name for item in self.items) or "none"
        raise KeyError(f"{self.design} has no item `{name}`; it has {known}")

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return {
            "design": self.design,
            "machine": self.machine,
            "items": [asdict(item) for item in self.items],
            "totals": [{"place": place, "bytes": size} for place, size in self.totals.items()],
            "remarks": list(self.remarks),
        }

    def to_rows(self) -> list[dict[str, object]]:
        """One flat row for each item; nested values as `per.count` and the like."""
        identity = {"design": self.design, "machine": self.machine}
        return [identity | _row(item) for item in self.items]


COLUMNS = (
    *("design", "machine", "name", "what", "place", "role", "formula", "numbers", "value", "unit"),
    *("per.each", "per.count", "total", "printed.text", "printed.paper", "printed.at"),
    *("printed.machine", "verdict", "claim", "note"),
)
"""Columns of a table of items."""


def _row(item: Item) -> dict[str, object]:
    row: dict[str, object] = {**vars(item)}
    del row["per"], row["printed"]
    if item.per is not None:
        row |= {"per.each": item.per.each, "per.count": item.per.count}
    if item.printed is not None:
        shown = ("text", "paper", "at", "machine")
        row |= {f"printed.{name}": getattr(item.printed, name) for name in shown}
        row["verdict"] = item.printed.verdict
    return row


def to_csv(costs: Iterable[Cost]) -> str:
    """CSV with a header, a row for each item of each design."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(row for cost in costs for row in cost.to_rows())
    return text.getvalue()


def derive(design: str, machine: Machine | None, settings: Mapping[str, str]) -> Cost:
    """Derives the cost of a design on a machine, or on that of its paper.

    Raises:
        ConfigError: something was refused.
    """
    spec = {
        "design": design,
        "machine": None if machine is None else machine.spec(),
        "set": [list(pair) for pair in settings.items()],
    }
    return _parse(json.loads(_engine.cost(json.dumps(spec))))


def _parse(raw: Mapping[str, Any]) -> Cost:
    return Cost(
        design=raw["design"],
        machine=raw["machine"],
        items=tuple(_parse_item(item) for item in raw["items"]),
        totals={total["place"]: total["bytes"] for total in raw["totals"]},
        remarks=tuple(raw["remarks"]),
    )


def _parse_item(raw: Mapping[str, Any]) -> Item:
    per, printed = raw["per"], raw["printed"]
    nested = {
        "per": None if per is None else Per(**per),
        "printed": None if printed is None else Printed(**printed),
    }
    return Item(**{**raw, **nested})


def places(costs: Sequence[Cost]) -> list[str]:
    """All places where some design adds something, from the core outwards."""
    known = dict.fromkeys(place for cost in costs for place in cost.totals)
    return [place for place in known if any(cost.totals.get(place) for cost in costs)]
