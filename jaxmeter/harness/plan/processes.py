"""The list of a run's processes and their order, for measuring, estimating and resuming; and their numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from jaxmeter.harness.declare.declaration import ONE_COMPILED
from jaxmeter.harness.machine.platforms import PLATFORMS, Platform
from jaxmeter.harness.plan.cases import shuffle
from jaxmeter.harness.plan.probes import CHECK, PROBES, Probe
from jaxmeter.harness.record import NATIVE, PlannedCase, Settings
from jaxmeter.harness.record.cases import FEWEST_QUEUED

TRACED = "compilation"
"""The probe whose counts tracing alone provides, also in a process that only sees shapes."""

SHAPES = "shapes"
"""The process before the check: it finds variants that cannot fit, by their shapes. A trace's leftovers end with it."""


class PlannedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One fresh process that looks at some variants of a case.

    Args:
      case: The case's id.
      kind: SHAPES, or the `process` of its probes.
      assignments: Which probe looks at which variants, in order.
      round: The round over all cases that it belongs to, from 0; it distinguishes processes with equal assignments.
      cache_state: What the caches hold when a call begins, see probes/caching.py; empty for other probes.
      extra: Whether it is left out if time is short.
      refills: Whether it only fills the compilation cache of a resumed run, and checks that the programs are still the
        same.
      begins_s: Seconds that it takes to initialise the devices of its platform.
    """

    case: str
    kind: str
    assignments: dict[str, tuple[str, ...]]
    round: int = 0
    cache_state: str = ""
    extra: bool = False
    refills: bool = False
    begins_s: float = 0.0

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes that look, in order."""
        return tuple(self.assignments)

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that some of them look at, in the order of the case."""
        return tuple(dict.fromkeys(name for names in self.assignments.values() for name in names))

    @property
    def identity(self) -> tuple[str, ...]:
        """The key that distinguishes the process from all others of the run."""
        return (self.case, self.kind, str(self.round), self.cache_state, str(self.refills), *self.variants)

    @property
    def keeps_samples(self) -> bool:
        """Whether it leaves raw samples on disk."""
        return any(PROBES[probe].keeps_samples for probe in self.assignments)

    def limit_to(self, variants: Collection[str]) -> PlannedProcess:
        """The same process without other variants."""
        assignments = {
            probe: tuple(name for name in names if name in variants) for probe, names in self.assignments.items()
        }
        return msgspec.structs.replace(
            self, assignments={probe: names for probe, names in assignments.items() if names}
        )


def plan_processes(
    cases: Sequence[PlannedCase],
    settings: Settings,
    *,
    platforms: Mapping[str, Platform] = PLATFORMS,
) -> tuple[PlannedProcess, ...]:
    """Return every process of a run, in order: round after round, with the cases in another order in each.

    Args:
      platforms: Platforms of the cases, by name.
    """
    by_case = {case.id: list(plan_processes_of(case, settings, platforms[case.platform])) for case in cases}
    rounds = 1 + max((process.round for processes in by_case.values() for process in processes), default=-1)
    return tuple(
        process
        for index in range(rounds)
        for case in shuffle(cases, settings.seed + index)
        for process in by_case[case.id]
        if process.round == index
    )


def plan_processes_of(case: PlannedCase, settings: Settings, platform: Platform) -> Iterator[PlannedProcess]:
    """The processes of one case, in order: what cannot fit, the check, then each other process in its rounds."""
    probes = [PROBES[name] for name in settings.probes if platform.measures or not PROBES[name].calls]
    for kind in dict.fromkeys(probe.process for probe in probes):
        sharing = [probe for probe in probes if probe.process == kind]
        processes = list(_plan_kind(kind, sharing, case, settings, platform))
        if kind == CHECK and platform.measures and processes:
            yield PlannedProcess(
                case=case.id,
                kind=SHAPES,
                assignments={
                    probe.name: tuple(name for process in processes for name in process.assignments.get(probe.name, ()))
                    for probe in sharing
                },
                begins_s=platform.begins_s,
            )
        yield from processes
    traced = tuple(item.name for item in case.variants if item.traced)
    if traced and platform.measures and TRACED in settings.probes:
        yield PlannedProcess(case=case.id, kind=SHAPES, assignments={TRACED: traced}, begins_s=platform.begins_s)


def plan_more(case: PlannedCase, settings: Settings, platform: Platform, index: int) -> tuple[PlannedProcess, ...]:
    """The processes of one more timing process of a case, beyond the planned rounds."""
    probes = [PROBES[name] for name in settings.probes if PROBES[name].adds_processes]
    return tuple(
        process for probe in probes for process in _plan_round(index, probe.process, [probe], case, settings, platform)
    )


def _plan_kind(
    kind: str, probes: Sequence[Probe], case: PlannedCase, settings: Settings, platform: Platform
) -> Iterator[PlannedProcess]:
    """The processes of the probes that share a kind of process, in all rounds."""
    for index in range(probes[0].rounds(case, settings)):
        yield from _plan_round(index, kind, probes, case, settings, platform)


def _plan_round(
    index: int, kind: str, probes: Sequence[Probe], case: PlannedCase, settings: Settings, platform: Platform
) -> Iterator[PlannedProcess]:
    """Those of one round. The probes' rows agree on how they are started."""
    how = probes[0]
    chosen = {probe.name: _choose(probe, case, settings, platform) for probe in probes}
    variants = tuple(item for item in case.variants if any(item.name in names for names in chosen.values()))
    for cache_state in how.cache_states(case):
        groups = how.group(variants, platform)
        if how.side_by_side:  # not always the peers after JAX's, whatever that process leaves behind
            random.Random(f"{settings.seed} {case.id} {index}").shuffle(groups)
        for group in groups:
            assignments = {
                probe: tuple(item.name for item in group if item.name in names) for probe, names in chosen.items()
            }
            yield PlannedProcess(
                case=case.id,
                kind=kind,
                assignments={probe: names for probe, names in assignments.items() if names},
                round=index,
                cache_state=cache_state,
                extra=index >= settings.fewest_rounds,
                begins_s=platform.begins_s + (platform.ahead_s if how.takes_memory else 0.0),
            )


