"""What changed from one run to another: cases paired by identity, every pair with a finding and its reason.

Order of trust: a program that an earlier run kept, run again beside today's in the same processes, confirms a change;
what follows from the program alone, such as planned memory, is compared exactly; times that two runs stored only raise
a suspicion, since two runs do not share the state of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.record import INCOMPLETE, NATIVE, REPLAY, NumericsDetails, Status
from harness.record.derived import compare_paired, doubt_ratio
from harness.record.metric import Direction, Readable
from harness.record.metrics import METRICS
from harness.record.pool import NO_CANARY
from harness.record.reading import find_worst
from harness.record.statistics import MINIMUM_EFFECT, Interval, differs
from harness.record.suspects import is_same_problem

from .alternation import find_disturbance
from .chance import find_chance
from .conditions import Conditions, compare_conditions
from .ratios import divide_readings
from .snapshot import CaseSide, Snapshot

TIME = "execution_s"
FAIR = "at_reference_speed_s"
COLD = ("compile_total_s", "first_result_s")
"""Times of cold processes, which nothing can repeat beside each other."""

STORED = "by the times that two runs stored, which share no state of the machine"

WHOLE = ""
"""In place of a metric: the case or the variant as a whole."""

PROGRAM = "program"
"""In place of a metric: which program it is, by its fingerprint."""

COUNTED = (
    "counted_flops",
    "counted_bytes",
    "jaxpr_equations",
    "stablehlo_operations",
    "hlo_instructions",
    "hlo_fusions",
    "hlo_custom_calls",
    "hlo_collectives",
)
"""What is in a program: it says how two differ, and is no better or worse by itself."""

EXACT = ("peak_bytes", "compiles", "recompiles", *COUNTED)
"""Metrics that follow from the program alone."""


class Finding(StrEnum):
    """What two runs say of one metric of one variant, the worst first."""

    SLOWER = "slower"
    MORE = "more"
    FAILED = "failed"
    SUSPECTED_SLOWER = "suspected slower"
    GONE = "gone"
    NOT_COMPARABLE = "not comparable"
    CHANGED = "changed"
    FASTER = "faster"
    LESS = "less"
    SUSPECTED_FASTER = "suspected faster"
    NEW = "new"
    INCONCLUSIVE = "inconclusive"
    SAME = "same"


DECIDED = frozenset({Finding.SLOWER, Finding.FASTER, Finding.SUSPECTED_SLOWER, Finding.SUSPECTED_FASTER, Finding.SAME})
"""Findings about a time that say something of it."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One finding.

    Args:
      metric: Its name; WHOLE for the case or variant, PROGRAM for its fingerprint.
      before, after: Both numbers, in the metric's unit; times at the reference speed of the earlier run.
      effect: after over before; above 1 is slower, or more. None where there is none.
      smallest: The smallest difference, as a share, that these data could have told; None where nothing tells.
      replayed: Whether the earlier program ran beside today's.
      chance: How likely equal programs are to differ as much, the p-value of the launches that ran both; None without.
      reason: Why the finding is none, or what to know of it.
      cause: What may explain a change, likeliest first.
    """

    suite: str
    case: str
    where: str
    variant: str
    metric: str
    finding: Finding
    before: float | None = None
    after: float | None = None
    effect: Interval | None = None
    smallest: float | None = None
    replayed: bool = False
    chance: float | None = None
    reason: str = ""
    cause: str = ""

    @property
    def launches(self) -> int:
        """How many launches each side has that the effect is of."""
        return 0 if self.effect is None else self.effect.count


@dataclass(frozen=True)
class Changes:
    """All findings about two runs.

    Args:
      minimum_effect: The smallest difference of a time that is worth a finding, as a share.
      compared: How many variants both runs have, of the same cases.
      timed: How many variants the earlier run has timed.
      exact: How many exact numbers both runs tell.
      names: Of all cases of the later run, `suite/case`.
    """

    before: str
    after: str
    conditions: Conditions
    minimum_effect: float
    found: tuple[Change, ...]
    compared: int = 0
    timed: int = 0
    exact: int = 0
    names: tuple[str, ...] = ()

    def having(self, *findings: Finding) -> tuple[Change, ...]:
        """Those with some findings."""
        return tuple(one for one in self.found if one.finding in findings)

    @property
    def times(self) -> tuple[Change, ...]:
        """Those about the time of a variant."""
        return tuple(one for one in self.found if one.metric == TIME)


def merge(changes: Changes, confirmation: Changes) -> Changes:
    """The findings, with the times that a run of many launches has confirmed or refuted in place of the first ones."""
    again = {(one.case, one.where, one.variant): one for one in confirmation.times if one.replayed}
    found = tuple(
        again.get((one.case, one.where, one.variant), one) if one.metric == TIME else one for one in changes.found
    )
    return replace(changes, found=found)


def find_changes(before: Snapshot, after: Snapshot, *, minimum_effect: float = MINIMUM_EFFECT) -> Changes:
    """Every finding about two runs, case by case, in the order of the later run.

    Args:
      after: Brought to the reference speed of the earlier run.
      minimum_effect: The smallest difference of a time that is worth a finding, as a share.
    """
    conditions = compare_conditions(before.manifest, after.manifest)
    pairs = _Pairs(before, after, conditions, minimum_effect)
    found = tuple(pairs.list_changes())
    return Changes(
        before=before.manifest.run_id,
        after=after.manifest.run_id,
        conditions=conditions,
        minimum_effect=minimum_effect,
        found=found,
        compared=pairs.count_compared(),
        timed=pairs.count_timed(),
        exact=pairs.count_exact(),
        names=tuple(f"{case.suite}/{case.name}" for case in after.manifest.cases),
    )


@dataclass(frozen=True)
class _Pairs:
    before: Snapshot
    after: Snapshot
    conditions: Conditions
    minimum_effect: float

    def list_changes(self) -> Iterator[Change]:
        for key, new in self.after.cases.items():
            old = self.before.cases.get(key)
            if old is None:
                yield _about_case(new, Finding.NEW)
            else:
                yield from self._compare_cases(old, new)
        if not self.after.manifest.confirms:
            for key, old in self.before.cases.items():
                if key not in self.after.cases:
                    yield _about_case(old, Finding.GONE)

    def count_compared(self) -> int:
        """How many variants both runs have, of cases with one definition, where the runs can be compared."""
        if self.conditions.incomparable:
            return 0
        both = ((self.before.cases[key], new) for key, new in self.after.cases.items() if key in self.before.cases)
        return sum(
            len(old.variants.keys() & new.variants.keys())
            for old, new in both
            if is_same_problem(old.planned, new.planned)
        )

    def count_timed(self) -> int:
        """How many variants the earlier run has timed; of a run that confirms, those that it times again."""
        keys = self.after.cases if self.after.manifest.confirms else self.before.cases
        sides = (self.before.cases[key] for key in keys if key in self.before.cases)
        variants = (one for side in sides for one in side.variants.values())
        return sum(one.planned.mode != REPLAY and one.read(TIME).interval is not None for one in variants)

    def count_exact(self) -> int:
        """How many exact numbers both runs tell, fingerprints among them."""
        if self.conditions.incomparable:
            return 0
        both = ((self.before.cases[key], new) for key, new in self.after.cases.items() if key in self.before.cases)
        pairs = [
            (old.variants[name], variant)
            for old, new in both
            if is_same_problem(old.planned, new.planned)
            for name, variant in new.variants.items()
            if name in old.variants
        ]
        told = sum(bool(_read_raw(old, metric) and _read_raw(new, metric)) for old, new in pairs for metric in EXACT)
        return told + sum(None not in map(_find_fingerprint, pair) for pair in pairs)

    def _compare_cases(self, old: CaseSide, new: CaseSide) -> Iterator[Change]:
        if not is_same_problem(old.planned, new.planned):
            reason = (
                "its inputs, reference, cost, devices or settings of jax have changed: another case of the same name"
            )
            yield _about_case(new, Finding.NOT_COMPARABLE, reason)
            return
        if new.record is None or old.record is None:
            lost = "the later run" if new.record is None else "the earlier run"
            finding = Finding.FAILED if new.record is None else Finding.NEW
            yield _about_case(new, finding, f"{lost} left no record of it")
            return
        if self.conditions.incomparable:
            yield _about_case(new, Finding.NOT_COMPARABLE, self.conditions.incomparable)
            return
        for name, variant in new.variants.items():
            if variant.planned.mode == REPLAY:
                continue
            earlier = old.variants.get(name)
            if earlier is None:
                yield _make(new, name, WHOLE, Finding.NEW)
            else:
                yield from self._compare_variants(new, earlier, variant)
        for name in () if self.after.manifest.confirms else old.variants:
            if name not in new.variants and old.variants[name].planned.mode != REPLAY:
                yield _make(new, name, WHOLE, Finding.GONE)

    def _compare_variants(self, case: CaseSide, old: Readable, new: Readable) -> Iterator[Change]:
        name = new.planned.name
        was, now_is = (_find_status(one) for one in (old, new))
        if now_is[0] in INCOMPLETE:
            yield _make(case, name, WHOLE, Finding.FAILED, reason=f"{now_is[0].value}: {now_is[1]}")
            return
        if was[0] in INCOMPLETE:
            yield _make(case, name, WHOLE, Finding.NEW, reason=f"it had ended as {was[0].value} before")
            return
        if now_is[0] is not Status.OK and was[0] is Status.OK:
            yield _make(case, name, WHOLE, Finding.GONE, reason=f"{now_is[0].value}: {now_is[1]}")
            return
        yield from self._compare_exact(case, old, new)
        yield from self._compare_cold(case, old, new)
        time = self._compare_times(case, old, new)
        if time is not None:
            yield time

    def _compare_exact(self, case: CaseSide, old: Readable, new: Readable) -> Iterator[Change]:
        name = new.planned.name
        prints = [_find_fingerprint(one) for one in (old, new)]
        if None not in prints and prints[0] != prints[1]:
            yield _make(case, name, PROGRAM, Finding.CHANGED, cause=self._find_cause(old, new))
        for metric in EXACT:
            if _read_raw(old, metric) == _read_raw(new, metric):
                continue  # most are, and reading takes longer
            readings = old.read(metric), new.read(metric)
            was, now_is = (one.estimate for one in readings)
            if was is None or now_is is None or was == now_is:
                continue
            if not all(one.exact for one in readings):
                reason = "it is not the same in all processes"
                yield _make(case, name, metric, Finding.INCONCLUSIVE, before=was, after=now_is, reason=reason)
                continue
            ratio = now_is / was if was > 0 else None
            effect = None if ratio is None else Interval(ratio, ratio, ratio, 1)
            finding = Finding.MORE if now_is > was else Finding.LESS
            finding = Finding.CHANGED if METRICS[metric].direction is Direction.NEITHER else finding
            cause = self._find_cause(old, new)
            yield _make(case, name, metric, finding, before=was, after=now_is, effect=effect, cause=cause)

    def _compare_cold(self, case: CaseSide, old: Readable, new: Readable) -> Iterator[Change]:
        """What compiling takes, where enough cold processes of both runs tell: a suspicion at most."""
        if self._is_same_program(old, new):
            return
        for metric in COLD:
            sides = old.read(metric), new.read(metric)
            if None in (one.interval for one in sides):
                continue
            ratio = divide_readings(sides[1], sides[0], new.settings)
            finding = self._judge(ratio)
            if finding in _SUSPECTED:
                yield _make(
                    case,
                    new.planned.name,
                    metric,
                    _SUSPECTED[finding],
                    before=sides[0].estimate,
                    after=sides[1].estimate,
                    effect=ratio,
                    smallest=_find_smallest(ratio, self.minimum_effect),
                    reason=STORED,
                    cause=self._find_cause(old, new),
                )

    def _is_same_program(self, old: Readable, new: Readable) -> bool:
        """Whether it is the same program, of the same versions."""
        prints = [_find_fingerprint(one) for one in (old, new)]
        return None not in prints and prints[0] == prints[1] and not self.conditions.weak

    def _compare_times(self, case: CaseSide, old: Readable, new: Readable) -> Change | None:
        """The finding about the time; None where the earlier run did not time the variant."""
        replay = _find_replay(case, new, self.before.manifest.run_id)
        if replay is not None and replay.read(TIME).interval is not None:
            return self._judge_replay(case, old, new, replay)
        if old.read(TIME).interval is None:
            return None
        if new.read(TIME).interval is None:
            return _make(case, new.planned.name, TIME, Finding.INCONCLUSIVE, reason="timed before, and not now")
        return self._judge_stored(case, old, new, "" if replay is None else _find_status(replay)[1])

    def _judge_replay(self, case: CaseSide, old: Readable, new: Readable, replay: Readable) -> Change:
        """By the launches that ran both programs."""
        ratio = compare_paired(replay, new)
        doubt = doubt_ratio(replay, new)
        finding = self._judge(ratio)
        reason = ""
        weak = _find_infidelity(replay) or find_disturbance(replay, new, ratio)
        if doubt or (weak and finding is Finding.SAME):
            finding, reason = Finding.INCONCLUSIVE, doubt or weak
        elif (weak or self.conditions.weak) and finding in _SUSPECTED:
            finding, reason = _SUSPECTED[finding], weak or self.conditions.weak
        elif self.conditions.weak:
            # What took its place may be slower in itself: only stored times know how it was before.
            stored = self._judge_stored(case, old, new, "its kept program is as fast under what there is today")
            return stored if old.read(TIME).interval is not None else replace(stored, finding=Finding.INCONCLUSIVE)
        return self._make_time(case, old, new, finding, ratio, reason, replay=replay)

    def _judge_stored(self, case: CaseSide, old: Readable, new: Readable, why_no_replay: str) -> Change:
        """By the times that both runs stored: a suspicion at most."""
        prints = [_find_fingerprint(one) for one in (old, new)]
        # Where neither run could time a canary, as on a device of its own, the times themselves are all there is.
        metric = TIME if all(map(_has_no_canary, (self.before, self.after))) else FAIR
        fair = old.read(metric), new.read(metric)
        ratio = None if None in (one.interval for one in fair) else divide_readings(fair[1], fair[0], new.settings)
        if self.conditions.other_machine:
            return self._make_time(case, old, new, Finding.NOT_COMPARABLE, None, self.conditions.other_machine)
        if self._is_same_program(old, new):
            same = "the same program, by its fingerprint, of the same versions"
            return self._make_time(case, old, new, Finding.SAME, ratio, same)
        if ratio is None:
            lacking = next((one.fault for one in fair if one.interval is None and one.fault is not None), None)
            reason = "" if lacking is None else lacking.reason
            reason = f"no time at reference speed{f': {reason}' if reason else ''}"
            return self._make_time(case, old, new, Finding.NOT_COMPARABLE, None, reason)
        contended = [run for run, one in zip(("earlier", "later"), fair, strict=True) if one.contended]
        finding = self._judge(ratio)
        if contended and finding is not Finding.SAME:
            reason = f"contended in the {' and the '.join(contended)} run"
            return self._make_time(case, old, new, Finding.INCONCLUSIVE, ratio, reason)
        reason = why_no_replay
        if finding in _SUSPECTED:
            unchanged = not self.conditions.anything and old.planned.source == new.planned.source
            if unchanged and None in prints:
                nothing = "nothing that is recorded of its code and of versions has changed: maybe the machine has"
                return self._make_time(case, old, new, Finding.INCONCLUSIVE, ratio, nothing)
            finding = _SUSPECTED[finding]
            stored = STORED if metric == FAIR else STORED.replace("the times", "the raw times")
            reason = "; ".join(filter(None, (stored, why_no_replay, self.conditions.weak)))
        return self._make_time(case, old, new, finding, ratio, reason)

    def _judge(self, ratio: Interval | None) -> Finding:
        """Of a time over an earlier one."""
        if ratio is None or ratio.decisive.low is None or ratio.decisive.high is None:
            return Finding.INCONCLUSIVE
        if differs(ratio, minimum_effect=self.minimum_effect):
            return Finding.SLOWER if ratio.estimate > 1 else Finding.FASTER
        most = 1 + self.minimum_effect
        is_within = ratio.decisive.low >= 1 / most and ratio.decisive.high <= most
        return Finding.SAME if is_within else Finding.INCONCLUSIVE

    def _make_time(
        self,
        case: CaseSide,
        old: Readable,
        new: Readable,
        finding: Finding,
        ratio: Interval | None,
        reason: str,
        replay: Readable | None = None,
    ) -> Change:
        earlier = old if replay is None else replay
        sides = [one.read(FAIR).estimate or one.read(TIME).estimate for one in (earlier, new)]
        has_changed = finding in (*_SUSPECTED, *_SUSPECTED.values())
        if not reason and finding is Finding.INCONCLUSIVE and ratio is not None and ratio.decisive.low is None:
            reason = "too few launches for an interval"
        return _make(
            case,
            new.planned.name,
            TIME,
            finding,
            before=sides[0],
            after=sides[1],
            effect=ratio,
            smallest=_find_smallest(ratio, self.minimum_effect),
            replayed=replay is not None,
            chance=None if replay is None else find_chance(replay, new),
            reason=reason,
            cause=self._find_cause(old, new) if has_changed else "",
        )

    def _find_cause(self, old: Readable, new: Readable) -> str:
        """What may explain a change, likeliest first."""
        prints = [_find_fingerprint(one) for one in (old, new)]
        implementation = new.planned.implementation
        conditions = self.conditions.describe(everything=None in prints)
        found = (
            f"the code of {implementation} has changed" if old.planned.source != new.planned.source else "",
            "its program is another" if None not in prints and prints[0] != prints[1] else "",
            conditions,
        )
        return "; ".join(filter(None, found)) or "nothing known"


_SUSPECTED = {Finding.SLOWER: Finding.SUSPECTED_SLOWER, Finding.FASTER: Finding.SUSPECTED_FASTER}


def _about_case(case: CaseSide, finding: Finding, reason: str = "") -> Change:
    return _make(case, "", WHOLE, finding, reason=reason)


def _make(
    case: CaseSide,
    variant: str,
    metric: str,
    finding: Finding,
    *,
    before: float | None = None,
    after: float | None = None,
    effect: Interval | None = None,
    smallest: float | None = None,
    replayed: bool = False,
    chance: float | None = None,
    reason: str = "",
    cause: str = "",
) -> Change:
    planned = case.planned
    return Change(
        suite=planned.suite,
        case=planned.name,
        where=planned.where,
        variant=variant,
        metric=metric,
        finding=finding,
        before=before,
        after=after,
        effect=effect,
        smallest=smallest,
        replayed=replayed,
        chance=chance,
        reason=reason,
        cause=cause,
    )


def _has_no_canary(run: Snapshot) -> bool:
    return run.pool.reference is None and run.pool.no_reference == NO_CANARY


def _find_status(variant: Readable) -> tuple[Status, str]:
    if not variant.outcomes:
        return Status.LOST, "no record of it"
    _, worst = find_worst(variant.outcomes)
    return worst.status, worst.reason or ""


def _find_fingerprint(variant: Readable) -> str | None:
    """Of the program that was checked, and timed."""
    if variant.planned.mode == NATIVE:
        return None
    found = (one.details for one in variant.outcomes.values())
    return next((one.fingerprint for one in found if isinstance(one, NumericsDetails)), None)


def _read_raw(variant: Readable, metric: str) -> Sequence[float | None]:
    outcome = variant.outcomes.get(METRICS[metric].probe or "")
    return () if outcome is None else outcome.values.get(metric, ())


def _find_replay(case: CaseSide, new: Readable, run: str) -> Readable | None:
    """The variant that ran the earlier run's program beside this one."""
    return next(
        (
            one
            for one in case.variants.values()
            if one.planned.replays is not None
            and one.planned.same_as == new.planned.name
            and one.planned.replays.run == run
        ),
        None,
    )


def _find_infidelity(replay: Readable) -> str:
    """Why a replay may not be what was measured then; empty where it is."""
    replays = replay.planned.replays
    now_is = _find_fingerprint(replay)
    if replays is None or replays.fingerprint is None or now_is is None or now_is == replays.fingerprint:
        return ""
    return "the kept program compiles to another than was measured then"


def _find_smallest(ratio: Interval | None, minimum_effect: float) -> float | None:
    if ratio is None or ratio.decisive.high is None or ratio.decisive.low is None or ratio.estimate <= 0:
        return None
    return max(minimum_effect, ratio.decisive.high / ratio.estimate - 1)
