"""Charts: figures of matplotlib, as PDF, SVG, PNG and elements of pages, with their data as CSV.

`style` has the look, `picture` a picture and its files, `embedded` pictures in pages, `measure` the
head of charts, `values` numbers over seeds, `marks` pieces of pictures; other modules draw one kind
each.
"""

from graven.drawing.figures.picture import FORMATS, Picture, save
from graven.drawing.figures.style import THEMES, WIDTHS, Look

__all__ = ["FORMATS", "THEMES", "WIDTHS", "Look", "Picture", "save"]
