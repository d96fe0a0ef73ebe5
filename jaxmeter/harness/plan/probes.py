"""The probes, a row each: their variants, their process, how often they run, and the probes that must succeed before.

The code of a probe is in harness/probes/<name>.py. Its metrics are those that name it in harness/metrics/table.py. Its
details are the structure that is tagged with its name in harness/record/outcomes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxmeter.harness.declare.declaration import ONE_COMPILED
from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.metrics.metric import Summary
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES
from jaxmeter.harness.metrics.table import METRICS, SHARES_OF_PEAK
from jaxmeter.harness.record import LOCK_STEP, NATIVE, PlannedCase, PlannedVariant, Settings
from jaxmeter.harness.record.cases import COMPILATION
from jaxmeter.harness.record.files import EXPORTED

CHECK = "check"
"""The process of numerics and memory: a variant is compiled once for both."""

DEFAULT_THRESHOLD = "default_threshold"
"""The persistent cache holds the programs that an earlier process kept by JAX's own thresholds, maybe none."""

COMPILED_ROUNDS = 8
"""Largest number of timing processes of a case that is there to measure compiling. Half-widths of 95 % intervals are
0.8 standard deviations with eight, 2.5 with three."""

CACHE_STATES = ("cold", "cached", "warm", DEFAULT_THRESHOLD, "new_shape", "new_static")
"""The cache states: what the caches hold when a call begins. The metric of each is called `<cache state>_s`."""

Variants = tuple[PlannedVariant, ...]


def once(case: PlannedCase, settings: Settings) -> int:
    """In the first round only."""
    return 1


def in_cold_rounds(case: PlannedCase, settings: Settings) -> int:
    """In as many rounds as cold processes have; in fewer where nothing rests on one.

    Where a case is there to measure compiling, in enough for an interval at least, unless their number was fixed.
    """
    if case.measures == COMPILATION and settings.processes is None:
        return max(settings.cold_processes, FEWEST_PROCESSES)
    elsewhere = settings.cold_processes_otherwise
    return settings.cold_processes if elsewhere is None or rests_on_cold(case) else elsewhere


def rests_on_cold(case: PlannedCase) -> bool:
    """Whether the suite's answer, or a published figure, is a metric of cold processes, or how one grows."""
    claimed = (figure.metric for published in case.published for figure in published.figures)
    return _answers_by_cold(case) or any(map(_is_of_cold, claimed))


def _answers_by_cold(case: PlannedCase) -> bool:
    return case.answer is not None and _is_of_cold(case.answer.metric)


def _is_of_cold(name: str) -> bool:
    metric = METRICS.get(name)
    grown = metric if metric is None or metric.exponent_of is None else METRICS[metric.exponent_of]
    return grown is not None and grown.summary is Summary.PROCESSES


def in_all_rounds(case: PlannedCase, settings: Settings) -> int:
    """In every round, of which there are at most so many; in fewer where compiling is what is measured."""
    return min(COMPILED_ROUNDS, settings.most_rounds) if case.measures == COMPILATION else settings.most_rounds


def list_runnable(case: PlannedCase, settings: Settings) -> Variants:
    """Variants that are not declared to be skipped."""
    return tuple(item for item in case.variants if item.skip is None)


def list_checked(case: PlannedCase, settings: Settings) -> Variants:
    """Of those, all that this environment runs: an earlier run has checked what its own environment runs."""
    return tuple(item for item in list_runnable(case, settings) if item.mode != LOCK_STEP)


def list_timed(case: PlannedCase, settings: Settings) -> Variants:
    """Variants that are declared neither to be skipped nor to raise an error."""
    return tuple(item for item in list_runnable(case, settings) if item.raises is None)


def list_measurable(case: PlannedCase, settings: Settings) -> Variants:
    """Return the timed variants of today's code: of an earlier run's programs, only the time is measured again."""
    return tuple(item for item in list_timed(case, settings) if item.replays is None)


def list_of_jax(case: PlannedCase, settings: Settings) -> Variants:
    """Those that JAX runs."""
    return tuple(item for item in list_measurable(case, settings) if item.mode != NATIVE)


