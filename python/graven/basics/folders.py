"""Folders of results by default."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path

RESULTS = Path("graven-results")
"""Folder of all results, in the folder in which a command runs."""

DEFAULT_STORE = RESULTS / "store"

REPRODUCED = RESULTS / "reproduce"
"""Folder of the papers' experiments."""

STORE_VARIABLE = "GRAVEN_STORE"
"""The environment variable that names another folder."""


def distinct(names: Iterable[str]) -> list[str]:
    """Names of files: each as given the first time, and with `-2`, `-3`, … when it comes again."""
    taken: list[str] = []
    for name in names:
        again = (f"{name}-{number}" for number in count(2))
        taken.append(next(one for one in chain([name], again) if one not in taken))
    return taken


def store_folder() -> Path:
    """The folder that the environment names, or the default."""
    return Path(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)
