"""Colours. A design has the same colour in every report, unless it meets another of that colour.

There are more designs than distinguishable colours.

The colours are distinguishable with every common kind of colour blindness; they follow Okabe and
Ito (2008) and, where those run out, Paul Tol's muted scheme. The first, a neutral one, falls to the
first safe design of the catalogue: the reference that others are held against. Unsafe designs are
grey and hatched.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from graven.engine.catalogue import catalogue

INK = "#1f2933"
SOFT = "#52606d"
RULE = "#d9dee4"

_SAFE = (
    "#7b8794",
    "#e69f00",
    "#0072b2",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#882255",
    "#999933",
    "#332288",
    "#44aa99",
    "#aa4499",
)
_UNSAFE = "#c3cad2"

KINDS = {
    "data": "#0072b2",
    "log": "#e69f00",
    "metadata": "#009e73",
    "gc": "#cc79a7",
}
"""Kinds of write traffic, in the order in which they are stacked."""

KIND_TITLES = {
    "data": "program data",
    "log": "log",
    "metadata": "metadata",
    "gc": "garbage collection",
}


@dataclass(frozen=True)
class Style:
    """Colour of a design."""

    colour: str
    hatched: bool

    @property
    def line(self) -> str:
        """The colour of a line, which hatching cannot mark."""
        return "#8a949e" if self.hatched else self.colour


def design_styles(designs: Sequence[str], unsafe: Collection[str] = ()) -> dict[str, Style]:
    """Styles of designs that are shown together, by name.

    Each has its own colour, by its place in the catalogue, or the next that none before it has.
    Variants, which are not in the catalogue, have those that the others leave.

    Args:
        designs: Names of designs and variants.
        unsafe: Variants that lose data.
    """
    known = catalogue()
    safe = [design.name for design in known.designs if design.safe]
    styles: dict[str, Style] = {}
    variants = [name for name in designs if name not in known.design_names]
    for name in [*(name for name in designs if name not in variants), *variants]:
        member = known.members(name)[0]
        if name in unsafe or (member not in safe and name not in variants):
            styles[name] = Style(_UNSAFE, hatched=True)
            continue
        own = len(styles) if name in variants else safe.index(member)
        own %= len(_SAFE)
        taken = {style.colour for style in styles.values()}
        order = _SAFE[own:] + _SAFE[:own]
        free = next((colour for colour in order if colour not in taken), order[0])
        styles[name] = Style(free, hatched=False)
    return {name: styles[name] for name in designs}
