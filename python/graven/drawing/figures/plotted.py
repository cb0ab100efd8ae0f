"""Base of results that draw themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graven.drawing.figures.picture import Chart, Picture


class Plotted:
    """Has a picture."""

    def _chart(self) -> Chart:
        """What is drawn.

        Raises:
            ConfigError: there is nothing to draw.
        """
        raise NotImplementedError

    def plot(
        self, *, width: str | float = "column", theme: str = "light", style: object = None
    ) -> Picture:
        """The picture.

        Args:
            width: `column` (3.3 in), `text` (7 in), or inches.
            theme: `light` or `dark`.
            style: A style of matplotlib that applies on top.

        Raises:
            ConfigError: there is nothing to draw, or an argument is not allowed.

        Examples:
            >>> record = graven.run("fwb", "hash", threads=2, transactions=200, timeline="run.json")
            >>> picture = graven.Timeline.read("run.json").plot(width="text", theme="dark")
            >>> [path.name for path in picture.save(["run.pdf", "run.png"])]
            ['run.pdf', 'run.png', 'run.csv']
        """
        from graven.drawing.figures.style import Look

        look = Look.of(width, theme, style)
        return self._chart().draw(look)
