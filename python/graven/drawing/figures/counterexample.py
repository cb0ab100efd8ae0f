"""The counterexample of a crash report as a picture: who did what until the guarantee was broken.

Time goes down, an event to a row and not to scale; each of those who act has a lane.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from graven._engine import ConfigError
from graven.basics.numbers import exact
from graven.drawing.figures.marks import text_size, widest, wrapped
from graven.drawing.figures.picture import Chart, Picture, Rows
from graven.drawing.figures.style import PRINTED, Look
from graven.laboratory.reports import Event, Report, Violation

POWER, VERDICT = "power", "verdict"
"""Who lets power fail, and who judges, in timelines."""

RUN_MOST = 4
"""Number of consecutive events of one actor that are all shown; of more, the first and the last."""

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999933", "#aa4499")
SIGNS = "os^Dv*Ph"


@dataclass(frozen=True)
class Counterexample(Chart):
    """Events that led to a violation, in order, and the verdict.

    `left_out` counts earlier or unrelated events that are not among them.
    """

    title: str
    events: Sequence[Event]
    left_out: int = 0

    @staticmethod
    def of(report: Report, number: int = 0) -> Counterexample:
        """The timeline of one violation of a report.

        Raises:
            ConfigError: there is no such violation.
        """
        count = len(report.violations)
        if not count:
            raise ConfigError(f"there is no violation to draw: {report.design} {report.verdict}")
        if not 0 <= number < count:
            raise ConfigError(f"violation: {number} is not from 0 to {count - 1}")
        return Counterexample.of_violation(report.design, report.violations[number])

    @staticmethod
    def of_violation(design: str, found: Violation) -> Counterexample:
        """The timeline of a violation of a design's guarantee."""
        title = f"{design}: power fails at cycle {exact(found.cycle)} ({found.failure_mode})"
        return Counterexample(title, found.timeline, found.left_out)

    @property
    def rows(self) -> Rows:
        """Drawn data, as flat rows."""
        return [{"cycle": e.cycle, "who": e.who, "what": e.what} for e in self.events]

    @property
    def shown(self) -> list[Event]:
        """Events that are drawn; one stands for several with their number."""
        found: list[Event] = []
        for who, run in itertools.groupby(self.events, key=lambda event: event.who):
            events = list(run)
            if len(events) > RUN_MOST:
                more = Event(None, who, f"… {exact(len(events) - 2)} more")
                events = [events[0], more, events[-1]]
            found += events
        return found

    @property
    def lanes(self) -> list[str]:
        """Those who act, in the order in which they do; not the verdict."""
        return [who for who in dict.fromkeys(e.who for e in self.events) if who != VERDICT]

    def _drawn(self, look: Look) -> Picture:
        return _Drawing(self, look).picture()


class _Drawing:
    """One picture, in points from its upper left corner."""

    def __init__(self, line: Counterexample, look: Look) -> None:
        self.line, self.look = line, look
        self.size = text_size("ytick.labelsize")
        times = [_time(event) for event in line.shown]
        self.times = widest([*times, "cycle"], self.size) + 8
        self.pitch = 1.25 * self.size
        self.texts = self.times + self.pitch * len(line.lanes) + 6
        room = look.points - self.texts - 4
        self.said = [wrapped(_what(event), self.size, room) for event in line.shown]
        self.lines = 1.2 * self.size
        self.head = wrapped(line.title, text_size("axes.titlesize"), look.points - 8)
        # Names of lanes stand upright above them.
        self.names = widest(line.lanes, self.size) + 4

    def picture(self) -> Picture:
        line, look, size = self.line, self.look, self.size
        heights = [self.lines * (text.count("\n") + 1) + 2.5 for text in self.said]
        title = 1.25 * text_size("axes.titlesize") * (self.head.count("\n") + 1) + 4
        note = self._note()
        foot = 4 + (self.lines * (note.count("\n") + 1) if note else 0)
        top = title + self.names
        height = top + sum(heights) + foot
        picture = Picture(look, height, line.rows, layout="none")
        axes = picture.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, look.points)
        axes.set_ylim(height, 0)
        axes.set_axis_off()
        colours = look.colours
        axes.text(4, 4, self.head, va="top", fontsize=text_size("axes.titlesize"))
        axes.text(self.times - 6, top - 3, "cycle", ha="right", va="bottom", fontsize=size,
                  color=colours.soft)  # fmt: skip
        end = top + sum(heights)
        for at, who in enumerate(line.lanes):
            x = self._lane(at)
            axes.plot([x, x], [top, end - 2], color=colours.rule, lw=0.8, zorder=1)
            axes.text(x, top - 3, who, rotation=90, ha="center", va="bottom", fontsize=size)
        y = top
        before: tuple[float, float] | None = None
        for event, text, high in zip(line.shown, self.said, heights, strict=True):
            middle = y + 2.5 + 0.5 * self.lines
            self._row(axes, event, text, y + 2.5)
            if event.who in line.lanes:
                at = line.lanes.index(event.who)
                here = (self._lane(at), middle)
                if before is not None:
                    axes.plot(*zip(before, here, strict=True), color=colours.soft, lw=0.5, zorder=2)
                axes.add_line(self._sign(at, event.who, here))
                before = here
            y += high
        if note:
            axes.text(4, end + 2, note, va="top", fontsize=size, color=colours.soft)
        return picture

    def _note(self) -> str:
        if not self.line.left_out:
            return ""
        text = f"{exact(self.line.left_out)} earlier or unrelated events are left out."
        return wrapped(text, self.size, self.look.points - 8)

    def _lane(self, at: int) -> float:
        return self.times + (at + 0.5) * self.pitch

    def _row(self, axes: Axes, event: Event, text: str, y: float) -> None:
        judged = event.who in (POWER, VERDICT)
        colour = PRINTED[self.look.theme] if judged else self.look.colours.ink
        axes.text(self.times - 6, y, _time(event), ha="right", va="top", fontsize=self.size)
        axes.text(self.texts, y, text, va="top", fontsize=self.size, color=colour, linespacing=1.05)

    def _sign(self, at: int, who: str, here: tuple[float, float]) -> Line2D:
        colour = PRINTED[self.look.theme] if who == POWER else COLOURS[at % len(COLOURS)]
        marker = "X" if who == POWER else SIGNS[at % len(SIGNS)]
        return Line2D(
            [here[0]], [here[1]], color=colour, marker=marker, ms=4.2, ls="none", zorder=3
        )


def _time(event: Event) -> str:
    return "" if event.cycle is None else exact(event.cycle)


def _what(event: Event) -> str:
    return f"{VERDICT}: {event.what}" if event.who == VERDICT else event.what
