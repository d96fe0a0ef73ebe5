"""Marks of readings, and points: what variants take, what jit is worth, shares, and rates below limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.derived import (
    compare_paired,
    doubt_ratio,
    find_eager,
    find_peak_flops,
    find_product_format,
)
from jaxmeter.harness.metrics.metric import Reading, Unit
from jaxmeter.harness.metrics.reading import Case, Variant
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.metrics.write import LONGEST_UNIT, write_reading
from jaxmeter.harness.record.wording import counted, shorten

from ..cells import find_doubts, name_traps
from ..page_model import Axis, Dot, Estimate, Limit, Mark, PointRow, Points, Roof, Roofline, describe_rows
from ..runs import LONGEST_TERM, find_hue, fragment_of

TIME = "execution_s"
PLANNED, CALLED, SHARE = "planned_peak_bytes", "measured_peak_bytes", "capacity_share"

WIDE = 3.0
"""Times that differ by more than this factor stand on a logarithmic axis."""

MOST_PROCESSES = 30
"""Processes that are drawn one by one."""


def make_estimate(variant: Variant, reading: Reading, *, with_dots: bool = False) -> Estimate | None:
    """Return a reading as an estimate; None where there is no number that an axis could show."""
    interval = reading.interval
    if interval is None or numbers.usable(interval.estimate) is None or interval.estimate < 0:
        return None
    low, high = numbers.positive_bounds(interval) or (None, None)
    dots = tuple(value for value in reading.known[:MOST_PROCESSES] if numbers.usable(value) is not None and value > 0)
    doubtful = bool(find_doubts(variant, reading))
    return Estimate(interval.estimate, low, high, doubtful, dots if with_dots else ())


def make_mark(
    variant: Variant, metric: str = TIME, *, name: str = "", with_dots: bool = False, is_reference: bool = False
) -> Mark | None:
    """Return the mark of a metric; None where the variant has no number of it.

    Args:
      name: What the mark says that it is of; by default the variant.
    """
    reading = variant.read(metric)
    estimate = make_estimate(variant, reading, with_dots=with_dots)
    if estimate is None:
        return None
    says = f"{name or shorten(variant.name, LONGEST_TERM)}: {write_number(reading)}"
    doubts = ", ".join(find_doubts(variant, reading))
    return Mark(
        estimate,
        find_hue(variant.case.run),
        f"{says}, {doubts}" if doubts else says,
        variant.name,
        is_reference,
        fragment_of(variant.case),
    )


def write_number(reading: Reading) -> str:
    """Return a number with its interval: `5.69 ms [5.42, 5.98]`."""
    return " ".join(text for text in write_reading(reading) if text not in ("", numbers.MISSING)) or numbers.MISSING


def name_case(case: Case, longest: int = LONGEST_TERM) -> str:
    """Return a case in short, as a figure's label: `mlp step, batch 32`."""
    values = (f"{_name_param(name)} {_write_param(value)}" for name, value in case.planned.params.items())
    return shorten(", ".join((case.planned.workload.replace("_", " "), *values)), longest)


def name_apart(case: Case, among: Sequence[Case]) -> str:
    """Return what tells a case from others: the workload where they have several, and params that differ."""
    workloads = {other.planned.workload for other in among}
    alike = [other.planned.params for other in among if other.planned.workload == case.planned.workload]
    differing = [
        name for name, value in case.planned.params.items() if any(params.get(name) != value for params in alike)
    ]
    values = (f"{_name_param(name)} {_write_param(case.planned.params[name])}" for name in differing)
    workload = [case.planned.workload.replace("_", " ")] if len(workloads) > 1 or not differing else []
    return shorten(", ".join((*workload, *values)), LONGEST_TERM)


def name_among(case: Case, newest: Sequence[Case], longest: int) -> str:
    """Return the workload, with the params that distinguish it from the other cases of the page: `selu, n 10 000`.

    Args:
      newest: The cases of the page.
      longest: Letters that a label has room for; with more the params are left out.
    """
    workload = name_workload(case)
    params = name_apart(case, [other for other in newest if other.planned.workload == case.planned.workload])
    name = workload if params == workload else f"{workload}, {params}"
    return name if len(name) <= longest else workload


def name_workload(case: Case) -> str:
    """Return a case by its workload alone, where one case stands for it: `mlp step`."""
    return shorten(case.planned.workload.replace("_", " "), LONGEST_TERM)


