"""Colours and looks of figures, by class; and a drawing as a file of its own, for slides and papers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from xml.etree import ElementTree

from markupsafe import Markup, escape

from ..view.page_model import Curves, Figure, Hue, Mark, Roofline, Stacks
from . import draw
from .canvas import FONT_SIZE, Canvas
from .rows import RADIUS, draw_shape

Theme = Literal["light", "dark"]

PANEL = ("#ffffff", "#141a21")
"""What lies behind a figure, (light, dark)."""

_INK, _MUTED, _PAGE = ("#16191f", "#e8ebf0"), ("#58606c", "#a6b0bd"), ("#ffffff", "#0f1318")

COLOURS: dict[str, tuple[str, str]] = {
    # Fills: useful work is slate, lost time amber, parts without judgement grey.
    "device": ("#43536a", "#a3b3c8"),
    "transfer": ("#8796a8", "#7f90a6"),
    "dispatch": ("#c98700", "#e0a62a"),
    "host": ("#f2c45c", "#a3782a"),
    "idle": ("#f8e4b0", "#5c4a20"),
    "first": ("#dedede", "#4a525c"),
    "second": ("#bdbdbd", "#626a74"),
    "third": ("#757575", "#969da7"),
    "fourth": ("#4a4a4a", "#cdd2d9"),
    # Text on a fill has a contrast of at least 4.5 : 1.
    "on-device": _PAGE,
    "on-transfer": (_INK[0], _PAGE[1]),
    "on-dispatch": (_INK[0], _PAGE[1]),
    "on-host": (_INK[0], _PAGE[1]),
    "on-idle": _INK,
    "on-first": _INK,
    "on-second": _INK,
    "on-third": _PAGE,
    "on-fourth": _PAGE,
    # The frame.
    "label": _INK,
    "tick": _MUTED,
    "title": _MUTED,
    "note": _MUTED,
    "rule": _MUTED,
    "limit": _INK,
    "grid": ("#e6e9ee", "#28303a"),
    "here": ("#eef0f4", "#222a34"),
    # Hues come last: a name in the colour of its device has both classes. Devices differ under normal, protan, deutan
    # and tritan vision, and in shape.
    "cpu": ("#0b5cad", "#7fb0e6"),
    "gpu": ("#aa3377", "#ee99aa"),
    "tpu": ("#6b6f00", "#cdd05c"),
    "ink": _INK,
    "slower": ("#b8400e", "#ff9a66"),
    "faster": ("#00574f", "#4fd1c0"),
}
"""(light, dark) by class."""

LOOKS: dict[str, dict[str, str]] = {
    "b": {"font-weight": "600"},
    "ctx": {"opacity": "0.55"},
    "dot": {"opacity": "0.45", "stroke": "currentColor", "stroke-width": "4", "stroke-linecap": "round"},
    "grid": {"fill": "none", "stroke": "currentColor"},
    "at-middle": {"text-anchor": "middle"},
    "at-end": {"text-anchor": "end"},
    "limit": {"stroke-dasharray": "4 3"},
    "hollow": {"fill": PANEL[0], "stroke": "currentColor", "stroke-width": "1.5"},
    "direct": {"paint-order": "stroke", "stroke": PANEL[0], "stroke-width": "3", "stroke-linejoin": "round"},
}
"""Properties by class, apart from the colour."""


def make_style_sheet() -> str:
    """Return the CSS of all classes, dark colours included; marks are `currentColor` everywhere."""
    dark = "".join(_list_rules(1))
    return f"{make_theme_sheet('light')}@media screen and (prefers-color-scheme:dark){{{dark}}}"


def make_theme_sheet(theme: Theme) -> str:
    """Return the CSS of all classes in the colours of one theme."""
    looks = (f"svg.figure .{name}{{{_declare(look)}}}" for name, look in LOOKS.items())
    return "".join([*_list_rules(0), *looks, *(_list_rules(1) if theme == "dark" else ())])


def _list_rules(theme: int) -> Iterator[str]:
    yield f"svg.figure{{color:{_INK[theme]}}}"
    if not theme:
        yield "svg.figure *{fill:currentColor}svg.figure line,svg.figure polyline{fill:none;stroke:currentColor}"
        yield "svg.figure .m line{stroke-width:2}"
    yield from (f"svg.figure .{name}{{color:{colours[theme]}}}" for name, colours in COLOURS.items())
    if theme:
        yield f"svg.figure .hollow{{fill:{PANEL[theme]}}}svg.figure .direct{{stroke:{PANEL[theme]}}}"


def _declare(look: dict[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in look.items())


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
