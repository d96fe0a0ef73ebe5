"""The probes, a file each with `probe_variants(variants, context) -> Findings`. Their rows: plan/probes.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module

from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.probes.context import Context, Findings
from jaxmeter.harness.record import Outcome, ProcessRecord

ProbeVariants = Callable[[tuple[str, ...], Context], Findings]


def find_probe(probe: str) -> ProbeVariants:
    """Return what a probe does: `probe_variants` in the file that has its name."""
    probe_variants: ProbeVariants = import_module(f"jaxmeter.harness.probes.{probe}").probe_variants
    return probe_variants


def run_probes(
    assignments: Mapping[str, Collection[str]], context: Context
) -> tuple[dict[str, dict[str, Outcome]], ProcessRecord | None]:
    """Run each probe on its variants: on all of them at once if one needs them side by side, else one by one.

    Args:
      assignments: Probe -> variants; probes of one kind of process, in order.
    Returns:
      Outcomes by variant and probe, and raw samples where a probe leaves some.
    """
    variants = tuple(dict.fromkeys(name for names in assignments.values() for name in names))
    side_by_side = any(PROBES[probe].side_by_side for probe in assignments)
    outcomes: dict[str, dict[str, Outcome]] = {}
    process = None
    for group in [variants] if side_by_side else [(variant,) for variant in variants]:
        for probe, names in assignments.items():
            wanted = tuple(variant for variant in group if variant in names)
            if not wanted:
                continue
            findings = find_probe(probe)(wanted, context)
            process = findings.process or process
            for variant, outcome in findings.outcomes.items():
                outcomes.setdefault(variant, {})[probe] = outcome
    return outcomes, process


__all__ = ["Context", "Findings", "ProbeVariants", "find_probe", "run_probes"]
