"""Ids of rows, groups and views, so that a link leads to what it speaks of."""

from __future__ import annotations

import hashlib
import re

LONGEST_FRAGMENT = 200
_NOT_IN_AN_ID = re.compile(r"\s")


def make_key(kind: str, *names: str) -> str:
    """An id for links, from what names a thing."""
    return f"{kind}-{_hash(names)}"


def make_fragment(view: str, *names: str) -> str:
    """The id of a view that a reader may type: `case=matmul/matmul[n=2048]`; unlike for unlike names."""
    text = "/".join(names)
    plain = _NOT_IN_AN_ID.sub("_", text)[:LONGEST_FRAGMENT]
    # A name with a slash in it could be mistaken for two.
    is_plain = plain == text and not any("/" in name for name in names)
    return f"{view}={plain}" if is_plain else f"{view}={plain}-{_hash(names)}"


def _hash(names: tuple[str, ...]) -> str:
    return hashlib.sha256(repr(names).encode()).hexdigest()[:12]
