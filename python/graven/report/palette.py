"""Colours. The same design has the same colour in every report, whatever it is compared with.

The colours are told apart with every common kind of colour blindness; they follow Okabe and Ito
(2008) and, where those run out, Paul Tol's muted scheme. The first, a neutral one, falls to the
first safe design of the catalogue: the reference that others are held against. Unsafe designs are
grey and hatched.
"""

from __future__ import annotations

from dataclasses import dataclass

from graven.catalogue import catalogue

INK = "#1f2933"
SOFT = "#52606d"
RULE = "#d9dee4"
BAND = "#f3f5f7"

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
    """How a design is drawn."""

    colour: str
    hatched: bool

    @property
    def line(self) -> str:
        """The colour of a line, which hatching cannot mark."""
        return "#8a949e" if self.hatched else self.colour


def design_styles() -> dict[str, Style]:
    """Styles of all designs of the catalogue, by name."""
    styles: dict[str, Style] = {}
    safe = 0
    for design in catalogue().designs:
        if design.safe:
            styles[design.name] = Style(_SAFE[safe % len(_SAFE)], hatched=False)
            safe += 1
        else:
            styles[design.name] = Style(_UNSAFE, hatched=True)
    return styles