def name_variant(variant: Variant, case: Case | None = None) -> str:
    """Return a variant in short: the implementation, with its mode where others of it are shown too.

    Args:
      case: The case that it is shown with, by default its own.
    """
    shown = (case or variant.case).shown
    several = sum(other.planned.implementation == variant.planned.implementation for other in shown) > 1
    name = variant.planned.implementation.replace("_", " ")
    return f"{name}, {variant.planned.mode}" if several else name


def _name_param(name: str) -> str:
    return name.replace("_", " ")


def _write_param(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).replace("_", " ")
    return numbers.short_count(value) if numbers.usable(value) is not None else str(value)


MOST_ROWS = 14
"""Of a case's figure; the table below it has all."""

LONGEST_ROW = 30
"""Letters of the name of a row of the card about jit."""

MOST_JIT_ROWS = 7
"""Of the card about jit: the largest and the smallest speedups."""

MOST_SHARES, LONGEST_SHARE = 6, 18
"""Rows of the card about memory, and letters of their names."""

INTENSITY, RATE = "operational_intensity", "achieved_flops"

MEASURED_AT = re.compile(r" at \d{4}-.*")
"""When and how a peak was measured, which the view of the environment has."""

MOST_DOTS = 300
"""More lie on each other, and take 300 B each."""

MOST_ROOFS = 2
"""Formats with the most cases; a page of five roofs is read by nobody."""


def compare_variants(
    cases: Sequence[Case], metric: str = TIME, *, with_dots: bool = False, is_small: bool = False
) -> Points | None:
    """Return a row for each variant on each device; None where nothing has a number.

    Args:
      cases: One case on each device that ran it.
      with_dots: Whether each process is drawn.
      is_small: Whether numbers stand without their intervals, which the marks show.
    """
    rows = []
    are_alike = len({case.planned.name for case in cases}) == 1
    for case in cases:
        for variant in case.shown:
            name = name_variant(variant) if are_alike else f"{name_variant(variant)}, {name_apart(case, cases)}"
            mark = make_mark(variant, metric, name=name, with_dots=with_dots)
            if mark is not None:
                note = _write_short(variant.read(metric)) if is_small else write_number(variant.read(metric))
                rows.append(PointRow(name, (mark,), note, is_context=variant.is_peer))
    if not rows:
        return None
    shown = rows[:MOST_ROWS]
    items = cases[0].planned.items_unit if METRICS[metric].unit is Unit.ITEMS_PER_SECOND else ""
    axis = choose_axis(metric, [mark.estimate.value for row in shown for mark in row.marks], items)
    dots = "; dots: processes" if with_dots else ""
    said = describe_rows(row.marks[0].says for row in shown)
    alt = f"{METRICS[metric].title} of {counted(len(shown), 'variant')}: {said}"
    return Points(alt, Axis(f"{axis.title}{dots}", axis.unit, axis.is_log), tuple(shown))


def compare_suite(cases: Sequence[Case]) -> Points | None:
    """Return a row for each implementation of a suite's cases: by jit, else by its fastest mode, and eager code.

    Of many the first are shown. Eager code is the reference.
    """
    rows = [row for case in cases for row in _list_implementations(case, name_apart(case, cases))][:MOST_ROWS]
    if not rows:
        return None
    axis = choose_axis(TIME, [mark.estimate.value for row in rows for mark in row.marks])
    has_eager = any(mark.is_reference for row in rows for mark in row.marks)
    alt = describe_rows(f"{row.label}: {row.note}" for row in rows)
    return Points(alt, axis, tuple(rows), mark_names=("compiled", "eager") if has_eager else ("", ""))


def _list_implementations(case: Case, name: str) -> Iterator[PointRow]:
    """Yield a row for each implementation that was timed."""
    by_name: dict[str, list[Variant]] = {}
    for variant in case.shown:
        if variant.read(TIME).has_number:
            by_name.setdefault(variant.planned.implementation, []).append(variant)
    for implementation, variants in by_name.items():
        # By jit, as elsewhere on the page; the times of the same program ahead of time differ by chance.
        chosen = min(variants, key=lambda variant: (variant.planned.mode != "jit", variant.read(TIME).estimate or 0.0))
        eager = next((other for other in variants if other.planned.mode == "eager" and other is not chosen), None)
        short = implementation.replace("_", " ")
        label = name if name.startswith(short) else f"{short}, {name}"
        marks = (
            None if eager is None else make_mark(eager, name=f"{label}, eager", is_reference=True),
            make_mark(chosen, name=f"{label}, {chosen.planned.mode}"),
        )
        shown = tuple(mark for mark in marks if mark is not None)
        if shown:
            yield PointRow(label, shown, write_number(chosen.read(TIME)), is_context=chosen.is_peer)


