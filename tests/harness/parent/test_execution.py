"""Which processes a run really starts, told by a server that only takes notes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import msgspec
import pytest

from harness.machine.places import PLACES
from harness.parent import execution
from harness.parent.case import ANOTHER_PROGRAM
from harness.parent.execution import execute
from harness.parent.fork_client import Ended
from harness.parent.progress import Watcher
from harness.plan.launches import SHAPES, Launch, plan_launches
from harness.plan.messages import Heartbeat, Measure, Result
from harness.plan.probes import CHECK
from harness.record import (
    CaseRecord,
    NumericsDetails,
    Outcome,
    RunFolder,
    Settings,
    Status,
    Stop,
    StopReason,
    read_json,
)
from tests import samples
from tests.harness.conftest import FakeClock
from tests.harness.raw import clean, disturbed, launch, variant

VARIANTS = ("a:eager", "a:jit", "b:jit", "a:aot", "numpy:native")
OK = Outcome(status=Status.OK, values={"trace_s": (1.0,)})
FAILED = Outcome(status=Status.FAILED, reason="no luck")
ALIVE = {"last": Heartbeat(None, "end"), "signal": None, "timed_out": False, "code": 0, "stderr": "", "peak_bytes": 0}


@dataclass
class NoteTaker:
    """Answers every message with what it is told to, and keeps them; each takes a second unless told otherwise."""

    clock: FakeClock
    seconds: Callable[[Launch], float] = lambda launched: 1.0
    contended: Callable[[Measure], bool] = lambda message: False
    answers: Callable[[Launch, str], Outcome] = lambda launched, variant: OK
    too_large: dict[str, Outcome] = field(default_factory=dict)
    dies: Callable[[Launch], Ended | None] = lambda launched: None
    messages: list[Measure] = field(default_factory=list)
    limits_s: list[float] = field(default_factory=list)

    def of(self, place):
        return self

    def run(self, make, *, stage_limit_s, on_beat):
        message = make("/nowhere")
        self.messages.append(message)
        self.limits_s.append(stage_limit_s)
        launched = message.launch
        self.clock.advance(self.seconds(launched))
        if (end := self.dies(launched)) is not None:
            return end
        if launched.process == "timing":  # as different from launch to launch as makes no interval narrow
            broken = {name: self.answers(launched, name) for name in launched.variants}
            broken = {name: {"timing": outcome} for name, outcome in broken.items() if outcome is not OK}
            if broken:
                return Ended(answer=Result(outcomes=broken), **ALIVE)
            times = {name: [2.0 ** (launched.round * len(name))] * 6 for name in launched.variants}
            blocks = disturbed if self.contended(message) else clean
            timed = launch(*(variant(name, *blocks(*times[name])) for name in times), index=launched.round)
            return Ended(answer=Result(launch=timed), **ALIVE)
        if launched.process == SHAPES:
            outcomes = {name: {"numerics": outcome} for name, outcome in self.too_large.items()}
        else:
            outcomes = {
                name: {probe: self.answers(launched, name) for probe, names in launched.looks.items() if name in names}
                for name in launched.variants
            }
        return Ended(answer=Result(outcomes=outcomes), **ALIVE)

    @property
    def launched(self) -> list[Launch]:
        return [message.launch for message in self.messages]

    def asked(self, process: str) -> list[tuple[int, str, tuple[str, ...]]]:
        return [(one.round, one.regime, one.variants) for one in self.launched if one.process == process]


@pytest.fixture
def executed(clock, monkeypatch, tmp_path):
    """Executes a run of cases that are made up; returns the run and the server."""
    monkeypatch.setattr(execution, "time", SimpleNamespace(monotonic=clock))

    def run(settings: Settings, cases, *, budget_s: float = 1000.0, places=PLACES, watcher=None, **server):
        clock.now = 64.0  # a clock's beginning means nothing
        taker = NoteTaker(clock, **server)
        manifest = samples.manifest(cases, settings=settings)
        folder = RunFolder(tmp_path)
        return execute(manifest, folder, taker, watcher or Watcher(), budget_s, places), taker

    return run


@pytest.fixture
def measured(executed):
    """Measures one made-up case, whose share is the run's whole budget; returns its record and the server."""

    def measure(
        settings: Settings,
        *,
        share_s: float = 1000.0,
        answers=lambda launched, variant: OK,
        too_large=None,
        dies=lambda launched: None,
        **changes,
    ):
        case = msgspec.structs.replace(samples.planned_case(variants=VARIANTS), **changes)
        run, server = executed(
            settings, [case], budget_s=share_s, answers=answers, too_large=too_large or {}, dies=dies
        )
        return run.cases[0], server

    return measure


