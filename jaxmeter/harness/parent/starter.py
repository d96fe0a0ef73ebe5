"""Runs one process of a case: a process, another where it dies or is contended, and its raw samples on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.metrics.contention import is_noisy
from jaxmeter.harness.metrics.plausibility import is_sound
from jaxmeter.harness.parent.allowance import Allowance, Holders
from jaxmeter.harness.parent.case import CaseProgress
from jaxmeter.harness.parent.ended import describe_end, describe_overrun
from jaxmeter.harness.parent.fork_client import Ended
from jaxmeter.harness.parent.limits import Overran
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.parent.scratch import Scratch
from jaxmeter.harness.parent.servers import Servers
from jaxmeter.harness.plan.messages import Measure, Result
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.plan.processes import SHAPES, PlannedProcess
from jaxmeter.harness.record import (
    NATIVE,
    PlannedCase,
    ProcessRecord,
    RecordError,
    RunFolder,
    Settings,
    read_json,
    write_json,
)

_OTHER_ORDER = 1_000
"""Added to the seed of a process that replaces another: the same order again would be the same draw again."""


@dataclass(frozen=True)
class Starter:
    """Runs the processes of a run, one at a time."""

    settings: Settings
    folder: RunFolder
    servers: Servers
    watcher: Watcher
    platforms: Mapping[str, Platform]
    holders: Holders

    def start(
        self, process: PlannedProcess, variants: tuple[str, ...], progress: CaseProgress, allowance: Allowance
    ) -> bool:
        """Runs one process; one that dies costs the variant that it was at, and is repeated without it.

        What the budget's end leaves of it undone, `progress` is told.

        Returns:
          Whether a process was run; else an interrupted run has left its samples.
        """
        kept = self._read_kept(process, variants, progress)
        if kept is not None:
            progress.keep(process, Result(process=kept))
            return False
        side_by_side = any(PROBES[probe].side_by_side for probe in process.probes)
        is_first = True
        while variants and (is_first or allowance.left_s() > 0):
            is_first = False
            ended = self._start_process(process, variants, progress, allowance)
            if isinstance(ended.answer, Result):
                self._write_samples(process, ended.answer, progress)
                if allowance.left_s() > 0:
                    result = self._replace_contended(ended.answer, process, variants, progress, allowance)
                else:
                    result = ended.answer
                progress.keep(process, result)
                broken = tuple(ended.answer.outcomes) if side_by_side else variants
            elif ended.overran is Overran.BUDGET:
                progress.cut(process, variants, ended.last.variant, describe_overrun(ended, process.kind, allowance))
                return True
            elif process.kind == SHAPES:  # one that fails knows nothing; the check will tell
                return True
            else:
                broken = variants if ended.last.variant is None else (ended.last.variant,)
                outcome = describe_end(ended, self._stage_limit_s(progress.case))
                if ended.overran is not None:
                    words = describe_overrun(ended, process.kind, allowance)
                    outcome = msgspec.structs.replace(outcome, reason=words)
                assignments = process.assignments.items()
                outcomes = {name: {probe: outcome for probe, names in assignments if name in names} for name in broken}
                progress.keep(process, Result(outcomes=outcomes))
            variants = tuple(name for name in variants if name not in broken) if broken else ()
        if variants:  # there is no time for another process without the broken ones
            progress.cut(process, variants)
        return True

    def _replace_contended(
        self,
        result: Result,
        process: PlannedProcess,
        variants: tuple[str, ...],
        progress: CaseProgress,
        allowance: Allowance,
    ) -> Result:
        """The result; of a contended process that of a fresh process, which the system may place better.

        That happens at most once a round, and counts only if it ends well. What was replaced is kept on disk. Where the
        fresh process is contended too, it is no bad luck: later processes of the same variants are not replaced.
        """
        samples, in_vain = result.process, process.variants in progress.replaced_in_vain
        if samples is None or not is_noisy(samples) or process.round in progress.tried_again or in_vain:
            return result
        progress.tried_again.add(process.round)
        again = self._start_process(process, variants, progress, allowance, again=True).answer
        if not isinstance(again, Result) or again.process is None:
            return result
        write_json(self._samples_path(process, progress.case, replaced=True), samples)
        self._write_samples(process, again, progress)
        progress.replaced += 1
        if is_noisy(again.process):
            progress.replaced_in_vain.add(process.variants)
        return again

    def _write_samples(self, process: PlannedProcess, result: Result, progress: CaseProgress) -> None:
        """Raw samples are on disk before anything is made of them."""
        if result.process is not None:
            write_json(self._samples_path(process, progress.case), result.process)

    def _read_kept(
        self, process: PlannedProcess, variants: tuple[str, ...], progress: CaseProgress
    ) -> ProcessRecord | None:
        """Raw samples that an interrupted run has left of the same variants.

        Not of a case without a record: nothing would tell whether its programs are the same, compiled again.
        """
        if progress.rounds == 0 or not process.keeps_samples:
            return None
        try:
            kept = read_json(self._samples_path(process, progress.case), ProcessRecord)
        except RecordError:  # not there, or damaged: measured again
            return None
        return kept if is_sound(kept) and {item.variant for item in kept.variants} == set(variants) else None

    def _samples_path(self, process: PlannedProcess, case: PlannedCase, *, replaced: bool = False) -> Path:
        native = {item.name for item in case.variants if item.mode == NATIVE}
        peer = process.variants[0] if process.variants[0] in native else None
        return self.folder.case(case.id).process(process.round, peer, replaced=replaced)

    def _start_process(
        self,
        process: PlannedProcess,
        variants: tuple[str, ...],
        progress: CaseProgress,
        allowance: Allowance,
        *,
        again: bool = False,
    ) -> Ended:
        case, settings, platform = progress.case, self.settings, self.platforms[progress.case.platform]
        arms = self.servers.arms_of(platform, process.round) if process.keeps_samples else None
        scratch = Scratch(self.servers.scratch / self.folder.path.name)
        on_beat = self.holders.watch(case, process, self.watcher.beat)
        ended = self.servers.of(platform).run(
            lambda result: Measure(
                process=process.limit_to(variants),
                case=case,
                platform=platform,
                settings=settings,
                seed=settings.seed + process.round + (_OTHER_ORDER if again else 0),
                cache=str(scratch.cache),
                inputs=str(scratch.inputs(case.id)),
                folder=str(self.folder.case(case.id).path),
                result=result,
                arms=arms,
            ),
            stage_limit_s=self._stage_limit_s(case),
            stage_share_s=allowance.find_stage_s(),
            end_s=allowance.find_end_s(),
            on_beat=on_beat,
        )
        self.holders.stop()
        return ended

    def _stage_limit_s(self, case: PlannedCase) -> float:
        return case.time_limit_s or self.settings.stage_limit_s
