"""Remarks on variants, for a terminal or a notebook: one line each, with all the variants that it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jaxmeter.harness.record.outcomes import Outcome

NOT_COUNTED = "XLA's count is left out"
"""How a note begins that says why there is no `counted_flops`: a remark on a number that few tables show."""

OWN_FAULT = "jaxmeter's own fault"
"""How a note or a reason begins that says which analysis of jaxmeter's failed, and what is unknown therefore."""

_STAGE = re.compile(r"in stage '([^']*)': ")


def list_own_faults(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Return the failures of jaxmeter's own analysis, each once: what is unknown, and why."""
    texts = (text for outcome in outcomes for text in (*outcome.notes, outcome.reason or ""))
    return tuple(dict.fromkeys(text for text in texts if text.startswith(OWN_FAULT)))


def join_remarks(remarks: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each different remark: `f:jit, f:aot: failed: in stages 'trace', 'compile': …`.

    Remarks that differ only in the stage are joined.

    Args:
      remarks: (variant's name, remark), in the order of the lines.
    """
    variants: dict[str, dict[str, None]] = {}
    stages: dict[str, dict[str, None]] = {}
    for name, remark in remarks:
        words = key_of(remark)
        variants.setdefault(words, {})[name] = None
        if found := _STAGE.search(remark):
            stages.setdefault(words, {})[found[1]] = None
    return [f"{', '.join(names)}: {_restore(words, list(stages.get(words, ())))}" for words, names in variants.items()]


def key_of(remark: str) -> str:
    """Return the remark without its stage: what makes two remarks one."""
    return _STAGE.sub("\0", remark, count=1)


def _restore(words: str, stages: list[str]) -> str:
    """The remark, with all stages in place of its own."""
    quoted = ", ".join(f"'{stage}'" for stage in stages)
    return words.replace("\0", f"in {'stage' if len(stages) == 1 else 'stages'} {quoted}: ")