def settings(*probes: str, **changes) -> Settings:
    return samples.settings(probes=("numerics", *probes), **{"fewest_rounds": 1, "most_rounds": 1, **changes})


def test_cold_processes_come_in_rounds_over_the_variants(measured):
    _, server = measured(settings("compilation", cold_launches=2))

    one_round = [("a:eager",), ("a:jit",), ("b:jit",), ("a:aot",)]
    assert server.asked("compilation") == [(index, "", names) for index in (0, 1) for names in one_round]


def test_values_of_all_rounds_are_kept(measured):
    record, _ = measured(settings("compilation", cold_launches=4))

    assert record.variants[1].outcomes["compilation"].values == {"trace_s": (1.0,) * 4}


def test_a_regime_that_fails_costs_the_others_no_round(measured):
    def answers(launched, variant):
        failed = launched.regime == "cached"
        return Outcome(status=Status.FAILED, reason="no luck") if failed else OK

    record, server = measured(settings("caching", cold_launches=2), answers=answers, represents_suite=True)

    asked = [(index, regime) for index, regime, names in server.asked("caching") if names == ("a:jit",)]
    assert asked == [(0, "cold"), (0, "cached"), (0, "warm"), (1, "cold"), (1, "warm")]
    assert record.variants[1].outcomes["caching"].reason == "no luck"


def test_what_does_not_fit_by_its_shapes_is_not_called(measured):
    too_large = Outcome(status=Status.TOO_LARGE, reason="needs 2 GiB of 1 GiB")

    record, server = measured(settings("memory", "residency"), too_large={"a:eager": too_large})

    assert server.launched[0].process == SHAPES
    assert [one.process for one in server.launched if "a:eager" in one.variants] == [SHAPES]
    assert record.variants[0].outcomes["numerics"] == too_large


def test_what_has_failed_once_is_not_tried_in_the_next_round(measured):
    def answers(launched, variant):
        failed = launched.process == "compilation" and variant == "a:jit"
        return Outcome(status=Status.FAILED, reason="no luck") if failed else OK

    record, server = measured(settings("compilation", cold_launches=3), answers=answers)

    assert server.asked("compilation").count((0, "", ("a:jit",))) == 1
    assert (1, "", ("a:jit",)) not in server.asked("compilation")
    assert record.variants[1].outcomes["compilation"].reason == "no luck"
    assert record.variants[2].outcomes["compilation"].status is Status.OK


def test_regimes_alternate_within_a_round_and_only_for_what_jit_compiles(measured):
    changes = {"represents_suite": True, "new_static": {"n": 2}}
    _, server = measured(settings("caching", cold_launches=2), **changes)

    assert server.asked("caching") == [
        (index, regime, (name,))
        for index in (0, 1)
        for regime in ("cold", "cached", "warm", "new_static")
        for name in ("a:jit", "b:jit")
    ]


def test_without_a_new_static_argument_one_variant_stands_for_its_case(measured):
    _, server = measured(settings("caching", cold_launches=1), represents_suite=True, new_shape={"n": 2})

    assert [names for _, _, names in server.asked("caching")] == [("a:jit",)] * 4


def test_caching_is_not_measured_where_another_case_represents_the_suite(measured):
    _, server = measured(settings("caching"), represents_suite=False)

    assert server.asked("caching") == []


@pytest.mark.parametrize(
    ("backend", "processes"),
    [
        ("cpu", [("a:eager", "a:jit", "b:jit", "numpy:native")]),
        ("gpu", [("a:eager",), ("a:jit",), ("b:jit",), ("numpy:native",)]),
    ],
)
def test_the_memory_of_calls_is_read_in_one_process_where_its_count_can_be_reset(measured, backend, processes):
    """Not of `aot`, which runs the program of `jit`; an allocator's peak is never forgotten."""
    _, server = measured(settings("memory", "residency"), where=backend)

    assert server.asked("residency") == [(0, "", names) for names in processes]


