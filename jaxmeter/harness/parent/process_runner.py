"""Runs one process of a case, another where it dies or is contended; what is recorded of one without a result."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jaxmeter.harness.machine.platforms import Platform
from jaxmeter.harness.metrics.within import is_noisy
from jaxmeter.harness.parent.case import CaseProgress, lose
from jaxmeter.harness.parent.fork_client import Ended, Overran, silence_limit_s
from jaxmeter.harness.parent.prepare_run import Scratch
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.parent.rounds import Holders, ProcessAllowance
from jaxmeter.harness.parent.servers import Servers
from jaxmeter.harness.plan.messages import Measure, Result, SuiteProblem
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.plan.processes import SHAPES, PlannedProcess
from jaxmeter.harness.plan.settings import EXTRA_BLOCKS
from jaxmeter.harness.record import Outcome, PlannedCase, ProcessRecord, RunFolder, Settings, Status, now, write_json
from jaxmeter.harness.record.files import name_replaced

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
    clock: Callable[[], float]

    def start(
        self, process: PlannedProcess, variants: tuple[str, ...], progress: CaseProgress, allowance: ProcessAllowance
    ) -> None:
        """Runs one process; one that dies costs the variant that it was at, and is repeated without it."""
        side_by_side = any(PROBES[probe].side_by_side for probe in process.probes)
        is_first = True
        while variants and (is_first or allowance.left_s() > 0):
            is_first = False
            started, begun_s = now(), self.clock()
            ended = self._start_process(process, variants, progress, allowance)
            if isinstance(ended.answer, Result):
                result = ended.answer
                done = tuple(result.outcomes) or variants if side_by_side else variants
            elif ended.overran is Overran.BUDGET:
                progress.is_cut, done = True, variants
                words = describe_overrun(ended, process.kind, allowance)
                result = lose(process, variants, ended.last.variant, words)
            elif process.kind == SHAPES:  # if it fails, the check reports the reason
                result, done = Result(), variants
            else:
                done = variants if ended.last.variant is None else (ended.last.variant,)
                outcome = describe_end(ended, self._stage_limit_s(progress.case))
                if ended.overran is not None:
                    words = describe_overrun(ended, process.kind, allowance)
                    outcome = msgspec.structs.replace(outcome, reason=words)
                assignments = process.assignments.items()
                outcomes = {name: {probe: outcome for probe, names in assignments if name in names} for name in done}
                result = Result(outcomes=outcomes)
            seed = self._choose_seed(process)
            record = progress.make_record_of(
                process, done, result, started=started, elapsed_s=self.clock() - begun_s, seed=seed
            )
            path = self.folder.case(progress.case.id).next_process(process.kind)
            write_json(path, record)  # on disk before anything is made of it
            if allowance.left_s() > 0:
                record = self._replace_contended(record, path, process, variants, progress, allowance)
            progress.add(record)
            variants = tuple(name for name in variants if name not in done)
        if variants:  # there is no time for another process without the broken ones
            progress.is_cut = True

    def leave_out(
        self, assignments: dict[str, tuple[str, ...]], index: int, reason: str, progress: CaseProgress
    ) -> None:
        """Notes that something is not looked at, until the run goes on."""
        record = progress.leave_out(assignments, index, reason)
        write_json(self.folder.case(progress.case.id).next_process(record.kind), record)
        progress.add(record)

    def _replace_contended(
        self,
        record: ProcessRecord,
        path: Path,
        process: PlannedProcess,
        variants: tuple[str, ...],
        progress: CaseProgress,
        allowance: ProcessAllowance,
    ) -> ProcessRecord:
        """The record; of a contended process that of a fresh process, which the system may place better.

        That happens at most once a round, and counts only if it ends well. What was replaced is kept on disk. Where the
        fresh process is contended too, it is no bad luck: later processes of the same variants are not replaced.
        """
        in_vain = process.variants in progress.replaced_in_vain
        if not record.variants or not is_noisy(record) or process.round in progress.tried_again or in_vain:
            return record
        progress.tried_again.add(process.round)
        started, begun_s = now(), self.clock()
        answer = self._start_process(process, variants, progress, allowance, again=True).answer
        if not isinstance(answer, Result) or answer.process is None:
            return record
        elapsed_s, seed = record.elapsed_s + self.clock() - begun_s, self._choose_seed(process, again=True)
        again = progress.make_record_of(process, variants, answer, started=started, elapsed_s=elapsed_s, seed=seed)
        again = msgspec.structs.replace(again, replaces=True)
        write_json(name_replaced(path), record)
        write_json(path, again)
        if is_noisy(again):
            progress.replaced_in_vain.add(process.variants)
        return again

    def _choose_seed(self, process: PlannedProcess, *, again: bool = False) -> int:
        return self.settings.seed + process.round + (_OTHER_ORDER if again else 0)

    def _start_process(
        self,
        process: PlannedProcess,
        variants: tuple[str, ...],
        progress: CaseProgress,
        allowance: ProcessAllowance,
        *,
        again: bool = False,
    ) -> Ended:
        case, settings, platform = progress.case, self.settings, self.platforms[progress.case.platform]
        if process.keeps_samples and process.round >= settings.most_rounds:
            settings = msgspec.structs.replace(settings, blocks=min(settings.blocks, EXTRA_BLOCKS))
        arms = self.servers.arms_of(platform, process.round) if process.keeps_samples else None
        cores = settings.cores if arms is None else settings.process_cores
        scratch = Scratch(self.servers.scratch / self.folder.path.name)
        on_beat = self.holders.watch(case, process, self.watcher.beat)
        ended = self.servers.of(platform).run(
            lambda result: Measure(
                process=process.limit_to(variants),
                case=case,
                platform=platform,
                settings=settings,
                seed=self._choose_seed(process, again=again),
                cores=cores,
                cache=str(scratch.cache(cores)),
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


def describe_end(ended: Ended, limit_s: float) -> Outcome:
    """The outcome of each variant that the process was at.

    Args:
      limit_s: The longest silence that it was allowed in a stage of a variant.
    """
    stderr = ended.stderr or None
    if isinstance(ended.answer, SuiteProblem):
        return Outcome(status=Status.FAILED, reason=ended.answer.message, stderr=stderr)
    stage = f"in stage '{ended.last.stage}'"
    if ended.timed_out:
        silence_s = silence_limit_s(ended.last, limit_s)
        sets = "a workload's time_limit_s sets this limit"
        if silence_s > limit_s:
            sets = (
                f"before the first variant the limit is {silence_s:g} s, or a workload's time_limit_s if it is longer"
            )
        reason = f"no progress for {silence_s:g} s {stage}, so it was ended; {sets}"
        return Outcome(status=Status.TIMED_OUT, reason=reason, stderr=stderr)
    if ended.signal is not None:
        reason = f"ended by {_name_signal(ended.signal)} {stage}{_suspect_memory(ended)}"
        return Outcome(status=Status.KILLED, reason=reason, stderr=stderr)
    words = f": {ended.stderr.splitlines()[-1]}" if ended.stderr else ""
    return Outcome(status=Status.FAILED, reason=f"exited with code {ended.code} {stage}{words}", stderr=stderr)


def describe_overrun(ended: Ended, process: str, allowance: ProcessAllowance) -> str:
    """Why the budget ended a process: names the process, and the variant and stage that it was at.

    Args:
      process: Its kind.
    """
    at = f"variant '{ended.last.variant}', " if ended.last.variant is not None else ""
    since = f" for {ended.stage_s:.0f} s" if ended.stage_s >= 1 else ""
    was = f"process '{process}' had been at {at}stage '{ended.last.stage}'{since}"
    budget = f"the budget of {allowance.budget_s:g} s"
    if ended.overran is Overran.STAGE:
        return (
            f"{was}, its share of {budget}, so it was ended: other cases wait for that time; a run with a larger "
            "--budget, or of this case alone (--select), gives it more"
        )
    return (
        f"{was} when {budget} had been used up for {allowance.grace_s:g} s, so it was ended; "
        "continue with --resume, or give a larger --budget"
    )


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _suspect_memory(ended: Ended) -> str:
    if ended.signal != signal.SIGKILL:
        return ""
    held = f"; it held {ended.peak_bytes / 2**30:.2f} GiB" if ended.peak_bytes else ""
    return f", which the harness did not send; often that is the kernel, out of memory{held}"
