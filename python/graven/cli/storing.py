"""What commands that run something do with the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from graven import _engine
from graven.basics import output
from graven.basics.errors import OutputRefusedError
from graven.cli.terminal import note, refusing
from graven.laboratory.state_file import StateFile
from graven.results import formats
from graven.running.progress import Display

if TYPE_CHECKING:
    from graven.laboratory.adversary import AdversaryRequest
    from graven.running.pool import Observer, Snapshot
    from graven.store import Request
    from graven.store.keeper import Keeper


def keeper(folder: Path, *, no_store: bool, fresh: bool, results: int) -> Keeper | None:
    """Finds results in a store and keeps new ones there, so many at most; or does neither.

    Raises:
        Refusal: results cannot be kept there.
        StoreError: the folder is not a store.
    """
    if no_store:
        return None
    from graven.store import Store
    from graven.store.keeper import Keeper

    store = Store(folder, note)
    with refusing("--store: "):
        try:
            output.check([store.probe], results * formats.BYTES_PER_RECORD)
        except OutputRefusedError as error:
            raise OutputRefusedError(f"{error} (--no-store keeps no results)") from None
    click.get_current_context().call_on_close(store.close)
    return Keeper(store, fresh=fresh)


@contextmanager
def watched(keep: Keeper | None, noun: str = "simulations") -> Iterator[Observer]:
    """Shows how far a command is: on standard error, and to whoever looks at its store.

    Args:
        keep: What keeps the results, if anything does.
        noun: What the command counts.
    """
    with Display(noun) as display:
        if keep is None:
            yield display
            return
        from graven.store.running import Announcement

        with Announcement(keep.store.folder, noun) as announcement:

            def observe(snapshot: Snapshot) -> None:
                display(snapshot)
                announcement(snapshot)

            yield observe


def say_found(found: int, total: int) -> None:
    """Says how many results were there before."""
    if found:
        note(f"{found:,} of {total:,} results were there already (--fresh runs them again)")


def go_on(keep: Keeper | None) -> str:
    """How the message of an interrupt ends: what becomes of what had finished."""
    return "; nothing is kept" if keep is None else "; the same command goes on"


class State(Protocol):
    """Where a campaign keeps what it goes on from."""

    @property
    def where(self) -> Path:
        """The file or folder."""

    def read(self) -> str | None:
        """What was kept last, if anything was."""

    def refused(self, error: _engine.ConfigError) -> None:
        """The engine does not go on from what was kept.

        Raises:
            ConfigError: that has to be mended first.
        """

    def write(self, text: str) -> None:
        """Keeps this."""


@dataclass(frozen=True)
class InFile:
    """A file of the user's, for which there has to be so much room."""

    file: StateFile
    room: int

    @property
    def where(self) -> Path:
        """The file or folder."""
        return self.file.where

    def read(self) -> str | None:
        """What was kept last, if anything was."""
        with refusing("--state: "):
            self.file.check(self.room)
        return self.file.read()

    def refused(self, error: _engine.ConfigError) -> None:
        """It is the user's: whether it is of use, the user knows."""
        raise self.file.refused(error) from None

    def write(self, text: str) -> None:
        """Keeps this."""
        self.file.write(text)


@dataclass(frozen=True)
class UnderWay:
    """The store."""

    keep: Keeper
    plan: AdversaryRequest

    @property
    def where(self) -> Path:
        """The file or folder."""
        return self.keep.store.folder

    @cached_property
    def _request(self) -> Request:
        from graven.store.keeper import request_of_schedules

        return request_of_schedules(self.plan)

    def read(self) -> str | None:
        """What was kept last, if anything was."""
        return None if self.keep.fresh else self.keep.store.state(self._request)

    def refused(self, error: _engine.ConfigError) -> None:
        """It is of no use, and will be replaced."""
        note(f"{self.where}: what was under way is of no use: {error}; it begins anew")

    def write(self, text: str) -> None:
        """Keeps this."""
        self.keep.store.keep_state(self._request, text)
