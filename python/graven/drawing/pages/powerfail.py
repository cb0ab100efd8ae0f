"""The page of a program's violations: one HTML file that loads nothing."""

from __future__ import annotations

from graven.drawing.pages.page import complete
from graven.laboratory.hygiene import where
from graven.laboratory.powerfail import ENDS, MARKS, Powerfail


def render(found: Powerfail) -> str:
    """Returns the page of violations."""
    return complete("powerfail.html", found=found, where=where, ends=ENDS, marks=MARKS)
