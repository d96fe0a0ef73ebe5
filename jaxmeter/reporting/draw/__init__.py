"""Drawing: each kind of figure as an SVG of a given width. Equal figures give equal bytes."""

from __future__ import annotations

from markupsafe import Markup

from ..view.page_model import Curves, Figure, Forest, Points, Roofline
from .curves import draw_curves
from .points import draw_points
from .roofline import draw_roofline
from .rows import draw_forest
from .stacks import draw_stacks


def draw(figure: Figure, width: int) -> Markup:
    """Return the SVG of a figure.

    Args:
      width: In pixels; each width has a drawing of its own; none is scaled.
    """
    match figure:
        case Points():
            return draw_points(figure, width)
        case Curves():
            return draw_curves(figure, width)
        case Forest():
            return draw_forest(figure, width)
        case Roofline():
            return draw_roofline(figure, width)
        case _:
            return draw_stacks(figure, width)


__all__ = ["draw"]