def test_what_gave_no_right_answer_is_looked_at_no_further(measured):
    def answers(launched, variant):
        return Outcome(status=Status.WRONG, reason="off by one") if variant == "a:jit" else OK

    changes = {"represents_suite": True}
    _, server = measured(settings("memory", "residency", "compilation", "caching"), answers=answers, **changes)

    later = [one for one in server.launched if one.process not in (SHAPES, CHECK)]
    assert later
    assert not [one for one in later if "a:jit" in one.variants]


# One list for all


def case(name: str, **changes):
    return samples.planned_case(name, variants=VARIANTS, **changes)


TWICE = {"launches": 2, "fewest_rounds": 2, "most_rounds": 2}
ONCE = {"launches": 1, "fewest_rounds": 1, "most_rounds": 1}
EVERYTHING = ("numerics", "memory", "residency", "compilation", "caching", "timing", "trace")


def fixed(**changes) -> Settings:
    """Settings of all probes with counts that nothing cuts."""
    counts = {**TWICE, "cold_launches": 2, "everywhere": ("caching", "trace")}
    return samples.settings(probes=EVERYTHING, **{**counts, **changes})


def test_what_is_started_is_the_planned_list_in_its_order(executed):
    settings = fixed()
    cases = [case("selu"), case("matmul", new_shape={"n": 2})]

    _, server = executed(settings, cases)

    assert server.launched == list(plan_launches(cases, settings))


def test_samples_that_an_interrupted_run_has_left_are_not_taken_again(executed, tmp_path):
    settings = fixed()
    executed(settings, [case("selu")])
    folder = RunFolder(tmp_path)
    folder.mark.unlink()
    folder.case(case("selu").id).record.unlink()
    folder.case(case("selu").id).launch(1, "numpy:native").unlink()

    run, server = executed(settings, [case("selu")])

    assert server.asked("timing") == [(1, "", ("numpy:native",))]
    assert run.cases[0].launches == 2


def test_samples_of_other_variants_than_those_that_go_on_are_taken_again(executed, tmp_path):
    settings = fixed()
    executed(settings, [case("selu")])
    folder = RunFolder(tmp_path)
    folder.mark.unlink()
    folder.case(case("selu").id).record.unlink()

    def answers(launched, name):
        return FAILED if launched.process == CHECK and name == "b:jit" else OK

    _, server = executed(settings, [case("selu")], answers=answers)

    assert sorted(server.asked("timing")) == [(index, "", ("a:eager", "a:jit", "a:aot")) for index in (0, 1)]


def test_what_the_budget_does_not_reach_is_lost_and_the_run_says_why(executed, tmp_path):
    run, server = executed(settings(), [case("selu"), case("matmul")], budget_s=3.0)

    assert len(run.lost()) == 1
    assert {launched.case for launched in server.launched} == {run.cases[0].id}
    assert not RunFolder(tmp_path).mark.exists()
    stop = read_json(RunFolder(tmp_path).stop, Stop)
    assert (stop.reason, stop.budget_s) == (StopReason.BUDGET_USED, 3.0)


def test_a_case_of_which_nothing_can_be_run_has_a_record_all_the_same(executed):
    skipped = samples.planned_variant("a:jit", skip="needs 2 devices, found 1")

    run, server = executed(fixed(), [samples.planned_case(variants=(skipped,))])

    assert server.launched == []
    assert run.cases[0].variants[0].outcomes["numerics"] == Outcome(
        status=Status.SKIPPED, reason="needs 2 devices, found 1"
    )


# Processes that end badly


def dead(**how) -> Ended:
    return Ended(answer=None, **{**ALIVE, "code": None, **how})


def test_a_process_that_dies_costs_the_variant_that_it_was_at_and_is_repeated_without_it(measured):
    def dies(launched):
        at = Heartbeat("b:jit", "compile")
        return dead(last=at, signal=11) if launched.process == CHECK and "b:jit" in launched.variants else None

    record, server = measured(settings("memory"), dies=dies)

    assert server.asked(CHECK) == [
        (0, "", ("a:eager", "a:jit", "b:jit", "a:aot")),
        (0, "", ("a:eager", "a:jit", "a:aot")),
        (0, "", ("numpy:native",)),
    ]
    outcomes = {item.name: item.outcomes for item in record.variants}
    assert {name: found["numerics"].status for name, found in outcomes.items()} == {
        **dict.fromkeys(VARIANTS, Status.OK),
        "b:jit": Status.KILLED,
    }
    assert outcomes["b:jit"]["memory"].reason == "ended by SIGSEGV in stage 'compile'"
    assert "memory" not in outcomes["numpy:native"]


