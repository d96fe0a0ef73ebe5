"""Names of cases and variants, short enough for a sentence."""

from __future__ import annotations

from jaxmeter.harness.metrics.reading import Variant

from ..text import shorten

LONGEST_NAME = 80
LONGEST_TERM = 40
"""Of one name among several in a sentence."""


def name_variant(variant: Variant) -> str:
    """A variant with its case and run."""
    case, name = shorten(variant.case.planned.name, LONGEST_NAME), shorten(variant.planned.name, LONGEST_NAME)
    return f"{case} · {name} · {variant.case.run.label}"
