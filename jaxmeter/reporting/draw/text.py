"""Widths of texts in figures: an upper bound, since the reader's font is unknown."""

from __future__ import annotations

import itertools
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable

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
    alike = [one for one in among if one != text and shorten_text(one, room) == shown]
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
