"""Changes between two runs, each with a verdict: of one metric of one variant, and all of them together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import msgspec

from jaxmeter.harness.metrics.reading import Case
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import Reported

from .conditions import Conditions

TIME = "execution_s"

COLD = ("compile_total_s", "first_result_s")
"""Times of cold processes, which nothing can repeat beside each other."""

WHOLE = ""
"""In place of a metric: the case or the variant as a whole."""

PROGRAM = "program"
"""In place of a metric: which program it is, by its fingerprint."""


class Verdict(StrEnum):
    """What two runs say of one metric of one variant, the worst first.

    SAME_PROGRAM is of a time: nothing that is recorded of the program or of the code has changed, and the stored times
    do not show a slower call. They may be too vague for SAME; the reason says what slowdown they leave possible.
    """

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
    SAME_PROGRAM = "same program"
    SAME = "same"

    @property
    def suspected(self) -> Verdict | None:
        """What is left of a confirmed change of a time that nothing confirms; None of anything else."""
        return _SUSPECTED.get(self)

    @property
    def is_confirmed(self) -> bool:
        """Whether a time has changed for certain."""
        return self in _SUSPECTED

    @property
    def is_suspected(self) -> bool:
        """Whether a time may have changed, and nothing has confirmed it."""
        return self in _SUSPECTED.values()

    @property
    def is_open(self) -> bool:
        """Whether more processes may decide it."""
        return self is Verdict.INCONCLUSIVE or self.is_suspected

    @property
    def is_decided(self) -> bool:
        """Whether it says something of a time."""
        return self.is_confirmed or self.is_suspected or self in (Verdict.SAME_PROGRAM, Verdict.SAME)

    @property
    def is_failure(self) -> bool:
        """Whether a number is missing, or cannot be compared."""
        return self in (Verdict.FAILED, Verdict.GONE, Verdict.NOT_COMPARABLE)

    @property
    def is_exact(self) -> bool:
        """Whether a number that follows from programs alone has changed."""
        return self in (Verdict.MORE, Verdict.LESS, Verdict.CHANGED)


_SUSPECTED = {Verdict.SLOWER: Verdict.SUSPECTED_SLOWER, Verdict.FASTER: Verdict.SUSPECTED_FASTER}


@dataclass(frozen=True, kw_only=True)
class Change:
    """What two runs say of one metric of one variant.

    Args:
      metric: Its name; WHOLE for the case or variant, PROGRAM for its fingerprint.
      before, after: Both numbers, in the metric's unit; times at the reference speed of the earlier run.
      effect: after over before; above 1 is slower, or more. None where there is none.
      smallest: The smallest difference, as a share, that these data could have told; None where nothing tells.
      replayed: Whether the earlier program ran beside today's.
      in_lock_step: Whether it ran there in the earlier run's own environment.
      cores: On how many cores both ran in lock-step; None where on all that were allowed, or not in lock-step.
      chance: p-value. Of a replay, that of the processes that ran both programs. Of stored times, that of a call that
        is longer by at most the minimum effect. None without.
      call: Of a replayed program, how many times as long the whole call takes by stored times, if the replay does not
        explain that; else None.
      is_program_alone: Whether only the compiled program was compared, and not the whole call.
      reason: Why the verdict is none, or what to know of it.
      cause: What may explain a change, likeliest first.
    """

    suite: str
    case: str
    platform: str
    variant: str
    metric: str
    verdict: Verdict
    before: float | None = None
    after: float | None = None
    effect: Interval | None = None
    smallest: float | None = None
    replayed: bool = False
    in_lock_step: bool = False
    cores: int | None = None
    chance: float | None = None
    call: Interval | None = None
    is_program_alone: bool = False
    reason: str = ""
    cause: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Case, platform and variant that it is about."""
        return self.case, self.platform, self.variant

    @property
    def size(self) -> float:
        """How many times as large the larger number is as the smaller one; 1 where there is no ratio."""
        ratio = 1.0 if self.effect is None else self.effect.estimate
        return max(ratio, 1 / ratio) if ratio > 0 else math.inf

    @property
    def title(self) -> str:
        """What a person calls the number: `time`, `planned peak memory`, `program`."""
        if self.metric == TIME:
            return "time"
        return METRICS[self.metric].title if self.metric in METRICS else self.metric

    @property
    def condition(self) -> str:
        """How both times were measured next to each other, without which a verdict means nothing; empty where not."""
        if not self.in_lock_step:
            return "interleaved" if self.replayed else ""
        cores = "" if self.cores is None else " on one core" if self.cores == 1 else f" on {self.cores} cores"
        return f"in lock-step{cores}"

    @property
    def processes(self) -> int:
        """How many processes each side has that the effect is of."""
        return 0 if self.effect is None else self.effect.count


