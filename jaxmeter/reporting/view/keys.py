"""Ids of rows, groups and views, so that a link leads to what it speaks of."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from jaxmeter.harness.metrics.reading import Case, Variant

LONGEST_FRAGMENT = 200
_NOT_IN_AN_ID = re.compile(r"\s")


def make_key(kind: str, *names: str) -> str:
    """An id for links, from what names a thing."""
    return f"{kind}-{_hash(names)}"


def key_of_case(case: Case) -> str:
    """Return the id of a case of one run, for links."""
    return make_key("c", case.run.name, case.planned.id)


def key_of_variant(variant: Variant) -> str:
    """Return the id of a variant of one run, for links."""
    return make_key("v", variant.case.run.name, variant.planned_case.id, variant.name)


def fragment_of(case: Case) -> str:
    """Return what opens the view of a case; it is the same on every machine."""
    return make_fragment("case", case.planned.suite, case.planned.name)


@lru_cache(maxsize=2**14)
def make_fragment(view: str, *names: str) -> str:
    """The id of a view that a reader may type: `case=matmul/matmul[n=2048]`; unlike for unlike names."""
    text = "/".join(names)
    plain = _NOT_IN_AN_ID.sub("_", text)[:LONGEST_FRAGMENT]
    # A name with a slash in it could be mistaken for two.
    is_plain = plain == text and not any("/" in name for name in names)
    return f"{view}={plain}" if is_plain else f"{view}={plain}-{_hash(names)}"


def _hash(names: tuple[str, ...]) -> str:
    return hashlib.sha256(repr(names).encode()).hexdigest()[:12]
