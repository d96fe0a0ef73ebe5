"""Sections of a case, all of one form. A file with a SECTION is a section of its own: it is listed nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from jaxmeter.document.model import Section
from jaxmeter.harness.metrics.reading import Case

from ..cells import CaseSection


@cache
def list_sections() -> tuple[CaseSection, ...]:
    """Return every section of a case by its place."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    sections = (module.SECTION for module in modules if hasattr(module, "SECTION"))
    return tuple(sorted(sections, key=lambda section: section.place))


def make_sections(cases: Sequence[Case]) -> Iterator[Section]:
    """Yield the sections of a case that have something to show.

    Args:
      cases: The case on each machine that ran it.
    """
    made = (section.make(cases) for section in list_sections())
    return (section for section in made if section is not None)
