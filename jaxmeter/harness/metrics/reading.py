"""One reading of a run: a run, its cases and their variants, as all that shows, compares or exports reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from jaxmeter.harness.metrics.across import find_worst, read_metric
from jaxmeter.harness.metrics.derived import is_baseline, is_peer
from jaxmeter.harness.metrics.metric import Reading
from jaxmeter.harness.metrics.moderation import EMPTY, Pool, refer_to
from jaxmeter.harness.metrics.plausibility import is_sound
from jaxmeter.harness.metrics.pooling import find_reference, gather_pool
from jaxmeter.harness.metrics.statistics import VERSION
from jaxmeter.harness.metrics.summary import summarise_case
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import (
    INCOMPLETE,
    SCHEMA_VERSION,
    CaseRecord,
    Environment,
    Manifest,
    Outcome,
    PlannedCase,
    PlannedVariant,
    RunRecord,
    Settings,
    Status,
)
from jaxmeter.harness.record.files import CaseFolder, RunFolder, UnreadableError, read_json
from jaxmeter.harness.record.processes import ProcessRecord
from jaxmeter.harness.record.runs import Contents, explain_stop
from jaxmeter.version import __version__

D = TypeVar("D")

Key = tuple[str, str]
"""Of a case: its name and its platform."""

LOST_VARIANT = "no record of this variant in its case"


@dataclass(frozen=True, eq=False)
class Variant:
    """A planned variant of a case, its outcomes by probe, and every metric by name; a `Readable`.

    Args:
      outcomes: Under the empty name that of the variant itself, where no probe looked at it.
    """

    case: Case
    planned: PlannedVariant
    outcomes: Mapping[str, Outcome]
    _readings: dict[str, Reading] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """`implementation:mode`."""
        return self.planned.name

    @property
    def planned_case(self) -> PlannedCase:
        """What was planned of the case."""
        return self.case.planned

    @property
    def environment(self) -> Environment:
        """Where it ran."""
        return self.case.environment

    @property
    def settings(self) -> Settings:
        """How it was measured."""
        return self.case.run.settings

    @property
    def pool(self) -> Pool:
        """What it shares with the other variants of its run."""
        return self.case.run.pool

    def read(self, metric: str) -> Reading:
        """Return a metric by name; it is computed once."""
        if metric not in self._readings:
            self._readings[metric] = read_metric(self, METRICS[metric])
        return self._readings[metric]

    def find(self, variant: str) -> Variant | None:
        """Return another variant of the case; None where the case does not plan it."""
        return self.case.find(variant)

    def details(self, kind: type[D]) -> D | None:
        """Return what only the probe of this kind records."""
        return next((outcome.details for outcome in self.outcomes.values() if isinstance(outcome.details, kind)), None)

    @property
    def status(self) -> Status:
        """How the variant ended as a whole."""
        return self.worst[1].status

    @cached_property
    def worst(self) -> tuple[str, Outcome]:
        """The probe that ended worst, and how."""
        return find_worst(self.outcomes)

    @property
    def is_baseline(self) -> bool:
        """Whether the case's speedups refer to this variant."""
        return is_baseline(self)

    @property
    def is_peer(self) -> bool:
        """Whether it is of another library, and not timed in the same process as the others."""
        return is_peer(self)

    @property
    def is_too_large(self) -> bool:
        """Whether it was not run since it needs more memory than its device has."""
        return any(outcome.status is Status.TOO_LARGE for outcome in self.outcomes.values())


