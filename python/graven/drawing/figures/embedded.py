"""Pictures as elements of HTML pages.

They are SVG with real text, so that they take the page's font, can be searched, and stay small.
Colours of the theme become variables of the page's style, which has others in the dark. Parts of a
picture have tips: texts that show when a reader points at them, and links to simulations.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from markupsafe import Markup

from graven.drawing.figures.picture import Chart, Picture, Tip
from graven.drawing.figures.style import PRINTED, Look

WIDE, NARROW = Look.in_page_of(1060.0), Look.in_page_of(380.0)
"""Looks of pictures for desks and paper, and for phones; a point is a CSS pixel."""

_NOT_SHOWN = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Drawing:
    """A chart twice: wide for desks and paper, narrow for phones."""

    wide: Markup
    narrow: Markup

    @staticmethod
    def of(chart: Chart, key: str, description: str) -> Drawing:
        """Draws a chart for a page.

        Args:
            chart: The chart.
            key: Prefix of identifiers, which are unique in the page then.
            description: Text for readers who do not see the chart.
        """
        looks = {"wide": WIDE, "narrow": NARROW}
        return Drawing(
            **{
                kind: element(chart.draw(look), f"{key}-{kind}", description, kind)
                for kind, look in looks.items()
            }
        )


def inline(picture: Picture) -> str:
    """Returns a picture as an element of any page."""
    text = picture.encoded("svg").decode()
    return _NOT_SHOWN.sub("", text[text.index("<svg") :])


def element(picture: Picture, key: str, description: str, kind: str) -> Markup:
    """Returns a picture as an element of a page of Graven's, of a class `kind`."""
    text = inline(picture)
    text = re.sub(r'<g id="([^"]*)">', lambda found: _part(picture, found[1]), text)
    text = re.sub(r'\bid="', f'id="{key}-', text)
    text = re.sub(r"url\(#", f"url(#{key}-", text)
    text = re.sub(r'xlink:href="#', f'href="#{key}-', text)
    colours = vars(picture.look.colours) | {"paper": PRINTED[picture.look.theme]}
    for name, colour in colours.items():
        text = text.replace(colour, f"var(--{name})")
    view = re.search(r'viewBox="[^"]*"', text)
    assert view is not None, "every picture has a view box"
    said = html.escape(description, quote=True)
    opening = f'<svg class="{kind}" role="img" aria-label="{said}" {view[0]}>'
    text = re.sub(r"<svg[^>]*>", lambda _: opening, text, count=1)
    return Markup(re.sub(r"\s*\n\s*", "\n", text).strip())


def _part(picture: Picture, name: str) -> str:
    """Returns the beginning of a group, with its tip if it has one."""
    tip = picture.tips.get(name, Tip(""))
    link = "" if tip.simulation is None else f' data-simulation="{tip.simulation}"'
    title = f"<title>{html.escape(tip.text)}</title>" if tip.text else ""
    return f'<g id="{name}"{link}>{title}'
