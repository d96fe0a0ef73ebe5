"""What a person sees while a run goes on: a live bar on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from harness.plan.launches import Launch
from harness.plan.messages import Heartbeat
from harness.record import INCOMPLETE, CaseRecord, Manifest, PlannedCase, Status
from harness.record.wording import counted


class Watcher:
    """Told what a run does, as it does it. This one shows nothing (`--quiet`)."""

    def run_started(self, manifest: Manifest, folder: Path, launches: int, budget_s: float) -> None:
        """The run begins, with so many processes to start at most, in so many seconds."""

    def round_started(self, number: int, of: int, launches_left: int) -> None:
        """A round over all cases begins, from 1."""

    def launch_started(self, launch: Launch) -> None:
        """A process begins."""

    def launch_ended(self, launch: Launch, used_s: float) -> None:
        """A process has ended; `used_s` of the budget are gone."""

    def beat(self, heartbeat: Heartbeat) -> None:
        """A process begins a stage."""

    def said(self, text: str) -> None:
        """Something that a person should know now, on one line."""

    def case_ended(self, record: CaseRecord, used_s: float) -> None:
        """A case is whole; `used_s` of the budget are gone."""

    def case_lost(self, case: PlannedCase, reason: str) -> None:
        """A case is not measured, or not often enough."""

    def run_ended(self) -> None:
        """No more will be told."""


class Lines(Watcher):
    """One line per case, and one per trouble as it happens: for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._done = 0
        self._todo = 0
        self._budget_s = 0.0

    def run_started(self, manifest: Manifest, folder: Path, launches: int, budget_s: float) -> None:
        """Names the run."""
        self._todo, self._budget_s = len(manifest.cases), budget_s
        self._say(_announce(manifest, folder, len(manifest.cases)))

    def case_ended(self, record: CaseRecord, used_s: float) -> None:
        """Says how the case ended, with every trouble on a line of its own."""
        self._done += 1
        self._say(
            f"[{self._done}/{self._todo}] {record.status.value:9} {record.name}  {record.elapsed_s:.1f} s, "
            f"{counted(record.launches, 'launch', 'launches')}; {used_s:.0f} of {self._budget_s:.0f} s used"
        )
        for trouble in list_troubles(record):
            self._say(f"    {trouble}")

    def said(self, text: str) -> None:
        """A line."""
        self._say(text)

    def round_started(self, number: int, of: int, launches_left: int) -> None:
        """A line."""
        self._say(f"round {number} of {of}")

    def case_lost(self, case: PlannedCase, reason: str) -> None:
        """Says why."""
        self._done += 1
        self._say(f"[{self._done}/{self._todo}] lost      {case.name}: {reason}")

    def _say(self, text: str) -> None:
        print(printable(text), file=self._stream, flush=True)


class Live(Watcher):
    """A bar with the case, n of m and the budget used; troubles scroll by above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("[bold]{task.fields[case]}", markup=True),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[stage]}"),
            TextColumn("budget {task.fields[used]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("run", total=None, case="", stage="", used="0 %")
        self._budget_s = 1.0
        self._launch = 0

    def run_started(self, manifest: Manifest, folder: Path, launches: int, budget_s: float) -> None:
        """Names the run and shows the bar."""
        self._budget_s = budget_s
        self._console.print(escape(printable(_announce(manifest, folder, launches))), highlight=False)
        self._bar.update(self._task, total=launches)
        self._bar.start()

    def beat(self, heartbeat: Heartbeat) -> None:
        """Shows the variant and stage."""
        launch = f"launch {self._launch}: " if self._launch else ""
        text = f"{launch}{heartbeat.variant or ''} {heartbeat.stage}"
        self._bar.update(self._task, stage=escape(printable(text))[:48])

    def said(self, text: str) -> None:
        """Above the bar."""
        self._bar.console.print(escape(printable(text)), highlight=False)

    def case_ended(self, record: CaseRecord, used_s: float) -> None:
        """Advances, and prints the troubles."""
        self._bar.update(self._task, advance=1, used=f"{100 * used_s / self._budget_s:.0f} %")
        for trouble in list_troubles(record):
            self._bar.console.print(escape(printable(f"{record.name}: {trouble}")), style="red", highlight=False)

    def case_lost(self, case: PlannedCase, reason: str) -> None:
        """Advances, and says why."""
        self._bar.update(self._task, advance=1)
        self._bar.console.print(escape(printable(f"{case.name}: lost: {reason}")), style="red", highlight=False)

    def run_ended(self) -> None:
        """Removes the bar."""
        self._bar.stop()


def list_troubles(record: CaseRecord) -> list[str]:
    """A line per variant and probe that makes the run incomplete, or that was too large to be run, without repeats."""
    lines = [
        f"{variant.name}: {outcome.status.value}: {outcome.reason}"
        for variant in record.variants
        for outcome in variant.outcomes.values()
        if outcome.status in INCOMPLETE or outcome.status is Status.TOO_LARGE
    ]
    return list(dict.fromkeys(lines))


def _announce(manifest: Manifest, folder: Path, todo: int) -> str:
    device = f"{manifest.environment.device_count} x {manifest.environment.device_kind}"
    return f"run {manifest.run_id}: {counted(todo, 'case')} on {manifest.backend} ({device}), into {folder}"


def printable(text: str) -> str:
    """Text on one line, control characters shown as `?`: a suite's own words must not steer the terminal."""
    return "".join(char if char.isprintable() else " " if char in "\n\t" else "?" for char in text)
