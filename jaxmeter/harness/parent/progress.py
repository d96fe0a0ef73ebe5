"""What a person sees while a run goes on: a live bar on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from jaxmeter.document.terminal import to_ascii
from jaxmeter.harness.parent.case import describe_estimate, describe_seconds
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import INCOMPLETE, CaseRecord, Manifest, PlannedCase, Status
from jaxmeter.harness.record.outcomes import join_remarks, key_of
from jaxmeter.harness.record.wording import counted

REFRESHES_PER_S = 2
"""Drawing takes processor time from the measurement: 10 times a second, with a heartbeat for each block, took 7 % of a
core on the reference machine."""

SAID_EVERY_S = 60.0
"""Longest time between two lines of a log about the run's progress: a round takes minutes."""


class Watcher:
    """A receiver of the events of a run. This class shows nothing (`--quiet`)."""

    def run_started(self, manifest: Manifest, folder: Path, processes: int, budget_s: float) -> None:
        """The run begins, with so many processes planned and so many seconds for them."""

    def round_started(self, number: int, of: int, processes_left: int, end_s: float | None = None) -> None:
        """Receive the start of a round over all cases.

        Args:
          number: Number of the round, from 1.
          processes_left: Processes that remain as far as is known, with those of this round.
          end_s: Predicted end of the run in seconds after its start; None before anything is known.
        """

    def process_started(self, process: PlannedProcess) -> None:
        """A process begins."""

    def beat(self, heartbeat: Heartbeat) -> None:
        """A process begins a stage; called many times a second."""

    def process_ended(self, process: PlannedProcess, used_s: float) -> None:
        """A process has ended; `used_s` of the budget are gone."""

    def case_written(self, record: CaseRecord) -> None:
        """A case's part of a round is done, and its record on disk."""

    def case_ended(self, record: CaseRecord, used_s: float) -> None:
        """A case is complete, and is not measured any more."""

    def case_lost(self, case: PlannedCase, reason: str) -> None:
        """A case will not be measured."""

    def said(self, text: str) -> None:
        """Something that a person should know now, in one line."""

    def run_ended(self) -> None:
        """The run ends; no other method is called after this one."""


@dataclass
class _Troubles:
    """The troubles of a run, each of which is reported once, as soon as a record has it."""

    reported: set[tuple[str, str]] = field(default_factory=set)

    def find_new(self, record: CaseRecord) -> list[str]:
        """Return the troubles not reported before. Lost variants are left out: the run may still measure them."""
        new = self._list_unreported(record, lost=False)
        self.reported.update((record.name, key_of(remark)) for _, remark in new)
        return [f"{record.name}: {trouble}" for trouble in join_remarks(new)]

    def find_left(self, record: CaseRecord) -> list[str]:
        """Return the troubles of a case that has ended which were not reported before."""
        return join_remarks(self._list_unreported(record))

    def _list_unreported(self, record: CaseRecord, *, lost: bool = True) -> list[tuple[str, str]]:
        remarks = _list_remarks(record, lost=lost)
        return [(name, remark) for name, remark in remarks if (record.name, key_of(remark)) not in self.reported]


