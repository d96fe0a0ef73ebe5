"""Names of cases and variants, short enough for a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.reading import Variant

from ..text import shorten

LONGEST_NAME = 80
LONGEST_TERM = 40
"""Of one name among several in a sentence."""

Key = tuple[str, str, str]
"""Suite, case and variant."""


def name_variant(variant: Variant) -> str:
    """A variant with its case and run."""
    case, name = shorten(variant.case.planned.name, LONGEST_NAME), shorten(variant.planned.name, LONGEST_NAME)
    return f"{case} · {name} · {variant.case.run.label}"


def name_in_sentence(variant: Variant) -> str:
    """A variant within a sentence about its case: `step:jit`; `step` of a function that runs as it is."""
    return shorten(variant.planned.name.removesuffix(":mixed"), LONGEST_TERM)


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
