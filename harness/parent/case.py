"""One case while it is measured: what its launches gave so far, and which variants the next one still looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.parent.rounds import are_cold_rounds_over, are_launches_over
from harness.plan.launches import Launch
from harness.plan.messages import Result
from harness.plan.probes import PROBES
from harness.record import (
    Artifact,
    CaseRecord,
    LaunchRecord,
    Outcome,
    PlannedCase,
    Settings,
    Status,
    VariantRecord,
    now,
)
from harness.record.outcomes import join
from harness.record.statistics import VERSION
from harness.record.timing_summary import summarise

NOTHING_TO_COMPILE = "a target runs nothing, and without a run there is nothing to tell of a variant without a program"


@dataclass
class CaseProgress:
    """What is known of a case.

    Args:
      launches: All that are planned of it.
      share_s: Its share of the run's budget. Its fewest processes are run whatever they take; more of them, and more
        launches, as far as it goes.
    """

    case: PlannedCase
    settings: Settings
    launches: Sequence[Launch]
    share_s: float
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    timed: dict[int, list[LaunchRecord]] = field(default_factory=dict)
    used_s: float = 0.0

    def __post_init__(self) -> None:
        self._started = now()
        self.outcomes = {item.name: {} for item in self.case.variants}
        for item in self.case.variants:
            if item.skip is not None:
                self.outcomes[item.name]["numerics"] = Outcome(status=Status.SKIPPED, reason=item.skip)
        self._planned = {(probe, name) for one in self.launches for probe in one.probes for name in one.looks[probe]}
        for name in self.outcomes.keys() - {name for _, name in self._planned}:
            self.outcomes[name].setdefault("numerics", Outcome(status=Status.UNSUPPORTED, reason=NOTHING_TO_COMPILE))
        self._round: dict[str, int] = {}  # which one has begun, by kind of process
        self._spent_s: dict[str, float] = {}
        self._before_s: dict[str, float] = {}  # what the case had used when the first of a kind began
        self._over: set[str] = set()  # kinds of process whose rounds have ended
        self._broken: set[tuple[str, str, str]] = set()  # process, variant and regime that ended badly

    @property
    def rounds(self) -> int:
        """How many timing launches there are."""
        return len(self.timed)

    def choose_variants(self, launch: Launch) -> tuple[str, ...]:
        """The variants that a launch still has to look at; none where its rounds have ended."""
        if self._is_over(launch):
            return ()
        return tuple(name for name in launch.variants if self._goes_on(name, launch))

    def keep(self, launch: Launch, result: Result) -> None:
        """Adds what a process found."""
        self.artifacts += result.artifacts
        for variant, outcomes in result.outcomes.items():
            for probe, outcome in outcomes.items():
                # Of timing the samples are summed up anew after every launch; a failure ends that.
                before = None if PROBES[probe].keeps_samples else self.outcomes[variant].get(probe)
                self.outcomes[variant][probe] = join(before, outcome)
                if outcome.status is not Status.OK:
                    self._broken.add((PROBES[probe].process, variant, launch.regime))
        if result.launch is not None:
            self._keep_samples(launch, result.launch)

    def spend(self, launch: Launch, seconds: float) -> None:
        """Counts what a process took."""
        self._before_s.setdefault(launch.process, self.used_s)
        self._spent_s[launch.process] = self._spent_s.get(launch.process, 0.0) + seconds
        self.used_s += seconds

    def make_record(self) -> CaseRecord:
        """The case's record, as far as it is measured."""
        return CaseRecord(
            id=self.case.id,
            name=self.case.name,
            started=self._started,
            elapsed_s=round(self.used_s, 3),
            launches=self.rounds,
            variants=tuple(VariantRecord(name=name, outcomes=outcomes) for name, outcomes in self.outcomes.items()),
            artifacts=tuple(self.artifacts),
            statistics_version=VERSION,
        )

    def _is_over(self, launch: Launch) -> bool:
        """Whether the rounds of a launch's kind have ended; looked at when a new one would begin."""
        process = launch.process
        if process not in self._over and launch.round > self._round.get(process, 0):
            if self._has_enough(launch):
                self._over.add(process)
            self._round[process] = launch.round
        return process in self._over

    def _has_enough(self, launch: Launch) -> bool:
        process = launch.process
        spent_s = self._spent_s.get(process, 0.0)
        if not any(PROBES[probe].rounds.until_precise for probe in launch.probes):
            return are_cold_rounds_over(launch.round, spent_s, self.share_s, self.settings)
        limit_s = min(self.settings.case_limit_s, self.share_s - self._before_s.get(process, 0.0))
        timings = [one[probe] for one in self.outcomes.values() for probe in launch.probes if probe in one]
        return are_launches_over(launch.round, spent_s, limit_s, self.settings, timings)

    def _goes_on(self, variant: str, launch: Launch) -> bool:
        """Whether what must have ended well before has, and nothing of this kind went wrong: it would again."""
        after = {name for probe in launch.probes for name in PROBES[probe].after}
        return (launch.process, variant, launch.regime) not in self._broken and all(
            self._status(probe, variant) is Status.OK for probe in after if (probe, variant) in self._planned
        )

    def _status(self, probe: str, variant: str) -> Status:
        outcome = self.outcomes[variant].get(probe)
        return Status.LOST if outcome is None else outcome.status

    def _keep_samples(self, launch: Launch, samples: LaunchRecord) -> None:
        """Adds raw samples, and sums up each variant's timing anew."""
        self.timed.setdefault(launch.round, []).append(samples)
        rounds = [self.timed[index] for index in sorted(self.timed)]
        seen = {item.variant for processes in rounds for one in processes for item in one.variants}
        for probe in launch.probes:
            for name in seen:
                if self._status(probe, name) in (Status.OK, Status.LOST):  # not broken since
                    self.outcomes[name][probe] = summarise(rounds, name, self.case.baseline)