class Lines(Watcher):
    """A line for each round, minute and case, and one for each trouble as it happens: for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._troubles = _Troubles()
        self._left = 0
        self._said_at_s = 0.0
        self._used_s = 0.0
        self._budget_s = 0.0
        self._end_s: float | None = None
        self._manifest: Manifest | None = None
        self._names: dict[str, str] = {}
        self._estimates: dict[str, str] = {}

    def run_started(self, manifest: Manifest, folder: Path, processes: int, budget_s: float) -> None:
        """Print the run's name."""
        self._manifest, self._names = manifest, {case.id: case.name for case in manifest.cases}
        self._budget_s = budget_s
        self.said(_announce(manifest, folder, processes))

    def round_started(self, number: int, of: int, processes_left: int, end_s: float | None = None) -> None:
        """Print how far the run is."""
        self._left, self._said_at_s, self._end_s = processes_left, self._used_s, end_s
        self.said(f"round {number} of {of}: {self._where()}")

    def process_ended(self, process: PlannedProcess, used_s: float) -> None:
        """Print how far the run is, unless this was printed a short time ago; the end of the budget at once."""
        is_over = self._used_s <= self._budget_s < used_s
        self._left, self._used_s = max(0, self._left - 1), used_s
        if is_over or used_s - self._said_at_s >= SAID_EVERY_S:
            self._said_at_s = used_s
            name = self._names[process.case]
            by = f"process '{process.kind}' of {name} ended; " if is_over else ""
            estimate = self._estimates.get(process.case, "")
            self.said(f"    {by}{self._where()}{f'; {name}: {estimate}' if estimate else ''}")

    def case_written(self, record: CaseRecord) -> None:
        """Keep the case's estimate, and print each new trouble at once."""
        self._estimates[record.id] = self._describe_estimate(record)
        for trouble in self._troubles.find_new(record):
            self.said(trouble)

    def case_ended(self, record: CaseRecord, used_s: float) -> None:
        """Print how the case ended, with a line for each trouble that was not printed before."""
        self._used_s = used_s
        processes = counted(record.processes, "process", "processes")
        estimate = self._describe_estimate(record)
        self.said(
            f"{record.status.value:9} {record.name}  {record.elapsed_s:.1f} s, {processes}; {self._used()}"
            f"{'; ' if estimate else ''}{estimate}"
        )
        for trouble in self._troubles.find_left(record):
            self.said(f"    {trouble}")

    def case_lost(self, case: PlannedCase, reason: str) -> None:
        """Says why."""
        self.said(f"lost      {case.name}: {reason}")

    def said(self, text: str) -> None:
        """Prints it."""
        takes_all = (self._stream.encoding or "utf").lower().startswith("utf")
        print(printable(text) if takes_all else to_ascii(printable(text)), file=self._stream, flush=True)

    def _describe_estimate(self, record: CaseRecord) -> str:
        return "" if self._manifest is None else describe_estimate(self._manifest, record)

    def _where(self) -> str:
        left_s = 0.0 if self._end_s is None else self._end_s - self._used_s
        to_go = f", about {describe_seconds(left_s)} to go" if left_s > 0 else ""
        return f"{counted(self._left, 'process', 'processes')} left; {self._used()}{to_go}"

    def _used(self) -> str:
        return _describe_used(self._used_s, self._budget_s)


def _describe_used(used_s: float, budget_s: float) -> str:
    if used_s - budget_s >= 1:
        return f"{used_s:.0f} s used, {used_s - budget_s:.0f} s over the budget of {budget_s:.0f} s"
    of = f" of {budget_s:.0f}" if math.isfinite(budget_s) else ""
    return f"{used_s:.0f}{of} s used"


@dataclass
class _At:
    """The position in a run. Its text is made when the bar is drawn, and not at each event."""

    manifest: Manifest | None = None
    names: dict[str, str] = field(default_factory=dict)
    estimates: dict[str, str] = field(default_factory=dict)
    budget_s: float = 1.0
    used_s: float = 0.0
    end_s: float | None = None
    round: str = ""
    case: str = ""
    kind: str = ""
    heartbeat: Heartbeat | None = None

    def write(self) -> str:
        """Return round, budget, time to go, case, its estimate, and stage; a narrow terminal cuts off the end."""
        stage = self.kind
        if self.heartbeat is not None:
            of = f"{self.heartbeat.variant} " if self.heartbeat.variant else ""
            stage = f"{self.kind}: {of}{self.heartbeat.stage}"
        share = f"budget {100 * self.used_s / self.budget_s:.0f} %"
        is_within = math.isfinite(self.budget_s) and self.used_s <= self.budget_s
        budget = share if is_within else _describe_used(self.used_s, self.budget_s)
        left_s = 0.0 if self.end_s is None else self.end_s - self.used_s
        to_go = f"{describe_seconds(left_s)} to go" if left_s > 0 else ""
        case = self.names.get(self.case, "")
        return "  ".join(filter(None, (self.round, budget, to_go, case, self.estimates.get(self.case, ""), stage)))


