"""Planned cases: a workload with one value of each param, at a platform; an earlier run's variants; selection."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from jaxmeter.harness.declare.declaration import ONE_COMPILED, NoReference, call_with
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.environment import recorded_options
from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.record import (
    LOCK_STEP,
    NATIVE,
    REPLAY,
    CaseRecord,
    NumericsDetails,
    Param,
    PlannedCase,
    PlannedVariant,
    Replay,
    Status,
)
from jaxmeter.harness.record.cases import VariantRecord, find_nearest, is_same_problem, match_cases, names_of
from jaxmeter.harness.record.files import EXPORTED, name_file

BEFORE = "{} before"
"""The name of a variant's replay."""


def add_replays(case: PlannedCase, before: PlannedCase | None, record: CaseRecord | None, run: str) -> PlannedCase:
    """Return the case with the kept programs of an earlier run, each after the variant that it is compared with.

    No program is added that the earlier run did not keep. Nothing is added if inputs, reference or cost differ: then
    nothing can be compared, and a comparison of both runs reports it.

    Args:
      before: The case as the earlier run planned it, or None.
      record: What the earlier run measured of it, or None.
      run: The earlier run's id.
    """
    if before is None or record is None or not is_same_problem(before, case):
        return case
    kept = {artifact.variant: artifact for artifact in record.artifacts if artifact.kind == EXPORTED}
    fingerprints = _read_fingerprints(record)
    variants: list[PlannedVariant] = []
    for item in case.variants:
        variants.append(item)
        old = next((variant for variant in before.variants if variant.name == item.name), None)
        if item.skip is None and item.raises is None and old is not None and item.name in kept:
            replay = Replay(
                run=run, variant=old.name, sha256=kept[item.name].sha256, fingerprint=fingerprints.get(item.name)
            )
            variants.append(_make_beside(item, old, REPLAY, f"the program that run {run} kept of it", replay))
    return replace(case, variants=tuple(variants))


def add_lock_step(
    case: PlannedCase, before: PlannedCase | None, record: CaseRecord | None, run: str, *, from_checkout: bool = False
) -> PlannedCase:
    """Return the case with each variant of an earlier run, in that run's environment, after today's variant.

    Peers are left out, since they have processes of their own. Variants are left out whose results the earlier run did
    not find right. `aot` is left out if there is `jit`, since both are the same program.

    Args:
      before, record, run: The same as in `add_replays`.
      from_checkout: Whether that run's own code runs, too.
    """
    if before is None or record is None or not is_same_problem(before, case):
        return case
    right = {variant.name for variant in record.variants if _is_right(variant)}
    planned_before = {variant.name: variant for variant in before.variants}
    timed = [item for item in case.variants if item.skip is None and item.raises is None and item.mode != NATIVE]
    jitted = {item.implementation for item in timed if item.mode == "jit"}
    beside = {
        variant.name: _make_beside(
            variant,
            planned_before[variant.name],
            LOCK_STEP,
            f"the code of run {run}" if from_checkout else f"the same in the environment of run {run}",
            Replay(run=run, variant=variant.name, from_checkout=from_checkout),
        )
        for variant in timed
        if variant.name in right & planned_before.keys()
        if variant.mode != "aot" or variant.implementation not in jitted
    }
    variants = ((item, beside[item.name]) if item.name in beside else (item,) for item in case.variants)
    return replace(case, variants=tuple(item for pair in variants for item in pair))


def limit_to(case: PlannedCase, variants: Collection[str]) -> PlannedCase | None:
    """Return the case with only these variants and their kept programs, if there are any; None without a variant."""
    replays = [item for item in case.variants if item.replays is not None and item.same_as in variants]
    kept = {*variants, *(item.name for item in replays)}
    own = tuple(item for item in case.variants if item.name in kept)
    if not own:
        return None
    baseline = (replays[0] if replays else own[0]).name
    return replace(case, variants=own, baseline=baseline, published=(), reported=(), answer=None)


def _make_beside(
    item: PlannedVariant, old: PlannedVariant, mode: str, description: str, replay: Replay
) -> PlannedVariant:
    """Return the variant of an earlier run that is interleaved with a variant."""
    return replace(
        item,
        name=BEFORE.format(item.name),
        mode=mode,
        description=description,
        source=old.source,
        compiles=None,
        donates=old.donates,
        compiler_options=old.compiler_options,
        same_as=item.name,
        replays=replay,
    )


def _is_right(variant: VariantRecord) -> bool:
    outcome = variant.outcomes.get("numerics")
    return outcome is not None and outcome.status is Status.OK


def _read_fingerprints(record: CaseRecord) -> Mapping[str, str | None]:
    """Return the fingerprints of the programs that were checked, by variant."""
    return {
        variant.name: details.fingerprint
        for variant in record.variants
        for outcome in variant.outcomes.values()
        if isinstance(details := outcome.details, NumericsDetails)
    }


