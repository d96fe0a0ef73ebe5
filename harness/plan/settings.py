"""The settings of a run: what a level, and the options that are given, make of it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from harness.plan.probes import PROBES
from harness.record import Settings
from harness.record.statistics import CONFIDENCE, FEWEST_LAUNCHES

LOOKS = (5, 8, 12)
"""Launch counts at which timing may stop, once the interval is narrow enough."""

QUICK_LOOKS = (FEWEST_LAUNCHES,)
"""A quick run is a rehearsal with numbers: intervals, though wide ones."""

TARGET_HALF_WIDTH = 0.02
SAMPLE_S = 200e-6
BLOCK_S = 0.002
"""Finer than 20 ms: on a busy machine the ratios scattered less in 6 of 8 comparisons of 8 launches each."""

STAGE_LIMIT_S = 120.0
DEFAULT_BUDGET_S = {"quick": 300.0, "default": 1800.0, "full": 7200.0}
CASE_LIMIT_S = {"quick": 8.0, "default": 15.0, "full": 30.0}
BLOCKS = {"quick": 40, "default": 100, "full": 100}

COLD_LAUNCHES = {"quick": 1, "default": 5, "full": 8}
"""Fresh processes per variant and stage, or regime. Three is the fewest that give an interval, which a quick run does
without; a case whose compiling takes long stops there."""


def make_settings(
    level: str,
    *,
    probes: Sequence[str] = (),
    launches: int | None = None,
    budget_s: float | None = None,
    select: Sequence[str] = (),
    suites: Sequence[str],
    data: str | None = None,
    not_used: Sequence[str] = (),
    run_id: str,
) -> Settings:
    """Settings of a run.

    Args:
      probes: Names that were asked for, each with what is part of it; by default those of the level.
      launches: Fixes their count, else they follow from precision and time.
    """
    asked = {probe.name for probe in PROBES.values() if probe.name in probes or probe.part_of in probes}
    of_level = {probe.name for probe in PROBES.values() if level not in probe.left_out_at}
    wanted = {name: probe for name, probe in PROBES.items() if probe.always or name in (asked or of_level)}
    everywhere = [
        name for name, probe in wanted.items() if probe.represented and (name in asked or level in probe.everywhere_at)
    ]
    return Settings(
        level=level,
        probes=tuple(wanted),
        looks=(launches,) if launches else QUICK_LOOKS if level == "quick" else LOOKS,
        launches=launches,
        case_limit_s=CASE_LIMIT_S[level] if budget_s is None else budget_s,
        budget_s=DEFAULT_BUDGET_S[level] if budget_s is None else budget_s,
        stage_limit_s=STAGE_LIMIT_S,
        block_s=BLOCK_S,
        sample_s=SAMPLE_S,
        blocks=BLOCKS[level],
        seed=zlib.crc32(run_id.encode()),
        confidence=CONFIDENCE,
        target_half_width=TARGET_HALF_WIDTH,
        select=tuple(select),
        suites=tuple(suites),
        data=data,
        cold_launches=launches or COLD_LAUNCHES[level],
        everywhere=tuple(everywhere),
        not_used=tuple(not_used),
    )
