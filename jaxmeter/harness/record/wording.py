"""Words that measuring and reporting share: counts with their nouns, and recorded text made safe to look at."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"
"""Format characters that scripts and emoji need."""

_PRINTABLE_ASCII = re.compile(r"[ -~]*")


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """`1 case`, `2 cases`: a count with its noun."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def write_options(options: Mapping[str, object]) -> str:
    """`xla_cpu_enable_fast_math=True, xla_cpu_prefer_vector_width=512`: compiler options, in order of their names."""
    return ", ".join(f"{name}={value}" for name, value in sorted(options.items()))


def visible(text: str, *, multi_line: bool = False) -> str:
    r"""The text with control, direction and lone surrogate characters escaped: `\x00`, `\u202e`.

    Args:
      multi_line: Whether line breaks and tabs stay as they are.
    """
    if _PRINTABLE_ASCII.fullmatch(text):
        return text
    kept = "\n\t" if multi_line else ""
    return "".join(character if character in kept else _escape(character) for character in text)


def _escape(character: str) -> str:
    unseen = unicodedata.category(character) in _UNSEEN_CATEGORIES and character not in _JOINERS
    # As Python writes it: plain letters, which every font and terminal has.
    return character.encode("unicode_escape").decode() if unseen else character


def shorten(text: str, length: int) -> str:
    """At most `length` characters; an ellipsis stands for what was cut."""
    return text if len(text) <= length else text[: length - 1] + "…"
