"""Measuring one case: check, cold compilations, timing launches, trace; each in processes of its own. No jax."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from harness.parent.fork_client import Ended, ForkServer
from harness.plan.cases import (
    CASE_LIMIT_S,
    cached_variants,
    called_variants,
    jax_variants,
    peer_variants,
    regimes,
    traced_variants,
)
from harness.plan.messages import (
    CACHING,
    CHECK,
    COMPILATION,
    RESIDENCY,
    SHAPES,
    TIMING,
    TRACE,
    Heartbeat,
    Launch,
    Problem,
    Result,
)
from harness.record import (
    Artifact,
    CaseRecord,
    LaunchRecord,
    Number,
    Outcome,
    PlannedCase,
    RecordError,
    Settings,
    Status,
    VariantRecord,
    read_json,
    write_json,
)
from harness.record.outcomes import joined
from harness.record.statistics import FEWEST_LAUNCHES, VERSION, Interval, geometric_interval, speedup
from harness.record.timing_summary import summarise

SEVERAL = (COMPILATION, CACHING, RESIDENCY)
"""Kinds of process whose outcome stands beside that of others."""

COLD_SHARE, MOST_COLD_SHARE = 1 / 3, 1.5
"""Cold processes are cut to three rounds, the fewest that give an interval, beyond this share of the case's time for
timing; and to fewer beyond the other, of what any case of the level may take."""

BEHIND = 1 / 3
"""Of what any case may take. Where a case's share is less, the run is late: the next case comes before an interval."""

OnBeat = Callable[[Heartbeat], None]


