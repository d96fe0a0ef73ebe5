"""Ids of rows and groups, so that a link leads to what it speaks of."""

from __future__ import annotations

import hashlib


def make_key(kind: str, *names: str) -> str:
    """An id for links, from what names a thing."""
    return f"{kind}-{hashlib.sha256(repr(names).encode()).hexdigest()[:12]}"
