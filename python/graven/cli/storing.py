"""Stores of commands that run something, and how such commands end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from graven import _engine
from graven.basics import output, signals
from graven.basics.errors import OutputRefusedError
from graven.cli.terminal import complain, note, refusing
from graven.results import formats
from graven.running.pool import Failure, failures_text
from graven.running.progress import Display

if TYPE_CHECKING:
    from graven.laboratory.adversary import AdversaryRequest
    from graven.laboratory.state_file import StateFile
    from graven.running.pool import Observer, Snapshot
    from graven.store import Request
    from graven.store.keeper import Keeper

ROOM = 4 << 20
"""Bytes to ask for before a campaign, for a program or a state."""


def keeper(folder: Path, *, fresh: bool, results: int) -> Keeper:
    """Finds results in a store, and keeps new ones there, `results` at most.

    Raises:
        Refusal: results cannot be kept there.
        StoreError: the folder is not a store.
    """
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
        keep: Keeper of the results, if they are kept.
        noun: Unit that the command counts.
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


def state_file(where: Path | None) -> StateFile | None:
    """Opens the file of `--state`, for which there has to be room.

    Raises:
        Refusal: it cannot be written.
    """
    from graven.laboratory.state_file import StateFile

    if where is None:
        return None
    found = StateFile(where)
    with refusing("--state: "):
        found.check(ROOM)
    return found


def say_found(found: int, total: int) -> None:
    """Says how many results were there before."""
    if found:
        note(f"{found:,} of {total:,} results were there already (--fresh runs them again)")


def show(form: str, items: Sequence[Any], table: Callable[[], None]) -> None:
    """Prints items as JSON documents, or the `table` of them if there are any."""
    if form == "json":
        sys.stdout.write(formats.json_text([item.to_dict() for item in items]))
    elif items:
        table()
    sys.stdout.flush()


def conclude(
    failures: Sequence[Failure], interruption: str | None, *, is_kept: bool, is_fine: bool = True
) -> int:
    """Complains of what failed, says what an interrupt has left, and returns the exit code.

    Args:
        failures: Jobs that did not end well.
        interruption: How much had been done, if the command was interrupted.
        is_kept: Whether the same command finds what had been done.
        is_fine: Whether the results are such that the command succeeds.
    """
    for failure in failures:
        complain(failures_text([failure]))
    if interruption is not None:
        left = "the same command goes on" if is_kept else "nothing is kept"
        note(f"{signals.words()}: {interruption}; {left}")
        return signals.INTERRUPTED
    return 0 if is_fine and not failures else 1


class State(Protocol):
    """Place of what a campaign has done, from which it continues: a `StateFile`, or the store."""

    @property
    def where(self) -> Path:
        """The file or folder."""

    def read(self) -> str | None:
        """Returns what was kept last, if anything was."""

    def refused(self, why: object) -> _engine.ConfigError | None:
        """Returns what to raise if the engine does not continue from it; nothing to begin anew."""

    def write(self, state: str) -> None:
        """Keeps a state in place of the last."""


@dataclass(frozen=True)
class UnderWay:
    """The store."""

    keep: Keeper
    plan: AdversaryRequest

    @property
    def where(self) -> Path:
        """The folder."""
        return self.keep.store.folder

    @cached_property
    def _request(self) -> Request:
        from graven.store.keeper import request_of_schedules

        return request_of_schedules(self.plan)

    def read(self) -> str | None:
        """Returns what was kept last, if anything was."""
        return None if self.keep.fresh else self.keep.store.state(self._request)

    def refused(self, why: object) -> None:
        """Says that what was kept is of no use; it will be replaced."""
        note(f"{self.where}: what was under way is of no use: {why}; it begins anew")

    def write(self, state: str) -> None:
        """Keeps a state in place of the last."""
        self.keep.store.keep_state(self._request, state)
