"""Progress on standard error: a live bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from graven.experiment import Snapshot
from graven.figures import scaled

QUIET_SECONDS = 10.0
"""Without a terminal, how long to be silent between two lines."""


def duration(seconds: float) -> str:
    """Seconds as a person says them: `45 s`, `3 min 5 s`, `2 h 10 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _left(snapshot: Snapshot) -> str:
    if snapshot.minimising:
        return "violated, minimising the program"
    left = snapshot.seconds_left
    return "" if left is None else f"about {duration(left)} left"


def _rate(snapshot: Snapshot) -> str:
    if not snapshot.checked or snapshot.elapsed_seconds <= 0:
        return ""
    return f"{scaled(snapshot.checked / snapshot.elapsed_seconds)} power failures/s"


class _Left(ProgressColumn):
    def render(self, task: Task) -> Text:
        parts = (task.fields.get("rate", ""), task.fields.get("left", ""))
        return Text(", ".join(part for part in parts if part), style="cyan")


class Display:
    """Shows snapshots of an experiment; use it as a context."""

    def __init__(self, console: Console, noun: str = "simulations") -> None:
        self._noun = noun
        self._console = console
        self._spoke = time.monotonic()
        self._live: Progress | None = None
        if console.is_terminal:
            self._live = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=28),
                TextColumn("{task.percentage:>3.0f}%"),
                _Left(),
                TextColumn("[dim]{task.fields[running]}", table_column=None),
                console=console,
                transient=True,
            )
            self._task = self._live.add_task("starting", total=1.0, left="", rate="", running="")

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, snapshot: Snapshot) -> None:
        """Shows one snapshot."""
        done = f"{snapshot.done} of {snapshot.total} {self._noun}"
        if self._live is not None:
            self._live.update(
                self._task,
                completed=snapshot.fraction,
                description=done,
                left=_left(snapshot),
                rate=_rate(snapshot),
                running=", ".join(snapshot.running),
            )
        elif time.monotonic() - self._spoke >= QUIET_SECONDS:
            self._spoke = time.monotonic()
            parts = [done, f"{snapshot.fraction:.0%}", _rate(snapshot), _left(snapshot)]
            self._console.print(
                "graven: " + ", ".join(part for part in parts if part),
                highlight=False,
                soft_wrap=True,
            )
