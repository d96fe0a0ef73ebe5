"""The settings of a run, from its level and the given options; and how long its plan takes."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from jaxmeter.harness.metrics.statistics import CONFIDENCE, FEWEST_PROCESSES, SHOWN_CONFIDENCE
from jaxmeter.harness.plan.probes import PROBES, in_cold_rounds
from jaxmeter.harness.plan.processes import (
    AROUND_BLOCK_S,
    LOCK_STEP_ROUNDS,
    SHAPES,
    TURN_S,
    TURNS,
    PlannedProcess,
    share_passes,
)
from jaxmeter.harness.record import OtherEnvironment, Settings

FEWEST_ROUNDS = FEWEST_PROCESSES
"""Rounds of a run whose time is short. Fewer processes have no interval: the timing is lost until a resume."""

MOST_ROUNDS = {"quick": 12, "default": 12, "full": 8}
"""Largest number of rounds over all cases, if there is time. Half-widths of 95 % intervals of ratios, 41 variants: 11 %
with 3 processes, 6.7 % with 5, 5.3 % with 8; they shrink with the square root of the number of processes. On a machine
that its hypervisor disturbs, ratios scatter 1.5× as much. There, the median half-width of 127 ratios, by the processes
alone, was 5 % with 7 to 9 processes and 3.5 % with 13 or 14. The budget ends a quick run after 6 or 7 rounds. After 12
rounds, a default run spends the remaining time on cases with wide intervals instead."""

MOST_PROCESSES = {"default": 24, "full": 24}
"""Largest number of processes of a case that gets remaining time, by level. Chosen: by the t multiplier and the square
root, an interval of 8 processes narrows by 24 % with 12, by 16 % more with 16 and by 21 % more with 24. A quick run
ends after its rounds."""

TARGET_HALF_WIDTH = 0.03
"""Half-width that the shown intervals of ratios should reach. A case gets no more time if none of its intervals is
wider by its processes: smaller differences are hardly above the minimum effect, 3 %. Wider intervals are marked next to
the number."""

SAMPLE_S = 200e-6
"""Duration of a sample: of as many calls as take this time, or of one call. Compared with it, the 0.07 us of reading
the clock are negligible: the time of a call of 5 us is 0.990 of that by timeit (benchmarks/README.md)."""

BLOCK_S = {"quick": 0.004, "default": 0.002, "full": 0.002}
"""Duration of a block. Finer than 20 ms: on a busy machine the ratios scattered less in 6 of 8 comparisons of 8
processes each. In eight processes with 40 passes, 18 ratios scattered by 1.9 % (median) and 9.4 % (90th percentile)
with blocks of 2 ms, and by 1.8 and 6.9 % with 4 ms. Computed from that for the time of a quick run, half-widths are 1.5
and 7.6 % with 8 processes, and 1.7 and 6.4 % with 7: the widest intervals gain. Longer blocks were not tried in a
default run."""

BLOCKS = {"quick": 48, "default": 80, "full": 80}
"""Largest number of blocks of each variant in a process; `share_passes` finds the best number. The standard deviation
of times between processes was 20 % with 10 blocks, 18 % with 40 and 17 % with 60: the rest is the difference of
processes. The standard deviation of ratios was 2.9, 2.1 and 1.9 % with 40, 80 and 160 blocks (medians of 28 ratios). A
quick run has time for few processes. With fewer blocks, it has more processes: their t multiplier falls faster than the
standard deviation of a process rises. In two quick runs with blocks of 4 ms, samples were 26 % of the time with 40
blocks, and 29 % with 48."""

EXTRA_BLOCKS = 30
"""Largest number of blocks of each variant in an extra process. Extra processes narrow intervals that stay wide because
processes differ."""

COLD_PROCESSES = {"quick": 1, "default": 3, "full": 5}
"""Rounds with fresh processes per variant and stage, or cache state. An interval, which a quick run does not have,
needs at least three."""

COLD_PROCESSES_OTHERWISE = {"quick": 1, "default": 1, "full": 5}
"""Rounds with cold processes for cases on which neither an answer nor a published claim about compiling depends. With
three for all cases, cold processes took 390 s of a default run of half an hour on two cores."""

STAGE_LIMIT_S = 120.0
"""Chosen: ten times what an unrolled loop of 360 steps took to trace, lower and compile (11.6 s)."""

DEFAULT_BUDGET_S = {"quick": 180.0, "default": 1800.0, "full": 7200.0}
"""Budget by level, chosen as the time that people wait. It determines the median half-width of a default run's 127
ratios at 95 %, with the deviation from run to run. On two cores, 20 to 22 minutes gave seven to nine processes and 5.3
to 6.2 % (seven runs). 26 minutes gave eleven processes, 4.7 and 4.6 %. 30 minutes gave 13 and 14 processes, 4.6 and
4.4 %. The first round took 7 minutes. The next two, in which a few cases also have cold processes, took 2.3 minutes
each, and later rounds 1.6. On a slower guest they took 10.3, 3.4 and 2.8 minutes, so 30 minutes would be enough for
seven."""

OVERTIME = 1.0
"""Share by which a run may exceed a default budget to finish its fewest rounds: with fewer, all of its times would be
lost. On a virtual machine at half its speed, the first round of a default run took 11 minutes."""

LOCK_STEP_TIMES = 2
"""How much longer a run takes whose variants run in two environments."""


def find_longest_s(settings: Settings) -> float:
    """After how many seconds no process begins any more, whatever is not finished.

    Where nobody gave a budget, processes whose number was asked for take what they take.
    """
    if not settings.finishes_fewest:
        return settings.budget_s
    return math.inf if settings.processes is not None else settings.budget_s * (1 + OVERTIME)


def make_settings(
    level: str,
    *,
    probes: Sequence[str] = (),
    processes: int | None = None,
    fewest_rounds: int | None = None,
    fewest_kept: int | None = None,
    blocks: int | None = None,
    budget_s: float | None = None,
    select: Sequence[str] = (),
    suites: Sequence[str],
    data: str | None = None,
    not_used: Sequence[str] = (),
    cores: int | None = None,
    lock_step: OtherEnvironment | None = None,
    lock_step_cores: int | None = None,
    run_id: str,
) -> Settings:
    """Settings of a run.

    Args:
      probes: Names that were asked for, each with what is part of it; by default those of the level.
      processes: Fixes their number, else it follows from the time given.
      fewest_rounds: Those that are not left out where time is short; all of a fixed number by default.
      fewest_kept: Those with which a case counts as measured; by default `fewest_rounds`.
      blocks: Largest number for each variant in a process, unless two environments take turns; default: by level.
      cores: On how many each process runs; all by default.
      lock_step: The environment that takes turns with this one; blocks are longer then.
      lock_step_cores: On how many cores both run then; all where None.
    """
    asked = {probe.name for probe in PROBES.values() if probe.name in probes or probe.part_of in probes}
    of_level = {probe.name for probe in PROBES.values() if level not in probe.left_out_at}
    wanted = {name: probe for name, probe in PROBES.items() if probe.always or name in (asked or of_level)}
    everywhere = [
        name for name, probe in wanted.items() if probe.represented and (name in asked or level in probe.everywhere_at)
    ]
    usual_s = DEFAULT_BUDGET_S[level] * (1 if lock_step is None else LOCK_STEP_TIMES)
    asked_for_cold = any(PROBES[name].rounds is in_cold_rounds for name in asked)
    return Settings(
        level=level,
        probes=tuple(wanted),
        fewest_rounds=fewest_rounds or processes or FEWEST_ROUNDS,
        finishes_fewest=budget_s is None,
        most_rounds=processes or max(MOST_ROUNDS[level], 0 if lock_step is None else LOCK_STEP_ROUNDS),
        processes=processes,
        budget_s=usual_s if budget_s is None else budget_s,
        stage_limit_s=STAGE_LIMIT_S,
        block_s=BLOCK_S[level] if lock_step is None else TURN_S,
        sample_s=SAMPLE_S,
        blocks=(blocks or BLOCKS[level]) if lock_step is None else TURNS,
        seed=zlib.crc32(run_id.encode()),
        confidence=CONFIDENCE,
        shown_confidence=SHOWN_CONFIDENCE,
        target_half_width=TARGET_HALF_WIDTH,
        select=tuple(select),
        suites=tuple(suites),
        data=data,
        cold_processes=processes or COLD_PROCESSES[level],
        cold_processes_otherwise=None if processes or asked_for_cold else COLD_PROCESSES_OTHERWISE[level],
        everywhere=tuple(everywhere),
        not_used=tuple(not_used),
        cores=cores,
        lock_step=lock_step,
        lock_step_cores=lock_step_cores,
        fewest_kept=fewest_kept,
    )


PROCESS_S = 0.15
"""Every process: fork, backend, suites, inputs (`python -m benchmarks.process_overhead`)."""


@dataclass(frozen=True)
class PlanEstimate:
    """How long a plan takes, in seconds, and how many processes it starts.

    Args:
      least_s, fewest: Without what is left out where time is short.
      most_s, most: With all of it.
    """

    least_s: float
    most_s: float
    fewest: int
    most: int


def estimate(processes: Sequence[PlannedProcess], settings: Settings) -> PlanEstimate:
    """Return an estimate within the budget: what does not fit is left out, or lost.

    A default budget may be exceeded for the fewest rounds.
    """
    times = [(process, process_s(process, settings)) for process in processes]
    least_s = math.fsum(seconds for process, seconds in times if not process.extra)
    most_s = math.fsum(seconds for _, seconds in times)
    longest_s = find_longest_s(settings)
    return PlanEstimate(
        least_s=min(least_s, longest_s),
        most_s=min(most_s, max(settings.budget_s, min(least_s, longest_s))),
        fewest=sum(not process.extra for process in processes),
        most=len(processes),
    )


def first_round_s(processes: Sequence[PlannedProcess], settings: Settings) -> float:
    """Return the seconds until every case has been looked at once."""
    return math.fsum(process_s(process, settings) for process in processes if process.round == 0)


def process_s(process: PlannedProcess, settings: Settings) -> float:
    """Return the seconds of one process; of SHAPES, whose probes only trace, those of its beginning."""
    begun_s = PROCESS_S + process.begins_s
    if process.kind == SHAPES:
        return begun_s
    assigned = [(PROBES[name], len(variants)) for name, variants in process.assignments.items()]
    before_s = begun_s + math.fsum(variants * probe.variant_s for probe, variants in assigned)
    every_s = (passes_s(variants, before_s, settings) for probe, variants in assigned if probe.keeps_samples)
    return before_s + math.fsum(every_s)


def passes_s(variants: int, before_s: float, settings: Settings) -> float:
    """Return the seconds of all passes of a process whose blocks have the shortest length.

    Args:
      before_s: Seconds from the start of the process to its first pass.
    """
    blocks_s = [settings.block_s] * variants
    passes = min(settings.blocks, share_passes(blocks_s, before_s))
    return passes * variants * (settings.block_s + AROUND_BLOCK_S)