def test_a_process_that_dies_at_no_variant_costs_all_that_it_was_for(measured):
    def dies(launched):
        return dead(last=Heartbeat(None, "inputs"), code=1) if launched.process == CHECK else None

    record, server = measured(settings(), dies=dies)

    assert len(server.asked(CHECK)) == 2
    assert {item.outcomes["numerics"].status for item in record.variants} == {Status.FAILED}


def test_where_the_look_at_shapes_dies_the_check_tells(measured):
    def dies(launched):
        return dead(signal=9) if launched.process == SHAPES else None

    record, server = measured(settings(), dies=dies)

    assert len(server.asked(SHAPES)) == 1
    assert {item.outcomes["numerics"].status for item in record.variants} == {Status.OK}


def test_a_variant_that_cannot_be_timed_is_left_out_and_the_launch_is_repeated(measured):
    def answers(launched, name):
        return FAILED if launched.process == "timing" and name == "a:jit" else OK

    record, server = measured(settings("timing", **TWICE), answers=answers)

    of_jax = [(index, names) for index, _, names in server.asked("timing") if names != ("numpy:native",)]
    whole, rest = ("a:eager", "a:jit", "b:jit", "a:aot"), ("a:eager", "b:jit", "a:aot")
    assert of_jax == [(0, whole), (0, rest), (1, rest)]
    assert record.variants[1].outcomes["timing"] == FAILED
    assert len(record.variants[0].outcomes["timing"].values["execution_s"]) == 2


def test_what_could_not_be_timed_is_not_traced(measured):
    def answers(launched, name):
        return FAILED if launched.process == "timing" and name == "a:jit" else OK

    _, server = measured(settings("timing", "trace", **ONCE), answers=answers, represents_workload=True)

    assert server.asked("trace") == [(0, "", ("a:eager", "b:jit", "a:aot"))]


def test_where_nothing_is_timed_a_trace_wants_only_a_right_answer(measured):
    _, server = measured(settings("trace"), represents_workload=True)

    assert server.asked("trace") == [(0, "", ("a:eager", "a:jit", "b:jit", "a:aot"))]


# Only compiled

TARGET = samples.target()


def test_a_case_on_a_target_is_compiled_without_a_check_and_never_called(executed):
    compiled = case("selu", where=TARGET.name)

    run, server = executed(fixed(), [compiled], places={**PLACES, TARGET.name: TARGET})

    assert {launched.process for launched in server.launched} == {CHECK, "compilation"}
    assert {launched.probes for launched in server.launched} == {("memory",), ("compilation",)}
    assert {message.place for message in server.messages} == {TARGET}
    assert "numpy:native" not in {name for launched in server.launched for name in launched.variants}
    assert run.cases[0].status is Status.OK


def test_cases_of_several_places_make_one_run(executed):
    here, compiled = case("selu"), case("matmul", where=TARGET.name)

    run, server = executed(fixed(), [here, compiled], places={**PLACES, TARGET.name: TARGET})

    assert {message.case.id: message.place.name for message in server.messages} == {
        here.id: "cpu",
        compiled.id: TARGET.name,
    }
    assert run.lost() == ()


# What a case's record says of the case


def test_a_case_takes_the_time_of_its_processes(measured):
    record, server = measured(settings("timing", **TWICE))

    assert record.elapsed_s == len(server.messages) == 3 + 2 * 2


def test_what_is_not_timed_has_no_timing(measured):
    def answers(launched, name):
        return Outcome(status=Status.WRONG) if name == "a:jit" else OK

    record, _ = measured(settings("timing", **ONCE), answers=answers)

    assert [item.name for item in record.variants if "timing" not in item.outcomes] == ["a:jit"]


@pytest.mark.parametrize(("own_s", "expected_s"), [(None, 90.0), (7.0, 7.0)])
def test_a_stage_may_take_as_long_as_the_workload_says_else_as_the_run(measured, own_s, expected_s):
    _, server = measured(settings(stage_limit_s=90.0), time_limit_s=own_s)

    assert set(server.limits_s) == {expected_s}


# Rounds


