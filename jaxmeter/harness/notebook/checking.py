"""The variants of a user's callables, each called, compiled and compared with the reference before any is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.notebook.calls import SHOWN
from jaxmeter.harness.notebook.measurement import LEFT_OUT
from jaxmeter.harness.notebook.options import FEWEST_BLOCKS, OPERATION_S, Budget, Options
from jaxmeter.harness.notebook.tracing import OtherChangesError
from jaxmeter.harness.notebook.variants import SLOW_S, TRACES, NotebookContext, count_operations
from jaxmeter.harness.probes.compilation import compile_and_call
from jaxmeter.harness.probes.context import describe_failure, probe_each
from jaxmeter.harness.probes.memory import read_plan
from jaxmeter.harness.probes.numerics import check
from jaxmeter.harness.record import AS_GIVEN, Correctness, NumericsDetails, Outcome, Status

COMPILES = 2
"""How often a program of a mode is compiled: once, and once more with all arguments donated."""

UNKNOWN_COST = "unknown cost: compiled before"
"""Why a mode is not measured whose callable took its stages from JAX's caches, or has none."""

TIMED = (Status.OK, Status.WRONG)
"""A user sees how long a wrong variant takes, and no speedup."""

Say = Callable[[str], None]


def check_all(
    context: NotebookContext, options: Options, say: Say, budget: Budget
) -> tuple[dict[str, dict[str, Outcome]], list[str]]:
    """Outcomes by variant and probe, and notes. Modes that nobody asked for come last.

    All are compared with the eager variant of the first function; with the first variant where that is not asked for.

    Raises:
      Whatever the function itself raises, where no variant of it can be called.
    """
    outcomes: dict[str, dict[str, Outcome]] = {}
    notes: list[str] = []
    reference: str | None = None
    failed: dict[str, Exception] = {}
    left_out: dict[str, str] = {}
    eager = f"{context.workload.implementations[0].name}:eager"
    for name in sorted(
        context.workload.variants, key=lambda name: (_is_optional(context, name, options), name != eager)
    ):
        is_extra = _is_optional(context, name, options)
        if is_extra:
            as_given = outcomes.get(f"{name.rpartition(':')[0]}:{AS_GIVEN}", {}).get("numerics")
            if as_given is None or as_given.status not in TIMED:
                continue
            if reason := _find_excess(context, name, budget):
                left_out[name] = reason
                continue
        elif budget.left_s <= _estimate_timing_s(context, outcomes, budget):
            reason = f"the limit of {options.time_limit_s:g} s was used up before it"
            outcomes[name] = {"numerics": Outcome(status=Status.SKIPPED, reason=reason)}
            continue
        start_s, extra_s = budget.elapsed_s, budget.extra_s
        if reference is None:
            say(f"calling {name}, for comparison with the other results")
            context.check_with(name)
            try:
                _ = context.reference
            except Exception as error:
                if name.endswith(":eager"):
                    raise
                failed[name] = error
                continue
            reference = name
        say(f"checking {name}")
        by_probe = _probe_variant(name, context)
        if is_extra and by_probe["numerics"].status not in TIMED:
            notes.append(_describe_left_out(name, by_probe["numerics"].reason))
            continue
        budget.excuse(context.stages_of(name))
        if is_extra:
            timing_s = budget.estimate_timing_s([context.find_call_s(name, budget.left_s)])
            if timing_s > extra_s:
                left_out[name] = f"timing would take about {timing_s:.1f} s"
                continue
            budget.spend_extra(budget.elapsed_s - start_s + timing_s)
        outcomes[name] = by_probe
    _share_explanations(outcomes)
    for name, raised in failed.items():
        if reference is None:
            raise raised
        outcomes[name] = {"numerics": describe_failure(raised, "call")}
    if reference is not None and options.comparable:
        notes += _describe_reference(reference, outcomes)
    notes += _describe_extra(left_out, context)
    variants_of: dict[str, list[str]] = {}
    for name in outcomes:
        for note in context.list_notes(name):
            variants_of.setdefault(note, []).append(name)
    notes += [f"{', '.join(names)}: {note}" for note, names in variants_of.items()]
    if effects := context.describe_effects(outcomes):
        words = f"it {effects}, so it is called at most {options.most_calls} times; most_calls= changes that"
        say(words)
        notes.append(words)
    return {name: outcomes[name] for name in context.workload.variants if name in outcomes}, notes


def is_slow(context: NotebookContext, variant: str, budget: Budget) -> bool:
    """Return whether a variant is eager code that would fill the passes of compiled programs."""
    return variant.endswith(":eager") and context.find_call_s(variant, budget.left_s) > SLOW_S