@dataclass(frozen=True, eq=False)
class Case:
    """A planned case of a run. A case without a record is lost."""

    run: Run
    planned: PlannedCase
    record: CaseRecord | None

    @property
    def key(self) -> Key:
        """What pairs it with a case of another run."""
        return self.planned.name, self.planned.platform

    @property
    def environment(self) -> Environment:
        """Where it ran: that of its platform."""
        return self.run.manifest.environments[self.planned.platform]

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Every planned variant, in the order of the plan."""
        return tuple(Variant(self, planned, self._find_outcomes(planned)) for planned in self.planned.variants)

    @cached_property
    def shown(self) -> tuple[Variant, ...]:
        """The baseline variant first, then the others in the order of the plan.

        Programs that an earlier run kept are left out: their times are in what changed. In a run that only confirms,
        one of them is the baseline variant.
        """
        ordered = sorted(self.variants, key=lambda variant: variant.name != self.planned.baseline)
        return tuple(item for item in ordered if item.planned.replays is None or item.name == self.planned.baseline)

    def variant(self, name: str) -> Variant:
        """Return a variant by name.

        Raises:
          KeyError: The case does not plan it.
        """
        return self._by_name[name]

    def find(self, name: str) -> Variant | None:
        """Return a variant by name; None where the case does not plan it."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Variant]:
        return {variant.name: variant for variant in self.variants}

    @property
    def baseline(self) -> Variant | None:
        """The variant that speedups refer to."""
        return self.find(self.planned.baseline)

    @cached_property
    def is_complete(self) -> bool:
        """Whether nothing failed, is wrong or is missing."""
        return self.record is not None and not any(variant.status in INCOMPLETE for variant in self.shown)

    @property
    def is_skipped(self) -> bool:
        """Whether none of its variants was to be run here, as where there are too few devices."""
        return self.record is not None and all(variant.skip is not None for variant in self.planned.variants)

    @property
    def is_lost(self) -> bool:
        """Whether the run left no record of it."""
        return self.record is None

    @property
    def why_lost(self) -> str:
        """Why a case has no record."""
        if (stop := self.run.record.stopped) is not None:
            return f"no record: the run stopped before it, since {explain_stop(stop)}; continue it with --resume"
        return "no record: the run ended before the case did, or its record cannot be read"

    @cached_property
    def _recorded(self) -> Mapping[str, Mapping[str, Outcome]]:
        return {} if self.record is None else {variant.name: variant.outcomes for variant in self.record.variants}

    def _find_outcomes(self, planned: PlannedVariant) -> Mapping[str, Outcome]:
        outcomes = self._recorded.get(planned.name, {})
        if planned.skip is not None and all(outcome.status is Status.SKIPPED for outcome in outcomes.values()):
            # Said once: the same reason for every probe would be repetition.
            return {"": Outcome(status=Status.SKIPPED, reason=planned.skip)}
        if outcomes:
            return outcomes
        return {"": Outcome(status=Status.LOST, reason=self.why_lost if self.record is None else LOST_VARIANT)}


