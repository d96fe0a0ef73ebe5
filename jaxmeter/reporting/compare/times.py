"""What two runs say of a call: its times, by a replay or as stored, and what two programs differ in exactly."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.derived import compare_paired, doubt_ratio, find_withheld
from jaxmeter.harness.metrics.metric import Direction, Readable, Reading
from jaxmeter.harness.metrics.moderation import NO_CALIBRATION
from jaxmeter.harness.metrics.reading import Run, Variant
from jaxmeter.harness.metrics.statistics import (
    ALTERNATION_EFFECT,
    BETWEEN_RUNS,
    FEWEST_PROCESSES,
    Interval,
    differs,
    speedup,
)
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import INCOMPLETE, Settings

from .conditions import VariantPair, calls_back, find_fingerprint, find_status, read_raw
from .ratios import divide_readings, find_chance, find_chance_unpaired
from .verdicts import COLD, PROGRAM, TIME, Change, ExactCount, Verdict, make_change

FAIR = "normalised_s"
ALONE = "isolated_s"

STAGE = "first_call_s"
"""What every cold process times."""

STORED = "by the times that two runs stored, which share no state of the machine"
STORED_RAW = "by the raw times that two runs stored, which share no state of the machine"
LARGE = 2.0
"""A time this many times as long is suspected, however far its processes scatter: what doubles is never passed over."""

CALL = "the whole call"
SAME_PROGRAM = "the same program"
SAME_CODE = "the same recorded code"
AS_FAST_TODAY = "its kept program is as fast under what there is today"


def compare_times(sides: VariantPair) -> Change | None:
    """The verdict about the time of a call; None where the earlier run did not time the variant."""
    if sides.old.read(TIME).has_number and not sides.new.read(TIME).has_number:
        return make_change(sides.case, sides.name, TIME, Verdict.GONE, reason="only the earlier run timed it")
    today = _find_today(sides)
    replay = _find_replay(sides, today)
    if replay is not None and replay.read(TIME).has_number:
        return _judge_replay(sides, today, replay)
    if not sides.old.read(TIME).has_number:
        if replay is None or not _is_in_lock_step(replay):
            return None
        verdict = Verdict.FAILED if find_status(replay)[0] in INCOMPLETE else Verdict.INCONCLUSIVE
        return make_change(sides.case, sides.name, TIME, verdict, reason=_say_why_untimed(replay))
    return _judge_stored(sides, "" if replay is None else find_status(replay)[1])


def compare_cold(sides: VariantPair) -> Iterator[Change]:
    """What compiling takes, where enough cold processes of both runs tell: a suspicion at most."""
    if sides.is_same_program:
        return
    for metric in COLD:
        if min(len(read_raw(variant, STAGE)) for variant in (sides.old, sides.new)) < FEWEST_PROCESSES:
            continue  # most, where cold processes are few: reading takes longer
        readings = sides.old.read(metric), sides.new.read(metric)
        if not all(reading.has_number for reading in readings):
            continue
        ratio = divide_readings(readings[1], readings[0], sides.new.settings, two_runs=True)
        verdict = _judge(ratio, sides.runs.minimum_effect)
        if verdict.suspected is not None:
            yield make_change(
                sides.case,
                sides.name,
                metric,
                verdict.suspected,
                before=readings[0].estimate,
                after=readings[1].estimate,
                effect=ratio,
                smallest=_find_smallest(ratio, sides.runs.minimum_effect),
                reason=STORED_RAW,
                cause=sides.find_cause(),
            )


def _find_today(sides: VariantPair) -> Variant:
    """The variant that tells: of an ahead-of-time program jit's, if it is the same one; else the variant itself."""
    new = sides.new
    if new.planned.mode != "aot":
        return new
    jitted = sides.case.find(f"{new.planned.implementation}:jit")
    own = find_fingerprint(new)
    return new if jitted is None or own is None or find_fingerprint(jitted) != own else jitted


def _find_replay(sides: VariantPair, today: Variant) -> Variant | None:
    """The variant that ran the earlier run's program, or its code in its environment, beside this one."""
    run = sides.runs.before.manifest.run_id
    return next(
        (
            variant
            for variant in sides.case.variants
            if variant.planned.replays is not None
            and variant.planned.same_as == today.planned.name
            and variant.planned.replays.run == run
        ),
        None,
    )


def _is_in_lock_step(replay: Variant) -> bool:
    """Whether the earlier run's own environment ran it."""
    return replay.planned.replays is not None and replay.planned.replays.in_lock_step


