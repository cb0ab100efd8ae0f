"""Pictures for papers: figures of matplotlib, as PDF, SVG and PNG, with their data as CSV.

`style` has the look, `picture` what a picture is and how it is saved, `values` the numbers over
seeds, `marks` what pictures are put together from; each other module draws one kind.
"""

from graven.drawing.figures.picture import FORMATS, Picture, save
from graven.drawing.figures.style import THEMES, WIDTHS, Look

__all__ = ["FORMATS", "THEMES", "WIDTHS", "Look", "Picture", "save"]