def list_jitted(case: PlannedCase, settings: Settings) -> Variants:
    """Those that jit compiles."""
    return tuple(item for item in list_measurable(case, settings) if item.mode == "jit")


def list_compiled(case: PlannedCase, settings: Settings) -> Variants:
    """Those with a program of their own."""
    return tuple(item for item in list_measurable(case, settings) if item.mode in ONE_COMPILED)


def list_resident(case: PlannedCase, settings: Settings) -> Variants:
    """All but `aot`, which runs the program of `jit`; in the case that represents its workload, in all if asked for."""
    wanted = case.represents_workload or "measured_memory" in settings.everywhere
    return tuple(item for item in list_measurable(case, settings) if wanted and item.mode != "aot")


def list_cached(case: PlannedCase, settings: Settings) -> Variants:
    """Of those that jit compiles on call the first, where a suite's answer rests on that; all where asked for.

    All there where another static argument is one of the cache states, since few take it. Not those that donate: a call
    of theirs leaves nothing to call them with again.
    """
    jitted = tuple(item for item in list_measurable(case, settings) if item.mode == "jit" and not item.donates)
    if "caching" in settings.everywhere:
        return jitted
    if not _answers_by_cold(case):
        return ()
    return jitted if case.new_static else jitted[:1]


def list_traced(case: PlannedCase, settings: Settings) -> Variants:
    """JAX's, in the case that represents its workload or answers by a share of a peak; in every case where asked for.

    A capture has the format of the products, whose peak it is, and a device's own time.
    """
    answers = case.answer is not None and case.answer.metric in SHARES_OF_PEAK
    wanted = case.represents_workload or answers or "trace" in settings.everywhere
    return list_of_jax(case, settings) if wanted else ()


def list_cache_states(case: PlannedCase) -> tuple[str, ...]:
    """The cache states that a case can be put into."""
    cannot = {
        DEFAULT_THRESHOLD: not case.default_threshold,
        "new_shape": not case.new_shape,
        "new_static": not case.new_static,
    }
    return tuple(cache_state for cache_state in CACHE_STATES if not cannot.get(cache_state, False))


def group_by_library(variants: Variants, platform: Platform) -> list[Variants]:
    """A process for JAX's variants, and one for all peers: another library must not steer JAX's threads."""
    of_jax, peers = _split(variants)
    return [group for group in (of_jax, peers) if group]


def group_peers_apart(variants: Variants, platform: Platform) -> list[Variants]:
    """A process for JAX's variants, and one for each peer, whose spinning threads would slow all others down."""
    of_jax, peers = _split(variants)
    return [group for group in (of_jax, *((peer,) for peer in peers)) if group]


def group_each(variants: Variants, platform: Platform) -> list[Variants]:
    """A process for each variant: what is cold is cold for the first only."""
    return [(variant,) for variant in variants]


def group_by_allocator(variants: Variants, platform: Platform) -> list[Variants]:
    """One process for all variants where it can forget its peak, else a process for each."""
    return ([variants] if variants else []) if platform.forgets_peak else group_each(variants, platform)


