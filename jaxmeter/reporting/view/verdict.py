"""What a comparison says as a whole: its heading, what else changed, and all of it as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from jaxmeter.harness.record.wording import counted

from ..compare.budgets import NAMES
from ..compare.gate import FINE, Judgement
from ..compare.verdicts import PROGRAM, Change, Changes, Verdict, encode_fields
from .changes import describe_changes, order_changes


def write_heading(changes: Changes, judgement: Judgement | None, compared_with: str = "") -> str:
    """Return what was judged, else what changed.

    Args:
      compared_with: The earlier runs, where the heading has to name them.
    """
    told = describe_changes(changes)
    if judgement is None:
        return told[:1].upper() + told[1:]
    compared = f", compared with {compared_with}" if compared_with else ""
    if judgement.regressions:
        is_sure = not any(one.verdict.is_suspected for one in judgement.regressions)
        what = "confirmed regression" if is_sure else "regression"
        return f"Failed{compared}: {counted(len(judgement.regressions), what)}; {told}"
    if judgement.code:
        suspects = f"{counted(len(judgement.unconfirmed), 'suspect')} not confirmed; " if judgement.unconfirmed else ""
        return f"No answer{compared}: {suspects}{told}"
    return f"Passed{compared}: {told}"


def find_confirming_command(changes: Changes, judgement: Judgement) -> str:
    """Return the command that confirms what only stored times suspect; empty where nothing is left open so."""
    is_open = any(not one.replayed or one.call is not None for one in judgement.unconfirmed)
    return changes.confirming if is_open else ""


def list_others(changes: Changes, judgement: Judgement | None) -> list[Change]:
    """What else changed: neither a regression nor a suspect that was not confirmed."""
    said = () if judgement is None else (*judgement.regressions, *judgement.unconfirmed)
    named = {(*one.key, one.metric) for one in said}
    others = [one for one in order_changes(changes.without_runtimes) if (*one.key, one.metric) not in named]
    return _explain(others, judgement)


def _explain(changes: Iterable[Change], judgement: Judgement | None) -> list[Change]:
    """Return the changes, with the reason of each that passes only by the allowance between releases."""
    allowed = {} if judgement is None else {(*change.key, change.metric): change for change in judgement.allowed}
    return [allowed.get((*change.key, change.metric), change) for change in changes]


def describe_runtimes(changes: Changes, judgement: Judgement | None) -> str:
    """That the runs are of two runtimes; empty where they are not, or where it is what stands in the way."""
    sentence = changes.conditions.other_runtime
    is_said = judgement is not None and sentence in judgement.obstacles
    return "" if is_said else sentence[:1].upper() + sentence[1:]


def encode_verdict(changes: Changes, judgement: Judgement | None) -> bytes:
    """All changes as JSON, with the exit code and why."""
    return msgspec.json.format(msgspec.json.encode(make_verdict(changes, judgement)), indent=2) + b"\n"


def make_verdict(
    changes: Changes, judgement: Judgement | None, verdicts: Iterable[Verdict] = tuple(Verdict)
) -> dict[str, Any]:
    """Changes with some verdicts, with the exit code and why."""
    kept = _explain(changes.having(*verdicts), judgement)
    return {
        "baseline": changes.before,
        "candidate": changes.after,
        "exit_code": FINE if judgement is None else judgement.code,
        "heading": write_heading(changes, judgement),
        "minimum_effect": changes.minimum_effect,
        "not_as_before": [*changes.conditions.steering, *changes.conditions.others],
        "incomparable": changes.conditions.incomparable,
        "other_runtime": changes.conditions.other_runtime,
        "exact_numbers": [msgspec.to_builtins(one) for one in changes.exact_counts],
        "obstacles": [] if judgement is None else list(judgement.obstacles),
        "regressions": [] if judgement is None else _encode(judgement.regressions),
        "unconfirmed": [] if judgement is None else _encode(judgement.unconfirmed),
        "changes": _encode(kept),
        "reports": [msgspec.to_builtins(one) for one in changes.reports],
    }


def _encode(found: Sequence[Change]) -> list[Any]:
    """Return changes as data, each with what budgets and bisections call its metric."""
    called = {name: word for word, name in NAMES.items()} | {PROGRAM: PROGRAM}
    return [{**encode_fields(one), "budget": called.get(one.metric, "")} for one in found]
