"""Caching: what a call costs by what the caches hold, and what the persistent cache saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.record import Param, Status, metrics
from harness.record.statistics import FEWEST_LAUNCHES, Interval

from .. import numbers
from ..text import one_of, shorten
from .measured import Case, Place, Variant
from .parts import Cell, Column, Group, Part, Row, Section, Table, Tone
from .words import (
    LONGEST_REASON,
    gain_cell,
    grouped,
    level_of,
    measured_cell,
    name_cell,
    name_of,
    told,
    without_empty,
)

QUESTION = "What does a recompilation cost, and what does the cache save?"
PROBE = "caching"


@dataclass(frozen=True)
class Regime:
    """A state of the caches, and its column."""

    metric: str
    title: str

    @property
    def words(self) -> str:
        """How the probe's notes call it."""
        return metrics.REGIMES[self.metric]


COLD = Regime("cold_s", "Cold")
CACHED = Regime("cached_s", "Filled cache")
NEW_SHAPE = Regime("new_shape_s", "New shape")
REGIMES = (COLD, CACHED, Regime("warm_s", "Warm"), NEW_SHAPE, Regime("new_static_s", "New static"))


def caching(cases: Sequence[Case]) -> Section:
    """The section: a row for every variant that was put into a regime, then what proves each regime."""
    variants = [variant for case in cases for variant in case.variants if _is_probed(variant)]
    if not variants:
        return Section("caching", "Caching", QUESTION, "Empty: no regime of the caches was measured.")
    part = Part(tables=(_times(cases, variants), *_proofs(cases)), notes=_notes(variants))
    return Section("caching", "Caching", QUESTION, _answer(variants), (part,))


def _times(cases: Sequence[Case], variants: Sequence[Variant]) -> Table:
    columns = (
        Column("Variant"),
        *(Column(regime.title, numeric=True) for regime in REGIMES),
        Column("The cache saves", "cold − filled", numeric=True),
        Column("Cold / filled", numeric=True),
        Column("New shape / cold", numeric=True),
        Column("n", numeric=True),
        Column("No number, why"),
    )
    caption = (
        "One call by what the caches hold, each in fresh processes (n). Cold: no cache. Filled cache: the persistent "
        "cache holds the program. Warm: the second, equal call. New: a call after the first with something else, cache "
        "off. A time has a name only where what JAX reported proves its regime. Below each mean and ratio stands its "
        f"{level_of([variant.case.place for variant in variants])}."
    )
    groups = grouped(cases, lambda variant: _row(variant) if _is_probed(variant) else None, _changes)
    return without_empty(Table(caption, columns, groups), kept=len(REGIMES[:3]) + 1)


def _proofs(cases: Sequence[Case]) -> tuple[Table, ...]:
    """What was noted of each regime, to unfold."""
    groups = tuple(
        Group(tuple(Row((Cell(variant.planned.name), Cell(note))) for variant, note in noted), case.label)
        for case in cases
        if (noted := [(variant, note) for variant in case.variants for note in variant.notes_of(PROBE)])
    )
    columns = (Column("Variant"), Column("What JAX reported"))
    return (Table("The proof of each regime.", columns, groups, fold="Proof"),) if groups else ()


def _is_probed(variant: Variant) -> bool:
    return PROBE in variant.outcomes


def _row(variant: Variant) -> Row:
    counts = [count for count in _counts(variant) if count]
    cells = (
        name_cell(variant),
        *(_time(variant, regime) for regime in REGIMES),
        _saving(variant),
        gain_cell(variant.cold_ratio(COLD.metric, CACHED.metric, PROBE)),
        _ratio(variant.cold_ratio(NEW_SHAPE.metric, COLD.metric, PROBE)),
        Cell(
            " to ".join(dict.fromkeys(numbers.count(count) for count in (*counts[:1], *counts[-1:]))), tone=Tone.MUTED
        ),
        _missing(variant),
    )
    return Row(cells)


def _counts(variant: Variant) -> tuple[int, ...]:
    """How many processes each regime has a time of, fewest first."""
    return tuple(sorted(len(variant.cold_times(regime.metric, PROBE)) for regime in REGIMES))


