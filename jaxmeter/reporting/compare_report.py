"""`compare` says what changed between two runs, `gate` whether that is allowed; both also as files for other tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT

from . import terminal
from .collector import without_collecting
from .compare.budgets import Budgets, make_defaults, read_budgets
from .compare.changes import find_changes
from .compare.findings import Change, Changes, Finding
from .compare.gate import FINE, Judgement, list_suspects
from .compare.times import SUSPECTED
from .console import print_lines
from .markdown import MARKER, MOST_CHARACTERS, escape, write_table
from .text import counted, visible_record
from .view.changes import TONES, describe_changes, make_change_table, order_changes, write_change
from .view.page_model import Tone

MOST_LINES = 24
"""Of single changes in a terminal; files hold all."""

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%?")
LARGEST_EFFECT = 100.0
"""Per cent. A larger minimum effect would let anything pass."""


class FailOn(StrEnum):
    """What makes `compare` end with 1."""

    CONFIRMED = "confirmed"
    SUSPECTED = "suspected"


class EffectError(Exception):
    """A minimum effect that is none."""


def read_effect(text: str) -> float:
    """The share of `3%`, `2.5 %`, `3`.

    Raises:
      EffectError: It is no percentage, 0, or so large that anything would pass.
    """
    match = _PERCENT.fullmatch(text.strip())
    if match is None or not 0 < float(match[1]) <= LARGEST_EFFECT:
        raise EffectError(f"--min-effect '{text}' is no difference; write 3% or 2.5%")
    return float(match[1]) / 100


def compare(before: Run, after: Run, minimum_effect: float = MINIMUM_EFFECT) -> Changes:
    """What changed between two runs, every recorded text visible."""
    with without_collecting():
        sides = (replace(run, record=visible_record(run.record)) for run in (before, after))
        return find_changes(*sides, minimum_effect=minimum_effect)


def show(changes: Changes, console: Console, judgement: Judgement | None = None) -> None:
    """Prints what changed."""
    print_lines(_list_lines(changes, judgement), console)


def _list_lines(changes: Changes, judgement: Judgement | None) -> Iterator[Text]:
    yield Text(write_heading(changes, judgement), "bold")
    yield Text(f"{changes.before} → {changes.after}", "dim")
    if changes.conditions.anything:
        yield Text(f"Not as before: {changes.conditions.describe(everything=True)}")
    if sentence := _describe_runtimes(changes, judgement):
        yield Text(sentence, "yellow")
    for words in () if judgement is None else judgement.obstacles:
        yield Text(f"No answer: {words}", "yellow")
    for one in () if judgement is None else judgement.unconfirmed:
        yield Text("  not confirmed  ", "yellow").append(f"{one.finding.value}: {write_change(one)}", "default")
    regressions = () if judgement is None else judgement.regressions
    shown = [*regressions, *_list_others(changes, judgement)]
    for index, one in enumerate(shown[:MOST_LINES]):
        is_beyond = index < len(regressions) and one.finding not in SUSPECTED.values()
        style = terminal.STYLES[Tone.BAD if is_beyond else TONES.get(one.finding, Tone.PLAIN)]
        end = "; beyond its budget" if is_beyond else ""
        yield Text(f"  {one.finding.value}  ", style).append(write_change(one) + end, "default")
    if len(shown) > MOST_LINES:
        yield Text(f"  + {len(shown) - MOST_LINES} more, in --markdown FILE and --verdict FILE", "dim")


def _list_others(changes: Changes, judgement: Judgement | None) -> list[Change]:
    """What else changed: neither a regression nor a suspect that was not confirmed."""
    named = set() if judgement is None else {_key(one) for one in (*judgement.regressions, *judgement.unconfirmed)}
    return [one for one in order_changes(changes.without_runtimes) if _key(one) not in named]


def _describe_runtimes(changes: Changes, judgement: Judgement | None) -> str:
    """That the runs are of two runtimes; empty where they are not, or where it is what stands in the way."""
    sentence = changes.conditions.other_runtime
    is_said = judgement is not None and sentence in judgement.obstacles
    return "" if is_said else sentence[:1].upper() + sentence[1:]


def _key(one: Change) -> tuple[str, str, str, str]:
    return one.case, one.platform, one.variant, one.metric


def write_heading(changes: Changes, judgement: Judgement | None) -> str:
    """What was judged, else what changed."""
    told = describe_changes(changes)
    if judgement is None:
        return told[:1].upper() + told[1:]
    if judgement.regressions:
        is_sure = not any(one.finding in SUSPECTED.values() for one in judgement.regressions)
        what = "confirmed regression" if is_sure else "regression"
        return f"Failed: {counted(len(judgement.regressions), what)}; {told}"
    if judgement.code:
        suspects = f"{counted(len(judgement.unconfirmed), 'suspect')} not confirmed; " if judgement.unconfirmed else ""
        return f"No answer: {suspects}{told}"
    return f"Passed: {told}"


def write_markdown(changes: Changes, judgement: Judgement | None) -> str:
    """For a pull request; a hidden marker lets a bot find its own comment."""
    details = write_details(changes, judgement, MOST_CHARACTERS)
    return f"{MARKER}\n## {escape(write_heading(changes, judgement))}\n\n{details}"


def write_details(changes: Changes, judgement: Judgement | None, room: int) -> str:
    """The same without its heading.

    Args:
      room: Characters that it may have.
    """
    parts = [
        escape(f"{changes.before} → {changes.after}"),
        *(
            [escape(f"Not as before: {changes.conditions.describe(everything=True)}")]
            if changes.conditions.anything
            else []
        ),
        *([escape(sentence)] if (sentence := _describe_runtimes(changes, judgement)) else []),
        *(escape(f"No answer: {words}") for words in (() if judgement is None else judgement.obstacles)),
    ]
    regressions, unconfirmed = ((), ()) if judgement is None else (judgement.regressions, judgement.unconfirmed)
    is_explained = False
    for title, found, share in (
        ("Regressions", regressions, 4),
        ("Not confirmed", unconfirmed, 8),
        ("What changed", _list_others(changes, judgement), 2),
    ):
        if found:
            table = make_change_table(found)
            parts += [f"**{title}**", write_table(replace(table, caption="") if is_explained else table, room // share)]
            is_explained = True
    return "\n\n".join(parts) + "\n"


def encode_verdict(changes: Changes, judgement: Judgement | None) -> bytes:
    """All findings as JSON, with the exit code and why."""
    return msgspec.json.format(msgspec.json.encode(make_verdict(changes, judgement)), indent=2) + b"\n"


def make_verdict(
    changes: Changes, judgement: Judgement | None, findings: Iterable[Finding] = tuple(Finding)
) -> dict[str, Any]:
    """Findings of some kinds, with the exit code and why."""
    kept = changes.having(*findings)
    return {
        "baseline": changes.before,
        "candidate": changes.after,
        "exit_code": FINE if judgement is None else judgement.code,
        "heading": write_heading(changes, judgement),
        "minimum_effect": changes.minimum_effect,
        "not_as_before": [*changes.conditions.steering, *changes.conditions.others],
        "incomparable": changes.conditions.incomparable,
        "other_runtime": changes.conditions.other_runtime,
        "obstacles": [] if judgement is None else list(judgement.obstacles),
        "regressions": [] if judgement is None else _encode(judgement.regressions),
        "unconfirmed": [] if judgement is None else _encode(judgement.unconfirmed),
        "changes": _encode(kept),
    }


def _encode(found: Sequence[Change]) -> list[Any]:
    return [msgspec.to_builtins(one) for one in found]


def encode_suspects(changes: Changes, budgets: Budgets, *, also_changed: bool = False) -> bytes | None:
    """What a run should time once more, as `list_suspects` has it; None where there is nothing."""
    suspects = list_suspects(changes, budgets, also_changed=also_changed)
    return msgspec.json.encode(suspects) if suspects.suspects else None


def choose_budgets(path: Path | None, minimum_effect: float) -> Budgets:
    """Those of a file; without one the allowances of what no budget names."""
    return Budgets(defaults=make_defaults(minimum_effect)) if path is None else read_budgets(path, minimum_effect)
