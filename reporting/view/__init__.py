"""The one place where meaning is made: from loaded runs to a page of ready text and points."""

from __future__ import annotations

from ..load import Loaded
from ..text import visible, visible_record
from .caching import caching
from .compilation import compilation
from .environment import environment
from .matrix import matrix
from .measured import measured, places
from .memory import memory
from .method import method
from .parts import Page
from .problems import problems
from .published import published
from .speed import speed
from .sweeps import sweeps
from .verdict import attention, data_warnings, finding, subtitle, verdict


def build(loaded: Loaded) -> Page:
    """The page of at least one run."""
    where = places([visible_record(run) for run in loaded.runs])
    cases = measured(where)
    warnings = data_warnings([visible(text) for text in loaded.warnings], where, cases)
    found = finding(cases)
    table, note = matrix(where, cases)
    return Page(
        title=f"{found} – jaxmeter report",
        subtitle=subtitle(where),
        finding=found,
        verdict=verdict(where, cases, len(warnings)),
        attention=attention(cases),
        warnings=warnings,
        matrix=table,
        matrix_note=note,
        sections=(
            speed(where, cases),
            compilation(cases),
            caching(cases),
            sweeps(cases),
            memory(cases),
            *((claims,) if (claims := published(cases)) is not None else ()),
            problems(cases),
            environment(where),
            method(where),
        ),
    )


__all__ = ["Page", "build"]