ROUNDS = {"fewest_rounds": 3, "most_rounds": 8}


def timed(**changes) -> Settings:
    """Settings of timing alone, in as many rounds as the time allows."""
    return settings("timing", **{**ROUNDS, **changes})


def a_case(name: str, *variants: str, **changes):
    return samples.planned_case(name, variants=variants or ("a:jit",), **changes)


CASES = [a_case("selu"), a_case("matmul"), a_case("mlp")]
CHECKS = 2  # processes before the first timing launch of a case


def record_of(folder, case) -> CaseRecord:
    return read_json(RunFolder(folder).case(case.id).record, CaseRecord)


def stop_before(count: int):
    """Interrupts a run when so many timing launches have begun."""
    begun = []

    def dies(launched):
        if launched.process == "timing":
            begun.append(launched)
            if len(begun) > count:
                raise KeyboardInterrupt

    return dies


@pytest.mark.parametrize(
    ("budget_s", "rounds"),
    [(6 + 3 * 8.0, 8), (6 + 3 * 8.0 - 0.5, 7), (6 + 3 * 5.5, 5), (6 + 3 * 3.0 + 0.5, 3)],
)
def test_as_many_whole_rounds_as_fit_into_the_time_the_same_for_all_cases(executed, budget_s, rounds):
    run, _ = executed(timed(), CASES, budget_s=budget_s)

    assert [case.launches for case in run.cases] == [rounds] * 3
    assert [case.rounds for case in run.cases] == [rounds] * 3


def test_a_budget_is_kept_within_one_launch(executed, clock):
    executed(timed(), CASES, budget_s=10.5)

    assert clock.now - 64.0 == 11.0


def test_timing_of_fewer_launches_than_give_an_interval_is_lost_and_told_as_such(executed):
    run, _ = executed(timed(), CASES, budget_s=6 + 3 * 2.0)

    assert len(run.lost()) == 3
    outcome = run.cases[0].variants[0].outcomes["timing"]
    assert (outcome.status, outcome.reason) == (Status.LOST, "timed by 2 of at least 3 launches")
    assert len(outcome.values["execution_s"]) == 2


def test_one_launch_that_was_asked_for_is_not_lost(executed):
    run, _ = executed(timed(**ONCE), CASES)

    assert run.lost() == ()


def test_a_record_is_written_after_each_round_and_says_how_many_are_whole(executed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), CASES, dies=stop_before(3 + 2))

    found = [record_of(tmp_path, case) for case in CASES]
    assert sorted(record.rounds for record in found) == [1, 2, 2]
    assert [record.launches for record in found] == [record.rounds for record in found]


def test_a_resumed_run_goes_on_with_the_next_round(executed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(most_rounds=4), CASES, dies=stop_before(3 + 2))

    run, server = executed(timed(most_rounds=4), CASES)

    for case in CASES:
        rounds = [one.round for one in server.launched if one.case == case.id and one.process == "timing"]
        assert rounds in ([1, 2, 3], [2, 3])
    assert [case.launches for case in run.cases] == [4] * 3
    whole, _ = executed_elsewhere(executed, timed(most_rounds=4), tmp_path)
    assert [one.variants for one in run.cases] == [one.variants for one in whole.cases]


def executed_elsewhere(executed, how, tmp_path):
    """The same run, never interrupted."""
    for path in sorted(tmp_path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    return executed(how, CASES)


def test_a_resumed_run_fills_its_compilation_cache_by_a_check_that_counts_for_nothing_else(executed):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(1))

    run, server = executed(timed(), [CASES[0]])

    assert [(one.process, one.refills) for one in server.launched][:2] == [(CHECK, True), ("timing", False)]
    assert len([one for one in server.launched if one.process == CHECK]) == 1
    assert run.cases[0].variants[0].outcomes["numerics"].values == OK.values


def of_program(fingerprint: str) -> Outcome:
    return Outcome(status=Status.OK, details=NumericsDetails(fingerprint=fingerprint))


@pytest.mark.parametrize(("again", "status"), [("one", Status.OK), ("other", Status.FAILED)])
def test_a_resumed_run_that_compiles_another_program_does_not_join_its_launches(executed, again, status):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(1), answers=lambda launched, name: of_program("one"))
    answer = {CHECK: of_program(again)}

    run, _ = executed(timed(), [CASES[0]], answers=lambda launched, name: answer.get(launched.process, OK))

    timing = run.cases[0].variants[0].outcomes["timing"]
    assert timing.status is status
    assert (timing.reason == ANOTHER_PROGRAM) is (status is Status.FAILED)
    assert run.cases[0].variants[0].outcomes["numerics"].details == NumericsDetails(fingerprint="one")


