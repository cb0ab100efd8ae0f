"""Results that commands look up in the store by their digests."""

from __future__ import annotations

from pathlib import Path

import click

from graven._engine import ConfigError
from graven.cli.terminal import note
from graven.store import Store, StoredRecord


def opened(folder: Path) -> Store:
    """The store in a folder, closed when the command ends.

    Raises:
        ConfigError: there is none.
    """
    store = Store(folder, note)
    if not store.is_there:
        raise ConfigError(f"--store: there is no store in {folder}")
    store.refresh()
    click.get_current_context().call_on_close(store.close)
    return store


def stored(store: Store, digest: str) -> StoredRecord:
    """The result whose digest begins so.

    Raises:
        ConfigError: too few digits, none or several, or it is damaged.
    """
    if len(digest) < 4:
        raise ConfigError(f"DIGEST: `{digest}` is too short; four digits at least")
    pattern = digest.replace("%", "").replace("_", "") + "%"
    rows = store.index.query(
        "SELECT DISTINCT digest FROM results WHERE digest LIKE ? LIMIT 2", [pattern]
    ).rows
    if not rows:
        raise ConfigError(f"DIGEST: there is no result {digest} in {store.folder}")
    if len(rows) > 1:
        raise ConfigError(f"DIGEST: several results begin with {digest}; give more digits")
    record = store.record(rows[0][0])
    if record is None:
        raise ConfigError(f"DIGEST: the result {digest} is damaged")
    return record