def _split(variants: Variants) -> tuple[Variants, Variants]:
    """JAX's, and the peers."""
    peers = tuple(item for item in variants if item.mode == NATIVE)
    return tuple(item for item in variants if item not in peers), peers


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One way of looking at a variant.

    Args:
      process: The kind of process that it needs; probes of one kind look at a variant in the same process.
      choose: Case and settings -> the variants that it looks at.
      group: Variants and platform -> those of each process.
      variant_s: Seconds that it adds to the estimate of a process for each variant: compiling or loading, warm-up and
        calls. A probe that keeps samples also needs its blocks.
      calls: Whether it must call the variant, which is impossible for a target.
      side_by_side: Whether it needs all variants of a process at once; else they come one after the other.
      keeps_samples: Whether its processes leave raw samples on disk, which the outcomes are made of.
      rounds: Case and settings -> the largest number of the run's rounds that it is in, each with a fresh process.
      adds_processes: Whether the remaining time goes to more of its processes, where intervals are wide.
      cache_states: Case -> its cache states, with a process for each in every round; `("",)` for other probes.
      after: Probes that must have ended well for the variant, where they are planned.
      artifacts: Kinds of file that it leaves.
      always: Whether every run has it, whatever was asked for.
      left_out_at: Levels that leave it out unless it is asked for.
      represented: Whether it looks at some cases only, unless it is asked for.
      everywhere_at: Levels at which it looks at every case in spite of `represented`.
      part_of: The probe with which it is asked for.
      takes_memory: Whether its processes preallocate the devices' memory, from which an array gets exactly its bytes.
      section: The page's section that shows its numbers and its notes.
    """

    name: str
    process: str
    choose: Callable[[PlannedCase, Settings], Variants]
    group: Callable[[Variants, Platform], list[Variants]]
    variant_s: float
    calls: bool = True
    side_by_side: bool = False
    keeps_samples: bool = False
    rounds: Callable[[PlannedCase, Settings], int] = once
    adds_processes: bool = False
    cache_states: Callable[[PlannedCase], tuple[str, ...]] = lambda case: ("",)
    after: tuple[str, ...] = ("numerics",)
    artifacts: tuple[str, ...] = ()
    always: bool = False
    left_out_at: tuple[str, ...] = ()
    represented: bool = False
    everywhere_at: tuple[str, ...] = ()
    part_of: str = ""
    takes_memory: bool = False
    section: str = "speed"


# `variant_s`: by the means of a default run of 83 cases on two cores of an AMD EPYC, 2026-11-29, which took 1 688 s
# (`python -m benchmarks.estimate_constants`).
_ROWS = (
    # A wrong answer has no speed: nothing goes on without this one.
    Probe(
        name="numerics",
        process=CHECK,
        choose=list_checked,
        group=group_by_library,
        variant_s=0.2,
        after=(),
        always=True,
    ),
    Probe(
        name="memory",
        section="memory",
        process=CHECK,
        choose=list_compiled,
        group=group_by_library,
        variant_s=0.2,
        after=(),
        calls=False,
    ),
    # A later run interleaves these programs with its own: nothing else of a run can be measured again.
    Probe(
        name="export",
        process=CHECK,
        choose=list_jitted,
        group=group_by_library,
        variant_s=0.06,
        after=(),
        artifacts=(EXPORTED,),
        always=True,
    ),
    Probe(
        name="measured_memory",
        section="memory",
        process="measured_memory",
        choose=list_resident,
        group=group_by_allocator,
        variant_s=0.2,
        represented=True,
        everywhere_at=("full",),
        part_of="memory",
        takes_memory=True,
    ),
    Probe(
        name="compilation",
        section="compilation",
        process="compilation",
        choose=list_of_jax,
        group=group_each,
        variant_s=0.4,
        calls=False,
        rounds=in_cold_rounds,
        artifacts=("jaxpr", "stablehlo", "hlo"),
    ),
    Probe(
        name="caching",
        section="caching",
        process="caching",
        choose=list_cached,
        group=group_each,
        variant_s=0.6,
        rounds=in_cold_rounds,
        cache_states=list_cache_states,
        represented=True,
        left_out_at=("quick",),
    ),
    Probe(
        name="timing",
        process="timing",
        choose=list_timed,
        group=group_peers_apart,
        variant_s=0.11,
        side_by_side=True,
        keeps_samples=True,
        rounds=in_all_rounds,
        adds_processes=True,
    ),
    Probe(
        name="trace",
        process="trace",
        choose=list_traced,
        group=group_by_library,
        variant_s=0.35,
        after=("numerics", "timing"),
        artifacts=("trace",),
        represented=True,
        everywhere_at=("full",),
    ),
)

PROBES: dict[str, Probe] = {probe.name: probe for probe in _ROWS}
"""In the order in which a case is looked at."""

PROBE_NAMES = tuple(name for name, probe in PROBES.items() if not probe.part_of)
"""What can be asked for."""