class Here(StrEnum):
    """What two runs say of a report."""

    REPRODUCED = "reproduced"
    SAME_DIRECTION = "same direction"
    OPPOSITE = "opposite direction"
    NOT_HERE = "not on this machine"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class JudgedReport:
    """A report beside what two runs measured.

    Args:
      theirs: Times as long in the later run as in the earlier one, as reported.
      ours: The same as measured; None where there is no such number.
      condition: How both times were measured next to each other; empty where they were not.
      reason: Why the verdict is none, or what to know of it; may be empty.
      releases: Of jax in the earlier and in the later run.
    """

    report: Reported
    case: str
    variant: str
    theirs: float
    ours: Interval | None
    here: Here
    condition: str = ""
    reason: str = ""
    releases: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class LoneNote:
    """A note of a probe that only one of two runs has, such as a note on a failed check.

    Args:
      is_later: Whether the later run has it.
      variants: Variants with the note, each with the name of its case.
    """

    text: str
    is_later: bool
    variants: tuple[str, ...]


@dataclass(frozen=True)
class ExactCount:
    """How many variants have equal exact numbers of a kind in two runs.

    Args:
      name: The kind, such as `planned peak memory`.
      numbers: Numbers that both runs have, of all variants.
      compared: Variants with such a number in both runs.
      equal: Of these, the variants whose numbers are all equal.
      only_before, only_after: Variants with such a number in one run only.
    """

    name: str
    numbers: int
    compared: int
    equal: int
    only_before: int
    only_after: int


@dataclass(frozen=True)
class Changes:
    """All changes between two runs.

    Args:
      minimum_effect: The smallest difference of a time that is worth a verdict, as a share.
      compared: How many variants both runs have, of the same cases.
      against: Id of the earlier run whose programs ran next to those of the later run, or None.
      timed: How many variants the earlier run has timed.
      exact_counts: How many variants have equal exact numbers, by kind.
      names: Of all cases of the later run, `suite/case`.
      variables: Of each run, the environment variables by which they differ; empty words where they have the same.
      reports: Reports of changes between the releases of both runs, and what these say of them.
      notes: Notes that only one of both runs has, from probes that both runs have.
      edited: Ids of runs whose files have changed since they ended.
      confirming: The command that measures the code of both runs in lock-step; empty where they were measured so.
    """

    before: str
    after: str
    conditions: Conditions
    minimum_effect: float
    entries: tuple[Change, ...]
    against: str | None = None
    compared: int = 0
    timed: int = 0
    exact_counts: tuple[ExactCount, ...] = ()
    names: tuple[str, ...] = ()
    variables: tuple[str, ...] = ("", "")
    reports: tuple[JudgedReport, ...] = ()
    notes: tuple[LoneNote, ...] = ()
    edited: tuple[str, ...] = ()
    confirming: str = ""

    @property
    def sides(self) -> tuple[str, str]:
        """The names of both runs, with the variables by which they differ: `1-old (XLA_FLAGS unset)`."""
        before, after = (f" ({words})" if words else "" for words in self.variables)
        return self.before + before, self.after + after

    @property
    def exact(self) -> int:
        """How many exact numbers both runs have."""
        return sum(count.numbers for count in self.exact_counts)

    def having(self, *verdicts: Verdict) -> tuple[Change, ...]:
        """Those with some verdicts."""
        return tuple(change for change in self.entries if change.verdict in verdicts)

    @property
    def without_runtimes(self) -> tuple[Change, ...]:
        """Those that the sentence about two runtimes does not say already, once for all."""
        sentence = self.conditions.other_runtime
        return tuple(change for change in self.entries if not sentence or change.reason != sentence)

    @property
    def times(self) -> tuple[Change, ...]:
        """Those about the time of a variant."""
        return tuple(change for change in self.entries if change.metric == TIME)


def leave_out_times(changes: Changes) -> Changes:
    """The changes that follow from programs alone."""
    return replace(changes, entries=tuple(change for change in changes.entries if change.metric not in (TIME, *COLD)))


def merge(changes: Changes, confirmation: Changes) -> Changes:
    """The changes, with the times that a run of many processes has confirmed or refuted in place of the first ones.

    Stored times replace no verdict about programs that ran next to each other.
    """
    again = {change.key: change for change in confirmation.times if change.effect is not None}

    def choose(first: Change) -> Change:
        second = again.get(first.key) if first.metric == TIME else None
        is_suspected = second is not None and second.verdict is Verdict.SUSPECTED_SLOWER
        return first if second is None or (first.replayed and not second.replayed and not is_suspected) else second

    return replace(changes, entries=tuple(map(choose, changes.entries)))


def encode_fields(record: Any) -> dict[str, Any]:
    """Return a change as data. Files call the verdict a finding, as their readers do."""
    return {"finding" if name == "verdict" else name: value for name, value in msgspec.to_builtins(record).items()}


def make_change(case: Case, variant: str, metric: str, verdict: Verdict, **fields: Any) -> Change:
    """Return a change of a variant of a case.

    Args:
      variant: Its name; empty for the case as a whole.
      fields: What else the change has, by the fields of `Change`.
    """
    planned = case.planned
    return Change(
        suite=planned.suite,
        case=planned.name,
        platform=planned.platform,
        variant=variant,
        metric=metric,
        verdict=verdict,
        **fields,
    )
