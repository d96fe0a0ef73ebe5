"""Caching: what a call costs by what the caches hold, and what the persistent cache saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, Interval, differs
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import CacheStateCall, CachingDetails, Param, Status

from ... import numbers
from ...compare.ratios import divide_readings
from ...text import counted, shorten
from ...write import write_interval
from ..cases import label_case, list_notes_of
from ..cells import (
    drop_empty_columns,
    group_rows,
    make_column,
    make_interval_cell,
    make_name_cell,
    make_speedup_cell,
    name_level,
)
from ..headlines import count_sides
from ..names import name_variant
from ..page_model import Cell, Column, Group, Part, Row, Section, Table
from ..reasons import LONGEST_REASON, describe_outcome
from ..tone import Tone

QUESTION = "What does a recompilation cost, and what does the cache save?"
NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class CacheState:
    """A state of the caches.

    Args:
      name: As the record has it.
      metric: What a proven time is called.
      words: What the state is called here.
    """

    name: str
    metric: str
    words: str


COLD = CacheState("cold", "cold_s", "cold")
CACHED = CacheState("cached", "cached_s", "filled persistent cache")
WARM = CacheState("warm", "warm_s", "warm")
DEFAULT_THRESHOLD = CacheState("default_threshold", "default_threshold_s", "persistent cache by JAX's own threshold")
NEW_SHAPE = CacheState("new_shape", "new_shape_s", "new shape")
NEW_STATIC = CacheState("new_static", "new_static_s", "new static argument")
CACHE_STATES = (COLD, CACHED, WARM, DEFAULT_THRESHOLD, NEW_SHAPE, NEW_STATIC)
ALWAYS_SHOWN = (COLD, CACHED, WARM)

BY_THRESHOLD = (
    "JAX's threshold: the persistent cache was filled with JAX's own settings, which keep programs that "
    "take a second to compile; a shorter one compiles again. "
)

PROBE = METRICS[COLD.metric].probe or ""
SAVING = "cache_saving_s"


def make_caching_section(cases: Sequence[Case]) -> Section:
    """The section: a row for every variant that was put into a cache state, then what proves each cache state."""
    variants = _find_probed(cases)
    if not variants:
        return Section("caching", "Caching", QUESTION, describe_caching(cases))
    part = Part(tables=(_times(cases, variants), *_proofs(cases)), notes=_notes(variants))
    return Section("caching", "Caching", QUESTION, describe_caching(cases), (part,))


def describe_call(call: CacheStateCall) -> str:
    """What proves a cache state, or why its time has no name."""
    words = next(
        (cache_state.words for cache_state in CACHE_STATES if cache_state.name == call.cache_state), call.cache_state
    )
    seen = (
        f"{call.traces} traced, {call.compiled} compiled, {call.hits} from the persistent cache, "
        f"{call.misses} missing in it"
    )
    if call.proven:
        found = f"{_tell_found(call)}: " if call.cache_state == DEFAULT_THRESHOLD.name else ""
        return f"{words}: {found}{seen}"
    if call.elapsed_s is None:
        return f"{words}: {NOT_PROVEN}, so it was not timed: the two calls do not differ in that"
    return f"{words}: {NOT_PROVEN}, so its {call.elapsed_s:.2g} s have no name: JAX reported {seen}"


def _tell_found(call: CacheStateCall) -> str:
    """Whether the program was in the cache that another process had filled by JAX's own threshold."""
    return "read" if call.compiled == 0 else "compiled again" if call.hits == 0 else "read in part"


def _times(cases: Sequence[Case], variants: Sequence[Variant]) -> Table:
    columns = (
        Column("Variant"),
        *(make_column(cache_state.metric) for cache_state in CACHE_STATES),
        make_column(SAVING),
        Column("Cold / filled", numeric=True),
        Column("New shape / cold", numeric=True),
        Column("n", numeric=True),
        Column("No number, why"),
    )
    by_threshold = any(variant.case.planned.default_threshold for variant in variants)
    caption = (
        "One call by cache state, each in fresh processes (n). Cold: no cache. Filled cache: the persistent "
        "cache has the program. Warm: the second, equal call. "
        f"{BY_THRESHOLD if by_threshold else ''}New: a call after the first with something else, cache "
        "off. A time has a name only where JAX's own events prove its cache state. Below each mean and ratio: its "
        f"{name_level([variant.case.run for variant in variants])}."
    )
    groups = group_rows(cases, lambda variant: _row(variant) if _is_probed(variant) else None, _changes)
    return drop_empty_columns(Table(caption, columns, groups), kept=len(ALWAYS_SHOWN) + 1)


