"""An SVG image that is written mark by mark; no text covers another or leaves the image."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from jaxmeter.harness.record.wording import visible

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
            shown = shorten_apart(whole, room + ROUNDING, [_write_visible(other).strip() for other in among])
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
    return _FORBIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", visible(text))


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


FONT_SIZE = 11
"""Pixels: the smallest size that stays readable. Figures are redrawn for a width, never scaled."""

ASCENT, DESCENT = 9, 3
"""Pixels above and below the baseline that a line of text takes."""

ELLIPSIS = "…"

LEAST_KEPT = 2
"""Letters before the ellipsis without which a shortened text says nothing."""

_HUNDREDTHS = (
    (20, "\u202f"), (28, "'ijl"), (30, "IJ"), (32, " ,.·\u00a0"), (34, "/:;\\|"), (36, "f"), (37, "-"), (40, "()[]t"),
    (41, "!⁰¹²³⁴⁵⁶⁷⁸⁹"), (42, "r"), (46, '"'), (50, "*_`–°"), (53, "sz"), (54, "?"), (55, "c"), (56, "L"), (58, "Fk"),
    (60, "vxy"), (61, "P"), (62, "TYaeo"), (64, "$0123456789ESbdghnpqu{}µ"), (66, "K"), (69, "ABVXZ"), (70, "CR"),
    (74, "U"), (75, "N"), (76, "H"), (77, "▲▼◆"), (78, "&DG"), (79, "OQ"), (82, "w"), (84, "#+<=>^~−×±→"), (87, "M●"),
    (96, "%■"), (98, "m"), (99, "W"), (100, "@—…"),
)  # fmt: skip
"""Widths in hundredths of the font size, rounded up, from DejaVu Sans: the widest of the common system fonts."""

_WIDTHS = {letter: hundredths / 100 for hundredths, letters in _HUNDREDTHS for letter in letters}

_WIDEST = 1.3
"""For letters outside the table: Arabic, Cyrillic, ideographs and emoji are at most this wide."""

_BOLD = 1.2
"""Letters of DejaVu Sans Bold are 1.14 times as wide in the mean, and at most 1.26 times (I, J)."""

_ZERO_WIDTH = frozenset({"Mn", "Me", "Cf"})
"""Unicode categories without a width of their own: accents that combine, and format characters."""


def measure_text(text: str, *, is_bold: bool = False) -> float:
    """Return the most pixels that a line of text takes."""
    width = FONT_SIZE * sum(_measure_letter(letter) for letter in unicodedata.normalize("NFKD", text))
    return width * _BOLD if is_bold else width


def shorten_text(text: str, room: float, *, is_bold: bool = False) -> str:
    """Return the text, or as much of its beginning as fits into `room` pixels; empty where too little fits.

    A text is cut between two words, unless less than half of what fits is left.
    """
    if not text or measure_text(text, is_bold=is_bold) <= room:
        return text
    widths = itertools.accumulate(measure_text(letter, is_bold=is_bold) for letter in text)
    kept = text[: bisect_right(list(widths), room - measure_text(ELLIPSIS, is_bold=is_bold))]
    while kept and measure_text(kept + ELLIPSIS, is_bold=is_bold) > room:  # sums are rounded: at most a letter
        kept = kept[:-1]
    last_word = kept.rfind(" ") if not text[len(kept)].isspace() else len(kept)
    if last_word >= len(kept) / 2:
        kept = kept[:last_word]
    kept = kept.rstrip(" ,;:·(")
    return kept + ELLIPSIS if len(kept) >= LEAST_KEPT else ""


def shorten_apart(text: str, room: float, among: Iterable[str]) -> str:
    """Return a text shortened to its room, with what distinguishes it from texts that would be shortened alike.

    Args:
      among: Texts with the same room.
    """
    shown = shorten_text(text, room)
    alike = [other for other in among if other != text and shorten_text(other, room) == shown]
    if not alike or shown == text:
        return shown
    columns = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(text, *alike, strict=False))
    shared = "".join(letters[0] for letters in columns)
    start = shared.rfind(" ") + 1 or len(shared)
    own = f"{' ' if ' ' in shared else ''}{text[start:]}"
    if not own.strip():
        return shown
    begin = shorten_text(text[:start], room - measure_text(own))
    return begin + own if begin else shorten_text(ELLIPSIS + own.strip(), room)


def _measure_letter(letter: str) -> float:
    if letter in _WIDTHS:
        return _WIDTHS[letter]
    return 0.0 if unicodedata.category(letter) in _ZERO_WIDTH else _WIDEST
