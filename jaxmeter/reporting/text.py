"""Text for every output: whole records made safe to look at, and what is too long, cut."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from jaxmeter.harness.record.wording import visible

_PLAIN = bytes(range(0x20, 0x7F)).replace(b"\\", b"")
"""Printable ASCII, without the backslash."""

_NUMBER = re.compile(r"([0-9]{1,18})")

S = TypeVar("S", bound=msgspec.Struct)

MULTI_LINE_FIELDS = frozenset({"stderr", "explanation"})
"""Fields of the record whose line breaks and tabs are kept: they are shown in a block of their own."""


def visible_record(record: S) -> S:
    """The same record with every string in it visible, so that no renderer has to remember."""
    if _is_visible(record):
        return record
    return msgspec.convert(_walk(msgspec.to_builtins(record), multi_line=False), type(record))


def _is_visible(record: msgspec.Struct) -> bool:
    """Whether `visible` would leave every string of a record as it is."""
    try:
        data = msgspec.json.encode(record)
    except UnicodeEncodeError:  # a lone surrogate
        return False
    others = data.translate(None, _PLAIN)
    # JSON writes a control character with a backslash, as it does `\"` and `\\`.
    if b"\\" in others and b"\\" in data.replace(b"\\\\", b"").replace(b'\\"', b""):
        return False
    return all(visible(character) == character for character in set(others.replace(b"\\", b"").decode()))


def _walk(value: Any, *, multi_line: bool) -> Any:
    if isinstance(value, str):
        return visible(value, multi_line=multi_line)
    if isinstance(value, dict):
        return {visible(key): _walk(item, multi_line=key in MULTI_LINE_FIELDS) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, multi_line=multi_line) for item in value]
    return value


def by_numbers(text: str) -> list[tuple[int, str]]:
    """What texts are sorted by so that 0.9 comes before 0.10."""
    return [(int(part), "") if _NUMBER.fullmatch(part) else (-1, part) for part in _NUMBER.split(text) if part]


def hide_home(text: str) -> str:
    """The text with the home folder, which may hold a name, as `~`: the page may be sent on."""
    home = str(Path.home())
    return re.sub(re.escape(home) + r"(?![\w.-])", "~", text) if len(home) > 1 else text


def shorten_source(source: str | None) -> str:
    """The file with its folder, and the line: what comes before may name a person, and fills the line."""
    return "/".join(part for part in (source or "").split("/")[-2:] if part.strip("~"))