class _Where(ProgressColumn):
    """The text next to the bar."""

    def __init__(self, at: _At) -> None:
        super().__init__()
        self._at = at

    def render(self, task: Task) -> Text:
        """Return the text of the run's current position."""
        return Text(printable(self._at.write()), overflow="ellipsis", no_wrap=True)


class Live(Watcher):
    """A bar that grows with every process, with round, case, stage and budget; troubles scroll by above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._troubles = _Troubles()
        self._at = _At()
        self._bar = Progress(
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f} %"),
            _Where(self._at),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            refresh_per_second=REFRESHES_PER_S,
        )
        self._task = self._bar.add_task("run", total=None)

    def run_started(self, manifest: Manifest, folder: Path, processes: int, budget_s: float) -> None:
        """Names the run and shows the bar."""
        self._at.manifest, self._at.names = manifest, {case.id: case.name for case in manifest.cases}
        self._at.budget_s = budget_s
        self.said(_announce(manifest, folder, processes))
        self._bar.update(self._task, total=processes)
        self._bar.start()

    def round_started(self, number: int, of: int, processes_left: int, end_s: float | None = None) -> None:
        """Shows the round; what is left may have become less."""
        self._at.round, self._at.end_s = f"round {number} of {of}", end_s
        self._bar.update(self._task, total=self._bar.tasks[0].completed + processes_left)

    def process_started(self, process: PlannedProcess) -> None:
        """Shows the case and the kind of process."""
        self._at.case, self._at.kind = process.case, process.kind
        self._at.heartbeat = None

    def beat(self, heartbeat: Heartbeat) -> None:
        """Keeps the stage for when the bar is drawn."""
        self._at.heartbeat = heartbeat

    def process_ended(self, process: PlannedProcess, used_s: float) -> None:
        """Advances."""
        self._at.used_s = used_s
        self._bar.update(self._task, advance=1)

    def case_written(self, record: CaseRecord) -> None:
        """Show the case's estimate, and print each new trouble."""
        if self._at.manifest is not None:
            self._at.estimates[record.id] = describe_estimate(self._at.manifest, record)
        for trouble in self._troubles.find_new(record):
            self._print(trouble, "red")

    def case_lost(self, case: PlannedCase, reason: str) -> None:
        """Says why."""
        self._print(f"{case.name}: lost: {reason}", "red")

    def said(self, text: str) -> None:
        """Prints it above the bar."""
        self._print(text, "")

    def run_ended(self) -> None:
        """Removes the bar."""
        self._bar.stop()

    def _print(self, text: str, style: str) -> None:
        self._console.print(escape(printable(text)), style=style, highlight=False, soft_wrap=True)


def _list_remarks(record: CaseRecord, *, lost: bool = True) -> list[tuple[str, str]]:
    """Variant, and how and why one of its probes ended so that the run is incomplete or something was too large.

    Args:
      lost: Whether what is lost is among them.
    """
    return [
        (variant.name, f"{outcome.status.value}: {outcome.reason}")
        for variant in record.variants
        for outcome in variant.outcomes.values()
        if outcome.status in INCOMPLETE | {Status.TOO_LARGE} and (lost or outcome.status is not Status.LOST)
    ]


def _announce(manifest: Manifest, folder: Path, processes: int) -> str:
    device = f"{manifest.environment.device_count} x {manifest.environment.device_kind}"
    cases, count = counted(len(manifest.cases), "case"), counted(processes, "process", "processes")
    return f"run {manifest.run_id}: {cases}, {count} on {manifest.backend} ({device}), into {folder}"


def printable(text: str) -> str:
    """Text on one line, control characters shown as `?`: a suite's own words must not steer the terminal."""
    return "".join(char if char.isprintable() else " " if char in "\n\t\u202f" else "?" for char in text)
