"""The variants of a user's callables, each called, compiled and compared with the reference before any is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.notebook.options import Options
from jaxmeter.harness.notebook.tracing import OtherChangesError
from jaxmeter.harness.notebook.variants import NotebookContext
from jaxmeter.harness.probes.compilation import compile_and_call
from jaxmeter.harness.probes.look_at_each import describe_failure, look_at_each
from jaxmeter.harness.probes.memory import read_plan
from jaxmeter.harness.probes.numerics import check
from jaxmeter.harness.record import AS_GIVEN, NumericsDetails, Outcome, Status, Verdict

TIMED = (Status.OK, Status.WRONG)
"""A user sees how long a wrong variant takes, and no speedup."""

Say = Callable[[str], None]


def check_all(
    context: NotebookContext, options: Options, say: Say, is_late: Callable[[], bool]
) -> tuple[dict[str, dict[str, Outcome]], list[str]]:
    """Outcomes by variant and probe, and notes. The eager variant of the first function comes first, if there is one.

    Raises:
      Whatever the function itself raises, where no variant of it can be called.
    """
    variants = context.workload.variants
    first_name = context.workload.implementations[0].name
    eager = f"{first_name}:eager"
    order = [eager, *(name for name in variants if name != eager)] if eager in variants else list(variants)
    outcomes: dict[str, dict[str, Outcome]] = {}
    notes: list[str] = []
    reference: str | None = None
    failed: dict[str, Exception] = {}
    for name in order:
        if is_late():
            reason = f"the limit of {options.time_limit_s:g} s was used up before it"
            outcomes[name] = {"numerics": Outcome(status=Status.SKIPPED, reason=reason)}
            continue
        if reference is None:
            say(f"calling {name} for the reference")
            context.check_with(name)
            try:
                _ = context.reference
            except Exception as error:
                if name.endswith(":eager") and not _is_optional(context, name, options):
                    raise
                failed[name] = error
                continue
            reference = name
        say(f"checking {name}")
        found = _look(name, context)
        if found["numerics"].status not in TIMED and _is_optional(context, name, options):
            notes.append(_describe_left_out(name, found["numerics"].reason))
            continue
        outcomes[name] = found
    _share_explanations(outcomes)
    for name, raised in failed.items():
        if reference is None and not _is_optional(context, name, options):
            raise raised
        if _is_optional(context, name, options):
            notes.append(_describe_left_out(name, raised))
        else:
            outcomes[name] = {"numerics": describe_failure(raised, "call")}
    if reference is not None:
        notes += _describe_reference(reference, outcomes)
    variants_of: dict[str, list[str]] = {}
    for name in outcomes:
        for note in context.list_notes(name):
            variants_of.setdefault(note, []).append(name)
    notes += [f"{', '.join(names)}: {note}" for note, names in variants_of.items()]
    if effects := context.describe_effects(outcomes):
        words = f"it {effects}, so it is called at most {options.most_calls} times; most_calls= changes that"
        say(words)
        notes.append(words)
    return {name: outcomes[name] for name in variants if name in outcomes}, notes


def _share_explanations(outcomes: dict[str, dict[str, Outcome]]) -> None:
    """Give eager code the hint that a program of the same function has for the same fault: only programs are read."""
    for name, found in outcomes.items():
        implementation, own = name.rpartition(":")[0], found["numerics"]
        if own.status is not Status.WRONG or own.reason is None:
            continue
        for other, its in outcomes.items():
            longer = its["numerics"].reason
            if other.rpartition(":")[0] == implementation and longer is not None and longer.startswith(own.reason):
                own = found["numerics"] = msgspec.structs.replace(own, reason=longer)


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


def _look(variant: str, context: NotebookContext) -> dict[str, Outcome]:
    """Outcomes by probe. Eager code has no stages and no plan.

    Nothing that this process has compiled is forgotten: it is the user's own.
    """

    def check_with_updates(name: str, prepared: object, of: Any) -> Outcome:
        try:
            return check(name, context.prepare_check(name), context)
        except OtherChangesError as error:
            return Outcome(status=Status.WRONG, reason=str(error), details=NumericsDetails(verdict=Verdict.WRONG))

    looks: dict[str, Any] = {"numerics": check_with_updates}
    if context.workload.find_variant(variant)[1] != "eager":
        looks = {"compilation": compile_and_call, "memory": read_plan, **looks}
    return {probe: look_at_each(probe, look, (variant,), context).outcomes[variant] for probe, look in looks.items()}
