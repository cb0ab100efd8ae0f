"""Requests for several designs, of which the engine refuses some and runs the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from graven import _engine

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class Fitting(Generic[T]):
    """Requests that the engine takes, and why it refuses others.

    Attributes:
        taken: What was made of each that the engine takes, in order.
        left_out: A line for each other: its name, and why the engine refuses it.
    """

    taken: tuple[T, ...]
    left_out: tuple[str, ...] = ()

    @staticmethod
    def of(
        asked: Sequence[tuple[str, A]], prepare: Callable[[A], T], *, leave_out: bool
    ) -> Fitting[T]:
        """Prepares each request.

        Args:
            asked: Names and requests.
            prepare: Has the engine check a request.
            leave_out: True to leave out those that the engine refuses, if it takes any.

        Raises:
            ConfigError: the engine refuses one; it is named, unless all are refused for one reason.
        """
        taken: list[T] = []
        refused: list[tuple[str, str]] = []
        for name, request in asked:
            try:
                taken.append(prepare(request))
            except _engine.ConfigError as error:
                refused.append((name, str(error)))
        if refused and not (leave_out and taken):
            raise _engine.ConfigError(_refusal(refused, len(asked)))
        return Fitting(tuple(taken), tuple(f"{name}: {why}" for name, why in refused))


def _refusal(refused: Sequence[tuple[str, str]], of: int) -> str:
    name, why = refused[0]
    if len(refused) == of and len({reason for _, reason in refused}) == 1:
        return why
    return f"{name}: {why}"
