"""Cases with one variant twice: two programs that are equal, so that every difference between them is an error."""

from __future__ import annotations

from msgspec.structs import replace

from jaxmeter.harness.record import NATIVE, PlannedCase

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
