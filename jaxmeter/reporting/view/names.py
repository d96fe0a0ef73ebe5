"""Names of cases and variants, short enough for a sentence, and ids, so that a link leads to what it speaks of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.record.wording import shorten

LONGEST_NAME = 80
LONGEST_TERM = 40
"""Of a name among several in a sentence."""

LONGEST_FRAGMENT = 200
_NOT_IN_AN_ID = re.compile(r"\s")

PRECISIONS = tuple(map(len, ("2026-11-28", "2026-11-28T13:55", "2026-11-28T13:55:16")))
"""Of the start of a run."""

Key = tuple[str, str, str]
"""Suite, case and variant."""


def name_variant(variant: Variant) -> str:
    """Return a variant with its case and run."""
    case, name = shorten(variant.case.planned.name, LONGEST_NAME), shorten(variant.planned.name, LONGEST_NAME)
    return f"{case} · {name} · {variant.case.run.label}"


def name_in_sentence(variant: Variant) -> str:
    """Return a variant within a sentence about its case: `step:jit`; of Python around programs `step`."""
    return shorten(variant.planned.name.removesuffix(":mixed"), LONGEST_TERM)


def name_starts(starts: Iterable[str]) -> dict[str, str]:
    """Return how the starts of runs are written: by the day, the minute or the second, whichever distinguishes them.

    Of runs of one day the date is left out.
    """
    known = set(starts)
    lengths = (length for length in PRECISIONS if len({start[:length] for start in known}) == len(known))
    digits = next(lengths, PRECISIONS[-1])
    is_one_day = len({start[: PRECISIONS[0]] for start in known}) == 1 and digits > PRECISIONS[0]
    begin = PRECISIONS[0] + 1 if is_one_day else 0
    return {start: start[begin:digits].replace("T", " ") for start in known}


def name_rows(keys: Sequence[Key]) -> dict[Key, str]:
    """Return the name of each row: the workload, its variant of several, and the params of several cases."""
    cases: dict[str, set[str]] = {}
    variants: dict[str, set[str]] = {}
    for _, case, variant in keys:
        workload = case.partition("[")[0]
        cases.setdefault(workload, set()).add(case)
        variants.setdefault(workload, set()).add(variant)
    names = {}
    for key in keys:
        workload = key[1].partition("[")[0]
        shared = set.intersection(*map(_list_params, cases[workload]))
        own = ",".join(sorted(_list_params(key[1]) - shared))
        parts = (workload, key[2] if len(variants[workload]) > 1 else "", own)
        names[key] = shorten(" ".join(filter(None, parts)), LONGEST_NAME)
    return names


def _list_params(case: str) -> set[str]:
    """Return the params of a case by its name: `{"dtype=float32", "n=2000"}`."""
    return set(filter(None, case.partition("[")[2].removesuffix("]").split(",")))


def make_key(kind: str, *names: str) -> str:
    """Return an id for links, from what names a thing."""
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
    """Return the id of a view that a reader may type: `case=matmul/matmul[n=2048]`; unlike for unlike names."""
    text = "/".join(names)
    plain = _NOT_IN_AN_ID.sub("_", text)[:LONGEST_FRAGMENT]
    # A name with a slash in it could be mistaken for two.
    is_plain = plain == text and not any("/" in name for name in names)
    return f"{view}={plain}" if is_plain else f"{view}={plain}-{_hash(names)}"


def _hash(names: tuple[str, ...]) -> str:
    return hashlib.sha256(repr(names).encode()).hexdigest()[:12]
