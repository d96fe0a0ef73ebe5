"""An SVG image that is written mark by mark. It refuses a text that would cover another or leave the image.

Colours and looks are those of the page's style sheet, by class; see palette.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from jaxmeter.harness.record.wording import visible

from .text import ASCENT, DESCENT, measure_text, shorten_apart, shorten_text

Anchor = Literal["start", "middle", "end"]

_FORBIDDEN = re.compile("[\ufffe\uffff]")
"""Characters that `visible` keeps and XML 1.0 forbids."""

AIR = 2
"""Pixels between two texts of one line."""

HALO = 5
"""Pixels next to a text with a halo, which would hide a part of what it touches."""

ROUNDING = 0.05
"""Pixels: a room that was computed from a text's width is enough for it."""

BEFORE_ANCHOR: dict[str, float] = {"start": 0.0, "middle": 0.5, "end": 1.0}
"""The share of a text's width that lies left of where it is anchored."""


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around_text(cls, x: float, y: float, width: float, anchor: str) -> Box:
        """Return the box of a text whose baseline is at y."""
        left = x - BEFORE_ANCHOR[anchor] * width
        return cls(left, y - ASCENT, left + width, y + DESCENT)

    def covers(self, other: Box, air: float = 0) -> bool:
        """Return whether two boxes share pixels, or have less air than that between them."""
        return (
            self.left < other.right + air
            and other.left < self.right + air
            and self.top < other.bottom
            and other.top < self.bottom
        )


class Canvas:
    """An SVG of fixed size. Text that is written first has priority.

    Args:
      alt: What the image shows, for who cannot see it.
    """

    def __init__(self, width: float, height: float, alt: str) -> None:
        self.width, self.height = width, height
        self._alt = alt
        self._parts: list[str] = []
        self._boxes: list[Box] = []

    def add(self, element: str, classes: str = "", **attributes: float | str) -> None:
        """Add an element; the style sheet fills it, or draws a line, in its class's colour."""
        self._parts.append(_tag(element, classes, attributes) + "/>")

    def line(self, x1: float, y1: float, x2: float, y2: float, classes: str = "", stroke_width: float = 1) -> None:
        """Draw a straight line."""
        look = {} if stroke_width == 1 else {"stroke_width": stroke_width}
        self.add("line", classes, x1=x1, y1=y1, x2=x2, y2=y2, **look)

    def grid(self, lines: Iterable[float], start: float, end: float, *, is_vertical: bool) -> None:
        """Draw hairlines from `start` to `end`, as one path, each at a pixel of the other axis."""
        lines = list(lines)
        turn = "V" if is_vertical else "H"
        ends = [f"{_write(at)} {_write(start)}" if is_vertical else f"{_write(start)} {_write(at)}" for at in lines]
        if lines:
            self.add("path", "grid", d="".join(f"M{first}{turn}{_write(end)}" for first in ends))

    def dots(self, points: Sequence[tuple[float, float]]) -> None:
        """Draw a small dot at each point, (x, y) in whole pixels: a path of lines without length, with round ends."""
        if points:
            self.add("path", "dot", d="".join(f"M{x:.0f} {y:.0f}h0" for x, y in points))

    @contextmanager
    def group(self, classes: str, *, title: str = "", variant: str = "", case: str = "") -> Iterator[None]:
        """Wrap what is added in a group with a tooltip, the variant that a click selects, and the case it opens."""
        self._parts.append(_tag("g", classes, _write_targets(variant, case)) + ">")
        if title:
            self._parts.append(f"<title>{escape(_write_visible(title))}</title>")
        yield
        self._parts.append("</g>")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        classes: str,
        *,
        anchor: Anchor = "start",
        room: float = math.inf,
        among: Sequence[str] = (),
        case: str = "",
    ) -> Box | None:
        """Write a line of text with its baseline at y, shortened to its room; the whole text is then its tooltip.

        A text anchored in its middle is moved into the image, another is shortened to stay inside.

        Args:
          case: Fragment of the case that a click opens.
          among: Texts with the same room, from which a shortened one stays distinct.

        Returns:
          Its box; None where nothing was written, as it would cover another text or too little of it fits.
        """
        is_bold = "b" in classes.split()
        whole = _write_visible(text).strip()
        room = min(room, {"start": self.width - x, "middle": self.width, "end": x}[anchor])
        shown = shorten_text(whole, room + ROUNDING, is_bold=is_bold)
        if shown != whole and among:
            shown = shorten_apart(whole, room + ROUNDING, [_write_visible(one).strip() for one in among])
        width = measure_text(shown, is_bold=is_bold)
        if anchor == "middle":
            x = min(max(x, width / 2), self.width - width / 2)
        box = Box.around_text(x, y, width, anchor)
        is_inside = box.top >= 0 and box.bottom <= self.height
        air = HALO if "direct" in classes.split() else AIR
        if not shown or not is_inside or any(box.covers(other, air) for other in self._boxes):
            return None
        self._boxes.append(box)
        if anchor != "start":
            classes = f"{classes} at-{anchor}"
        title = f"<title>{escape(whole)}</title>" if shown != whole else ""
        attributes = {"x": round(x), "y": round(y), **_write_targets("", case)}
        self._parts.append(f"{_tag('text', classes, attributes)}>{title}{escape(shown)}</text>")
        return box

    def reserve(self, x: float, y: float, radius: float) -> None:
        """Keep texts away from a mark."""
        self._boxes.append(Box(x - radius, y - radius, x + radius, y + radius))

    def render(self) -> Markup:
        """Return the SVG."""
        attributes: dict[str, float | str] = {
            "role": "img", "tabindex": "0", "aria-label": _write_visible(self._alt), "width": self.width,
            "height": self.height, "viewBox": f"0 0 {_write(self.width)} {_write(self.height)}", "direction": "ltr",
        }  # fmt: skip
        return Markup(f"{_tag('svg', 'figure', attributes)}>{''.join(self._parts)}</svg>")


def _write_targets(variant: str, case: str) -> dict[str, float | str]:
    """Return the attributes of what a click selects and opens."""
    return {name: _write_visible(text) for name, text in (("data-v", variant), ("data-c", case)) if text}


def _write_visible(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", visible(text))


def _tag(element: str, classes: str, attributes: dict[str, float | str]) -> str:
    """Return the beginning of a tag."""
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    whole = {"class": classes, **named} if classes else named
    return f"<{element}" + "".join(f' {name}="{escape(_write(value))}"' for name, value in whole.items())


def _write(value: float | str) -> str:
    """Return a coordinate, rounded to half a pixel.

    Raises:
      ValueError: Not a finite number, which has no place in an image.
    """
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        raise ValueError(f"coordinate {value} is not finite; skip what an axis does not show, see Scale.shows")
    return f"{round(2 * value) / 2 + 0.0:.1f}".removesuffix(".0")
