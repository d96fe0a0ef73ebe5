"""What a run sets out to do: planned cases, which of them, in which order, and how long that takes. No jax."""

from __future__ import annotations

import difflib
import hashlib
import random
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from harness.declare.declaration import NoReference
from harness.declare.fingerprint import fingerprint
from harness.declare.implementation import NATIVE
from harness.declare.levels import call_with
from harness.declare.workload import Workload
from harness.record import Param, PlannedCase, PlannedVariant, Settings
from harness.record.statistics import CONFIDENCE, FEWEST_LAUNCHES

PROBE_NAMES = ("numerics", "memory", "compilation", "caching", "timing", "trace")
"""In the order in which they are run. `numerics` always is: a wrong answer has no speed."""

LOOKS = (5, 8, 12)
"""Launch counts at which timing may stop, once the interval is narrow enough."""

QUICK_LOOKS = (FEWEST_LAUNCHES,)
"""A quick run is a rehearsal with numbers: intervals, though wide ones."""

LEFT_OUT = {"quick": ("caching",), "default": (), "full": ()}
"""Probes of a level that are left out unless they are asked for: every regime takes processes of its own."""

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

PROCESS_S = 0.15
"""Beginning a process: fork, backend, suites, inputs. Used only for the estimate of a dry run, as are the next."""
COLD_VARIANT_S = 0.1
TIMED_VARIANT_S = 0.08


class SelectionError(Exception):
    """Nothing matches what was selected; the message names the nearest match."""


def settings_for(
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
    """Settings of a run; `launches` fixes their count, else they follow from precision and time."""
    chosen = probes or [name for name in PROBE_NAMES if name not in LEFT_OUT[level]]
    wanted = tuple(name for name in PROBE_NAMES if name in chosen or name == "numerics")
    return Settings(
        level=level,
        probes=wanted,
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
        caching_everywhere="caching" in probes,
        traces_everywhere="trace" in probes or level == "full",
        not_used=tuple(not_used),
    )


def planned_case(suite: str, workload: Workload, params: dict[str, Param], backend: str) -> PlannedCase:
    """A workload with one value of each param, as data."""
    name, source = case_name(workload.name, params), workload.find_data_source()
    return PlannedCase(
        id=case_id(name),
        name=name,
        suite=suite,
        workload=workload.name,
        description=workload.description,
        params=params,
        definition=workload.hash_definition(),
        baseline=workload.baseline_variant,
        variants=tuple(
            PlannedVariant(
                name=f"{item.name}:{mode}",
                implementation=item.name,
                mode=mode,
                description=item.description,
                source=fingerprint(item.function),
                skip=skip.reason if (skip := item.find_skip(params, backend)) else None,
                compiles=workload.find_compile_budget(f"{item.name}:{mode}", params),
                donates=item.donate if mode in ("jit", "aot") else (),
                raises=None if item.raises is None else item.raises.__name__,
            )
            for item in workload.implementations
            for mode in item.modes
        ),
        cost=None if workload.declaration.cost is None else call_with(workload.declaration.cost, params),
        no_reference=workload.declaration.reference.reason
        if isinstance(workload.declaration.reference, NoReference)
        else None,
        time_limit_s=workload.declaration.time_limit_s,
        new_shape=workload.find_changes(workload.declaration.caching.new_shape, params),
        new_static=workload.find_changes(workload.declaration.caching.new_static, params),
        representative=workload.represents_workload(params),
        devices=workload.count_devices(params),
        config=workload.find_config(params),
        data=None if source is None else source.words,
        data_missing=None if source is None else source.missing,
        published=workload.find_published(params, backend),
    )


def case_name(workload: str, params: dict[str, Param]) -> str:
    """`selu[dtype=float32,n=10000]`: params sorted by name."""
    inside = ",".join(f"{name}={params[name]}" for name in sorted(params))
    return f"{workload}[{inside}]" if inside else workload


def case_id(name: str) -> str:
    """The name as a folder: readable, safe on every file system, and unlike for unlike names."""
    readable = re.sub(r"[^A-Za-z0-9=._-]+", "-", name).strip("-")[:80]
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def select(cases: Sequence[PlannedCase], patterns: Sequence[str]) -> tuple[PlannedCase, ...]:
    """Cases whose suite, workload or whole name matches any pattern; all without patterns.

    Args:
      patterns: `*` stands for any text and `?` for one character; brackets mean themselves, as names hold them.
    Raises:
      SelectionError: A pattern that matches nothing.
    """
    chosen: list[PlannedCase] = []
    for pattern in patterns:
        expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)
        matching = [case for case in cases if any(map(expression.fullmatch, _names(case)))]
        if not matching:
            raise SelectionError(_no_match(pattern, cases))
        chosen += matching
    wanted = {case.id for case in chosen}
    return tuple(case for case in cases if not patterns or case.id in wanted)


def with_representatives(cases: Sequence[PlannedCase]) -> tuple[PlannedCase, ...]:
    """The same cases; where the one that stands for its workload was not chosen, the first of the chosen does.

    Of those, the first of its suite stands for it.
    """
    of_workload: dict[str, str] = {}
    for case in sorted(cases, key=lambda case: not case.representative):
        of_workload.setdefault(case.workload, case.id)
    of_suite: dict[str, str] = {}
    for case in cases:
        of_suite.setdefault(case.suite, of_workload[case.workload])
    return tuple(
        msgspec.structs.replace(
            case, representative=of_workload[case.workload] == case.id, exemplary=of_suite[case.suite] == case.id
        )
        for case in cases
    )


