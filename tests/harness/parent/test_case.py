"""Which processes a case asks for, told by a server that only takes notes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import msgspec
import pytest

from harness.parent import case as module
from harness.parent.case import CaseMeasurement
from harness.parent.fork_client import Ended
from harness.plan.cases import CASE_LIMIT_S
from harness.plan.messages import CACHING, CHECK, COMPILATION, RESIDENCY, SHAPES, TIMING, Heartbeat, Launch, Result
from harness.record import Outcome, Settings, Status
from tests import samples
from tests.harness.conftest import FakeClock
from tests.harness.raw import clean, launch, variant

VARIANTS = ("a:eager", "a:jit", "b:jit", "a:aot", "numpy:native")
OK = Outcome(status=Status.OK, values={"trace_s": (1.0,)})


@dataclass
class NoteTaker:
    """Answers every message with what it is told to, and keeps them; each takes a second."""

    clock: FakeClock
    answers: Callable[[Launch, str], Outcome] = lambda message, variant: OK
    too_large: dict[str, Outcome] = field(default_factory=dict)
    messages: list[Launch] = field(default_factory=list)

    def run(self, make, *, stage_limit_s, on_beat):
        message = make("/nowhere")
        self.messages.append(message)
        self.clock.advance(1.0)
        if message.kind == TIMING:  # as different from launch to launch as makes no interval narrow
            times = {name: [2.0 ** (message.index * len(name))] * 6 for name in message.variants}
            timed = launch(*(variant(name, *clean(*times[name])) for name in times), index=message.index)
            return Ended(Result(launch=timed), Heartbeat(None, "end"), None, False, 0, "", 0)
        if message.kind == SHAPES:
            outcomes = {name: dict.fromkeys(message.probes, outcome) for name, outcome in self.too_large.items()}
        else:
            outcomes = {name: dict.fromkeys(message.probes, self.answers(message, name)) for name in message.variants}
        return Ended(Result(outcomes=outcomes), Heartbeat(None, "end"), None, False, 0, "", 0)

    def asked(self, kind: str) -> list[tuple[int, str, tuple[str, ...]]]:
        return [(one.index, one.regime, one.variants) for one in self.messages if one.kind == kind]


@pytest.fixture
def measured(clock, monkeypatch, tmp_path):
    """Measures a made-up case; returns its record and the server."""
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))

    def measure(
        settings: Settings,
        *,
        share_s: float = 1000.0,
        backend: str = "cpu",
        answers=lambda message, variant: OK,
        too_large=None,
        **changes,
    ):
        server = NoteTaker(clock, answers, too_large or {})
        planned = msgspec.structs.replace(samples.planned_case(variants=VARIANTS), **changes)
        record = CaseMeasurement(
            case=planned,
            settings=settings,
            backend=backend,
            server=server,
            folder=tmp_path,
            cache=tmp_path / "cache",
            share_s=share_s,
            on_beat=lambda beat: None,
            on_launch=lambda count: None,
        ).measure()
        return record, server

    return measure


def settings(*probes: str, **changes) -> Settings:
    return samples.settings(probes=("numerics", *probes), **{"case_limit_s": 1000.0, **changes})


def test_cold_processes_come_in_rounds_over_the_variants(measured):
    _, server = measured(settings("compilation", cold_launches=2))

    one_round = [("a:eager",), ("a:jit",), ("b:jit",), ("a:aot",)]
    assert server.asked(COMPILATION) == [(index, "", names) for index in (0, 1) for names in one_round]


def test_values_of_all_rounds_are_kept(measured):
    record, _ = measured(settings("compilation", cold_launches=4))

    assert record.variants[1].outcomes["compilation"].values == {"trace_s": (1.0,) * 4}


@pytest.mark.parametrize(
    ("share_s", "of_any_s", "rounds"),
    [
        (1000.0, 8.0, 5),
        (3 * 12.5, 8.0, 4),
        (3 * 11.5, 8.0, 3),
        (2.7, 8.0, 3),
        (2.6, 8.0, 1),  # the run is late
        (2.7, 3.0, 2),
        (0.1, 0.0, 1),
    ],
)
def test_cold_rounds_end_where_they_take_too_much_of_the_time(measured, monkeypatch, share_s, of_any_s, rounds):
    monkeypatch.setitem(CASE_LIMIT_S, "quick", of_any_s)

    _, server = measured(settings("compilation", cold_launches=5), share_s=share_s)

    assert len(server.asked(COMPILATION)) == rounds * 4  # four processes, a second each


def test_a_fixed_number_of_launches_is_cut_by_no_limit(measured):
    _, server = measured(settings("compilation", cold_launches=5, launches=5), share_s=0.0)

    assert len(server.asked(COMPILATION)) == 5 * 4


def test_a_regime_that_fails_costs_the_others_no_round(measured):
    def answers(message, variant):
        failed = message.regime == "cached"
        return Outcome(status=Status.FAILED, reason="no luck") if failed else OK

    record, server = measured(settings("caching", cold_launches=2), answers=answers, exemplary=True)

    asked = [(index, regime) for index, regime, names in server.asked(CACHING) if names == ("a:jit",)]
    assert asked == [(0, "cold"), (0, "cached"), (0, "warm"), (1, "cold"), (1, "warm")]
    assert record.variants[1].outcomes["caching"].reason == "no luck"


def test_what_does_not_fit_by_its_shapes_is_not_called(measured):
    too_large = Outcome(status=Status.UNSUPPORTED, reason="does not fit: needs 2 GiB of 1 GiB")

    record, server = measured(settings("memory"), too_large={"a:eager": too_large})

    assert server.messages[0].kind == SHAPES
    assert [one.kind for one in server.messages if "a:eager" in one.variants] == [SHAPES]
    assert record.variants[0].outcomes["numerics"] == too_large


def test_what_has_failed_once_is_not_tried_in_the_next_round(measured):
    def answers(message, variant):
        failed = message.kind == COMPILATION and variant == "a:jit"
        return Outcome(status=Status.FAILED, reason="no luck") if failed else OK

    record, server = measured(settings("compilation", cold_launches=3), answers=answers)

    assert server.asked(COMPILATION).count((0, "", ("a:jit",))) == 1
    assert (1, "", ("a:jit",)) not in server.asked(COMPILATION)
    assert record.variants[1].outcomes["compilation"].reason == "no luck"
    assert record.variants[2].outcomes["compilation"].status is Status.OK


def test_regimes_alternate_within_a_round_and_only_for_what_jit_compiles(measured):
    changes = {"exemplary": True, "new_static": {"n": 2}}
    _, server = measured(settings("caching", cold_launches=2), **changes)

    assert server.asked(CACHING) == [
        (index, regime, (name,))
        for index in (0, 1)
        for regime in ("cold", "cached", "warm", "new_static")
        for name in ("a:jit", "b:jit")
    ]


def test_without_a_new_static_argument_one_variant_stands_for_its_case(measured):
    _, server = measured(settings("caching", cold_launches=1), exemplary=True, new_shape={"n": 2})

    assert [names for _, _, names in server.asked(CACHING)] == [("a:jit",)] * 4


def test_caching_is_not_measured_where_another_case_stands_for_the_workload(measured):
    _, server = measured(settings("caching"), representative=False)

    assert server.asked(CACHING) == []


@pytest.mark.parametrize(
    ("backend", "processes"),
    [
        ("cpu", [("a:eager", "a:jit", "b:jit", "numpy:native")]),
        ("gpu", [("a:eager",), ("a:jit",), ("b:jit",), ("numpy:native",)]),
    ],
)
def test_the_memory_of_calls_is_read_in_one_process_where_its_count_can_be_reset(measured, backend, processes):
    """Not of `aot`, which runs the program of `jit`; an allocator's peak is never forgotten."""
    _, server = measured(settings("memory"), backend=backend)

    assert server.asked(RESIDENCY) == [(0, "", names) for names in processes]