def choose_axis(metric: str, values: Sequence[float], items: str = "") -> Axis:
    """Return the axis of a metric: logarithmic where numbers differ much, unless they are shares.

    Args:
      items: Of a throughput, what is counted.
    """
    entry = METRICS[metric]
    title = f"{shorten(items, LONGEST_TERM)} per second" if items else entry.title
    known = [value for value in values if value > 0]
    is_wide = bool(known) and max(known) > WIDE * min(known) and len(known) == len(values)
    is_log = is_wide and entry.unit is not Unit.SHARE
    return Axis(f"{title}, log" if is_log else title, Unit.COUNT if items else entry.unit, is_log)


def _write_short(reading: Reading) -> str:
    """Return a number without its interval; of a throughput without what is counted, which the axis names."""
    text = write_reading(reading)[0]
    is_rate = reading.metric.unit is Unit.ITEMS_PER_SECOND
    return text.removesuffix(shorten(reading.metric.unit_text, LONGEST_UNIT)).rstrip() if is_rate else text


def compare_jit(cases: Iterable[Case], newest: Sequence[Case]) -> Points | None:
    """Return what jit is worth: a row for each case that was timed by eager code too; None without any.

    Of many cases those with the smallest and the largest speedups are shown.

    Args:
      newest: The cases of the page.
    """
    pairs = [pair for case in cases if (pair := _choose_pair(case)) is not None]
    if not pairs:
        return None
    ordered = sorted(pairs, key=lambda pair: pair[2].estimate)
    half = MOST_JIT_ROWS // 2
    shown = ordered if len(ordered) <= MOST_JIT_ROWS else [*ordered[:half], *ordered[half - MOST_JIT_ROWS :]]
    rows = [_make_jit_row(*pair, newest) for pair in shown]
    times = [mark.estimate.value for row in rows for mark in row.marks]
    alt = describe_rows(f"{row.label}: {row.note} as fast with jit" for row in rows)
    return Points(alt, choose_axis(TIME, times), tuple(rows), note_title="speedup", mark_names=("jit", "eager"))


def list_jit_speedups(cases: Iterable[Case]) -> list[tuple[Interval, Case, bool]]:
    """Return the speedup of jit over eager code that stands for each case, and whether either of the two has a trap."""
    pairs = ((case, _choose_pair(case)) for case in cases)
    return [(pair[2], case, any(map(name_traps, pair[:2]))) for case, pair in pairs if pair is not None]


def _choose_pair(case: Case) -> tuple[Variant, Variant, Interval] | None:
    """Return jit, eager and the speedup of the case's first implementation that was timed both ways."""
    for variant in case.shown:
        eager = find_eager(variant)
        if variant.planned.mode != "jit" or eager is None or doubt_ratio(variant, eager):
            continue
        eager_variant = case.find(eager.planned.name)
        speedup = compare_paired(variant, eager)
        if speedup is not None and eager_variant is not None:
            return variant, eager_variant, speedup
    return None


def _make_jit_row(jit: Variant, eager: Variant, speedup: Interval, newest: Sequence[Case]) -> PointRow:
    name = name_case(jit.case)
    marks = (
        make_mark(eager, name=f"{name}, eager", is_reference=True),
        make_mark(jit, name=f"{name}, jit"),
    )
    note = " ".join(part for part in numbers.speedup_with_bounds(speedup) if part != numbers.MISSING)
    return PointRow(name_among(jit.case, newest, LONGEST_ROW), tuple(mark for mark in marks if mark is not None), note)


