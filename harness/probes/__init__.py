"""Ways of looking at a variant, one file each. A probe sees only `Prepared` and its context.

A per-variant probe is a `Probe` in `PROBES`, by the kind of process that it needs and its name. Timing, which
alternates variants, and caching, which prepares calls of its own, are kinds of launch of their own.
"""

from __future__ import annotations

from harness.probes.compilation import COMPILATION
from harness.probes.context import Context, Probe
from harness.probes.memory import MEMORY
from harness.probes.numerics import NUMERICS
from harness.probes.residency import RESIDENCY
from harness.probes.trace import TRACE

PROBES: dict[tuple[str, str], Probe] = {
    (probe.kind, probe.name): probe for probe in (NUMERICS, MEMORY, COMPILATION, RESIDENCY, TRACE)
}

__all__ = ["PROBES", "Context", "Probe"]
