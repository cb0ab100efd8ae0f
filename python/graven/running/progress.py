"""Progress on standard error: a live bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import html
import os
import sys
import time
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graven.basics.numbers import scaled
from graven.running.pool import Snapshot

if TYPE_CHECKING:
    from rich.progress import Progress

    from graven.running.pool import Observer

QUIET_SECONDS = 10.0
"""Time between two lines without a terminal."""


def duration(seconds: float) -> str:
    """Seconds as a person says them: `45 s`, `3 min 5 s`, `2 h 10 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def percent(fraction: float) -> str:
    """A share that is done: `34%`, with more digits where a long run has just begun: `0.08%`."""
    return f"{fraction:.2%}" if 0.0 < fraction < 0.01 else f"{fraction:.0%}"


def _pace(snapshot: Snapshot) -> list[str]:
    """The pace and the time that is left, as far as either is known."""
    parts = []
    if snapshot.checked and snapshot.elapsed_seconds > 0:
        parts.append(f"{scaled(snapshot.checked / snapshot.elapsed_seconds)} power failures/s")
    if snapshot.minimising:
        parts.append("violated, minimising the program")
    elif (left := snapshot.seconds_left) is not None:
        parts.append(f"about {duration(left)} left")
    return parts


def _bar() -> Progress | None:
    """A live bar, if standard error is a terminal or is said to be one."""
    said = ("FORCE_COLOR", "TTY_COMPATIBLE")
    if not sys.stderr.isatty() and not any(name in os.environ for name in said):
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        return None
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=28),
        TextColumn("{task.fields[percent]:>4}"),
        TextColumn("[cyan]{task.fields[pace]}"),
        TextColumn("[dim]{task.fields[running]}", table_column=None),
        console=console,
        transient=True,
    )


class Display:
    """Shows snapshots of an experiment on standard error; use it as a context.

    `noun` is what the experiment counts.
    """

    def __init__(self, noun: str = "simulations") -> None:
        self._noun = noun
        self._spoke = time.monotonic()
        self._live = _bar()
        if self._live is not None:
            self._task = self._live.add_task(
                "starting", total=1.0, percent="0%", pace="", running=""
            )

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
        """Shows one snapshot, and what was found since the last one."""
        for line in snapshot.found:
            self._say(f"graven: {line}")
        done = f"{snapshot.done} of {snapshot.total} {self._noun}"
        if self._live is not None:
            self._live.update(
                self._task,
                completed=snapshot.fraction,
                description=done,
                percent=percent(snapshot.fraction),
                pace=", ".join(_pace(snapshot)),
                running=", ".join(snapshot.parts or snapshot.running),
            )
        elif time.monotonic() - self._spoke >= QUIET_SECONDS:
            self._spoke = time.monotonic()
            parts = [done, percent(snapshot.fraction), *_pace(snapshot)]
            each = f" ({', '.join(snapshot.parts)})" if snapshot.parts else ""
            print(f"graven: {', '.join(parts)}{each}", file=sys.stderr)

    def _say(self, line: str) -> None:
        """Prints a line that stays, above the bar if there is one."""
        if self._live is None:
            print(line, file=sys.stderr)
        else:
            self._live.console.print(line, markup=False, soft_wrap=True)


def of_notebook() -> Observer | None:
    """The display of progress under the cell of a notebook, if one runs."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return Bar() if shell is not None and hasattr(shell, "kernel") else None


class Bar:
    """Shows snapshots in a notebook, as an element that changes."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._found: tuple[str, ...] = ()

    def __call__(self, snapshot: Snapshot) -> None:
        """Shows one snapshot, with all that was found until then."""
        from IPython.display import HTML, display

        self._found += snapshot.found
        page = HTML(self.html(replace(snapshot, found=self._found)))
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)

    @staticmethod
    def html(snapshot: Snapshot) -> str:
        """One snapshot as an element of a page."""
        parts = [f"{snapshot.done:,} of {snapshot.total:,}", percent(snapshot.fraction)]
        parts += _pace(snapshot)
        bar = f'<progress value="{snapshot.fraction:.4f}" max="1"></progress>'
        found = "".join(f"<br>{html.escape(line)}" for line in snapshot.found)
        return f"<div>{bar} {html.escape(', '.join(parts))}{found}</div>"