def _proofs(cases: Sequence[Case]) -> tuple[Table, ...]:
    """What was seen in each cache state, to unfold; what was alike in several processes stands once."""
    groups = tuple(
        Group(tuple(Row((Cell(variant.planned.name), Cell(line))) for variant, line in lines), label_case(case))
        for case in cases
        if (lines := [(variant, line) for variant in case.shown for line in _list_proofs(variant)])
    )
    columns = (Column("Variant"), Column("What JAX reported"))
    return (Table("The proof of each cache state.", columns, groups, fold="Proof"),) if groups else ()


def _list_proofs(variant: Variant) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*map(describe_call, _list_calls(variant)), *list_notes_of(variant, PROBE))))


def _list_calls(variant: Variant) -> tuple[CacheStateCall, ...]:
    details = variant.details(CachingDetails)
    return () if details is None else details.calls


def _find_probed(cases: Sequence[Case]) -> list[Variant]:
    return [variant for case in cases for variant in case.shown if _is_probed(variant)]


def _is_probed(variant: Variant) -> bool:
    return PROBE in variant.outcomes


def _row(variant: Variant) -> Row:
    counts = [count for count in _count_processes(variant) if count]
    cells = (
        make_name_cell(variant),
        *(_time(variant, cache_state) for cache_state in CACHE_STATES),
        _saving(variant.read(SAVING)),
        make_speedup_cell(_divide(variant, COLD, CACHED)),
        _ratio(_divide(variant, NEW_SHAPE, COLD)),
        Cell(
            " to ".join(dict.fromkeys(numbers.count(count) for count in (*counts[:1], *counts[-1:]))), tone=Tone.MUTED
        ),
        _missing(variant),
    )
    return Row(cells)


def _divide(variant: Variant, above: CacheState, below: CacheState) -> Interval | None:
    """How many times as long the one cache state takes as the other, which was measured in other processes."""
    return divide_readings(variant.read(above.metric), variant.read(below.metric), variant.settings)


def _count_processes(variant: Variant) -> tuple[int, ...]:
    """How many processes each cache state has a time of, fewest first."""
    return tuple(sorted(len(variant.read(cache_state.metric).known) for cache_state in CACHE_STATES))


def _list_tried(variant: Variant) -> tuple[CacheState, ...]:
    """The cache states that the case can be put into."""
    planned = variant.case.planned
    new = {
        DEFAULT_THRESHOLD: planned.default_threshold,
        NEW_SHAPE: planned.new_shape,
        NEW_STATIC: planned.new_static,
    }
    return tuple(cache_state for cache_state in CACHE_STATES if cache_state not in new or new[cache_state])


def _time(variant: Variant, cache_state: CacheState) -> Cell:
    time = variant.read(cache_state.metric)
    if time.interval is not None:
        cell = make_interval_cell(time)
        return _add_found(cell, variant) if cache_state is DEFAULT_THRESHOLD else cell
    if cache_state not in _list_tried(variant):
        return Cell(numbers.MISSING, tone=Tone.MUTED)
    return Cell(NOT_PROVEN if _list_unproven(variant, cache_state) else "no number", tone=Tone.WARN)


def _add_found(cell: Cell, variant: Variant) -> Cell:
    """The cell of JAX's own threshold with what its processes found: `compiled again`, `read in 2 of 3`."""
    calls = [call for call in _list_calls(variant) if call.cache_state == DEFAULT_THRESHOLD.name and call.proven]
    found = Counter(map(_tell_found, calls))
    told = [words if count == len(calls) else f"{words} in {count} of {len(calls)}" for words, count in found.items()]
    return replace(cell, detail=f"{cell.detail} {', '.join(told)}".strip())


