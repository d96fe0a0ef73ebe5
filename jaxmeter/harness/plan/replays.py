"""Cases with an earlier run's variants, which run again, interleaved with today's."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from jaxmeter.harness.record import (
    LOCK_STEP,
    NATIVE,
    REPLAY,
    CaseRecord,
    NumericsDetails,
    PlannedCase,
    PlannedVariant,
    Replay,
    Status,
)
from jaxmeter.harness.record.cases import VariantRecord, is_same_problem
from jaxmeter.harness.record.files import EXPORTED

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
