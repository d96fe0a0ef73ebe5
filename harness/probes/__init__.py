"""Ways of looking at a variant, a file each: `look(variants, context) -> Findings`. Their rows: plan/probes.py."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from harness.plan.probes import PROBES
from harness.probes.context import Context, Findings
from harness.record import LaunchRecord, Outcome

Look = Callable[[tuple[str, ...], Context], Findings]


def find_look(probe: str) -> Look:
    """What a probe does: `look` in the file that has its name."""
    look: Look = import_module(f"harness.probes.{probe}").look
    return look


def look_with(
    probes: tuple[str, ...], variants: tuple[str, ...], context: Context
) -> tuple[dict[str, dict[str, Outcome]], LaunchRecord | None]:
    """Has each probe look at the variants: at all of them at once if one needs them side by side, else one by one.

    Args:
      probes: Of one kind of process, in order.
    Returns:
      Outcomes by variant and probe, and raw samples where a probe leaves some.
    """
    side_by_side = any(PROBES[probe].side_by_side for probe in probes)
    outcomes: dict[str, dict[str, Outcome]] = {}
    launch = None
    for group in [variants] if side_by_side else [(variant,) for variant in variants]:
        for probe in probes:
            wanted = tuple(variant for variant in group if looks_at(probe, variant, context))
            if not wanted:
                continue
            found = find_look(probe)(wanted, context)
            launch = found.launch or launch
            for variant, outcome in found.outcomes.items():
                outcomes.setdefault(variant, {})[probe] = outcome
    return outcomes, launch


def looks_at(probe: str, variant: str, context: Context) -> bool:
    """Whether the probe's own row chooses the variant, where probes share a process."""
    if context.case is None or context.settings is None:
        return True
    return variant in {item.name for item in PROBES[probe].choose(context.case, context.settings)}


__all__ = ["Context", "Findings", "Look", "find_look", "look_with", "looks_at"]
