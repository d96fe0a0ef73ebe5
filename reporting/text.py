"""Recorded text made safe to look at: what cannot be seen, or would reorder its surroundings, is escaped."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

MULTI_LINE_FIELDS = frozenset({"explanation", "stderr"})
"""Fields of the record whose line breaks and tabs are kept: they are shown in a block of their own."""

_UNSEEN_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"
"""Format characters that scripts and emoji need."""

_PRINTABLE_ASCII = re.compile(r"[ -~]*")


def visible(text: str, *, multi_line: bool = False) -> str:
    r"""The text with control, direction and lone surrogate characters escaped: `\x00`, `\u202e`."""
    if _PRINTABLE_ASCII.fullmatch(text):
        return text
    kept = "\n\t" if multi_line else ""
    return "".join(character if character in kept else _sign(character) for character in text)


def _sign(character: str) -> str:
    unseen = unicodedata.category(character) in _UNSEEN_CATEGORIES and character not in _JOINERS
    # As Python writes it: plain letters, which every font and terminal has.
    return character.encode("unicode_escape").decode() if unseen else character


def visible_record(record: S) -> S:
    """The same record with every string in it visible, so that no renderer has to remember."""
    return msgspec.convert(_walk(msgspec.to_builtins(record), multi_line=False), type(record))


def _walk(value: Any, *, multi_line: bool) -> Any:
    if isinstance(value, str):
        return visible(value, multi_line=multi_line)
    if isinstance(value, dict):
        return {visible(key): _walk(item, multi_line=key in MULTI_LINE_FIELDS) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, multi_line=multi_line) for item in value]
    return value


def shorten(text: str, length: int) -> str:
    """At most `length` characters; an ellipsis stands for what was cut."""
    return text if len(text) <= length else text[: length - 1] + "…"


def one_of(count: int, singular: str, plural: str | None = None) -> str:
    """`1 case`, `2 cases`: a count with its noun."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"
