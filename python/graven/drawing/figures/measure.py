"""Head that charts of bars and of lines share: a statistic, designs, and their meaning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from graven.basics.numbers import Scale, Value, ratio, scale, scaled
from graven.drawing.figures.values import Number
from graven.drawing.scales import AUTO, middle

UNSAFE_MARK = "†"
UNSAFE_NOTE = f"{UNSAFE_MARK} loses data at a power failure"


@dataclass(frozen=True)
class Measure:
    """A statistic of some designs, and how a chart shows it.

    Attributes:
        metric: Name of the statistic, or of what the parts of bars add up to.
        title: The same in words.
        unit: Unit of absolute values.
        direction: The better direction, in words; empty if that is not known.
        designs: Designs, in the order in which they are drawn.
        baseline: Design that numbers are multiples of; none for absolute numbers.
        unsafe: Designs that are marked.
        spreads: Meaning of whiskers and bands, in words; empty if there are none.
        scales: One of `scales.SCALES`.
        made_with: Conditions of the numbers, in one line.
    """

    metric: str
    title: str
    unit: str
    direction: str
    designs: Sequence[str]
    baseline: str | None = None
    unsafe: Collection[str] = ()
    spreads: str = ""
    scales: str = AUTO
    made_with: str = ""

    def label(self, design: str) -> str:
        """Returns a design's name, with a mark if the design is unsafe."""
        return f"{design} {UNSAFE_MARK}" if design in self.unsafe else design

    @property
    def notes(self) -> list[str]:
        """Texts without a sign in a legend: the meaning of the mark of unsafe designs."""
        return [UNSAFE_NOTE] if set(self.unsafe).intersection(self.designs) else []

    def scale(self, tops: Sequence[float]) -> Scale:
        """Returns the scale of axes that end at `tops`."""
        return scale(self.unit, middle(tops)) if self.baseline is None else Scale(1.0, "")

    def axis_title(self, scale: Scale, *apart: str) -> str:
        """Returns the title of an axis: its unit or the baseline, the better direction, remarks."""
        of = f", relative to {self.baseline}" if self.baseline is not None else ""
        unit = f", {scale.unit}" if scale.unit else ""
        remarks = "; ".join(text for text in (self.direction, *apart) if text)
        return f"{self.title}{of or unit}{f' ({remarks})' if remarks else ''}"

    def row(self, number: Number | None, **place: Value) -> dict[str, Value]:
        """Returns a number as a flat row, with its place in the chart."""
        multiples = f"multiples of {self.baseline}"
        unit = self.unit if self.baseline is None else multiples
        row: dict[str, Value] = {"metric": self.metric, "unit": unit, **place}
        if number is None:
            return {**row, "value": None}
        return row | {"value": number.value, "low": number.low, "high": number.high}

    def with_conditions(self, rows: Iterable[dict[str, Value]]) -> list[dict[str, Value]]:
        """Returns rows that each name the conditions of the numbers."""
        return [row | {"made with": self.made_with} if self.made_with else row for row in rows]

    def text(self, value: float | None) -> str:
        """Returns a value as a chart shows it."""
        return scaled(value) if self.baseline is None else ratio(value)
