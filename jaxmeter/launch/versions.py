"""Versions of packages, as PEP 440 writes and orders them."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

LONGEST = 64
"""Characters. Longer than any version that a package index holds."""


def normalise_version(text: str) -> str | None:
    """Return a version in the one spelling that PEP 440 gives it; None for any other text.

    It may come from a record that somebody sent.
    """
    try:
        return str(Version(text)) if text.isascii() and text == text.strip() and len(text) <= LONGEST else None
    except InvalidVersion:
        return None


def order_version(text: str) -> Version:
    """Return a sort key of versions, also of a Python such as `3.13.0+`; a text that is no version is the oldest."""
    try:
        return Version(text.removesuffix("+"))
    except InvalidVersion:
        return Version("0.dev0")