def _say_why_untimed(replay: Variant) -> str:
    """Why what the earlier run measured was not timed beside today's."""
    outcome = replay.outcomes.get("timing")
    return "it was not timed in the earlier environment" + (f": {outcome.reason}" if outcome and outcome.reason else "")


def _judge_replay(sides: VariantPair, today: Variant, replay: Variant) -> Change:
    """By the processes that ran both programs."""
    ratio, doubt = compare_paired(replay, today), doubt_ratio(replay, today)
    verdict = _judge(ratio, sides.runs.minimum_effect)
    own = _find_infidelity(replay) or find_interference(replay, today, ratio)
    conditions = sides.runs.conditions
    outer = conditions.weak_in_lock_step if _is_in_lock_step(replay) else conditions.weak
    withheld = find_withheld(replay, today)
    reason = "" if withheld is None else withheld.reason
    if doubt or (own and verdict is Verdict.SAME):
        verdict, reason = Verdict.INCONCLUSIVE, doubt or own
    elif (own or outer) and verdict.suspected is not None:
        verdict, reason = verdict.suspected, own or outer
    elif outer and sides.old.read(TIME).has_number:
        # What took its place may be slower in itself: only stored times know how it was before.
        return _judge_stored(sides, AS_FAST_TODAY)
    change = _make(sides, verdict, ratio, reason)
    before, after = (variant.read(FAIR).estimate or variant.read(TIME).estimate for variant in (replay, today))
    if ratio is not None and after is not None and ratio.estimate > 0:
        before = after / ratio.estimate  # paired by process: the times of both drift, and their ratio does not
    in_lock_step = _is_in_lock_step(replay)
    cores = sides.runs.after.manifest.settings.lock_step_cores if in_lock_step else None
    chance = find_chance(replay, today)
    of_program = replace(
        change, before=before, after=after, replayed=True, in_lock_step=in_lock_step, cores=cores, chance=chance
    )
    return of_program if _covers_call(sides, replay) else _look_at_call(sides, of_program)


def _covers_call(sides: VariantPair, replay: Variant) -> bool:
    """Whether Python's part of both calls ran next to each other, too: the earlier code in the earlier environment."""
    assert replay.planned.replays is not None
    return _is_in_lock_step(replay) and (replay.planned.replays.from_checkout or sides.has_same_sources)


def _look_at_call(sides: VariantPair, of_program: Change) -> Change:
    """Return what is known of the whole call: a replay runs under today's Python code, so it judges the program alone.

    Args:
      of_program: What the replay says.
    """
    if not sides.old.read(TIME).has_number:
        return of_program
    stored = _judge_stored(sides, "")
    if stored.verdict is Verdict.NOT_COMPARABLE:
        reason = f"{CALL} was not compared: {stored.reason}"
        return replace(of_program, is_program_alone=True, reason="; ".join(filter(None, (of_program.reason, reason))))
    if stored.verdict is Verdict.SUSPECTED_FASTER:
        return _blame_call(stored, of_program) if of_program.verdict is Verdict.SAME else of_program
    if stored.verdict is not Verdict.SUSPECTED_SLOWER or _explains(of_program, stored, sides.runs.minimum_effect):
        return of_program
    if of_program.verdict is Verdict.SLOWER:
        return replace(
            of_program, call=stored.effect, reason=f"{CALL}, by stored times: {_write_factor(stored.effect)}"
        )
    return _blame_call(stored, of_program)


def _blame_call(stored: Change, of_program: Change) -> Change:
    """Return a verdict of stored times that the compiled program does not explain."""
    program = f"its compiled program alone: {of_program.verdict.value}"
    if of_program.effect is not None:
        program += f", {_write_factor(of_program.effect)}"
    return replace(stored, reason=f"{CALL}; {stored.reason}; {program}")


def _explains(of_program: Change, stored: Change, minimum_effect: float) -> bool:
    """Whether a slower program accounts for stored times that are longer; it may be one that only looks slower."""
    program, call = of_program.effect, stored.effect
    if program is None or call is None:
        return False
    may_be = of_program.verdict is Verdict.INCONCLUSIVE and program.estimate > 1 + minimum_effect
    if not may_be and of_program.verdict not in (Verdict.SLOWER, Verdict.SUSPECTED_SLOWER):
        return False
    high = program.estimate if program.decisive.high is None else program.decisive.high
    return call.estimate <= high * (1 + minimum_effect)


