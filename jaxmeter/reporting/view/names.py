"""Names of cases and variants, short enough for a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jaxmeter.harness.metrics.reading import Variant

from ..text import shorten

LONGEST_NAME = 80
LONGEST_TERM = 40
"""Of one name among several in a sentence."""

PRECISIONS = tuple(map(len, ("2026-11-28", "2026-11-28T13:55", "2026-11-28T13:55:16")))
"""Of the start of a run."""

Key = tuple[str, str, str]
"""Suite, case and variant."""


def name_variant(variant: Variant) -> str:
    """A variant with its case and run."""
    case, name = shorten(variant.case.planned.name, LONGEST_NAME), shorten(variant.planned.name, LONGEST_NAME)
    return f"{case} · {name} · {variant.case.run.label}"


def name_in_sentence(variant: Variant) -> str:
    """A variant within a sentence about its case: `step:jit`; `step` of Python code around programs (`step:mixed`)."""
    return shorten(variant.planned.name.removesuffix(":mixed"), LONGEST_TERM)


def name_starts(starts: Iterable[str]) -> dict[str, str]:
    """Return how the starts of runs are written: by the day, the minute or the second, whichever distinguishes them.

    Of runs of one day the date is left out.
    """
    known = set(starts)
    digits = next((one for one in PRECISIONS if len({start[:one] for start in known}) == len(known)), PRECISIONS[-1])
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
