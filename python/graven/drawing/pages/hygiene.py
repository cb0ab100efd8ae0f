"""The page of a program's hygiene: one HTML file that loads nothing."""

from __future__ import annotations

from graven.drawing.pages.page import complete
from graven.laboratory.hygiene import Hygiene, where


def render(found: Hygiene) -> str:
    """Returns the page of findings."""
    return complete("hygiene.html", found=found, where=where)
