"""Items of hardware cost that answer claims."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from graven.papers.data import Printed
from graven.results.costs import Item, derive

CLOSE = 0.005
"""Share by which a derived value may differ from a printed one that is rounded."""


@dataclass(frozen=True)
class CostFound:
    """An item of cost beside a claim.

    Attributes:
        ours: The derived value.
        agrees: True if it is what is printed; `None` if the number is the paper's own.
        note: Reason why they differ.
    """

    ours: str
    agrees: bool | None
    note: str


@cache
def _items(design: str) -> dict[str, Item]:
    """Items of a design on its paper's machine, by the claim that they answer."""
    return {item.claim: item for item in derive(design, None, {}).items if item.claim is not None}


def cost_of(design: str, claim: str, printed: Printed) -> CostFound | None:
    """The item of a design that bears a claim's id, beside it; `None` if there is none."""
    item = _items(design).get(claim)
    if item is None:
        return None
    return CostFound(_ours(item), _agrees(item, printed), item.note or "")


def _ours(item: Item) -> str:
    each = f"{item.value:,.5g} {item.unit}"
    return each if item.per is None else f"{each}, {item.total:,.5g} {item.unit} in all"


def _agrees(item: Item, printed: Printed) -> bool | None:
    """As the item says of its paper's number; if it has none, by what the claim prints."""
    if item.printed is not None:
        verdicts = {"agrees": True, "differs": False, "other-parameters": False}
        return verdicts.get(item.printed.verdict)
    if isinstance(printed, bool) or not isinstance(printed, int | float):
        return True
    return any(abs(value - printed) <= CLOSE * abs(printed) for value in (item.value, item.total))
