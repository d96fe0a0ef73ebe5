"""Numbers of a variant that a reader compares: time, speedup, first result, memory; for tables, search and CSV."""

from __future__ import annotations

from collections.abc import Sequence

from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.reading import Variant
from jaxmeter.harness.record import MemoryDetails, Status

from .. import numbers
from ..write import write, write_reading
from .cells import find_speedup_tone, find_tone
from .doubts import CONTENDED, find_doubts
from .page_model import Result, Value
from .tone import Tone
from .trust import WIDE, is_vague

TIME, SPEEDUP, FIRST = "execution_s", "speedup", "first_result_s"
PLANNED, CALLED = "planned_peak_bytes", "measured_peak_bytes"


def make_result(variant: Variant) -> Result:
    """The numbers of one variant, in words and as they were read."""
    return Result(
        variant=variant.planned.name,
        where=variant.case.run.label,
        run=variant.case.run.name,
        status=variant.status.value,
        tone=find_tone(variant.status),
        time=_time(variant),
        speedup=_speedup(variant),
        first=_value(variant.read(FIRST)),
        memory=_memory(variant),
        memory_of=_choose_memory(variant),
        doubt=_name_doubts(variant),
    )


def _name_doubts(variant: Variant) -> str:
    """Return why not to rely on the time or the speedup: `contended, wide`; empty without a reason."""
    words: list[str] = []
    for reading in map(variant.read, (TIME, SPEEDUP)):
        words += find_doubts(variant, reading)
        words += [WIDE] if is_vague(reading.interval) else []
    return ", ".join(dict.fromkeys(words))


def _time(variant: Variant) -> Value:
    """Return the time; a variant without one says why."""
    time = variant.read(TIME)
    if time.interval is None:
        shown = variant.status is not Status.OK
        return Value(variant.status.value if shown else numbers.MISSING, tone=find_tone(variant.status))
    text, bounds = write_reading(time)
    return _tell(time, text, bounds, wide=is_vague(time.interval), doubts=find_doubts(variant, time))


def _speedup(variant: Variant) -> Value:
    if variant.is_baseline:
        return Value("baseline", tone=Tone.MUTED)
    speedup = variant.read(SPEEDUP)
    if speedup.interval is None:
        return Value(numbers.MISSING, tone=Tone.MUTED)
    text, bounds = write_reading(speedup)
    return _tell(
        speedup,
        text,
        bounds,
        wide=is_vague(speedup.interval),
        tone=find_speedup_tone(speedup.interval),
        doubts=find_doubts(variant, speedup),
    )


def _value(reading: Reading) -> Value:
    if reading.interval is None:
        return Value(numbers.MISSING, tone=Tone.MUTED)
    text, bounds = write_reading(reading)
    return _tell(reading, text, bounds, wide=is_vague(reading.interval))


def list_unplanned(variant: Variant) -> tuple[str, ...]:
    """Return the kinds of operations whose working memory the plan leaves out; also empty if these are unknown."""
    details = variant.details(MemoryDetails)
    return () if details is None else details.unplanned or ()


def _memory(variant: Variant) -> Value:
    """Return planned peak memory; measured peak memory if there is no plan, or the plan leaves out working memory."""
    leading = _choose_memory(variant)
    reading = variant.read(CALLED if leading == "call" else PLANNED)
    if reading.estimate is None:
        return Value(numbers.MISSING, tone=Tone.MUTED)
    text = write(reading.metric, reading.estimate)
    return Value(f"{text} in a call" if leading == "call" else text, reading.estimate)


def _choose_memory(variant: Variant) -> str:
    """Return `plan` or `call`; an empty text if neither is known."""
    has_plan, has_call = (variant.read(name).estimate is not None for name in (PLANNED, CALLED))
    if has_call and (not has_plan or list_unplanned(variant)):
        return "call"
    return "plan" if has_plan else ""


def _tell(
    reading: Reading, text: str, bounds: str, *, wide: bool, tone: Tone = Tone.PLAIN, doubts: Sequence[str] = ()
) -> Value:
    """`73 µs [70, 76]`, `73 µs (13 to 420) wide`, `! 73 µs [70, 76] contended`."""
    words = doubts or ((CONTENDED,) if reading.contended else ())
    interval = reading.interval
    around = "" if bounds in ("", numbers.MISSING) else bounds if bounds.startswith("[") else f"({bounds})"
    parts = ("!" if words else "", text, around, WIDE if wide else "", ", ".join(words))
    return Value(
        " ".join(filter(None, parts)),
        reading.estimate,
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        Tone.WARN if words else tone,
    )
