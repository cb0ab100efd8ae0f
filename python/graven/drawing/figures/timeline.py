"""Timelines of some transactions and of all they wait for, as `graven run --timeline` writes them.

Time goes to the right, to scale. Threads come first, with their transactions and what they wait
for; then the writes to PM, from their arrival at the controller until they are durable; then the
PM's banks with what they do.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from graven._engine import ConfigError
from graven.basics.arguments import path as path_text
from graven.basics.numbers import exact, scale
from graven.drawing.figures.marks import (
    Legend,
    line_height,
    number_axis,
    text_size,
    text_width,
    wrapped,
)
from graven.drawing.figures.picture import Chart, Picture, Rows
from graven.drawing.figures.plotted import Plotted
from graven.drawing.figures.style import Look
from graven.drawing.palette import KIND_TITLES, KINDS

THREADS, WRITES, BANKS, DESIGN = "threads", "writes until durable", "PM", "design"
"""Groups of events, as the files name them."""

HEADINGS = {
    THREADS: "Threads",
    WRITES: "Writes, from the controller until durable",
    BANKS: "PM banks",
}

TRANSACTION, WAITS = "transaction", "waits: "


class Shade(NamedTuple):
    """Fill of a kind of spans, and its name in the legend."""

    colour: str
    hatch: str
    """Hatch that tells it apart in grey."""
    words: str


CAUSES = {
    "load": Shade("#56b4e9", "", "waits for a load"),
    "store": Shade("#8470d6", "/" * 7, "waits for the store queue"),
    "mshr": Shade("#aa4499", "|" * 7, "waits for a miss register"),
    "window": Shade("#999933", "x" * 6, "waits for the reorder buffer"),
    "commit": Shade("#d55e00", "", "waits for the commit"),
    "log": Shade("#e69f00", "\\" * 7, "waits for the design"),
    "lock": Shade("#882255", "x" * 6, "waits for a lock"),
    "fence": Shade("#cc79a7", "+" * 6, "waits for a fence"),
}
"""Causes of waits, by the names that statistics of stalls have."""

_KIND_HATCHES = {"data": "", "log": "/" * 7, "metadata": "x" * 6, "gc": "\\" * 7}

WORK = {
    "read": Shade("#8a949e", "", "read"),
    **{
        kind: Shade(KINDS[kind], _KIND_HATCHES[kind], f"write, {KIND_TITLES[kind]}")
        for kind in KINDS
    },
    "spill": Shade("#ddcc77", "", "buffer to cells"),
}
"""Work of banks, and classes of writes."""

_LANE = {"column": 8.0, "text": 10.0}
"""How high the lane of a thread or a bank is, in points."""

_BUSY_MOST = 10
"""So many writes at a time have a row each; of more, rows are thinner."""


@dataclass(frozen=True)
class Span:
    """Something that lasts, in cycles: what it is, in which lane, and what else is known of it."""

    group: str
    lane: str
    name: str
    begin: int
    end: int
    details: Mapping[str, Any]


@dataclass(frozen=True, repr=False)
class Timeline(Plotted):
    """Events while some transactions ran.

    Attributes:
        about: The run: design, workload, machine, threads, transactions, seed; `frequency_mhz`,
            `from_cycle` and `until_cycle`.
        spans: Transactions, waits, writes, work of banks, and notes of the design.
        lanes: Threads and banks, in their order, by group.

    Examples:
        >>> record = graven.run("fwb", "hash", threads=2, transactions=200, timeline="run.json")
        >>> timeline = graven.Timeline.read("run.json")
        >>> timeline.title
        'fwb on hash, transactions 100 to 103'
        >>> timeline.about["from_cycle"], timeline.about["until_cycle"]
        (29209, 30373)
        >>> timeline.rows[0]["what"], timeline.rows[0]["until_cycle"]
        ('waits: load', 29419)
        >>> [path.name for path in timeline.plot(width="text").save("run.pdf")]
        ['run.pdf', 'run.csv']
    """

    about: Mapping[str, Any]
    spans: Sequence[Span]
    lanes: Mapping[str, Sequence[str]]

    def __repr__(self) -> str:
        about = self.about
        cycles = f"cycles {exact(about['from_cycle'])} to {exact(about['until_cycle'])}"
        return f"<Timeline: {self.title}, {cycles}>"

    @staticmethod
    def read(path: str | PathLike[str]) -> Timeline:
        """The timeline in a file that `graven run --timeline`, or `graven.run`, has written.

        Raises:
            ConfigError: it cannot be read, or is something else.
        """
        file = Path(path_text("path", path))
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read {file}: {error.strerror or error}") from None
        except ValueError:
            document = None
        try:
            return _parsed(document)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ConfigError(f"{file} is not what `graven run --timeline` writes") from None

    @property
    def title(self) -> str:
        """Design, workload and transactions, in words."""
        of = [s for s in self.spans if s.group == THREADS and s.details.get("wanted")]
        numbers = sorted(span.details["number"] for span in of)
        first, last = exact(numbers[0]), exact(numbers[-1])
        which = f"s {first} to {last}" if len(numbers) > 1 else f" {first}"
        about = self.about
        return f"{about['design']} on {about['workload']}, {TRANSACTION}{which}"

    @property
    def rows(self) -> Rows:
        """Drawn data and notes of the design, as flat rows."""
        return [
            {
                "group": span.group,
                "lane": span.lane,
                "what": span.name,
                "from_cycle": span.begin,
                "until_cycle": span.end,
                "line": span.details.get("line"),
                "arrived_cycle": span.details.get("arrived"),
            }
            for span in sorted(self.spans, key=lambda span: (span.begin, span.end))
        ]

    def _chart(self) -> Lanes:
        return Lanes(self)


@dataclass(frozen=True)
class Lanes(Chart):
    """The picture of a timeline: a lane for each thread, write and bank."""

    line: Timeline

    @property
    def rows(self) -> Rows:
        """Drawn data, as flat rows."""
        return self.line.rows

    def _drawn(self, look: Look) -> Picture:
        return _Drawing(self.line, look).picture()


def _parsed(document: Any) -> Timeline:  # noqa: ANN401 - what JSON may be
    about = dict(document["otherData"])
    for key in ("frequency_mhz", "from_cycle", "until_cycle"):
        if not isinstance(about[key], int):
            raise TypeError(key)
    groups: dict[int, str] = {}
    tracks: dict[tuple[int, int], str] = {}
    spans = []
    for event in document["traceEvents"]:
        place, named = (event["pid"], event["tid"]), event["args"].get("name")
        if event["name"] == "process_name":
            groups[event["pid"]] = named
        elif event["name"] == "thread_name":
            tracks[place] = named
        elif event["ph"] in ("X", "b", "i"):
            args = event["args"]
            group = groups[event["pid"]]
            lane = tracks.get(place, group)
            begin, end = int(args["from"]), int(args["until"])
            spans.append(Span(group, lane, str(event["name"]), begin, end, args))
    lanes = defaultdict(list)
    for place in sorted(tracks):
        lanes[groups[place[0]]].append(tracks[place])
    if not any(span.details.get("wanted") for span in spans):
        raise ValueError("no transaction")
    return Timeline(about, spans, lanes)


class _Drawing:
    """One picture: lanes from above, in points."""

    def __init__(self, line: Timeline, look: Look) -> None:
        self.line, self.look = line, look
        self.begin = line.about["from_cycle"]
        self.length = max(line.about["until_cycle"] - self.begin, 1)
        self.size = text_size("ytick.labelsize")
        self.lane = _LANE["column" if look.width < 5 else "text"]
        self.colours = look.colours
        by_group: dict[str, list[Span]] = defaultdict(list)
        for span in self._inside(line.spans):
            by_group[span.group].append(span)
        self.threads = by_group[THREADS]
        self.banks = by_group[BANKS]
        self.packed = packed(by_group[WRITES])
        self.busy = max((row for row, _ in self.packed), default=-1) + 1

    def picture(self) -> Picture:
        line, look, size = self.line, self.look, self.size
        head = wrapped(line.title, text_size("axes.titlesize"), look.points - 8)
        heights = {
            THREADS: self.lane * len(line.lanes[THREADS]),
            WRITES: self.lane * min(max(self.busy, 1), _BUSY_MOST) * 0.6,
            BANKS: self.lane * len(line.lanes[BANKS]) * 0.8,
        }
        names = {THREADS: line.lanes[THREADS], WRITES: [], BANKS: line.lanes[BANKS]}
        shown = [group for group in heights if heights[group]]
        gap = line_height(size) + 7
        legend = Legend(look.points)
        self._explain(legend)
        top = line_height(text_size("axes.titlesize")) * (head.count("\n") + 1) + 4
        inner = sum(heights[group] + gap for group in shown)
        room = max(text_width(_short(name), size) for group in shown for name in names[group])
        left, right = (room + 8) / look.points, 1 - 6 / look.points
        time = scale("cycles", self.length)
        ghz = line.about["frequency_mhz"] / 1000
        label_size = text_size("axes.labelsize")
        label = wrapped(
            f"Time, {time.unit}, from cycle {exact(self.begin)} on, at {ghz:g} GHz",
            label_size,
            look.points * (right - left),
        )
        foot = line_height(label_size) * (label.count("\n") + 1) + line_height(size) + 10
        whole = top + legend.height + inner + foot
        picture = Picture(look, whole, line.rows, layout="none")
        picture.text(4 / look.points, 1 - 4 / whole, head, va="top",
                     fontsize=text_size("axes.titlesize"))  # fmt: skip
        legend.draw_at(picture, (4 / look.points, 1 - top / whole))
        y = whole - top - legend.height
        for at, group in enumerate(shown):
            y -= gap + heights[group]
            box = (left, y / whole, right - left, heights[group] / whole)
            axes = picture.add_axes(box)
            axes.set_xlim(0, self.length)
            axes.text(0, 1 + 1 / heights[group], HEADINGS[group], transform=axes.transAxes,
                      fontsize=size, va="bottom", color=self.colours.soft)  # fmt: skip
            self._lanes(axes, names[group])
            {THREADS: self._threads, WRITES: self._writes, BANKS: self._banks}[group](axes)
            number_axis(axes.xaxis, time)
            axes.grid(axis="x")
            axes.spines[:].set_visible(False)
            is_last = at == len(shown) - 1
            axes.tick_params(axis="x", length=0, labelbottom=is_last)
            if is_last:
                axes.set_xlabel(label)
        return picture

    def _inside(self, spans: Iterable[Span]) -> list[Span]:
        """Those of which something is shown."""
        end = self.begin + self.length
        return [span for span in spans if span.end >= self.begin and span.begin <= end]

    def _lanes(self, axes: Axes, names: Sequence[str]) -> None:
        axes.set_ylim(max(len(names), 1), 0)
        axes.set_yticks([at + 0.5 for at in range(len(names))], [_short(name) for name in names])
        axes.tick_params(axis="y", pad=2)

    def _bars(
        self,
        axes: Axes,
        spans: Iterable[tuple[Span, float, float]],
        colour: str,
        **how: Any,  # noqa: ANN401
    ) -> None:
        """Bars of one colour: each with its upper edge and its height."""
        by_place: dict[tuple[float, float], list[tuple[int, int]]] = defaultdict(list)
        for span, top, height in spans:
            begin = max(span.begin - self.begin, 0)
            end = min(span.end - self.begin, self.length)
            by_place[top, height].append((begin, end - begin))
        for place, bars in by_place.items():
            axes.broken_barh(bars, place, facecolor=colour, **how)

    def _shaded(self, axes: Axes, spans: Iterable[tuple[Span, float, float]], shade: Shade) -> None:
        """Bars of what lasts."""
        page = self.colours.page
        self._bars(
            axes, spans, shade.colour, hatch=shade.hatch, hatchcolor=page, linewidth=0, zorder=3
        )

    def _patch(self, shade: Shade) -> Patch:
        """What the legend shows of it."""
        page = self.colours.page
        return Patch(facecolor=shade.colour, hatch=shade.hatch, hatchcolor=page, linewidth=0)

    def _threads(self, axes: Axes) -> None:
        lanes = {name: at for at, name in enumerate(self.line.lanes[THREADS])}
        runs = [span for span in self.threads if not span.name.startswith(WAITS)]
        for wanted in (True, False):
            of = [span for span in runs if bool(span.details.get("wanted")) == wanted]
            placed = [(span, lanes[span.lane] + 0.12, 0.76) for span in of]
            face = self.colours.rule if wanted else self.colours.band
            self._bars(axes, placed, face, edgecolor=self.colours.soft, linewidth=0.5, zorder=2)
        for cause, shade in CAUSES.items():
            of = [span for span in self.threads if span.name == WAITS + cause]
            placed = [(span, lanes[span.lane] + 0.3, 0.4) for span in of]
            self._shaded(axes, placed, shade)
        # The end of a transaction's instructions, from which on it only waits for its commit.
        ends = [(s.details["ending"] - self.begin, lanes[s.lane]) for s in runs
                if s.details.get("ending") is not None]  # fmt: skip
        for at, lane in ends:
            axes.plot([at, at], [lane + 0.12, lane + 0.88], color=self.colours.ink, lw=0.8,
                      zorder=4)  # fmt: skip

    def _writes(self, axes: Axes) -> None:
        axes.set_ylim(max(self.busy, 1), 0)
        for kind, shade in WORK.items():
            of = [(span, row + 0.1, 0.8) for row, span in self.packed if span.name == kind]
            self._shaded(axes, [each for each in of if each[0].end > each[0].begin], shade)
            at_once = [(span.begin - self.begin, row + 0.5) for row, span in self.packed
                       if span.name == kind and span.end == span.begin]  # fmt: skip
            if at_once:
                axes.plot(*zip(*at_once, strict=True), color=shade.colour, marker="|", ls="none",
                          ms=0.5 * self.lane, zorder=4, clip_on=False)  # fmt: skip

    def _banks(self, axes: Axes) -> None:
        lanes = {name: at for at, name in enumerate(self.line.lanes[BANKS])}
        for kind, shade in WORK.items():
            of = [span for span in self.banks if span.name == kind]
            placed = [(span, lanes[span.lane] + 0.15, 0.7) for span in of]
            self._shaded(axes, placed, shade)

    def _explain(self, legend: Legend) -> None:
        """What the colours are that are there."""
        there = {span.name for span in self.line.spans}
        soft, rule = self.colours.soft, self.colours.rule
        legend.add(Patch(facecolor=rule, edgecolor=soft, linewidth=0.5), TRANSACTION)
        legend.add(
            Line2D([], [], color=self.colours.ink, marker="|", ls="none", ms=6), "its last store"
        )
        shades = {**{WAITS + cause: shade for cause, shade in CAUSES.items()}, **WORK}
        for name, shade in shades.items():
            if name in there:
                legend.add(self._patch(shade), shade.words)


def packed(spans: Sequence[Span]) -> list[tuple[int, Span]]:
    """Spans in rows in which they do not overlap, each in the first that is free.

    What takes no time comes first, with a row for each kind.
    """
    at_once = [span for span in spans if span.begin == span.end]
    kinds = [kind for kind in WORK if any(span.name == kind for span in at_once)]
    found = [(kinds.index(span.name), span) for span in at_once]
    first = len(kinds)
    ends: list[int] = []
    lasting = (span for span in spans if span.begin < span.end)
    for span in sorted(lasting, key=lambda span: (span.begin, span.end)):
        row = next((at for at, end in enumerate(ends) if end <= span.begin), len(ends))
        ends[row : row + 1] = [span.end]
        found.append((first + row, span))
    return found


def _short(name: str) -> str:
    """A lane's name in little room: `0` of thread 0, `1.3` of channel 1, bank 3."""
    for long, short in (("thread ", ""), ("channel ", ""), (", bank ", "."), ("bank ", "")):
        name = name.replace(long, short)
    return name