def _choose(probe: Probe, case: PlannedCase, settings: Settings, platform: Platform) -> frozenset[str]:
    """Names of the variants that a probe looks at; where nothing is called, of those with a program of their own."""
    return frozenset(
        item.name for item in probe.choose(case, settings) if platform.measures or item.mode in ONE_COMPILED
    )


def plan_refill(case: PlannedCase, processes: Sequence[PlannedProcess], index: int) -> list[PlannedProcess]:
    """The checks of a case once more, which compile what its timing processes load.

    Args:
      processes: All that are planned of it.
      index: The round before which they come.
    """
    peers = {item.name for item in case.variants if item.mode == NATIVE}
    checks = [process for process in processes if process.kind == CHECK and not peers.issuperset(process.variants)]
    return [msgspec.structs.replace(check, round=index, refills=True) for check in checks]


WARM_UP_S = 0.02
WARM_UP_LIMIT_S = 0.3
STEADY_WITHIN = 0.05
"""Warm-up ends when two consecutive blocks agree, not before WARM_UP_S and not after WARM_UP_LIMIT_S. After compiling,
calls of four benchmarks were within 10 % of their steady time after at most 42 ms. That holds for 90 % of processes, on
a busy machine of two cores. The limit is seven times as long, and the passes warm up too."""

WARM_CALL_S = 0.01
"""Shortest call whose first two timed calls are warm-up blocks, because the first call of the variant preceded them. If
the two blocks disagree, more follow. Its time until return has only one sample. In a default run, warm-up took 258 s of
1800 s, mostly for such calls."""

WARM_UP_BLOCK_S = 0.005
"""Chosen, not measured: two slow samples of about 25 do not count."""

SLOW_CALL_S = WARM_UP_LIMIT_S
"""Shortest call whose warm-up has only two calls."""

ONE_PASS_S = 10.0
"""A call of this length warms up by itself, and the first block shows whether it was steady; its time until return is
not timed. A shorter call is called twice: delays that occur once in a process are shorter than this."""

MOST_CALLS = 1_000_000
"""Largest number of calls in a sample of 200 us: no call takes less than a nanosecond."""

SCATTER = 10.0
SCATTER_BLOCK_S = 0.002
SCATTER_EXPONENT = -0.25
"""Quotient of two standard deviations of a ratio: that of a single pass, divided by the additional standard deviation
between processes. SCATTER is the quotient for blocks of SCATTER_BLOCK_S. For longer blocks, the quotient is
proportional to the block length to the power SCATTER_EXPONENT. In a default run on two cores, the standard deviation of
46 ratios between processes fell from 8.1 to 6.1 and 4.6 % with 10, 20 and 32 passes. So a single pass has 26 %, and
processes have at most 3 % in addition. Single passes had 20 % with blocks of 3 ms, 13 % with 20 ms, 10 % with 65 ms and
5 % with 200 ms (benchmarks/README.md)."""

AROUND_BLOCK_S = 0.0008
"""Time of a block in addition to its samples: counters and the calibration loop before and after the block, and a share
of the untimed calls on drawn cores. 63 timing processes of a quick run took 0.7 to 1.1 ms."""

OUTSIDE_S = 0.1
"""Time that a process costs its run before its clock starts and after its last pass: fork, message, answer, record."""

LEAST_SAMPLED_S = 0.08
"""Least total time of a variant's blocks, also with few passes. If a slow variant limits the number of passes, the
blocks of the other variants are longer. By the variances of four benchmarks within and between processes, 44 to 220 ms
were best."""

