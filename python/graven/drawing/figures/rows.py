"""Rows on one logarithmic axis of multiples: a paper beside ours, and what moves a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from graven.basics.numbers import Scale, ratio
from graven.drawing.figures.marks import (
    Legend,
    line_height,
    log_axis,
    printed_mark,
    ruled,
    text_size,
    widest,
    wrapped,
)
from graven.drawing.figures.picture import Chart, Picture, Rows
from graven.drawing.figures.style import OURS, PRINTED, Look
from graven.papers.data import Figure, NumberAnswer
from graven.papers.measures import brief
from graven.papers.panels import shows
from graven.papers.sensitivity import APART, Sensitivity
from graven.papers.verdicts import Verdict

_LABELS = 0.44
"""Largest part of the width that labels take."""

_ROW = 15.0
"""Least height of a row, in points."""

_OPEN = "#9aa5b1"
"""Colour of alternatives that decide no verdict."""


@dataclass(frozen=True)
class Pair:
    """A ratio that a paper prints, and ours.

    Attributes:
        label: Numerator, denominator and place, in words.
        printed: The paper's.
        ours: Ours.
        spread: Ends between which ours lies, over seeds and what the paper leaves open.
    """

    label: str
    printed: float
    ours: float
    spread: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest of what is drawn."""
        values = (self.printed, self.ours, *(self.spread or ()))
        return min(values), max(values)


@dataclass(frozen=True)
class Pairs(Chart):
    """Numbers that a paper prints, each beside ours: dumbbells.

    Attributes:
        pairs: From above.
        over: What intervals of ours are over, in words.
    """

    pairs: Sequence[Pair]
    over: str = "over seeds and readings"

    @staticmethod
    def of(figure: Figure, assessed: Sequence[Verdict]) -> Pairs | None:
        """The numbers that a paper prints about a figure; `None` if it prints none."""
        pairs: dict[str, Pair] = {}
        for verdict in assessed:
            answer, ours = verdict.claim.answer, verdict.value
            if not isinstance(answer, NumberAnswer) or not shows(figure, verdict.claim):
                continue
            if ours is None or not answer.measure.over or answer.form == "cases":
                continue
            if min(ours, answer.expect, *(verdict.range or ())) > 0.0:
                label = brief(answer.measure)
                same = verdict.claim.restates or verdict.claim.id
                pairs.setdefault(same, Pair(label, answer.expect, ours, verdict.range))
        return Pairs(list(pairs.values())) if pairs else None

    @property
    def rows(self) -> Rows:
        """Drawn data, as flat rows."""
        return [
            {
                "what": pair.label,
                "ours": pair.ours,
                "low": None if pair.spread is None else pair.spread[0],
                "high": None if pair.spread is None else pair.spread[1],
                "paper": pair.printed,
            }
            for pair in self.pairs
        ]

    def _drawn(self, look: Look) -> Picture:
        ours = OURS[look.theme]
        legend = Legend(look.points)
        legend.add(Line2D([], [], color=ours, marker="o", ls="none"), "ours")
        if any(pair.spread for pair in self.pairs):
            legend.add(Line2D([], [], color=ours, marker="|", lw=1.0, ms=4), f"ours, {self.over}")
        legend.add(printed_mark(look), "the paper")
        ends = [1.0, *(end for pair in self.pairs for end in pair.ends)]
        said = [f"{ratio(pair.ours)} | {ratio(pair.printed)}" for pair in self.pairs]
        labels = [pair.label for pair in self.pairs]
        strip = Strip(look, labels, said, (min(ends), max(ends)), legend)
        picture, axes = strip.begin(self.rows, "Multiples of what is compared with")
        axes.annotate(
            "ours | paper", (1.0, 1.0), xycoords="axes fraction", xytext=(5, 2),
            textcoords="offset points", va="bottom", fontsize=text_size("ytick.labelsize"),
            color=look.colours.soft,
        )  # fmt: skip
        for at, pair in enumerate(self.pairs):
            axes.plot(
                [pair.ours, pair.printed], [at, at], color=look.colours.soft, alpha=0.45, lw=2.6,
                solid_capstyle="butt", zorder=1.2,
            )  # fmt: skip
            if pair.spread is not None:
                axes.plot(pair.spread, [at, at], color=ours, lw=1.0, marker="|", ms=4, zorder=2)
            axes.plot([pair.ours], [at], color=ours, marker="o", zorder=3)
            axes.add_line(printed_mark(look, [(pair.printed, at)]))
        return picture


@dataclass(frozen=True)
class Row:
    """An alternative that moves a claim.

    Attributes:
        label: Its name, with the number that it moves if there are several.
        factor: That number over its value by default.
        verdict: The outcome under it.
        reading: True if a sentence allows it; others decide no verdict.
    """

    label: str
    factor: float
    verdict: str
    reading: bool