def _ratio(interval: Interval | None) -> Cell:
    """A ratio of which neither side is the better."""
    cell = make_speedup_cell(interval)
    return Cell(cell.text, cell.detail)


def _saving(saving: Reading) -> Cell:
    """What the cache saves; what is not told apart from nothing is muted and says so."""
    cell = make_interval_cell(saving)
    low, high = (None, None) if saving.interval is None else (saving.interval.low, saving.interval.high)
    if low is None or high is None or not low <= 0 <= high:
        return cell
    return Cell(cell.text, f"{cell.detail} undecided", Tone.MUTED)


def _missing(variant: Variant) -> Cell:
    """Why a cache state that was tried has no number, or fewer than others."""
    outcome, tried = variant.outcomes[PROBE], _list_tried(variant)
    # One of each: processes differ in the nameless time that is told of them.
    reasons = [describe_call(call) for cache_state in tried for call in _list_unproven(variant, cache_state)[:1]]
    if outcome.status is not Status.OK:
        reasons.append(describe_outcome(outcome))
    elif silent := [METRICS[cache_state.metric].title for cache_state in tried if _is_silent(variant, cache_state)]:
        reasons.append(f"no number recorded: {', '.join(silent)}")
    return Cell("; ".join(shorten(reason, LONGEST_REASON) for reason in reasons), tone=Tone.WARN)


def _is_silent(variant: Variant, cache_state: CacheState) -> bool:
    return variant.read(cache_state.metric).interval is None and not _list_unproven(variant, cache_state)


def _list_unproven(variant: Variant, cache_state: CacheState) -> tuple[CacheStateCall, ...]:
    """Calls in which the caches were not shown to be in the state that the cache state asks for."""
    return tuple(call for call in _list_calls(variant) if call.cache_state == cache_state.name and not call.proven)


def _changes(case: Case) -> str:
    """What is new in the new shape and the new static argument."""
    planned = case.planned
    parts = [
        f"{cache_state.words}: {_params(changed)}"
        for cache_state, changed in ((NEW_SHAPE, planned.new_shape), (NEW_STATIC, planned.new_static))
        if changed
    ]
    return " · ".join(parts)


def _params(changed: Mapping[str, Param]) -> str:
    return shorten(", ".join(f"{name}={value}" for name, value in changed.items()), LONGEST_REASON)


def describe_caching(cases: Sequence[Case]) -> str:
    """The surest saving by a filled persistent cache among all."""
    variants = _find_probed(cases)
    if not variants:
        return "Caching was not measured."
    well = [variant for variant in variants if variant.status is Status.OK]
    ratios = [(ratio, variant) for variant in well if (ratio := _divide(variant, COLD, CACHED)) is not None]
    savings = [
        (saving, ratio, variant)
        for ratio, variant in ratios
        if differs(ratio) and (saving := variant.read(SAVING).interval) and saving.low is not None and saving.low > 0
    ]
    if not savings:
        sides = f": {count_sides(ratio for ratio, _ in ratios)}" if ratios else ""
        return f"Of {counted(len(variants), 'variant')}, none shows a saving by a filled persistent cache{sides}."
    saving, ratio, variant = max(savings, key=lambda one: one[0].low or 0.0)
    saves = " ".join(write_interval(METRICS[SAVING], saving))
    speedup = " ".join(numbers.speedup_with_bounds(ratio))
    return (
        f"A filled persistent cache saves a fresh process up to {saves} of its first call, {speedup}: "
        f"{name_variant(variant)}."
    )


def _notes(variants: Sequence[Variant]) -> tuple[str, ...]:
    notes = []
    few = [variant for variant in variants if any(0 < count < FEWEST_PROCESSES for count in _count_processes(variant))]
    if few:
        notes.append(
            f"No interval for {counted(len(few), 'variant')}: fewer than {FEWEST_PROCESSES} processes in some cache "
            f"state."
        )
    if not all(PROBE in variant.settings.everywhere for variant in variants):
        notes.append(
            "Measured in suites whose answer is about compilation, for the first variant that jit compiles on call, or "
            "for all if a static argument changes. `--probe caching` measures all cases."
        )
    return tuple(notes)