SLOW_BLOCK_S = 0.003
FEWEST_PASSES = 6
SLOW_PASSES_S_PER_VARIANT = 3.0
FEWEST_SLOW_PASSES = 2
"""If blocks take longer than SLOW_BLOCK_S, passes are cut to the time of all blocks of that length. At least three
shuffled orders with their reverses remain, which is one more block than a clean process needs. If these take longer
than SLOW_PASSES_S_PER_VARIANT for each variant, at least one order and its reverse remain. So a process of one variant
of 5 s a call makes six calls: the first, two to warm up, two passes, and one of time until return. With 10 s a call, it
makes four."""

RETURN_S = 0.02
FEWEST_RETURNS, MOST_RETURNS = 3, 50
"""Number of single calls for the time until return: as many as take RETURN_S, within these limits, or one slow call."""

QUEUE, ISOLATED, RETURN = "queue", "isolated", "return"
SIDE_PROCESSES = {QUEUE: 5, ISOLATED: 3, RETURN: 5}
"""Number of processes that also measure each side time. An interval needs at least three processes. With five, its
half-width is 1.2 standard deviations: 6 % for the speedup by queueing. Only a note uses the time of a variant alone. In
all processes, side times took a quarter of the time of a quick run's timing."""

QUEUE_S = 0.1
"""Longest duration of a queue, except a queue of FEWEST_QUEUED calls. Chosen: waiting costs at most about 0.1 ms a
call, which is 0.2 % of a call of 0.05 s; the queue has two of those. Calls of SLOW_CALL_S are not queued at all."""

QUEUE_PASSES = 20
"""Number of passes with queued calls, spread over all passes. For two programs on two busy cores, the standard
deviation of the speedup by queueing between processes was 5 % with 36 and with 70 passes."""

ISOLATED_BLOCKS = 5
ISOLATED_S = 0.3
"""Number of blocks of each variant alone, if all of these blocks take at most ISOLATED_S. For a call of 0.06 s, a
refill of 32 MiB of caches at 10 GB/s is about 5 %. Chosen, not measured: as many quiet blocks as an uncontended process
needs, because only a note uses this time."""

TURN_S = 0.02
"""A block's length if two processes take turns: waking the other process takes 0.1 ms, which is 0.5 % of a block."""

TURNS = 10
"""Turns of each variant in a round of two processes. The ratios of eight programs, two environments on one core,
scattered between rounds by 1.3 % with 4 turns, and by 1.2 % with 12 and with 40. More processes help more."""

LOCK_STEP_ROUNDS = 8
"""Fewest rounds if there is time: with these, ratios that scatter by 1.2 % have 99 % intervals of ± 1.5 %."""


def count_queued(call_s: float, declared: int) -> int:
    """Return how many calls a queue has: those that are declared, or fewer where calls are slow; 0 without a queue."""
    if declared < FEWEST_QUEUED or call_s >= SLOW_CALL_S:
        return 0
    return declared if declared * call_s <= QUEUE_S else max(FEWEST_QUEUED, int(QUEUE_S / call_s))


def count_passes(blocks_s: Collection[float], settings: Settings) -> int:
    """Return the number of passes, which is even: `settings.blocks`, or fewer if calls are slow.

    Args:
      blocks_s: Shortest time of a block of each variant, or of its rows of calls.
    """
    pass_s = math.fsum(blocks_s)

    def fit(s_per_variant: float) -> int:
        return int(round(s_per_variant * len(blocks_s) / pass_s, 9))

    usual_s = settings.blocks * max(SLOW_BLOCK_S, settings.block_s)
    passes = max(min(FEWEST_PASSES, fit(SLOW_PASSES_S_PER_VARIANT)), min(settings.blocks, fit(usual_s)))
    return max(FEWEST_SLOW_PASSES, 2 * (passes // 2))


def share_passes(blocks_s: Collection[float], before_s: float) -> int:
    """Return the best number of passes of a process, an even number: more passes would help less than more processes.

    Args:
      blocks_s: As for `count_passes`.
      before_s: Seconds from the start of the process to its first pass.
    Source: Kalibera & Jones, Rigorous Benchmarking in Reasonable Time, 2013, section 6: the square root of the ratio of
      costs times the ratio of standard deviations.
    """
    pass_s = math.fsum(blocks_s) + len(blocks_s) * AROUND_BLOCK_S
    block_s = math.fsum(blocks_s) / len(blocks_s)
    scatter = SCATTER * math.pow(max(1.0, block_s / SCATTER_BLOCK_S), SCATTER_EXPONENT)
    passes = scatter * math.sqrt((before_s + OUTSIDE_S) / pass_s)
    return max(FEWEST_PASSES, 2 * round(passes / 2))


def is_among(place: int, chosen: int, of: int) -> bool:
    """Return whether a place is one of so many that are spread evenly over all."""
    return (place + 1) * chosen // of > place * chosen // of
