"""A drawing as a file of its own, for slides and papers: with colours, background, and a key of what its marks mean."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from markupsafe import Markup, escape

from ..view.figure_model import Curves, Figure, Hue, Mark, Roofline, Stacks
from . import draw
from .canvas import FONT_SIZE, Canvas
from .marks import RADIUS, draw_shape
from .palette import PANEL, Theme, make_theme_sheet

MARGIN = 12
"""Pixels around a drawing."""

KEY_HEIGHT, KEY_GAP = 20, 16
"""Pixels of the key below a drawing, and between two of its entries."""

FONTS = "DejaVu Sans, Verdana, Arial, sans-serif"
"""The widest first: texts were shortened for it, so they fit in every other."""

WORDS = {Hue.CPU: "CPU", Hue.GPU: "GPU", Hue.TPU: "TPU", Hue.SLOWER: "slower", Hue.FASTER: "faster"}


def draw_alone(figure: Figure, width: int, theme: Theme) -> str:
    """Return the SVG of a figure with all that a page gives it. Equal figures give equal text.

    Args:
      width: In pixels, with the margins.
    """
    room = width - 2 * MARGIN
    drawing, key = draw(figure, room), _draw_key(figure, room)
    root = ElementTree.fromstring(drawing)
    height = float(root.attrib["height"]) + 2 * MARGIN
    total = height + (KEY_HEIGHT if key else 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total:g}" viewBox="0 0 {width} {total:g}" '
        f'font-family="{FONTS}" font-size="{FONT_SIZE}">'
        f"<title>{escape(root.attrib['aria-label'])}</title><style>{make_theme_sheet(theme)}</style>"
        f'<rect width="{width}" height="{total:g}" fill="{PANEL[theme == "dark"]}"/>'
        f"{_place(drawing, MARGIN)}{_place(key, height) if key else ''}</svg>"
    )


def _place(drawing: Markup, top: float) -> str:
    return str(drawing).replace("<svg", f'<svg x="{MARGIN}" y="{top:g}"', 1)


def _draw_key(figure: Figure, width: int) -> Markup | None:
    """Return what colours, lines and hollow marks mean; None if there is nothing to explain."""
    marks = list(_list_marks(figure))
    hues = {mark.hue for mark in marks} | ({row.hue for row in figure.rows} if isinstance(figure, Stacks) else set())
    entries: list[tuple[Hue, str, bool]] = [(hue, word, False) for hue, word in WORDS.items() if hue in hues]
    if any(mark.estimate.low is not None and mark.estimate.high is not None for mark in marks):
        entries.append((Hue.INK, "confidence interval", True))
    if any(mark.estimate.is_doubtful for mark in marks):
        entries.append((Hue.INK, "hollow: unreliable", False))
    if not entries:
        return None
    canvas, left = Canvas(width, KEY_HEIGHT, "key"), 2 * RADIUS
    for hue, word, is_line in entries:
        with canvas.group(f"m {hue.value}"):
            if is_line:
                canvas.line(left - 2 * RADIUS, 9, left + RADIUS, 9)
            else:
                draw_shape(canvas, hue, left, 9, RADIUS, is_hollow=word.startswith("hollow"))
        box = canvas.text(left + 2 * RADIUS, 13, word, "note")
        if box is None:
            break
        left = box.right + KEY_GAP
    return canvas.render()


def _list_marks(figure: Figure) -> Iterator[Mark]:
    """Yield every mark of a figure."""
    if isinstance(figure, Curves):
        yield from (point.mark for panel in figure.panels for curve in panel.curves for point in curve.points)
    elif isinstance(figure, Roofline):
        yield from (dot.mark for dot in figure.dots)
    else:
        for row in figure.rows:
            if hasattr(row, "marks"):
                yield from row.marks
            elif row.mark is not None:
                yield row.mark
