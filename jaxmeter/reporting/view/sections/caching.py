"""Caching: what a call costs by what the caches hold, and what the persistent cache saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jaxmeter.document import numbers
from jaxmeter.document.model import Cell, Column, Group, Row, Table, Tone
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import FEWEST_PROCESSES, Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import CacheStateCall, CachingDetails, Param, Status
from jaxmeter.harness.record.wording import counted, shorten

from ...compare.ratios import divide_readings
from ..cells import (
    LONGEST_REASON,
    NOTHING,
    CaseSection,
    VariantColumn,
    describe_outcome,
    make_column,
    make_interval_cell,
    make_speedup_cell,
    make_variant_table,
    name_level,
)
from ..runs import label_case, list_notes_of

NOT_PROVEN = "not proven"


@dataclass(frozen=True)
class ShownCacheState:
    """A state of the caches.

    Args:
      name: As the record has it.
      words: What the state is called here.
    """

    name: str
    words: str

    @property
    def metric(self) -> str:
        """What a proven time is called."""
        return f"{self.name}_s"


COLD = ShownCacheState("cold", "cold")
CACHED = ShownCacheState("cached", "filled persistent cache")
WARM = ShownCacheState("warm", "warm")
DEFAULT_THRESHOLD = ShownCacheState("default_threshold", "persistent cache by JAX's own threshold")
NEW_SHAPE = ShownCacheState("new_shape", "new shape")
NEW_STATIC = ShownCacheState("new_static", "new static argument")
CACHE_STATES = (COLD, CACHED, WARM, DEFAULT_THRESHOLD, NEW_SHAPE, NEW_STATIC)

BY_THRESHOLD = (
    "JAX's threshold: the persistent cache was filled with JAX's own settings, which keep programs that "
    "take a second to compile; a shorter one compiles again. "
)

PROBE = METRICS[COLD.metric].probe or ""
SAVING = "cache_saving_s"


def _list_tables(cases: Sequence[Case]) -> Iterator[Table]:
    variants = [variant for case in cases for variant in case.shown if _is_probed(variant)]
    by_threshold = any(variant.case.planned.default_threshold for variant in variants)
    caption = (
        "One call by cache state, each in fresh processes (n). Cold: no cache. Filled cache: the persistent "
        "cache has the program. Warm: the second, equal call. "
        f"{BY_THRESHOLD if by_threshold else ''}New: a call after the first with something else, cache "
        "off. A time has a name only where JAX's own events prove its cache state. Below each mean and ratio: its "
        f"{name_level([variant.case.run for variant in variants])}."
    )
    columns = (
        *(VariantColumn(make_column(state.metric), _write_time(state)) for state in CACHE_STATES),
        VariantColumn(make_column(SAVING), _write_saving),
        VariantColumn(
            Column("Cold / filled", numeric=True), lambda variant: make_speedup_cell(_divide(variant, COLD, CACHED))
        ),
        VariantColumn(Column("New shape / cold", numeric=True), _write_ratio_of_shapes),
        VariantColumn(Column("n", numeric=True), _write_processes),
        VariantColumn(Column("No number, why"), _explain_missing),
    )
    yield make_variant_table(cases, caption, columns, _is_probed, detail=_describe_changes)
    # What was alike in several processes stands once.
    groups = tuple(
        Group(tuple(Row((Cell(variant.planned.name), Cell(line))) for variant, line in lines), label_case(case))
        for case in cases
        if (lines := [(variant, line) for variant in case.shown for line in _list_proofs(variant)])
    )
    yield Table(
        "The proof of each cache state.", (Column("Variant"), Column("What JAX reported")), groups, fold="Proof"
    )


def _list_notes(cases: Sequence[Case]) -> Iterator[str]:
    variants = [variant for case in cases for variant in case.shown if _is_probed(variant)]
    few = sum(any(0 < count < FEWEST_PROCESSES for count in _count_processes(variant)) for variant in variants)
    if few:
        least = f"fewer than {FEWEST_PROCESSES} processes in some cache state"
        yield f"No interval for {counted(few, 'variant')}: {least}."
    if not all(PROBE in variant.settings.everywhere for variant in variants):
        yield (
            "Measured in suites whose answer is about compilation, for the first variant that jit compiles on call, or "
            "for all if a static argument changes. `--probe caching` measures all cases."
        )


def _is_probed(variant: Variant) -> bool:
    return PROBE in variant.outcomes


def _write_time(state: ShownCacheState) -> Callable[[Variant], Cell]:
    """Return what makes the cell of a state's time; by JAX's own threshold, with what its processes read."""

    def make(variant: Variant) -> Cell:
        time = variant.read(state.metric)
        if time.interval is None and state not in _list_tried(variant):
            return NOTHING
        if time.interval is None:
            return Cell(NOT_PROVEN if _list_unproven(variant, state) else "no number", tone=Tone.WARN)
        cell = make_interval_cell(time)
        if state is not DEFAULT_THRESHOLD:
            return cell
        calls = [call for call in _list_calls(variant) if call.cache_state == state.name and call.proven]
        counts = Counter(map(_describe_read, calls)).items()
        parts = [words if count == len(calls) else f"{words} in {count} of {len(calls)}" for words, count in counts]
        return replace(cell, detail=f"{cell.detail} {', '.join(parts)}".strip())

    return make


def _write_saving(variant: Variant) -> Cell:
    """Return what the cache saves; what does not differ from nothing is muted and says so."""
    saving = variant.read(SAVING)
    cell = make_interval_cell(saving)
    low, high = (None, None) if saving.interval is None else (saving.interval.low, saving.interval.high)
    if low is None or high is None or not low <= 0 <= high:
        return cell
    return Cell(cell.text, f"{cell.detail} undecided", Tone.MUTED)


def _divide(variant: Variant, above: ShownCacheState, below: ShownCacheState) -> Interval | None:
    """Return how many times as long a cache state takes as another, which was measured in other processes."""
    return divide_readings(variant.read(above.metric), variant.read(below.metric), variant.settings)


def _write_ratio_of_shapes(variant: Variant) -> Cell:
    """Return a ratio of which neither side is better."""
    return replace(make_speedup_cell(_divide(variant, NEW_SHAPE, COLD)), tone=Tone.PLAIN)


def _count_processes(variant: Variant) -> tuple[int, ...]:
    """Return how many processes each cache state has a time of, fewest first."""
    return tuple(sorted(len(variant.read(state.metric).known) for state in CACHE_STATES))


def _write_processes(variant: Variant) -> Cell:
    counts = [count for count in _count_processes(variant) if count]
    ends = dict.fromkeys(numbers.count(count) for count in (*counts[:1], *counts[-1:]))
    return Cell(" to ".join(ends), tone=Tone.MUTED)


def _explain_missing(variant: Variant) -> Cell:
    """Return why a cache state that was tried has no number, or fewer than others."""
    outcome, tried = variant.outcomes[PROBE], _list_tried(variant)
    # The first of each: processes differ in the nameless time that is reported of them.
    reasons = [describe_call(call) for state in tried for call in _list_unproven(variant, state)[:1]]
    silent = [
        METRICS[state.metric].title
        for state in tried
        if variant.read(state.metric).interval is None and not _list_unproven(variant, state)
    ]
    if outcome.status is not Status.OK:
        reasons.append(describe_outcome(outcome))
    elif silent:
        reasons.append(f"no number recorded: {', '.join(silent)}")
    return Cell("; ".join(shorten(reason, LONGEST_REASON) for reason in reasons), tone=Tone.WARN)


def _list_tried(variant: Variant) -> tuple[ShownCacheState, ...]:
    """Return the cache states that the case can be put into."""
    planned = variant.case.planned
    new = {
        DEFAULT_THRESHOLD: planned.default_threshold,
        NEW_SHAPE: planned.new_shape,
        NEW_STATIC: planned.new_static,
    }
    return tuple(state for state in CACHE_STATES if new.get(state, True))


def _list_unproven(variant: Variant, state: ShownCacheState) -> tuple[CacheStateCall, ...]:
    """Return calls in which the caches were not shown to be in the state that the cache state asks for."""
    return tuple(call for call in _list_calls(variant) if call.cache_state == state.name and not call.proven)


def _list_calls(variant: Variant) -> tuple[CacheStateCall, ...]:
    details = variant.details(CachingDetails)
    return () if details is None else details.calls


def _list_proofs(variant: Variant) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*map(describe_call, _list_calls(variant)), *list_notes_of(variant, PROBE))))


def describe_call(call: CacheStateCall) -> str:
    """Return what proves a cache state, or why its time has no name."""
    words = next((state.words for state in CACHE_STATES if state.name == call.cache_state), call.cache_state)
    seen = (
        f"{call.traces} traced, {call.compiled} compiled, {call.hits} from the persistent cache, "
        f"{call.misses} missing in it"
    )
    if call.proven:
        read = f"{_describe_read(call)}: " if call.cache_state == DEFAULT_THRESHOLD.name else ""
        return f"{words}: {read}{seen}"
    if call.elapsed_s is None:
        return f"{words}: {NOT_PROVEN}, so it was not timed: the two calls do not differ in that"
    return f"{words}: {NOT_PROVEN}, so its {call.elapsed_s:.2g} s have no name: JAX reported {seen}"


def _describe_read(call: CacheStateCall) -> str:
    """Return whether the program was in the cache that another process had filled by JAX's own threshold."""
    return "read" if call.compiled == 0 else "compiled again" if call.hits == 0 else "read in part"


def _describe_changes(case: Case) -> str:
    """Return what is new in the new shape and the new static argument."""
    changes = ((NEW_SHAPE, case.planned.new_shape), (NEW_STATIC, case.planned.new_static))
    return " · ".join(f"{state.words}: {_write_params(changed)}" for state, changed in changes if changed)


def _write_params(changed: Mapping[str, Param]) -> str:
    return shorten(", ".join(f"{name}={value}" for name, value in changed.items()), LONGEST_REASON)


SECTION = CaseSection(
    5, "caching", "Caching", "What does a recompilation cost, and what does the cache save?", _list_tables, _list_notes
)