def _judge_stored(sides: VariantPair, why_no_replay: str) -> Change:
    """Judge the whole call by the times that both runs stored: a suspicion at most, contended or not.

    Equal programs explain equal times and do not replace them: a call is more than its program. Python flattens the
    arguments, hashes static ones, dispatches, runs callbacks and eager code, and compiles again.
    """
    conditions = sides.runs.conditions
    # Where neither run could time a calibration loop, as on a device of its own, the times themselves are all there is.
    metric = TIME if all(map(_has_no_calibration, (sides.runs.before, sides.runs.after))) else FAIR
    readings = sides.old.read(metric), sides.new.read(metric)
    if conditions.other_machine:
        return _make(sides, Verdict.NOT_COMPARABLE, None, conditions.other_machine)
    lacking = next((reading for reading in readings if not reading.has_number), None)
    equal = _find_equal(sides)
    ratio = (
        None if lacking is not None else divide_readings(readings[1], readings[0], sides.new.settings, two_runs=True)
    )
    if ratio is None and _has_another_calibration(sides):
        return _make(sides, Verdict.NOT_COMPARABLE, None, conditions.other_runtime)
    if ratio is None:
        why = "" if lacking is None or lacking.fault is None else lacking.fault.reason
        return _make(sides, Verdict.NOT_COMPARABLE, None, f"no normalised time{f': {why}' if why else ''}")
    where = [run for run, reading in zip(("earlier", "later"), readings, strict=True) if reading.contended]
    contended = f"contended in the {' and the '.join(where)} run" if where else ""
    # The code has not changed: then runs may differ as on a machine whose speed varies, whatever this one's did.
    wide = _widen(*readings, sides.new.settings) if equal else ratio
    suspicion = _suspect(wide, sides.runs.minimum_effect)
    if suspicion is not None:
        weak = "" if sides.is_native else conditions.weak
        reasons = (_name_call(sides), STORED if metric == FAIR else STORED_RAW, why_no_replay, contended, weak)
        suspected = _make(sides, suspicion, wide, "; ".join(filter(None, reasons)))
        least = BETWEEN_RUNS**2 if equal else 0.0
        chance = find_chance_unpaired(*reversed(readings), minimum_effect=sides.runs.minimum_effect, shared=least)
        return replace(suspected, chance=chance)
    verdict, high = _judge_vaguely(ratio, sides.runs.minimum_effect), wide.decisive.high
    if verdict is Verdict.INCONCLUSIVE and equal and high is not None and (wide.decisive.low or 0) <= 1:
        bound = f"the call is at most {numbers.percent(high - 1)} slower" if high > 1 else "the call is not slower"
        return _make(sides, Verdict.SAME_PROGRAM, wide, f"{equal}; {bound}")
    return _make(sides, verdict, ratio, equal or why_no_replay or contended)


def _write_factor(ratio: Interval | None) -> str:
    """`2.3× [2.1, 2.5]`, `+5.1 % [+3.9, +6.3]`."""
    return " ".join(words for words in numbers.change(ratio) if words != numbers.MISSING)


def _name_call(sides: VariantPair) -> str:
    """`the whole call, with the same program`; empty where another program explains another time."""
    same = {SAME_PROGRAM: f"{CALL}, with {SAME_PROGRAM}", SAME_CODE: f"{CALL}, with {SAME_CODE}"}
    return same.get(_find_equal(sides), "")


def _find_equal(sides: VariantPair) -> str:
    """Return what is the same of the variant by the records, and may explain an equal time; empty if nothing is."""
    if sides.is_same_program:
        return SAME_PROGRAM
    has_code_alone = None in sides.fingerprints or any(map(calls_back, (sides.old, sides.new)))
    return SAME_CODE if has_code_alone and sides.is_same_code else ""


def _widen(before: Reading, after: Reading, settings: Settings) -> Interval:
    """Return the ratio of stored times with at least the usual error from run to run."""
    sides = [replace(side, shared=max(side.shared, BETWEEN_RUNS**2)) for side in (after, before)]
    ratio = divide_readings(sides[0], sides[1], settings, two_runs=True)
    assert ratio is not None  # the same values have a ratio already
    return ratio


def _suspect(ratio: Interval, minimum_effect: float) -> Verdict | None:
    """Of stored times, whose error between runs is known roughly: their interval has to exclude the minimum effect."""
    low, high, most = ratio.decisive.low, ratio.decisive.high, 1 + minimum_effect
    if ratio.estimate > LARGE or (low is not None and low > most):
        return Verdict.SUSPECTED_SLOWER
    if ratio.estimate < 1 / LARGE or (high is not None and high < 1 / most):
        return Verdict.SUSPECTED_FASTER
    return None