def _names(case: PlannedCase) -> tuple[str, str, str]:
    return case.suite, case.workload, case.name


def _no_match(pattern: str, cases: Iterable[PlannedCase]) -> str:
    names = dict.fromkeys(name for case in cases for name in _names(case))
    nearest = difflib.get_close_matches(pattern.strip("*?"), names, n=1, cutoff=0.4)
    hint = f"; nearest: '{nearest[0]}'" if nearest else ""
    return f"no case matches --select '{pattern}'{hint}; list all: python -m harness list"


def shuffled(cases: Sequence[PlannedCase], seed: int) -> tuple[PlannedCase, ...]:
    """A random order, so that a machine's slow minute does not always fall on the same sizes."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    return tuple(order)


def _measured(case: PlannedCase) -> tuple[PlannedVariant, ...]:
    """Variants that are not declared to be skipped, or to raise an error."""
    return tuple(item for item in case.variants if item.skip is None and item.raises is None)


def jax_variants(case: PlannedCase) -> tuple[str, ...]:
    """Variants that JAX runs and that are not declared to be skipped."""
    return tuple(item.name for item in case.variants if item.mode != NATIVE and item.skip is None)


def cached_variants(case: PlannedCase, settings: Settings) -> tuple[str, ...]:
    """Variants whose caching regimes are measured: of those that jit compiles on call the first, or all.

    The first in the case that stands for its suite; all there where another static argument is one of the regimes,
    since few take it, and all everywhere where the probe was asked for. Not those that donate: a call of theirs leaves
    nothing to call them with again.
    """
    found = tuple(item.name for item in _measured(case) if item.mode == "jit" and not item.donates)
    if "caching" not in settings.probes or not (case.exemplary or settings.caching_everywhere):
        return ()
    return found if settings.caching_everywhere or case.new_static else found[:1]


def traced_variants(case: PlannedCase, settings: Settings) -> tuple[str, ...]:
    """Variants of which a trace is captured: JAX's, in the case that stands for its workload, or everywhere."""
    wanted = "trace" in settings.probes and (case.representative or settings.traces_everywhere)
    return jax_variants(case) if wanted else ()


def called_variants(case: PlannedCase) -> tuple[str, ...]:
    """Variants whose memory is measured during a call: all but `aot`, which runs the program of `jit`."""
    return tuple(item.name for item in _measured(case) if item.mode != "aot")


def regimes(case: PlannedCase) -> tuple[str, ...]:
    """Names of the caching regimes that a case can be put into."""
    new = [name for name, change in (("new_shape", case.new_shape), ("new_static", case.new_static)) if change]
    return ("cold", "cached", "warm", *new)


def peer_variants(case: PlannedCase) -> tuple[str, ...]:
    """Variants of other libraries that are not declared to be skipped."""
    return tuple(item.name for item in case.variants if item.mode == NATIVE and item.skip is None)


@dataclass(frozen=True)
class Estimate:
    """How long a plan takes, in seconds: at least (the fewest launches, quick calls), at most (time limits)."""

    least_s: float
    most_s: float


def estimate(cases: Sequence[PlannedCase], settings: Settings) -> Estimate:
    """From the number of processes and variants; what compiling takes is not known before, and not in it."""
    around = sum(_around_s(case, settings) for case in cases)
    timing = [_timing_s(case, settings) for case in cases]
    most = around + sum(max(seconds, settings.case_limit_s) for seconds in timing if seconds)
    return Estimate(min(around + sum(timing), settings.budget_s), min(most, settings.budget_s))


def _timing_s(case: PlannedCase, settings: Settings) -> float:
    """The fewest timing launches."""
    if "timing" not in settings.probes:
        return 0.0
    own, peers = len(jax_variants(case)), len(peer_variants(case))
    sweeps_s = settings.blocks * settings.block_s + TIMED_VARIANT_S
    return settings.looks[0] * ((1 if own else 0) * PROCESS_S + own * sweeps_s + peers * (PROCESS_S + sweeps_s))


def _around_s(case: PlannedCase, settings: Settings) -> float:
    """All other processes."""
    own, peers = len(jax_variants(case)), len(peer_variants(case))
    seconds = PROCESS_S + (own + peers) * COLD_VARIANT_S
    if traced := traced_variants(case, settings):
        seconds += PROCESS_S + len(traced) * COLD_VARIANT_S
    return seconds + cold_processes(case, settings) * (PROCESS_S + COLD_VARIANT_S)


def cold_processes(case: PlannedCase, settings: Settings) -> int:
    """Processes that look at one variant each, at least."""
    rounds = min(settings.cold_launches, FEWEST_LAUNCHES)
    compiling = len(jax_variants(case)) * rounds if "compilation" in settings.probes else 0
    caching = len(cached_variants(case, settings)) * len(regimes(case)) * rounds
    return compiling + caching + (len(called_variants(case)) if "memory" in settings.probes else 0)
