"""Folders of results by default."""

from __future__ import annotations

import os
from pathlib import Path

RESULTS = Path("graven-results")
"""Folder of all results, in the folder in which a command runs."""

DEFAULT_STORE = RESULTS / "store"

REPRODUCED = RESULTS / "reproduce"
"""Folder of the papers' experiments."""

STORE_VARIABLE = "GRAVEN_STORE"
"""The environment variable that names another folder."""


def store_folder() -> Path:
    """The folder that the environment names, or the default."""
    return Path(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)