def draw_shares(cases: Sequence[Case]) -> Points | None:
    """Return the largest plans as shares of their devices' memory, the largest of each workload; None without any."""
    rows = []
    for case in _choose_largest(cases):
        known = [variant for variant in case.shown if variant.read(SHARE).estimate]
        if known:
            largest = max(known, key=lambda variant: variant.read(SHARE).estimate or 0.0)
            mark = make_mark(largest, SHARE, name=name_case(case))
            if mark is not None:
                note = numbers.memory(largest.read(PLANNED).estimate)
                label = name_among(case, cases, LONGEST_SHARE)
                rows.append((largest.read(SHARE).estimate or 0.0, PointRow(label, (mark,), note)))
    rows.sort(key=lambda pair: -pair[0])
    shown = tuple(row for _, row in rows[:MOST_SHARES])
    if not shown:
        return None
    alt = "Planned peak memory as a share of the device's. " + describe_rows(row.marks[0].says for row in shown)
    axis = Axis("share of the memory, log", Unit.SHARE, is_log=True)
    return Points(alt, axis, shown, note_title="planned", limit=Limit(1.0, "full"))


def _choose_largest(cases: Iterable[Case]) -> Iterable[Case]:
    """Return the case with the largest plan of each workload on each machine."""
    largest: dict[tuple[str, str, str], Case] = {}
    for case in cases:
        key = case.run.manifest.machine, case.run.where, case.planned.workload
        if key not in largest or _find_largest_plan(case) > _find_largest_plan(largest[key]):
            largest[key] = case
    return largest.values()


def _find_largest_plan(case: Case) -> float:
    return max((variant.read(SHARE).estimate or 0.0 for variant in case.shown), default=0.0)


def draw_roofline(cases: Sequence[Case]) -> Roofline | None:
    """Return the figure of a device; None where no case has a cost, or no peak is known.

    Cases that compute in a format without a known peak, such as integers, are left out: no roof is theirs.

    Args:
      cases: Of one machine, each once.
    """
    fastest = [variant for case in cases if (variant := _choose_fastest(case)) is not None and _may_have_roof(variant)]
    drawn = [(variant, dot) for variant in fastest if (dot := _make_dot(variant)) is not None]
    roofs = _list_roofs([variant for variant, _ in drawn])
    if not drawn or not roofs:
        return None
    ordered = sorted((dot for _, dot in drawn), key=lambda dot: -dot.mark.estimate.value)
    shown = ordered[:: -(-len(ordered) // MOST_DOTS)]
    total = counted(len(ordered), "case")
    among = f" of {total}, evenly chosen by rate" if len(shown) < len(ordered) else ""
    alt = f"Rates of {f'{len(shown)} of {total}' if among else total} below {roofs[0].text}. The fastest: "
    x = Axis("FLOP per byte, log", Unit.COUNT, is_log=True)
    y = Axis(f"rate, log{f'; {len(shown)}{among}' if among else ''}", Unit.FLOP_PER_SECOND, is_log=True)
    return Roofline(f"{alt}{shown[0].mark.says}", x, y, tuple(shown), roofs)


def _choose_fastest(case: Case) -> Variant | None:
    compiled = [
        variant
        for variant in case.shown
        if variant.planned.mode in ("jit", "aot") and variant.read(TIME).has_number and not variant.is_peer
    ]
    return min(compiled, key=lambda variant: variant.read(TIME).estimate or 0.0, default=None)


def _may_have_roof(variant: Variant) -> bool:
    return find_product_format(variant) is None or find_peak_flops(variant) is not None


def _make_dot(variant: Variant) -> Dot | None:
    intensity = variant.read(INTENSITY).estimate
    mark = make_mark(variant, RATE, name=name_case(variant.case))
    if intensity is None or intensity <= 0 or mark is None or mark.estimate.value <= 0:
        return None
    return Dot(intensity, mark, name_workload(variant.case))


def _list_roofs(variants: Sequence[Variant]) -> tuple[Roof, ...]:
    """Return the roofs of the formats that most cases compute in."""
    counts: dict[str, int] = {}
    roofs: dict[str, Roof] = {}
    for variant in variants:
        peak, bandwidth = find_peak_flops(variant), variant.environment.peak_bytes_per_s
        name = find_product_format(variant)
        if peak and bandwidth and name:
            counts[name] = counts.get(name, 0) + 1
            source = shorten(MEASURED_AT.sub("", variant.environment.peaks_source or ""), LONGEST_TERM)
            limits = f"{numbers.amount(peak, 'FLOP/s')} {name}, {numbers.amount(bandwidth, 'B/s')}"
            roofs[name] = Roof(bandwidth, peak, f"{limits}{f', {source}' if source else ''}")
    return tuple(roofs[name] for name in sorted(counts, key=lambda name: -counts[name])[:MOST_ROOFS])
