"""The list of launches of a run, and their order. Measuring, estimating, rehearsing and resuming all go by it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from harness.machine.places import PLACES, Place
from harness.plan.probes import CHECK, ONE_COMPILED, PROBES, Probe
from harness.plan.selection import shuffle
from harness.record import PlannedCase, Settings
from harness.record.statistics import FEWEST_LAUNCHES

SHAPES = "shapes"
"""The process before the check: what cannot fit by its shapes alone. What a trace keeps of a suite ends with it."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One fresh process that looks at some variants of a case.

    Args:
      case: The case's id.
      process: Its kind: SHAPES, or the `process` of its probes.
      looks: Which probe looks at which variants, in order.
      round: Which of the processes that look at the same it is, from 0.
      regime: What the caches hold when a call begins, see harness/probes/caching.py; empty for other probes.
      extra: Whether it is left out where time is short or the intervals are narrow already.
    """

    case: str
    process: str
    looks: dict[str, tuple[str, ...]]
    round: int = 0
    regime: str = ""
    extra: bool = False

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes that look, in order."""
        return tuple(self.looks)

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that some of them look at, in the order of the case."""
        return tuple(dict.fromkeys(name for names in self.looks.values() for name in names))

    def limit_to(self, variants: Collection[str]) -> Launch:
        """The same launch without other variants."""
        looks = {probe: tuple(name for name in names if name in variants) for probe, names in self.looks.items()}
        return msgspec.structs.replace(self, looks={probe: names for probe, names in looks.items() if names})


def plan_launches(
    cases: Sequence[PlannedCase],
    settings: Settings,
    *,
    done: Collection[str] = (),
    places: Mapping[str, Place] = PLACES,
) -> tuple[Launch, ...]:
    """Every launch of a run, in order: case after case, the cases shuffled.

    Args:
      done: Ids of the cases that have their record, of a run that is resumed.
      places: By name, where cases may run.
    """
    left = [case for case in shuffle(cases, settings.seed) if case.id not in done]
    return tuple(launch for case in left for launch in plan_launches_of(case, settings, places[case.where]))


def plan_launches_of(case: PlannedCase, settings: Settings, place: Place) -> Iterator[Launch]:
    """The launches of one case, in order: what cannot fit, the check, then each other process in its rounds."""
    probes = [PROBES[name] for name in settings.probes if place.measures or not PROBES[name].calls]
    for process in dict.fromkeys(probe.process for probe in probes):
        sharing = [probe for probe in probes if probe.process == process]
        launches = list(_plan_process(process, sharing, case, settings, place))
        if process == CHECK and place.measures and launches:
            yield Launch(
                case=case.id,
                process=SHAPES,
                looks={
                    probe.name: tuple(name for launch in launches for name in launch.looks.get(probe.name, ()))
                    for probe in sharing
                },
            )
        yield from launches


def _plan_process(
    process: str, probes: Sequence[Probe], case: PlannedCase, settings: Settings, place: Place
) -> Iterator[Launch]:
    """The launches of the probes that share a kind of process, whose rows agree on how it is launched."""
    how = probes[0]
    chosen = {probe.name: _choose(probe, case, settings, place) for probe in probes}
    variants = tuple(item for item in case.variants if any(item.name in names for names in chosen.values()))
    for index in range(how.rounds.most(settings)):
        for regime in how.regimes(case):
            for group in how.group(variants, place):
                looks = {
                    probe: tuple(item.name for item in group if item.name in names) for probe, names in chosen.items()
                }
                yield Launch(
                    case=case.id,
                    process=process,
                    looks={probe: names for probe, names in looks.items() if names},
                    round=index,
                    regime=regime,
                    extra=settings.launches is None and index >= FEWEST_LAUNCHES,
                )


def _choose(probe: Probe, case: PlannedCase, settings: Settings, place: Place) -> frozenset[str]:
    """Names of the variants that a probe looks at; where nothing is called, of those with a program of their own."""
    return frozenset(item.name for item in probe.choose(case, settings) if place.measures or item.mode in ONE_COMPILED)