@dataclass(frozen=True)
class Sensitivities(Chart):
    """Alternatives that move a claim, most first: bars from its number by default to theirs.

    Attributes:
        moves: Each alternative.
        printed: What the paper prints over the default, if it prints a number.
    """

    moves: Sequence[Row]
    printed: float | None

    @staticmethod
    def of(found: Sensitivity) -> Sensitivities | None:
        """The alternatives under which a claim's number has a sense; `None` without any."""
        several = len(found.verdict.default.numbers) > 1
        moves = [
            Row(
                f"{move.name}: {move.number}" if several else move.name,
                move.factor,
                move.found.verdict,
                move.kind not in APART,
            )
            for move in (*found.moves, *found.programs)
            if move.factor is not None
        ]
        answer, ours = found.verdict.claim.answer, found.verdict.value
        printed = None
        if isinstance(answer, NumberAnswer) and ours and answer.expect / ours > 0.0:
            printed = answer.expect / ours
        return Sensitivities(moves, printed) if moves else None

    @property
    def rows(self) -> Rows:
        """Drawn data, as flat rows."""
        return [
            {
                "what": move.label,
                "factor": move.factor,
                "outcome": move.verdict,
                "decides": move.reading,
                "paper": self.printed,
            }
            for move in self.moves
        ]

    def _drawn(self, look: Look) -> Picture:
        ours, page = OURS[look.theme], look.colours.page
        legend = Legend(look.points)
        kinds = {move.reading for move in self.moves}
        if True in kinds:
            legend.add(Patch(facecolor=ours, linewidth=0), "a reading of the text")
        if False in kinds:
            hatched = Patch(facecolor=_OPEN, hatch="//////", hatchcolor=page, linewidth=0)
            legend.add(hatched, "decides no verdict")
        if self.printed is not None:
            legend.add(Line2D([], [], color=PRINTED[look.theme], ls="--", lw=1.0), "the paper")
        ends = [
            1.0,
            *(move.factor for move in self.moves),
            *([self.printed] if self.printed else []),
        ]
        said = [f"{ratio(move.factor)}, {move.verdict}" for move in self.moves]
        labels = [move.label for move in self.moves]
        strip = Strip(look, labels, said, (min(ends), max(ends)), legend)
        picture, axes = strip.begin(self.rows, "Multiples of the number by default")
        for at, move in enumerate(self.moves):
            low, high = sorted((1.0, move.factor))
            axes.barh(
                [at], [high - low], 0.62, [low], color=ours if move.reading else _OPEN,
                hatch="" if move.reading else "//////", hatchcolor=page, linewidth=0, zorder=2,
            )  # fmt: skip
        if self.printed is not None:
            axes.axvline(self.printed, color=PRINTED[look.theme], ls="--", lw=1.0, zorder=3)
        return picture


class Strip:
    """Rows with a label at the left and a remark at the right."""

    def __init__(
        self,
        look: Look,
        labels: Sequence[str],
        said: Sequence[str],
        ends: tuple[float, float],
        legend: Legend,
    ) -> None:
        """Lays out the rows; `ends` are the least and the greatest number."""
        self._look, self._legend = look, legend
        self._size = text_size("ytick.labelsize")
        room = _LABELS * look.points
        self._labels = [wrapped(label, self._size, room) for label in labels]
        self._said = [wrapped(text, self._size, 0.24 * look.points) for text in said]
        pad = 1.08 * (ends[1] / ends[0]) ** 0.04
        self._ends = ends[0] / pad, ends[1] * pad

    def begin(self, rows: Rows, title: str) -> tuple[Picture, Axes]:
        """The picture, with axes and texts and without what the rows are about."""
        look, size = self._look, self._size
        count = len(self._labels)
        lines = [max(a.count("\n"), b.count("\n")) + 1 for a, b in self._pairs()]
        row = max(1.15 * size * max(lines, default=1) + 4, _ROW)
        label = text_size("axes.labelsize")
        left = widest([part for text in self._labels for part in text.split("\n")], size) + 8
        right = widest([part for text in self._said for part in text.split("\n")], size) + 10
        right = max(right, widest(["ours | paper"], size) + 8)
        above, below = self._legend.height + line_height(size) + 2, 2.1 * size + 1.5 * label + 2
        inner = row * count
        height = inner + above + below
        picture = Picture(look, height, rows, layout="none")
        width = look.points - left - right
        axes = picture.add_axes(
            (left / look.points, below / height, width / look.points, inner / height)
        )
        axes.set_xscale("log")
        axes.set_xlim(*self._ends)
        axes.set_ylim(count - 0.5, -0.5)
        log_axis(axes.xaxis, Scale(1.0, ""), self._ends, width, text_size("xtick.labelsize"))
        axes.set_yticks(range(count), self._labels)
        ruled(axes, "x")
        axes.spines["left"].set_visible(False)
        axes.axvline(1.0, color=look.colours.ink, lw=0.8, zorder=1.5)
        middle = (left + width / 2) / look.points
        picture.text(
            min(max(middle, 0.3), 0.7), 0.35 * label / height, title, ha="center", va="bottom",
            fontsize=label, color=look.colours.ink,
        )  # fmt: skip
        for at, text in enumerate(self._said):
            axes.annotate(
                text, (1.0, at), xycoords=("axes fraction", "data"), xytext=(5, 0),
                textcoords="offset points", va="center", fontsize=size, annotation_clip=False,
            )  # fmt: skip
        self._legend.draw(picture)
        return picture, axes

    def _pairs(self) -> list[tuple[str, str]]:
        return list(zip(self._labels, self._said, strict=True))
