"""Why a variant with times has no speedup: its result may not be that of the baseline variant, or needs no work."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmeter.harness.record.outcomes import Correctness, NumericsDetails, Outcome, Status
from jaxmeter.harness.record.remarks import OWN_FAULT, list_own_faults
from jaxmeter.harness.record.traps import find_no_input_objection


def find_objection(outcomes: Mapping[str, Outcome]) -> str:
    """Return why a variant has no speedup, whatever its times are; empty if there is no objection.

    Args:
      outcomes: The variant's own, by probe.
    """
    if objection := _object_to_result(outcomes.get("numerics")):
        return objection
    needs_nothing = find_no_input_objection(outcomes)
    return f"no speedup: {needs_nothing}" if needs_nothing else ""


def _object_to_result(numerics: Outcome | None) -> str:
    if numerics is None:
        return ""
    details = numerics.details if isinstance(numerics.details, NumericsDetails) else NumericsDetails()
    if numerics.status is Status.WRONG:
        is_chance = details.verdict is Correctness.NOT_DETERMINISTIC
        return "no speedup: its result is not deterministic" if is_chance else "no speedup: its result is wrong"
    if details.verdict is Correctness.DIFFERS:
        return "no speedup: its result differs from that of the baseline variant"
    if details.conditioning is not None and details.conditioning.is_too_slow:
        return "no speedup: an output is beyond its tolerance, and the draws that would judge it take too long"
    if details.verdict is Correctness.CANNOT_BE_CHECKED and list_own_faults([numerics]):
        return f"no speedup: {OWN_FAULT} leaves it unknown whether its result is right"
    return ""
