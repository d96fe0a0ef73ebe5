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
      probes: Names of the probes that look, in order.
      variants: Names of the variants that they look at.
      round: Which of the processes that look at the same it is, from 0.
      regime: What the caches hold when a call begins, see harness/probes/caching.py; empty for other probes.
      extra: Whether it is left out where time is short or the intervals are narrow already.
    """

    case: str
    process: str
    probes: tuple[str, ...]
    variants: tuple[str, ...]
    round: int = 0
    regime: str = ""
    extra: bool = False


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
                probes=tuple(probe.name for probe in sharing),
                variants=tuple(dict.fromkeys(name for launch in launches for name in launch.variants)),
            )
        yield from launches


def _plan_process(
    process: str, probes: Sequence[Probe], case: PlannedCase, settings: Settings, place: Place
) -> Iterator[Launch]:
    """The launches of the probes that share a kind of process; the first of them says how that is launched."""
    first = probes[0]
    chosen = {
        probe.name: {
            item.name
            for item in probe.choose(case, settings)
            if place.measures or item.mode in ONE_COMPILED  # of others there is nothing without a call
        }
        for probe in probes
    }
    variants = tuple(item for item in case.variants if any(item.name in names for names in chosen.values()))
    for index in range(first.rounds.most(settings)):
        for regime in first.regimes(case):
            for group in first.group(variants, place):
                names = tuple(item.name for item in group)
                yield Launch(
                    case=case.id,
                    process=process,
                    probes=tuple(probe for probe, of_probe in chosen.items() if of_probe.intersection(names)),
                    variants=names,
                    round=index,
                    regime=regime,
                    extra=settings.launches is None and index >= FEWEST_LAUNCHES,
                )