@dataclass(frozen=True, eq=False)
class Run:
    """A recorded run: its cases, their variants, and what these share.

    Args:
      folder: The run's folder; by default the working folder.
      name: Its id, with a number if several runs that are read together have the same id.
      label: Its name on a page.
      platform: The platform whose cases are read; None for all.
      baseline: The earlier run to whose calibration loop its times are normalised; None for its own.
      other_calibration: The first run of the same machine, if that has another calibration loop.
      lent: The pool of its variants, if that is not gathered from the run.
      contents: Whether its files are as they were written.
    """

    record: RunRecord
    folder: RunFolder = field(default_factory=lambda: RunFolder(Path()))
    name: str = ""
    label: str = ""
    platform: str | None = None
    baseline: Run | None = None
    other_calibration: Run | None = None
    lent: Pool | None = None
    contents: Contents = Contents.UNKNOWN

    @property
    def manifest(self) -> Manifest:
        """What the run set out to do, and where."""
        return self.record.manifest

    @property
    def settings(self) -> Settings:
        """How it was measured."""
        return self.manifest.settings

    @property
    def where(self) -> str:
        """Its platform; of a run with all, the backend that measured."""
        return self.platform or self.manifest.backend

    @property
    def environment(self) -> Environment:
        """That of its platform."""
        return self.manifest.environments[self.where]

    @property
    def level(self) -> float:
        """Confidence of the intervals that are shown of this run."""
        shown = self.settings.shown_confidence
        return self.settings.confidence if shown is None else shown

    @property
    def verdict_level(self) -> float:
        """Confidence of the intervals that its verdicts go by."""
        return self.settings.confidence

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every planned case of its platform, in the order of the plan."""
        records = {record.id: record for record in self.record.cases}
        planned = [case for case in self.manifest.cases if self.platform in (None, case.platform)]
        return tuple(Case(self, case, records.get(case.id)) for case in planned)

    @cached_property
    def by_key(self) -> Mapping[Key, Case]:
        """The cases, by name and platform."""
        return {case.key: case for case in self.cases}

    def case(self, name: str) -> Case:
        """Return a case by name, the backend's where several platforms have it.

        Raises:
          KeyError: The run does not plan it.
        """
        own = self.by_key.get((name, self.where))
        if own is None:
            own = next((case for case in self.cases if case.planned.name == name), None)
        if own is None:
            raise KeyError(name)
        return own

    @cached_property
    def speed(self) -> Pool:
        """The pool with only its own calibration loop, or with the reason why it has none."""
        return find_reference(self._lend(EMPTY))

    @property
    def common_speed(self) -> Pool:
        """The pool with only its calibration loop, normalised to its baseline run; without the scatter of times."""
        return self.speed if self.baseline is None else self._refer(self.speed)

    @cached_property
    def pool(self) -> Pool:
        """What its variants share; it is gathered once."""
        if self.lent is not None:
            return self.lent
        own = gather_pool(self._lend(self.speed), self.speed)
        return own if self.baseline is None else self._refer(own)

    def _lend(self, pool: Pool) -> Iterable[Variant]:
        """The recorded variants, with this pool in the place of what is to be gathered from them."""
        cases = replace(self, lent=pool).cases
        return [variant for case in cases if case.record is not None for variant in case.variants]

    def _refer(self, own: Pool) -> Pool:
        assert self.baseline is not None
        return refer_to(own, self.baseline.speed, f"run {self.baseline.name or self.baseline.manifest.run_id}")


def read_case(
    planned: PlannedCase, record: CaseRecord, environment: Environment, settings: Settings, pool: Pool = EMPTY
) -> Case:
    """Return a case without a run around it, such as one that was measured in a notebook.

    Args:
      pool: What its variants share with others.
    """
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        run_id="",
        tool_version=__version__,
        started=record.started,
        backend=planned.platform,
        environments={planned.platform: environment},
        settings=settings,
        cases=(planned,),
        machine="",
    )
    (case,) = Run(RunRecord(manifest=manifest, cases=(record,)), lent=pool).cases
    return case


def split_platforms(run: Run) -> tuple[Run, ...]:
    """Return the run once for each of its platforms, the backend that measured first."""
    backend = run.manifest.backend
    others = dict.fromkeys(case.platform for case in run.manifest.cases if case.platform != backend)
    return tuple(replace(run, platform=platform) for platform in (backend, *others))


def compare_at_one_speed(before: Run, after: Run) -> tuple[Run, Run]:
    """Return both runs, the times of the later one normalised to the calibration loop of the earlier one."""
    run_id = before.manifest.run_id
    is_its_own = before.baseline is None and before.name in ("", run_id)  # then what it has gathered serves again
    earlier = before if is_its_own else replace(before, baseline=None, name=run_id)
    return earlier, replace(after, baseline=earlier)


def read_process(path: Path, planned: PlannedCase) -> ProcessRecord:
    """Read the file of a process of a case.

    Raises:
      UnreadableError: It cannot be read, or what it says cannot have been measured of the case.
    """
    process = read_json(path, ProcessRecord)
    names = {item.name for item in planned.variants}
    timed = {item.variant for item in process.variants}
    if process.case != planned.id or not names >= {*process.outcomes, *timed}:
        raise UnreadableError(f"{path}: of another case than {planned.name}")
    if not is_sound(process):
        raise UnreadableError(f"{path}: holds times that cannot have been measured")
    return process


def read_cases(folder: RunFolder, manifest: Manifest) -> tuple[tuple[CaseRecord, ...], list[str]]:
    """Return the summaries of a run without a commit mark, and what is wrong with its files.

    A summary that is missing, damaged or older than its process files is made again.
    """
    cases: list[CaseRecord] = []
    warnings: list[str] = []
    planned = {case.id: case for case in manifest.cases}
    for path in sorted(folder.cases.glob("*")):
        own, stored, damage = CaseFolder(path), None, ""
        if own.record.exists():
            try:
                stored = read_json(own.record, CaseRecord)
            except UnreadableError as error:
                damage = str(error)
        files = own.processes() if path.name in planned else []
        if files and (stored is None or stored.statistics_version < VERSION or stored.files != len(files)):
            again, faults = _make_again(planned[path.name], manifest.settings, files, stored)
            stored, warnings = again or stored, [*warnings, *faults]
        if damage:
            warnings.append(f"{damage}; " + ("this case counts as lost" if stored is None else "summed up again"))
        if stored is not None:
            cases.append(stored)
    return tuple(cases), warnings


def renew(run: RunRecord, folder: RunFolder) -> tuple[RunRecord, list[str]]:
    """Return the run with summaries by today's statistics version, and what is wrong with its files.

    A summary stays as it is where no process files are there. Those of current summaries are not opened.
    """
    cases: list[CaseRecord] = []
    warnings: list[str] = []
    planned = {case.id: case for case in run.manifest.cases}
    for case in run.cases:
        is_old = case.statistics_version < VERSION and case.id in planned
        files = folder.case(case.id).processes() if is_old else []
        again, faults = _make_again(planned[case.id], run.manifest.settings, files, case) if files else (None, [])
        cases.append(again or case)
        warnings += faults
    return msgspec.structs.replace(run, cases=tuple(cases)), warnings


def _make_again(
    planned: PlannedCase, settings: Settings, files: Sequence[Path], stored: CaseRecord | None
) -> tuple[CaseRecord | None, list[str]]:
    """The summary of the process files of a case; None where none of them can be read.

    Args:
      stored: The earlier summary, which says of how many files it is.
    """
    processes: list[ProcessRecord] = []
    warnings: list[str] = []
    if stored is not None and stored.files > len(files):
        lacks = f"{stored.files - len(files)} of {stored.files} process files are missing"
        warnings.append(f"{files[0].parent}: {lacks}; summed up from the others")
    for path in files:
        try:
            process = read_process(path, planned)
        except UnreadableError as error:
            warnings.append(f"{error}; this process is left out")
            continue
        if process.left_out is None and process in processes:
            warnings.append(f"{path}: a copy of another process file; counted once")
        else:
            processes.append(process)
    if not processes:
        return None, warnings
    try:
        return summarise_case(planned, settings, processes), warnings
    except (ValueError, ArithmeticError, LookupError) as error:  # the files may be anybody's
        return None, [*warnings, f"{files[0].parent}: cannot be summed up: {error}"]
