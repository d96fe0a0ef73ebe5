"""The list of a run's processes, and their order. Measuring, estimating, rehearsing and resuming all use it.

The processes are in rounds over all cases: the first process of every case, then the second. Consecutive processes of
one case would share the machine's state of that minute, and only seem precise.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from jaxmeter.harness.declare.implementation import ONE_COMPILED
from jaxmeter.harness.machine.platforms import PLATFORMS, Platform
from jaxmeter.harness.plan.probes import CHECK, PROBES, Probe
from jaxmeter.harness.plan.selection import shuffle
from jaxmeter.harness.record import NATIVE, PlannedCase, Settings

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
    checks = [one for one in processes if one.kind == CHECK and not peers.issuperset(one.variants)]
    return [msgspec.structs.replace(one, round=index, refills=True) for one in checks]
