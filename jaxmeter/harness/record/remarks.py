"""Remarks on variants, for a terminal or a notebook: one line each, with all the variants that it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jaxmeter.harness.record.outcomes import Outcome

NOT_COUNTED = "XLA's count is left out"
"""How a note begins that says why there is no `counted_flops`: a remark on a number that few tables show."""

OWN_FAULT = "jaxmeter's own fault"
"""How a note or a reason begins that says which analysis of jaxmeter's failed, and what is unknown therefore."""

_STAGE = re.compile(r"in stage '([^']*)': ")
_WRONG = re.compile(r"wrong: ")
_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?|-(?=\d)")


def list_own_faults(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Return the failures of jaxmeter's own analysis, each once: what is unknown, and why."""
    texts = (text for outcome in outcomes for text in (*outcome.notes, outcome.reason or ""))
    return tuple(dict.fromkeys(text for text in texts if text.startswith(OWN_FAULT)))


def join_remarks(remarks: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each different remark: `f:jit, f:aot: failed: in stages 'trace', 'compile': …`.

    Remarks that differ only in the stage are joined. So are wrong results of one implementation that differ only in
    their numbers; the line then says whose numbers it has.

    Args:
      remarks: (variant's name, remark), in the order of the lines.
    """
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, remark in remarks:
        alike.setdefault(gist_of(name, remark), []).append((name, remark))
    return [_write_line(found) for found in alike.values()]


def key_of(remark: str) -> str:
    """Return the remark without its stage."""
    return _STAGE.sub("\0", remark, count=1)


def gist_of(name: str, remark: str) -> tuple[str, str]:
    """Return what makes two remarks one: of a wrong result its implementation, and the remark without its numbers."""
    if not _WRONG.match(remark):
        return "", key_of(remark)
    return name.partition(":")[0], _NUMBER.sub("", key_of(remark))


def _write_line(found: Sequence[tuple[str, str]]) -> str:
    (first, remark), *_ = found
    names = ", ".join(dict.fromkeys(name for name, _ in found))
    stages = dict.fromkeys(match[1] for _, other in found if (match := _STAGE.search(other)) is not None)
    whose = f" (numbers of {first})" if len({key_of(other) for _, other in found}) > 1 else ""
    return f"{names}: {_restore(key_of(remark), list(stages))}{whose}"


def _restore(words: str, stages: list[str]) -> str:
    """The remark, with all stages in place of its own."""
    quoted = ", ".join(f"'{stage}'" for stage in stages)
    return words.replace("\0", f"in {'stage' if len(stages) == 1 else 'stages'} {quoted}: ")
