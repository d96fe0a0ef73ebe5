"""Ways of looking at a variant, one file each. A probe sees only `Prepared` and its context.

A per-variant probe is a `Probe` in `PROBES`; timing, which alternates variants, is a kind of launch of its own.
"""

from __future__ import annotations

from harness.probes.compilation import COMPILATION
from harness.probes.context import Context, Probe
from harness.probes.memory import MEMORY
from harness.probes.numerics import NUMERICS
from harness.probes.trace import TRACE

PROBES: dict[str, Probe] = {probe.name: probe for probe in (NUMERICS, MEMORY, COMPILATION, TRACE)}

__all__ = ["PROBES", "Context", "Probe"]