@dataclass
class CaseMeasurement:
    """One case while it is measured.

    Args:
      folder: The case's own, in the run.
      cache: The run's private compilation cache, filled by the check.
      share_s: The case's share of the run's budget. Its fewest processes are run whatever they take; more of them,
        and more launches, as far as it goes.
    """

    case: PlannedCase
    settings: Settings
    backend: str
    server: ForkServer
    folder: Path
    cache: Path
    share_s: float
    on_beat: OnBeat
    on_launch: Callable[[int], None]
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    launches: int = 0

    def measure(self) -> CaseRecord:
        """Runs all the processes of the case and returns its record."""
        self._start = time.monotonic()
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self.outcomes = {item.name: {} for item in self.case.variants}
        for item in self.case.variants:
            if item.skip is not None:
                self.outcomes[item.name]["numerics"] = Outcome(status=Status.SKIPPED, reason=item.skip)
        self._check()
        if "memory" in self.settings.probes:
            for group in self._by_allocator(self._sound(called_variants(self.case))):
                self._launch(RESIDENCY, group, ("memory",))
        if "compilation" in self.settings.probes:
            self._cold_rounds(COMPILATION, jax_variants(self.case), [""])
        if cached := cached_variants(self.case, self.settings):
            self._cold_rounds(CACHING, cached, regimes(self.case))
        if "timing" in self.settings.probes:
            self._time()
        if traced := traced_variants(self.case, self.settings):
            self._launch(TRACE, self._sound(traced), ("trace",))
        return CaseRecord(
            id=self.case.id,
            name=self.case.name,
            started=started,
            elapsed_s=round(self._elapsed(), 3),
            launches=self.launches,
            variants=tuple(VariantRecord(name=name, outcomes=outcomes) for name, outcomes in self.outcomes.items()),
            artifacts=tuple(self.artifacts),
            statistics_version=VERSION,
        )

    @property
    def _erring(self) -> set[str]:
        """Variants that raise an error, as declared: there is nothing to measure."""
        return {item.name for item in self.case.variants if item.raises is not None}

    @property
    def _limit_s(self) -> float:
        """The longest that timing may take."""
        return min(self.settings.case_limit_s, self.share_s)

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _check(self) -> None:
        probes = tuple(name for name in ("numerics", "memory") if name in self.settings.probes)
        everything = (*jax_variants(self.case), *peer_variants(self.case))
        answer = self._run(SHAPES, everything, probes, 0, "").answer
        if isinstance(answer, Result):  # one that fails knows nothing; the check will tell
            self._keep(SHAPES, answer)
        self._launch(CHECK, self._unseen(jax_variants(self.case)), probes)
        self._launch(CHECK, self._unseen(peer_variants(self.case)), ("numerics",))

    def _unseen(self, variants: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in variants if not self.outcomes[name])

    def _by_allocator(self, variants: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Variants whose memory one process can tell: all where the count can be reset, else one each."""
        return [variants] if self.backend == "cpu" else [(name,) for name in variants]

    def _cold_rounds(self, kind: str, variants: Sequence[str], states: Sequence[str]) -> None:
        """A fresh process for every variant and state of the caches, and again: a slow moment hits none alone."""
        start, failed = self._elapsed(), set()
        for index in range(self.settings.cold_launches):
            if self._long_enough(index, self._elapsed() - start):
                return
            for state in states:
                for variant in self._sound(variants):
                    if (variant, state) in failed:  # it would fail again
                        continue
                    answer = self._launch(kind, (variant,), (kind,), index=index, regime=state)
                    outcome = answer.outcomes.get(variant, {}).get(kind)
                    if outcome is None or outcome.status is not Status.OK:
                        failed.add((variant, state))

    def _long_enough(self, rounds: int, elapsed_s: float) -> bool:
        """Whether cold rounds end here: more than three take a moderate share of the time for timing, fewer a large."""
        if rounds == 0 or self.settings.launches is not None:
            return False
        if rounds >= FEWEST_LAUNCHES:
            return elapsed_s > COLD_SHARE * self._limit_s
        of_any_s = CASE_LIMIT_S[self.settings.level]
        late = self.share_s < BEHIND * of_any_s
        return elapsed_s > MOST_COLD_SHARE * (self._limit_s if late else max(self._limit_s, of_any_s))

    def _sound(self, variants: Iterable[str]) -> tuple[str, ...]:
        """Those that gave the right answer and have not failed since: a wrong or broken one has no speed."""
        return tuple(
            name
            for name in variants
            if name not in self._erring
            and self.outcomes[name].get("numerics", Outcome(status=Status.LOST)).status is Status.OK
            and self.outcomes[name].get("timing", Outcome(status=Status.OK)).status is Status.OK
        )

    def _time(self) -> None:
        """Launches until the intervals are narrow enough, or the case's time is up."""
        rounds: list[list[LaunchRecord]] = []
        start = self._elapsed()
        limit_s = min(self._limit_s, self.share_s - start)
        while True:
            groups = [self._sound(jax_variants(self.case))]
            groups += [(peer,) for peer in self._sound(peer_variants(self.case))]
            groups = [group for group in groups if group]
            if not groups:
                return
            processes = (self._timing_launch(group, len(rounds)) for group in groups)
            rounds.append([process for process in processes if process is not None])
            self.launches = len(rounds)
            self.on_launch(self.launches)
            self._summarise(rounds)
            if self._enough(len(rounds), self._elapsed() - start, limit_s):
                return

    def _timing_launch(self, group: tuple[str, ...], index: int) -> LaunchRecord | None:
        """One process's raw samples: from disk where an interrupted run has left them, else measured."""
        peer = "" if group[0] in jax_variants(self.case) else f"-{group[0].replace(':', '-')}"
        path = self.folder / "launches" / f"{index:02d}{peer}.json.gz"
        if (kept := _kept(path)) is not None and {item.variant for item in kept.variants} == set(group):
            return kept
        launch = self._launch(TIMING, group, ("timing",), index=index).launch
        if launch is not None:
            write_json(path, launch)
        return launch

    def _summarise(self, rounds: list[list[LaunchRecord]]) -> None:
        for name in self._sound((*jax_variants(self.case), *peer_variants(self.case))):
            self.outcomes[name]["timing"] = summarise(rounds, name, self.case.baseline)

    def _enough(self, count: int, elapsed_s: float, limit_s: float) -> bool:
        settings = self.settings
        if settings.launches is not None:
            return count >= settings.launches
        if count >= settings.looks[-1] or (count in settings.looks and self._precise()):
            return True
        return count >= FEWEST_LAUNCHES and elapsed_s > limit_s

    def _precise(self) -> bool:
        """Whether every ratio's interval is as narrow as wanted; the times' own where there is no ratio."""
        looks = len(self.settings.looks)
        ratios, times = self._launches_of("log_ratio"), self._launches_of("execution_s")
        intervals = [speedup(values, looks=looks) for values in ratios]
        if not intervals:
            intervals = [geometric_interval(values, looks=looks) for values in times]
        return all(_narrow(interval, self.settings.target_half_width) for interval in intervals)

    def _launches_of(self, metric: str) -> list[list[Number]]:
        """Each variant's values of a timing metric, without the missing ones."""
        timings = [
            outcomes["timing"].values.get(metric, ()) for outcomes in self.outcomes.values() if "timing" in outcomes
        ]
        known = [[value for value in values if value is not None] for values in timings]
        return [values for values in known if values]

    def _launch(
        self, kind: str, variants: tuple[str, ...], probes: tuple[str, ...], *, index: int = 0, regime: str = ""
    ) -> Result:
        """Runs one process; one that dies costs the variant that it was at, and is repeated without it."""
        while variants:
            ended = self._run(kind, variants, probes, index, regime)
            if isinstance(ended.answer, Result):
                self._keep(kind, ended.answer)
                broken = [name for name in ended.answer.outcomes if kind == TIMING]
                if not broken:
                    return ended.answer
                variants = tuple(name for name in variants if name not in broken)
                continue
            outcome = _outcome(ended, self._stage_limit_s())
            lost = variants if ended.last.variant is None else (ended.last.variant,)
            self._keep(kind, Result(outcomes={name: dict.fromkeys(probes, outcome) for name in lost}))
            variants = tuple(name for name in variants if name not in lost)
        return Result()

    def _run(self, kind: str, variants: tuple[str, ...], probes: tuple[str, ...], index: int, regime: str) -> Ended:
        return self.server.run(
            lambda result: Launch(
                kind=kind,
                case=self.case,
                variants=variants,
                probes=probes,
                suites=self.settings.suites,
                backend=self.backend,
                settings=self.settings,
                index=index,
                seed=self.settings.seed + index,
                regime=regime,
                cache=str(self.cache),
                folder=str(self.folder),
                result=result,
            ),
            stage_limit_s=self._stage_limit_s(),
            on_beat=self.on_beat,
        )

    def _stage_limit_s(self) -> float:
        return self.case.time_limit_s or self.settings.stage_limit_s

    def _keep(self, kind: str, result: Result) -> None:
        self.artifacts += result.artifacts
        for name, outcomes in result.outcomes.items():
            for probe, outcome in outcomes.items():
                before = self.outcomes[name].get(probe) if kind in SEVERAL else None
                self.outcomes[name][probe] = joined(before, outcome)


def _kept(path: Path) -> LaunchRecord | None:
    if not path.exists():
        return None
    try:
        return read_json(path, LaunchRecord)
    except RecordError:  # damaged: measured again
        return None


def _narrow(interval: Interval, target: float) -> bool:
    return interval.half_width is not None and interval.half_width <= target


def _outcome(ended: Ended, limit_s: float) -> Outcome:
    """What to record of a process that gave no result."""
    stderr = ended.stderr or None
    if isinstance(ended.answer, Problem):
        return Outcome(status=Status.FAILED, reason=ended.answer.message, stderr=stderr)
    stage = f"in stage '{ended.last.stage}'"
    if ended.timed_out:
        reason = f"no progress for {limit_s:g} s {stage}, so it was ended; a workload's time_limit_s sets this limit"
        return Outcome(status=Status.TIMED_OUT, reason=reason, stderr=stderr)
    if ended.signal is not None:
        return Outcome(status=Status.KILLED, reason=f"ended by {_signal(ended)} {stage}{_memory(ended)}", stderr=stderr)
    said = f": {ended.stderr.splitlines()[-1]}" if ended.stderr else ""
    return Outcome(status=Status.FAILED, reason=f"exited with code {ended.code} {stage}{said}", stderr=stderr)


def _signal(ended: Ended) -> str:
    try:
        return signal.Signals(ended.signal or 0).name
    except ValueError:
        return f"signal {ended.signal}"


def _memory(ended: Ended) -> str:
    if ended.signal != signal.SIGKILL:
        return ""
    held = f"; it held {ended.peak_bytes / 2**30:.2f} GiB" if ended.peak_bytes else ""
    return f", which the harness did not send; often that is the kernel, out of memory{held}"