def plan_case(
    suite: str, workload: Workload, params: dict[str, Param], platform: Platform, question: str = ""
) -> PlannedCase:
    """A workload with one value of each param, as data.

    Args:
      question: Of the suite.
    """
    name, declared = name_case(workload.name, params, platform), workload.declaration
    source = workload.find_data_source()
    skips = [(item, item.find_skip(params, platform.device)) for item in workload.implementations]
    return PlannedCase(
        id=name_file(name),
        name=name,
        suite=suite,
        workload=workload.name,
        platform=platform.name,
        description=workload.description,
        params=params,
        definition=workload.hash_definition(),
        baseline=workload.baseline_variant,
        variants=tuple(
            PlannedVariant(
                name=f"{item.name}:{mode}",
                implementation=item.name,
                mode=mode,
                description=item.description,
                source=item.hash_source(),
                skip=None if skip is None else skip.reason,
                traced=skip is not None and skip.traced and mode in ONE_COMPILED,
                compiles=workload.find_compile_budget(f"{item.name}:{mode}", params),
                donates=item.donate if mode in ONE_COMPILED else (),
                compiler_options=recorded_options(item.compiler_options),
                raises=None if item.raises is None else item.raises.__name__,
            )
            for item, skip in skips
            for mode in item.modes
        ),
        cost=None if declared.cost is None else call_with(declared.cost, params),
        items=workload.count_items(params),
        items_unit="" if declared.items is None else declared.items.unit,
        no_reference=declared.reference.reason if isinstance(declared.reference, NoReference) else None,
        time_limit_s=declared.time_limit_s,
        new_shape=workload.find_changes(declared.caching.new_shape, params),
        new_static=workload.find_changes(declared.caching.new_static, params),
        default_threshold=declared.caching.default_threshold,
        represents_workload=workload.represents_workload(params),
        devices=workload.count_devices(params),
        config=workload.find_config(params),
        data=None if source is None else source.words,
        data_missing=None if source is None else source.missing,
        published=workload.find_published(params, platform.device),
        reported=workload.find_reported(params, platform.device),
        answer=declared.answer,
        question=question,
        queued=declared.queued,
        measures=declared.measures,
    )


def name_case(workload: str, params: dict[str, Param], platform: Platform) -> str:
    """`selu[dtype=float32,n=10000]`: params sorted by name; `…@tpu:v5e` where it is compiled for a target."""
    inside = ",".join(f"{name}={params[name]}" for name in sorted(params))
    target = "" if platform.measures else f"@{platform.name}"
    return f"{workload}[{inside}]{target}" if inside else f"{workload}{target}"


class SelectionError(Exception):
    """Nothing matches what was selected; the message names the nearest match."""


def select(cases: Sequence[PlannedCase], patterns: Sequence[str]) -> tuple[PlannedCase, ...]:
    """Cases whose suite, workload or whole name matches any pattern; all without patterns.

    Raises:
      SelectionError: A pattern that matches nothing.
    """
    wanted: set[str] = set()
    for pattern in patterns:
        matching = match_cases(cases, pattern)
        if not matching:
            raise SelectionError(_no_match(pattern, cases))
        wanted |= {case.id for case in matching}
    return tuple(case for case in cases if not patterns or case.id in wanted)


def _no_match(pattern: str, cases: Iterable[PlannedCase]) -> str:
    nearest = find_nearest(pattern, (name for case in cases for name in names_of(case)))
    hint = "" if nearest is None else f"; nearest: '{nearest}'"
    return f"no case of this level matches --select '{pattern}'{hint}; list all: jaxmeter list --full"


def choose_representatives(cases: Sequence[PlannedCase]) -> tuple[PlannedCase, ...]:
    """The same cases; where the one that represents its workload was not chosen, the first of the chosen does.

    The answer of a suite stays with one case: where its `at` has that, else with the one that represents its workload.
    """
    of_workload: dict[str, str] = {}
    for case in sorted(cases, key=lambda case: not case.represents_workload):
        of_workload.setdefault(case.workload, case.id)
    with_answer: dict[tuple[str, str], str] = {}
    for case in sorted(cases, key=lambda case: (not _is_answer(case), of_workload[case.workload] != case.id)):
        if case.answer is not None:
            with_answer.setdefault((case.suite, case.platform), case.id)
    return tuple(
        msgspec.structs.replace(
            case,
            answer=case.answer if with_answer.get((case.suite, case.platform)) == case.id else None,
            represents_workload=of_workload[case.workload] == case.id,
        )
        for case in cases
    )


def _is_answer(case: PlannedCase) -> bool:
    """Whether it is the case that its suite's answer asks for."""
    return case.answer is not None and all(case.params[name] == value for name, value in case.answer.at.items())


def shuffle(cases: Sequence[PlannedCase], seed: int) -> tuple[PlannedCase, ...]:
    """A random order, so that a machine's slow minute does not always fall on the same sizes."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    return tuple(order)


AA_CONTROL = "{} again"
"""The name of a variant's A/A control."""


def add_aa_control(case: PlannedCase) -> PlannedCase | None:
    """The case with its first jitted variant, else its first of JAX's, as baseline, and that one's A/A control.

    Returns:
      None where no such variant can be timed. Peers have no A/A controls: each has a process of its own.
    """
    timed = [item for item in case.variants if item.mode != NATIVE and item.skip is None and item.raises is None]
    first = next((item for item in timed if item.mode == "jit"), timed[0] if timed else None)
    if first is None:
        return None
    aa_control = replace(first, name=AA_CONTROL.format(first.name), same_as=first.name)
    return replace(case, baseline=first.name, variants=(first, aa_control), published=(), reported=(), queued=None)


def is_unchanged(planned: PlannedCase, declared: PlannedCase) -> bool:
    """Whether a case, maybe with an A/A control or replays, is still what its suite declares: one run is one program.

    Args:
      declared: As the suite is now, without A/A controls.
    """
    own = tuple(item for item in planned.variants if item.replays is None)
    has_aa_control = any(item.same_as is not None for item in own)
    now = add_aa_control(declared) if has_aa_control else declared
    if now is None or now.definition != planned.definition:
        return False
    return all(item in now.variants for item in own)  # of suspects, not all are measured
