"""Reads an encoded protocol buffer field by field, without its schema: what jaxlib hands over has no Python classes."""

from __future__ import annotations

from collections.abc import Iterator

Field = int | bytes

_MOST_SHIFT = 63
"""Of a whole number's last seven bits: it has 64 bits at most."""

_LEAST_KEY = 1 << 3
"""Of field 1 and wire type 0."""


def sign(value: int) -> int:
    """Return a whole number of 64 bits with its sign: negative ones are written as large ones."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def read_fields(message: bytes) -> Iterator[tuple[int, Field]]:
    """Field numbers and values of an encoded protocol buffer: whole numbers, or bytes.

    Raises:
      ValueError: Not a protocol buffer, or cut short.
    Source: https://protobuf.dev/programming-guides/encoding/
    """
    at = 0

    def whole() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(message):
                raise ValueError("a protocol buffer that is cut short")
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > _MOST_SHIFT:
                raise ValueError("a protocol buffer cannot hold a number of more than 64 bits")

    while at < len(message):
        key = whole()
        kind = key & 7
        if key < _LEAST_KEY:
            raise ValueError("a protocol buffer cannot hold a field of number 0")
        if kind == 0:
            yield key >> 3, whole()
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"a protocol buffer cannot hold wire type {kind}")
        size = whole() if kind == 2 else {1: 8, 5: 4}[kind]
        if at + size > len(message):
            raise ValueError("a protocol buffer that is cut short")
        yield key >> 3, message[at : at + size]
        at += size