def _judge_vaguely(ratio: Interval, minimum_effect: float) -> Verdict:
    """Of stored times that are not suspected."""
    low, high, most = ratio.decisive.low, ratio.decisive.high, 1 + minimum_effect
    is_within = low is not None and high is not None and low >= 1 / most and high <= most
    return Verdict.SAME if is_within else Verdict.INCONCLUSIVE


def _judge(ratio: Interval | None, minimum_effect: float) -> Verdict:
    """Of a time over an earlier one."""
    if ratio is None or ratio.decisive.low is None or ratio.decisive.high is None:
        return Verdict.INCONCLUSIVE
    if differs(ratio, minimum_effect=minimum_effect):
        return Verdict.SLOWER if ratio.estimate > 1 else Verdict.FASTER
    most = 1 + minimum_effect
    is_within = ratio.decisive.low >= 1 / most and ratio.decisive.high <= most
    return Verdict.SAME if is_within else Verdict.INCONCLUSIVE


def _make(sides: VariantPair, verdict: Verdict, ratio: Interval | None, reason: str) -> Change:
    before, after = (variant.read(FAIR).estimate or variant.read(TIME).estimate for variant in (sides.old, sides.new))
    has_changed = verdict.is_confirmed or verdict.is_suspected
    has_no_bounds = ratio is not None and ratio.decisive.low is None
    if not reason and verdict is Verdict.INCONCLUSIVE and has_no_bounds:
        reason = "too few processes for an interval"
    return make_change(
        sides.case,
        sides.name,
        TIME,
        verdict,
        before=before,
        after=after,
        effect=ratio,
        smallest=_find_smallest(ratio, sides.runs.minimum_effect),
        reason=reason,
        cause=sides.explain(is_slower=verdict in (Verdict.SLOWER, Verdict.SUSPECTED_SLOWER)) if has_changed else "",
    )


def _has_another_calibration(sides: VariantPair) -> bool:
    """Whether the runs timed two calibration loops, since they are of two runtimes."""
    before, after = sides.runs.before.pool, sides.runs.after.pool
    has_lost_it = after.reference is None and after.no_reference != NO_CALIBRATION
    return bool(sides.runs.conditions.other_runtime) and before.reference is not None and has_lost_it


def _has_no_calibration(run: Run) -> bool:
    return run.pool.reference is None and run.pool.no_reference == NO_CALIBRATION


def find_interference(before: Readable, after: Readable, ratio: Interval | None) -> str:
    """Why a ratio of programs that took turns may not be theirs alone; empty where nothing says so.

    One side takes surely longer beside the other than alone, and alone the two differ by less than half as much.
    """
    was, now_is = before.read(ALONE).estimate, after.read(ALONE).estimate
    if ratio is None or was is None or now_is is None or min(was, now_is) <= 0:
        return ""
    alone = now_is / was
    is_less = abs(math.log(alone)) < abs(math.log(ratio.estimate)) / 2 or (alone > 1) != (ratio.estimate > 1)
    if not is_less or not any(map(_is_noisy, (before, after))):
        return ""
    change = numbers.change(Interval(None, alone, None, 1))[0]
    return f"interleaved, both take longer than alone; alone, the change is {change}"


def _is_noisy(variant: Readable) -> bool:
    """Whether its calls take surely longer beside the other's than alone."""
    pairs = zip(variant.read(TIME).values, variant.read(ALONE).values, strict=False)
    known = [math.log(value / alone) for value, alone in pairs if value is not None and alone is not None and alone > 0]
    if not known:
        return False
    ratio_alone = speedup(known)
    return ratio_alone.estimate > 1 and differs(ratio_alone, minimum_effect=ALTERNATION_EFFECT)


def _find_infidelity(replay: Variant) -> str:
    """Why a replay may not be what was measured then; empty where it is."""
    replays, now_is = replay.planned.replays, find_fingerprint(replay)
    if replays is None or replays.fingerprint is None or now_is is None or now_is == replays.fingerprint:
        return ""
    return "the kept program compiles to another than was measured then"


def _find_smallest(ratio: Interval | None, minimum_effect: float) -> float | None:
    """The smallest difference that the processes could have told."""
    if ratio is None or ratio.decisive.high is None or ratio.decisive.low is None or ratio.estimate <= 0:
        return None
    return max(minimum_effect, ratio.decisive.high / ratio.estimate - 1)


GATED = tuple(metric.name for metric in METRICS.values() if metric.fails_gate)

COUNTED = tuple(metric.name for metric in METRICS.values() if metric.budget and not metric.fails_gate)
"""What is in a program: it explains how two differ, and fails no gate unless a budget names it."""