def test_what_failed_before_a_run_was_interrupted_is_not_tried_again(executed):
    failing = a_case("selu", "a:jit", "b:jit")

    def answers(launched, name):
        return FAILED if name == "b:jit" else OK

    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [failing], dies=stop_before(1), answers=answers)

    run, server = executed(timed(), [failing])

    assert {one.variants for one in server.launched} == {("a:jit",)}
    assert run.cases[0].variants[1].outcomes["numerics"] == FAILED


def test_a_damaged_launch_of_a_whole_round_costs_that_launch_and_no_more(executed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(4))
    RunFolder(tmp_path).case(CASES[0].id).launch(1).write_bytes(b"broken")

    run, _ = executed(timed(), [CASES[0]])

    assert run.cases[0].rounds == 8
    assert run.cases[0].launches == 7


def test_artifacts_and_time_of_an_interrupted_run_are_kept(executed, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        executed(timed(), [CASES[0]], dies=stop_before(2))
    before = record_of(tmp_path, CASES[0])

    run, server = executed(timed(), [CASES[0]])

    assert before.elapsed_s == CHECKS + 2
    assert run.cases[0].elapsed_s == before.elapsed_s + len(server.launched)
    assert run.cases[0].started == before.started


# Too little time


def slow_eager(launched: Launch) -> float:
    """Seconds of a process: eager code of the slow case takes ten."""
    return 10.0 if launched.process == "timing" and "a:eager" in launched.variants else 1.0


def test_a_slow_eager_variant_is_left_out_before_anything_else_and_told(executed):
    # Its blocks in the records are of 0.25 s each, six of them.
    watcher = Told()
    slow = a_case("selu", "a:eager", "a:jit")

    run, _ = executed(timed(), [slow, CASES[1]], budget_s=20.0, seconds=slow_eager, watcher=watcher)

    eager = run.cases[0].variants[0].outcomes["timing"]
    assert eager.status is Status.SKIPPED
    assert eager.reason == (
        "left out: a launch spends 1.5 s on it, too much for a budget of 20 s; a larger --budget times it"
    )
    assert ("said", f"{slow.name}: a:eager: {eager.reason}") in watcher.words
    assert run.cases[0].variants[1].outcomes["timing"].status is Status.OK
    assert run.lost() == ()


def test_nothing_is_left_out_where_the_fewest_rounds_fit(executed):
    run, _ = executed(timed(), [a_case("selu", "a:eager", "a:jit")], budget_s=33.0, seconds=slow_eager)

    assert run.cases[0].variants[0].outcomes["timing"].status is Status.OK
    assert run.cases[0].rounds == 3


def test_what_a_fixed_number_of_launches_looks_at_is_never_left_out(executed):
    fixed_number = timed(launches=3, fewest_rounds=3, most_rounds=3)

    run, _ = executed(fixed_number, [a_case("selu", "a:eager", "a:jit")], budget_s=15.0, seconds=slow_eager)

    assert run.cases[0].variants[0].outcomes["timing"].status is Status.LOST


def test_cold_processes_are_left_out_where_that_is_not_enough(executed):
    watcher = Told()
    cold = settings("compilation", "timing", **ROUNDS, cold_launches=3)

    def seconds(launched):
        return 5.0 if launched.process == "compilation" else 1.0

    run, server = executed(cold, [CASES[0]], budget_s=8 + 2 + 0.5, seconds=seconds, watcher=watcher)

    assert len(server.asked("compilation")) == 1
    assert run.cases[0].launches == 3
    assert ("said", "2 cold processes are left out: the budget has no time for them") in watcher.words


# More launches


MORE = {"level": "default", "most_rounds": 3}


def test_time_that_is_left_goes_to_the_widest_interval_of_a_case_that_matters(executed):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)
    narrow = a_case("selu", "a:jit", "b:jit", represents_workload=True)  # equal in every launch
    unimportant = a_case("mlp", "a:jit", "other_one:jit")

    run, _ = executed(timed(**MORE), [wide, narrow, unimportant], budget_s=6 + 3 * 3 + 4.5)

    assert [case.launches for case in run.cases] == [7, 3, 3]
    looks = [case.variants[0].outcomes["timing"].details.looks for case in run.cases]
    assert looks == [2, 1, 1]