def _estimate_timing_s(context: NotebookContext, outcomes: Mapping[str, dict[str, Outcome]], budget: Budget) -> float:
    """About how long it takes to time the variants that were checked, in as few passes as an interval needs."""
    timed = [name for name, by_probe in outcomes.items() if by_probe["numerics"].status in TIMED]
    calls_s = [context.find_call_s(name, budget.left_s) for name in timed if not is_slow(context, name, budget)]
    return budget.estimate_timing_s(calls_s, FEWEST_BLOCKS) if calls_s else 0.0


def _find_excess(context: NotebookContext, variant: str, budget: Budget) -> str:
    """Why a mode that nobody asked for is not measured, by what the callable as given has shown; empty if it is."""
    name, _, mode = variant.rpartition(":")
    as_given = f"{name}:{AS_GIVEN}"
    if context.call(as_given).updated:
        return "it changes objects in place"
    stages = context.prepare(as_given).stages
    if stages is None or stages.lower_s is None or stages.compile_s is None:
        return UNKNOWN_COST
    cost_s = budget.estimate_timing_s([0.0])
    if mode == "eager":
        # An operation can be a whole loop, which takes as long to compile as in the program.
        compile_s = max(stages.compile_s, OPERATION_S * count_operations(stages.traced.jaxpr.jaxpr))
        cost_s += (stages.trace_s or 0) + stages.lower_s + compile_s
    else:
        cost_s += TRACES * (stages.trace_s or 0) + stages.lower_s + COMPILES * stages.compile_s
    return f"about {cost_s:.1f} s" if cost_s > budget.extra_s else ""


def _describe_extra(left_out: Mapping[str, str], context: NotebookContext) -> list[str]:
    """Say which modes were left out that nobody asked for, why, and how to ask for them."""
    names_by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        names_by_reason.setdefault(reason, []).append(name)
    named = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in names_by_reason.items())
    modes = tuple(dict.fromkeys(mode for given in context.given.values() for mode in given.modes if mode != "aot"))
    asked = ", ".join(f'"{mode.replace(AS_GIVEN, SHOWN)}"' for mode in modes)
    return [f"{LEFT_OUT}{named}; measure.with_options(modes=({asked})) measures all"] if left_out else []


def _share_explanations(outcomes: dict[str, dict[str, Outcome]]) -> None:
    """Give eager code the hint that a program of the same function has for the same fault: only programs are read."""
    for name, by_probe in outcomes.items():
        implementation, own = name.rpartition(":")[0], by_probe["numerics"]
        if own.status is not Status.WRONG or own.reason is None:
            continue
        for other, its in outcomes.items():
            longer = its["numerics"].reason
            if other.rpartition(":")[0] == implementation and longer is not None and longer.startswith(own.reason):
                own = by_probe["numerics"] = msgspec.structs.replace(own, reason=longer)


def _is_optional(context: NotebookContext, variant: str, options: Options) -> bool:
    """Whether nobody asked for a variant: a transformed callable without its transformation."""
    name, _, mode = variant.rpartition(":")
    given = context.given[name]
    return given.is_transformed and mode != AS_GIVEN and options.modes is None


def _describe_left_out(variant: str, why: object) -> str:
    reason = describe_error(why) if isinstance(why, Exception) else str(why)
    return f"{variant} is left out, since it does not run without its transformation: {reason}"


def _describe_reference(reference: str, outcomes: Mapping[str, object]) -> list[str]:
    checked = [name for name in outcomes if name != reference]
    return [f"results are compared with those of {reference.replace(AS_GIVEN, 'as given')}"] if checked else []


def _probe_variant(variant: str, context: NotebookContext) -> dict[str, Outcome]:
    """Outcomes by probe. Eager code has no stages and no plan.

    Nothing that this process has compiled is forgotten: it is the user's own.
    """

    def check_with_updates(name: str, prepared: object, of: Any) -> Outcome:
        try:
            return check(name, context.prepare_check(name), context)
        except OtherChangesError as error:
            return Outcome(status=Status.WRONG, reason=str(error), details=NumericsDetails(verdict=Correctness.WRONG))

    probes: dict[str, Any] = {"numerics": check_with_updates}
    if context.workload.find_variant(variant)[1] != "eager":
        probes = {"compilation": compile_and_call, "memory": read_plan, **probes}
    return {name: probe_each(name, probe, (variant,), context).outcomes[variant] for name, probe in probes.items()}