def _tried(variant: Variant) -> tuple[Regime, ...]:
    """The regimes that the case can be put into."""
    planned = variant.case.planned
    new = {"new_shape_s": planned.new_shape, "new_static_s": planned.new_static}
    return tuple(regime for regime in REGIMES if regime.metric not in new or new[regime.metric])


def _time(variant: Variant, regime: Regime) -> Cell:
    time = variant.cold_time(regime.metric, PROBE)
    if time is not None:
        return measured_cell(time)
    if regime not in _tried(variant):
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    return Cell(metrics.NOT_PROVEN, tone=Tone.WARN) if _unproven(variant, regime) else Cell("no number", tone=Tone.WARN)


def _saving(variant: Variant) -> Cell:
    cold, cached = (variant.cold_time(regime.metric, PROBE) for regime in (COLD, CACHED))
    return Cell(numbers.difference(None if cold is None or cached is None else cold.estimate - cached.estimate))


def _ratio(interval: Interval | None) -> Cell:
    """A ratio of which neither side is the better."""
    cell = gain_cell(interval)
    return Cell(cell.text, cell.detail)


def _missing(variant: Variant) -> Cell:
    """Why a regime that was tried has no number, or fewer than others."""
    outcome, tried = variant.outcomes[PROBE], _tried(variant)
    # One of each: processes differ in the nameless time that their notes tell.
    reasons = [note for regime in tried for note in _unproven(variant, regime)[:1]]
    if outcome.status is not Status.OK:
        reasons.append(told(outcome))
    elif silent := [regime.title.lower() for regime in tried if _is_silent(variant, regime)]:
        reasons.append(f"no number recorded: {', '.join(silent)}")
    return Cell("; ".join(shorten(reason, LONGEST_REASON) for reason in reasons), tone=Tone.WARN)


def _is_silent(variant: Variant, regime: Regime) -> bool:
    return variant.cold_time(regime.metric, PROBE) is None and not _unproven(variant, regime)


def _unproven(variant: Variant, regime: Regime) -> tuple[str, ...]:
    """What the probe noted where the caches were not in the state that the regime asks for."""
    return tuple(note for note in variant.notes_of(PROBE) if note.startswith(f"{regime.words}: {metrics.NOT_PROVEN}"))


def _changes(case: Case) -> str:
    """What is new in the new shape and the new static argument."""
    planned = case.planned
    parts = [
        f"{name}: {_params(changed)}"
        for name, changed in (("new shape", planned.new_shape), ("new static argument", planned.new_static))
        if changed
    ]
    return " · ".join(parts)


def _params(changed: Mapping[str, Param]) -> str:
    return shorten(", ".join(f"{name}={value}" for name, value in changed.items()), LONGEST_REASON)


def _answer(variants: Sequence[Variant]) -> str:
    savings = [
        (cold.estimate - cached.estimate, variant)
        for variant in variants
        if (cold := variant.cold_time(COLD.metric, PROBE)) and (cached := variant.cold_time(CACHED.metric, PROBE))
        if variant.status is Status.OK and (ratio := variant.cold_ratio(COLD.metric, CACHED.metric, PROBE))
        if ratio.low is None or ratio.low > 1
    ]
    if not savings:
        return f"Of {one_of(len(variants), 'variant')}, none shows a saving by a filled persistent cache."
    most, variant = max(savings, key=lambda pair: pair[0])
    gain = gain_cell(variant.cold_ratio(COLD.metric, CACHED.metric, PROBE))
    bounds = f" {gain.detail}" if gain.detail else ""
    return (
        f"A filled persistent cache saves a fresh process up to {numbers.difference(most)} of its first call, "
        f"{gain.text}{bounds}: {name_of(variant)}."
    )


def _notes(variants: Sequence[Variant]) -> tuple[str, ...]:
    notes = []
    few = [variant for variant in variants if any(0 < count < FEWEST_LAUNCHES for count in _counts(variant))]
    if few:
        notes.append(
            f"No interval for {one_of(len(few), 'variant')}: fewer than {FEWEST_LAUNCHES} processes in some regime."
        )
    places: list[Place] = [variant.case.place for variant in variants]
    if not all(place.run.manifest.settings.caching_everywhere for place in places):
        notes.append(
            "Measured in one case of each suite, for the first variant that jit compiles on "
            "call, or for all where a static argument changes; everywhere where the run was asked for it."
        )
    return tuple(notes)