def test_a_case_has_no_more_than_a_dozen_launches(executed):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)

    run, _ = executed(timed(**MORE), [wide])

    assert run.cases[0].launches == 12


def test_a_quick_run_ends_when_its_rounds_have(executed):
    wide = a_case("matmul", "a:jit", "other_one:jit", represents_workload=True)

    run, _ = executed(timed(most_rounds=5), [wide])

    assert run.cases[0].launches == 5


# Contended launches


def test_a_contended_launch_is_replaced_by_a_fresh_process_once(executed, tmp_path):
    def contended(message):
        return message.launch.round == 1  # and the one that replaces it, too

    run, server = executed(timed(**TWICE), [CASES[0]], contended=contended)

    assert [one.round for one in server.launched if one.process == "timing"] == [0, 1, 1]
    seeds = [message.seed for message in server.messages if message.launch.process == "timing"]
    assert len(set(seeds)) == 3
    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.launches, details.contended, details.replaced) == (2, 1, 1)
    folder = RunFolder(tmp_path).case(CASES[0].id)
    assert folder.launch(1, replaced=True).exists()
    assert folder.launches() == [folder.launch(0), folder.launch(1)]


def test_a_contended_launch_stays_where_the_budget_is_used_up(executed):
    run, server = executed(timed(**ONCE), [CASES[0]], contended=lambda message: True, budget_s=3.0)

    assert len(server.asked("timing")) == 1
    assert run.cases[0].variants[0].outcomes["timing"].details.replaced == 0


def test_a_replacement_that_dies_replaces_nothing(executed):
    begun = []

    def dies(launched):
        begun.extend([launched] if launched.process == "timing" else [])
        return dead(signal=9) if launched.process == "timing" and len(begun) == 2 else None

    run, _ = executed(timed(**ONCE), [CASES[0]], contended=lambda message: True, dies=dies)

    details = run.cases[0].variants[0].outcomes["timing"].details
    assert (details.launches, details.replaced) == (1, 0)


# What is told


@dataclass
class Told(Watcher):
    """Keeps what it is told."""

    words: list[tuple] = field(default_factory=list)

    def run_started(self, manifest, folder, launches, budget_s):
        self.words.append(("run", launches, budget_s))

    def round_started(self, number, of, launches_left):
        self.words.append(("round", number, of, launches_left))

    def launch_started(self, launch):
        self.words.append(("starts", launch.process))

    def launch_ended(self, launch, used_s):
        self.words.append(("ended", launch.process, used_s))

    def said(self, text):
        self.words.append(("said", text))

    def case_ended(self, record, used_s):
        self.words.append(("ends", record.name.partition("[")[0], used_s))

    def case_lost(self, case, reason):
        self.words.append(("lost", case.workload, reason))

    def run_ended(self):
        self.words.append(("over",))


def test_a_watcher_is_told_of_rounds_processes_cases_and_the_budget_that_is_used(executed):
    watcher = Told()

    executed(timed(**TWICE), [CASES[0]], watcher=watcher)

    assert watcher.words == [
        ("run", 4, 1000.0),
        ("round", 1, 2, 4),
        ("starts", SHAPES),
        ("ended", SHAPES, 1.0),
        ("starts", CHECK),
        ("ended", CHECK, 2.0),
        ("starts", "timing"),
        ("ended", "timing", 3.0),
        ("said", "round 1 took 3 s of 1000 s: there will be 2 rounds"),
        ("round", 2, 2, 1),
        ("starts", "timing"),
        ("ended", "timing", 4.0),
        ("ends", "selu", 4.0),
        ("over",),
    ]


def test_a_case_at_whose_turn_the_budget_is_just_used_up_is_lost(executed):
    watcher = Told()

    executed(settings(), [case("selu"), case("matmul")], budget_s=3.0, watcher=watcher)

    lost = [word for word in watcher.words if word[0] == "lost"]
    assert [word[2] for word in lost] == ["the budget of 3 s is used up; go on with --resume"]
    assert len([word for word in watcher.words if word[0] == "ends"]) == 1
