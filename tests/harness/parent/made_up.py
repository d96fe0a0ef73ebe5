"""A server that only takes notes, and answers as a test wants it: which processes does a run start, and what for?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from jaxmeter.harness.parent.fork_client import Ended, Overran
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.plan.messages import Heartbeat, Measure, Result
from jaxmeter.harness.plan.probes import CHECK
from jaxmeter.harness.plan.processes import SHAPES, PlannedProcess
from jaxmeter.harness.record import CaseRecord, Outcome, RunFolder, Settings, Status, read_json
from tests import samples
from tests.harness.conftest import FakeClock
from tests.harness.raw import WALL_S, clean, noisy, process, variant

VARIANTS = ("a:eager", "a:jit", "b:jit", "a:aot", "numpy:native")
OK = Outcome(status=Status.OK, values={"trace_s": (1.0,)})
FAILED = Outcome(status=Status.FAILED, reason="no luck")
WRONG = Outcome(status=Status.WRONG, reason="off by one")
ALIVE = {
    "last": Heartbeat(None, "end"),
    "signal": None,
    "timed_out": False,
    "code": 0,
    "stderr": "",
    "peak_bytes": 0,
}


TWICE = {"processes": 2, "fewest_rounds": 2, "most_rounds": 2}
ONCE = {"processes": 1, "fewest_rounds": 1, "most_rounds": 1}


@dataclass
class NoteTaker:
    """Answers every message with what it is told to, and keeps them; each takes a second unless told otherwise."""

    clock: FakeClock
    seconds: Callable[[PlannedProcess], float] = lambda launched: 1.0
    wall_s: Callable[[str], float] = lambda variant: WALL_S
    contended: Callable[[Measure], bool] = lambda message: False
    answers: Callable[[PlannedProcess, str], Outcome] = lambda launched, variant: OK
    too_large: dict[str, Outcome] = field(default_factory=dict)
    dies: Callable[[PlannedProcess], Ended | None] = lambda launched: None
    at: Callable[[PlannedProcess], Heartbeat] = lambda launched: Heartbeat(None, "start")
    messages: list[Measure] = field(default_factory=list)
    limits_s: list[float] = field(default_factory=list)
    scratch: Path = Path("/nowhere")
    arms: tuple[str, str] | None = None

    def of(self, platform):
        return self

    def list_warnings(self):
        return ()

    def arms_of(self, platform, index):
        return self.arms

    def run(self, make, *, stage_limit_s, stage_share_s, end_s, on_beat):
        message = make("/nowhere")
        self.messages.append(message)
        self.limits_s.append(stage_limit_s)
        launched = message.process
        at, seconds = self.at(launched), self.seconds(launched)
        if at.stage != "start":
            on_beat(at)
        share_s = stage_share_s if at.variant is not None else math.inf
        if seconds > min(share_s, end_s):  # a real server ends it; all that it does is one stage
            overran = Overran.BUDGET if end_s <= share_s else Overran.STAGE
            self.clock.advance(min(share_s, end_s))
            return dead(last=at, signal=9, timed_out=True, overran=overran, stage_s=min(share_s, end_s))
        self.clock.advance(seconds)
        if (end := self.dies(launched)) is not None:
            return end
        if launched.kind == "timing":  # as different from process to process as makes no interval narrow
            broken = {name: self.answers(launched, name) for name in launched.variants}
            broken = {name: {"timing": outcome} for name, outcome in broken.items() if outcome is not OK}
            if broken:
                return Ended(answer=Result(outcomes=broken), **ALIVE)
            times = {name: [1.05 ** (launched.round * len(name))] * 6 for name in launched.variants}
            blocks = noisy if self.contended(message) else clean
            found = (variant(name, *blocks(*times[name]), wall_s=self.wall_s(name)) for name in times)
            at = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=self.clock())
            timed = process(*found, index=launched.round)
            timed = msgspec.structs.replace(timed, started=at.isoformat(timespec="seconds"))
            return Ended(answer=Result(process=timed), **ALIVE)
        if launched.kind == SHAPES:
            outcomes = {name: {"numerics": outcome} for name, outcome in self.too_large.items()}
        else:
            outcomes = {
                name: {
                    probe: self.answers(launched, name)
                    for probe, names in launched.assignments.items()
                    if name in names
                }
                for name in launched.variants
            }
        return Ended(answer=Result(outcomes=outcomes), **ALIVE)

    @property
    def launched(self) -> list[PlannedProcess]:
        return [message.process for message in self.messages]

    def asked(self, kind: str) -> list[tuple[int, str, tuple[str, ...]]]:
        return [(one.round, one.cache_state, one.variants) for one in self.launched if one.kind == kind]


def dead(**how) -> Ended:
    return Ended(answer=None, **{**ALIVE, "code": None, **how})


def failing(variant: str, kind: str | None = None, outcome: Outcome = FAILED):
    """Answers that are all right but for one variant's, in processes of this kind or in all."""
    return lambda launched, name: outcome if name == variant and kind in (None, launched.kind) else OK


def dying_with(variant: str, stage: str = "compile"):
    """A check that dies at this variant, as long as it is one of its own."""

    def dies(launched):
        is_it = launched.kind == CHECK and variant in launched.variants
        return dead(last=Heartbeat(variant, stage), signal=11) if is_it else None

    return dies


def settings(*probes: str, **changes) -> Settings:
    return samples.settings(probes=("numerics", *probes), **{"fewest_rounds": 1, "most_rounds": 1, **changes})


def case(name: str, **changes):
    return samples.planned_case(name, variants=VARIANTS, **changes)


@dataclass
class Told(Watcher):
    """Keeps what it is told."""

    words: list[tuple] = field(default_factory=list)
    ends_s: list[float | None] = field(default_factory=list)

    def run_started(self, manifest, folder, processes, budget_s):
        self.words.append(("run", processes, budget_s))

    def round_started(self, number, of, processes_left, end_s=None):
        self.words.append(("round", number, of, processes_left))
        self.ends_s.append(end_s)

    def process_started(self, process):
        self.words.append(("starts", process.kind))

    def process_ended(self, process, used_s):
        self.words.append(("ended", process.kind, used_s))

    def said(self, text):
        self.words.append(("said", text))

    def case_ended(self, record, used_s):
        self.words.append(("ends", record.name.partition("[")[0], used_s))

    def case_lost(self, case, reason):
        self.words.append(("lost", case.workload, reason))

    def run_ended(self):
        self.words.append(("over",))


ROUNDS = {"fewest_rounds": 3, "most_rounds": 8}


def timed(**changes) -> Settings:
    """Settings of timing alone, in as many rounds as the time allows."""
    return settings("timing", **{**ROUNDS, **changes})


def a_case(name: str, *variants: str, **changes):
    return samples.planned_case(name, variants=variants or ("a:jit",), **changes)


CASES = [a_case("selu"), a_case("matmul"), a_case("mlp")]
CHECKS = 2  # processes before the first timing process of a case


def record_of(folder, case) -> CaseRecord:
    return read_json(RunFolder(folder).case(case.id).record, CaseRecord)


def stop_before(count: int):
    """Interrupts a run when so many timing processes have begun."""
    begun = []

    def dies(launched):
        if launched.kind == "timing":
            begun.append(launched)
            if len(begun) > count:
                raise KeyboardInterrupt

    return dies


MORE = {"level": "default", "most_rounds": 3, "target_half_width": 0.12}