EXACT = (*GATED, *COUNTED)
"""Metrics that follow from the program alone, and that two runs are compared by."""

KINDS = {
    "planned peak memory": ("planned_peak_bytes",),
    "program": (PROGRAM,),
    "number of compilations": tuple(name for name in GATED if name != "planned_peak_bytes"),
    "counts of the program": COUNTED,
}
"""Exact numbers by what a sentence calls them."""


def compare_exact(sides: VariantPair) -> Iterator[Change]:
    """What is not as it was."""
    if sides.has_another_program:
        yield make_change(
            sides.case,
            sides.name,
            PROGRAM,
            Verdict.CHANGED,
            reason=sides.describe_program(),
            cause=sides.find_cause(of_program=True),
        )
    is_gone = sides.fingerprints[0] is not None and sides.fingerprints[1] is None
    if is_gone and (gone := _make_gone(sides, PROGRAM, None, "the later run has no fingerprint")):
        yield gone
    for metric in EXACT:
        # Most are the same, and reading takes longer.
        if read_raw(sides.old, metric) != read_raw(sides.new, metric) and (change := _compare(sides, metric)):
            yield change


def count_exact(pairs: Sequence[VariantPair], changes: Iterable[Change]) -> tuple[ExactCount, ...]:
    """Count the variants whose exact numbers both runs have, by kind of number.

    Args:
      changes: What differs between the runs.
    """
    different = {(*change.key, change.metric) for change in changes}
    sides = [
        pair for pair in pairs if all(find_status(variant)[0] not in INCOMPLETE for variant in (pair.old, pair.new))
    ]
    return tuple(_count(name, metrics, sides, different) for name, metrics in KINDS.items())


def _count(
    name: str, metrics: Sequence[str], pairs: Iterable[VariantPair], different: Container[tuple[str, ...]]
) -> ExactCount:
    numbers = compared = equal = before = after = 0
    for pair in pairs:
        old, new = ({metric for metric in metrics if has_exact(variant, metric)} for variant in (pair.old, pair.new))
        planned = pair.case.planned
        key = (planned.name, planned.platform, pair.name)
        numbers += len(old & new)
        compared += bool(old & new)
        equal += bool(old & new) and not any((*key, metric) in different for metric in metrics)
        before += bool(old - new)
        after += bool(new - old)
    return ExactCount(name, numbers, compared, equal, before, after)


def has_exact(variant: Variant, metric: str) -> bool:
    """Return whether a variant has a value of an exact metric, or a fingerprint."""
    return find_fingerprint(variant) is not None if metric == PROGRAM else bool(read_raw(variant, metric))


def _compare(sides: VariantPair, metric: str) -> Change | None:
    readings = sides.old.read(metric), sides.new.read(metric)
    was, now_is = (reading.estimate for reading in readings)
    if was is not None and now_is is None:
        return _make_gone(sides, metric, was, _say_why_gone(readings[1]))
    if was is None or now_is is None or was == now_is:
        return None
    if not all(reading.exact for reading in readings):
        reason = "it is not the same in all processes"
        return make_change(
            sides.case, sides.name, metric, Verdict.INCONCLUSIVE, before=was, after=now_is, reason=reason
        )
    ratio = now_is / was if was > 0 else None
    return make_change(
        sides.case,
        sides.name,
        metric,
        judge_exact(metric, was, now_is),
        before=was,
        after=now_is,
        effect=None if ratio is None else Interval(ratio, ratio, ratio, 1),
        cause=sides.find_cause(of_program=metric in COUNTED),
    )


def judge_exact(metric: str, before: float | None, after: float | None) -> Verdict:
    """Return what is said of an exact number that has changed; None of both is of a program."""
    if before is None or after is None or METRICS[metric].direction is Direction.NEITHER:
        return Verdict.CHANGED
    return Verdict.MORE if after > before else Verdict.LESS


def _make_gone(sides: VariantPair, metric: str, was: float | None, reason: str) -> Change | None:
    """Return that only the earlier run has an exact number; None for a run that only confirms times."""
    if sides.runs.after.manifest.confirms:
        return None
    return make_change(sides.case, sides.name, metric, Verdict.GONE, before=was, reason=reason)


def _say_why_gone(reading: Reading) -> str:
    fault = reading.fault
    if fault is None or fault.outcome is None:
        return "the later run did not measure it"
    return f"{fault.outcome.status.value}{f': {fault.outcome.reason}' if fault.outcome.reason else ''}"