def test_the_plan_and_the_call_share_an_outcome(measured):
    plan, call = (Outcome(status=Status.OK, values={name: (5,)}) for name in ("peak_bytes", "runtime_peak_bytes"))

    record, _ = measured(settings("memory"), answers=lambda message, _: call if message.kind == RESIDENCY else plan)

    assert record.variants[1].outcomes["memory"].values == {"peak_bytes": (5,), "runtime_peak_bytes": (5,)}


def test_what_gave_no_right_answer_is_looked_at_no_further(measured):
    def answers(message, variant):
        return Outcome(status=Status.WRONG, reason="off by one") if variant == "a:jit" else OK

    changes = {"exemplary": True}
    _, server = measured(settings("memory", "compilation", "caching"), answers=answers, **changes)

    later = [one for one in server.messages if one.kind not in (SHAPES, CHECK)]
    assert later
    assert not [one for one in later if "a:jit" in one.variants]


UNFIXED = {"launches": None, "looks": (5, 8, 12)}


@pytest.mark.parametrize(("share_s", "launches"), [(1000.0, 12), (36.0, 11), (26.0, 6), (19.0, 3), (12.0, 3)])
def test_timing_gets_what_the_other_processes_leave_of_the_cases_share(measured, share_s, launches):
    # 3 processes before, 12 cold ones; a launch of timing is two, one of them the peer's.
    record, server = measured(settings("compilation", "timing", cold_launches=3, **UNFIXED), share_s=share_s)

    assert len(server.asked(COMPILATION)) == 12
    assert record.launches == launches


def test_timing_takes_no_longer_than_a_cases_limit_whatever_its_share(measured):
    record, _ = measured(settings("timing", case_limit_s=7.0, **UNFIXED))

    assert record.launches == 4
