"""Is an update that a variant does not make wrong, or rounding? The judge decides, on moved inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxmeter.harness.probes.comparison import Comparison, Output, UnfitError, find_wanted, read_result
from jaxmeter.harness.probes.conditioning import RefusedInputsError, TooLongError, as_array
from jaxmeter.harness.probes.context import Context
from jaxmeter.harness.probes.judgement import find_coarse
from jaxmeter.harness.probes.updates import ALLOWED, find_share
from jaxmeter.harness.probes.verdict import FACTOR
from jaxmeter.harness.record.wording import counted

MOST_NAMED = 3


@dataclass(frozen=True)
class UpdatesJudged:
    """What the updates of a variant are.

    Args:
      reason: Why one is wrong, for a person; empty where none is.
      note: Which cannot be checked, and why; empty where all can.
    """

    reason: str = ""
    note: str = ""


def judge_updates(comparison: Comparison, call_s: float, context: Context) -> UpdatesJudged:
    """Return whether the variant makes the updates of the reference. Only where it does not, draws are made.

    Args:
      call_s: About what a call of a program takes; 0 where that is not known.
    """
    outputs = comparison.outputs
    suspects = [index for index, output in enumerate(outputs) if output.update and output.update.is_suspect]
    lost = [index for index, output in enumerate(outputs) if output.update and output.update.share is None]
    if equal := {index for index in lost if (update := outputs[index].update) and update.is_equal}:
        passed = _find_passed(len(outputs), context)
        lost = [index for index in lost if index not in equal & passed]
    spreads = _draw(suspects, outputs, call_s, context) if suspects else {}
    wrong = [index for index in suspects if index in spreads and _find_error(outputs[index]) > FACTOR * spreads[index]]
    if wrong:
        index = max(wrong, key=lambda index: _find_error(outputs[index]))
        return UpdatesJudged(reason=_explain(outputs[index], spreads[index], context.reference_name))
    unknown = [outputs[index] for index in sorted({*lost, *suspects})]
    return UpdatesJudged(note=_describe_unknown(unknown, outputs) if unknown else "")


def _find_error(output: Output) -> float:
    return 0.0 if output.update is None else output.update.error


def _draw(suspects: list[int], outputs: Sequence[Output], call_s: float, context: Context) -> dict[int, float]:
    """By output, how far rounding alone moves its share of the update; empty where that is not known."""
    judge, wanted = context.judge, find_wanted(context)
    if judge is None or context.trace_judge() is None:
        return {}
    coarse = find_coarse(context)
    if coarse is not None and not judge.is_evaluated:
        return {}  # its inputs have more digits than it uses: moving them shows nothing

    def find_change(index: int, moved: Any, still: Any, want: Any) -> float:
        update = outputs[index].update
        if index not in suspects or update is None:
            return 0.0
        return abs(find_share((moved, still), as_array(update.old), want))

    spreads = [0.0] * len(outputs)
    for inside in (False, True) if judge.is_evaluated else (False,):
        try:
            drawn = judge.find_spreads(
                wanted,
                partial(read_result, context=context),
                context.clock,
                call_s=call_s,
                inside=inside,
                coarse=coarse,
                measure=find_change,
            )
        except (TooLongError, RefusedInputsError, UnfitError):
            return {}
        if drawn is None or len(drawn) != len(outputs):
            return {}
        spreads = list(map(max, spreads, drawn))
    return dict(enumerate(spreads))


def _explain(output: Output, spread: float, reference: str) -> str:
    path = output.leaf.path
    share = 0.0 if output.update is None else output.update.share or 0.0
    named = f"output {path}" if path else "the output"
    return (
        f"{named} is within its tolerance of an argument's old value, but its update differs from the {reference}'s: "
        f"{share:.3g} of it, allowed {1 - ALLOWED:g} to {1 + ALLOWED:g}; inputs moved by one unit in the last place "
        f"change this share by {spread:.2g}; with a given tolerance=, updates are not checked"
    )


def _describe_unknown(unknown: Sequence[Output], outputs: Sequence[Output]) -> str:
    names = [output.leaf.path for output in unknown if output.leaf.path]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    named = f" ({', '.join(names[:MOST_NAMED])}{more})" if names else ""
    is_one = len(unknown) == 1
    return (
        f"updates: {len(unknown)} of {counted(len(outputs), 'output')} {'is' if is_one else 'are'} so near to "
        f"{'an argument' if is_one else 'arguments'} that rounding hides the change{named}: a step that "
        f"leaves {'it' if is_one else 'them'} as {'it was' if is_one else 'they were'} would pass, too"
    )


def _find_passed(count: int, context: Context) -> frozenset[int]:
    """Outputs that may be arguments which the judge passes on as they are: then nothing is updated."""
    traced = context.trace_judge()
    if traced is None or len(traced.jaxpr.jaxpr.outvars) != count:
        return frozenset(range(count))
    jaxpr = traced.jaxpr.jaxpr
    return frozenset(index for index, var in enumerate(jaxpr.outvars) if any(var is given for given in jaxpr.invars))
