"""The report of a paper: from its results to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graven.papers.reproduction import Reproduction
from graven.papers.verdicts import Verdict


def write_report(_found: Reproduction, _judged: Sequence[Verdict], _folder: Path) -> list[Path]:
    """Writes the page and the drawings of a paper into a folder; returns the files."""
    return []
