"""Which processes a run really starts, told by a server that only takes notes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import msgspec
import pytest

from harness.machine.places import PLACES
from harness.parent import execution, rounds
from harness.parent.execution import execute
from harness.parent.fork_client import Ended
from harness.parent.progress import Watcher
from harness.plan.launches import SHAPES, Launch, plan_launches
from harness.plan.messages import Heartbeat, Measure, Result
from harness.plan.probes import CHECK
from harness.record import CaseRecord, Outcome, RunFolder, Settings, Status, Stop, StopReason, read_json, read_run
from tests import samples
from tests.harness.conftest import FakeClock
from tests.harness.raw import clean, launch, variant

VARIANTS = ("a:eager", "a:jit", "b:jit", "a:aot", "numpy:native")
OK = Outcome(status=Status.OK, values={"trace_s": (1.0,)})
FAILED = Outcome(status=Status.FAILED, reason="no luck")
ALIVE = {"last": Heartbeat(None, "end"), "signal": None, "timed_out": False, "code": 0, "stderr": "", "peak_bytes": 0}


@dataclass
class NoteTaker:
    """Answers every message with what it is told to, and keeps them; each takes a second."""

    clock: FakeClock
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
        self.clock.advance(1.0)
        launched = message.launch
        if (end := self.dies(launched)) is not None:
            return end
        if launched.process == "timing":  # as different from launch to launch as makes no interval narrow
            broken = {name: self.answers(launched, name) for name in launched.variants}
            broken = {name: {"timing": outcome} for name, outcome in broken.items() if outcome is not OK}
            if broken:
                return Ended(answer=Result(outcomes=broken), **ALIVE)
            times = {name: [2.0 ** (launched.round * len(name))] * 6 for name in launched.variants}
            timed = launch(*(variant(name, *clean(*times[name])) for name in times), index=launched.round)
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
    return samples.settings(probes=("numerics", *probes), **{"case_limit_s": 1000.0, **changes})


def test_cold_processes_come_in_rounds_over_the_variants(measured):
    _, server = measured(settings("compilation", cold_launches=2))

    one_round = [("a:eager",), ("a:jit",), ("b:jit",), ("a:aot",)]
    assert server.asked("compilation") == [(index, "", names) for index in (0, 1) for names in one_round]


def test_values_of_all_rounds_are_kept(measured):
    record, _ = measured(settings("compilation", cold_launches=4))

    assert record.variants[1].outcomes["compilation"].values == {"trace_s": (1.0,) * 4}


@pytest.mark.parametrize(
    ("share_s", "of_any_s", "count"),
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
def test_cold_rounds_end_where_they_take_too_much_of_the_time(measured, monkeypatch, share_s, of_any_s, count):
    monkeypatch.setitem(rounds.CASE_LIMIT_S, "quick", of_any_s)

    _, server = measured(settings("compilation", cold_launches=5), share_s=share_s)

    assert len(server.asked("compilation")) == count * 4  # four processes, a second each


def test_a_fixed_number_of_launches_is_cut_by_no_limit(measured):
    _, server = measured(settings("compilation", cold_launches=5, launches=5), share_s=1e-6)

    assert len(server.asked("compilation")) == 5 * 4


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


UNFIXED = {"launches": None, "looks": (5, 8, 12)}


@pytest.mark.parametrize(("share_s", "launches"), [(1000.0, 12), (36.0, 11), (26.0, 6), (19.0, 3), (12.0, 3)])
def test_timing_gets_what_the_other_processes_leave_of_the_cases_share(measured, share_s, launches):
    # 3 processes before, 12 cold ones; a launch of timing is two, one of them the peer's.
    record, server = measured(settings("compilation", "timing", cold_launches=3, **UNFIXED), share_s=share_s)

    assert len(server.asked("compilation")) == 12
    assert record.launches == launches


def test_timing_takes_no_longer_than_a_cases_limit_whatever_its_share(measured):
    record, _ = measured(settings("timing", case_limit_s=7.0, **UNFIXED))

    assert record.launches == 4


# One list for all


def case(name: str, **changes):
    return samples.planned_case(name, variants=VARIANTS, **changes)


EVERYTHING = ("numerics", "memory", "residency", "compilation", "caching", "timing", "trace")


def fixed(**changes) -> Settings:
    """Settings of all probes with counts that nothing cuts."""
    counts = {"launches": 2, "looks": (2,), "cold_launches": 2, "everywhere": ("caching", "trace")}
    return samples.settings(probes=EVERYTHING, **{**counts, **changes})


def test_what_is_started_is_the_planned_list_in_its_order(executed):
    settings = fixed()
    cases = [case("selu"), case("matmul", new_shape={"n": 2})]

    _, server = executed(settings, cases)

    assert server.launched == list(plan_launches(cases, settings))


def test_cases_come_one_after_the_other(executed):
    _, server = executed(fixed(), [case("selu"), case("matmul"), case("mlp")])

    order = [launched.case for launched in server.launched]
    assert [one for index, one in enumerate(order) if index == 0 or order[index - 1] != one] == list(
        dict.fromkeys(order)
    )


def test_a_run_that_is_resumed_launches_only_for_cases_without_a_record(executed, tmp_path):
    settings = fixed()
    cases = [case("selu"), case("matmul")]
    executed(settings, cases)
    folder = RunFolder(tmp_path)
    folder.mark.unlink()
    folder.case(cases[0].id).record.unlink()

    again, server = executed(settings, cases)

    assert {launched.case for launched in server.launched} == {cases[0].id}
    assert len(again.cases) == 2
    assert read_run(folder) == again


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

    assert server.asked("timing") == [(index, "", ("a:eager", "a:jit", "a:aot")) for index in (0, 1)]


def test_what_the_budget_does_not_reach_is_lost_and_the_run_says_why(executed, tmp_path):
    run, server = executed(fixed(), [case("selu"), case("matmul")], budget_s=3.0)

    assert len(run.lost()) == 1
    assert {launched.case for launched in server.launched} == {run.cases[0].id}
    assert not RunFolder(tmp_path).mark.exists()
    stop = read_json(RunFolder(tmp_path).stop, Stop)
    assert (stop.reason, stop.budget_s) == (StopReason.BUDGET_USED, 3.0)


def test_each_case_but_the_last_gets_half_an_even_share_of_the_time_that_is_left(executed, monkeypatch):
    shares = []
    begun = execution.CaseProgress
    monkeypatch.setattr(execution, "CaseProgress", lambda *args: shares.append(args[3]) or begun(*args))
    checks = samples.settings(probes=("numerics",))

    executed(checks, [case("selu"), case("matmul")], budget_s=43.0)

    assert shares == [43.0 / 2 / 2, 40.0]  # three processes of a second each


def test_an_interrupted_run_says_so_and_keeps_the_cases_that_have_ended(executed, tmp_path):
    def interrupt(launched):
        if launched.process == "trace" and len(list(RunFolder(tmp_path).case_records())) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executed(fixed(), [case("selu"), case("matmul")], dies=interrupt)

    stop = read_json(RunFolder(tmp_path).stop, Stop)
    assert (stop.reason, stop.budget_s) == (StopReason.INTERRUPTED, None)
    [path] = RunFolder(tmp_path).case_records()
    assert read_json(path, CaseRecord).status is Status.OK


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

    record, server = measured(settings("timing", launches=2, looks=(2,)), answers=answers)

    of_jax = [(index, names) for index, _, names in server.asked("timing") if names != ("numpy:native",)]
    whole, rest = ("a:eager", "a:jit", "b:jit", "a:aot"), ("a:eager", "b:jit", "a:aot")
    assert of_jax == [(0, whole), (0, rest), (1, rest)]
    assert record.variants[1].outcomes["timing"] == FAILED
    assert len(record.variants[0].outcomes["timing"].values["execution_s"]) == 2


def test_what_could_not_be_timed_is_not_traced(measured):
    def answers(launched, name):
        return FAILED if launched.process == "timing" and name == "a:jit" else OK

    _, server = measured(settings("timing", "trace", launches=1, looks=(1,)), answers=answers, represents_workload=True)

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
    record, server = measured(settings("timing", launches=2, looks=(2,)))

    assert record.elapsed_s == len(server.messages) == 3 + 2 * 2


def test_what_is_not_timed_has_no_timing(measured):
    def answers(launched, name):
        return Outcome(status=Status.WRONG) if name == "a:jit" else OK

    record, _ = measured(settings("timing", launches=1, looks=(1,)), answers=answers)

    assert [item.name for item in record.variants if "timing" not in item.outcomes] == ["a:jit"]


def test_the_least_share_begins_with_what_a_case_has_used_before_timing(measured):
    limits = {"launches": None, "looks": (12,), "case_limit_s": 1000.0}

    # Three processes before; launches of two seconds each, until more than 10 - 3 s are gone.
    record, _ = measured(settings("timing", **limits), share_s=10.0)

    assert record.launches == 4


@dataclass
class Told(Watcher):
    """Keeps what it is told."""

    words: list[tuple] = field(default_factory=list)

    def run_started(self, manifest, folder, launches, budget_s):
        self.words.append(("run", launches, budget_s))

    def launch_started(self, launch):
        self.words.append(("begins", launch.process))

    def launch_ended(self, launch, used_s):
        self.words.append(("ended", launch.process, used_s))

    def case_ended(self, record, used_s):
        self.words.append(("ends", record.name.partition("[")[0], used_s))

    def case_lost(self, case, reason):
        self.words.append(("lost", case.workload, reason))

    def run_ended(self):
        self.words.append(("over",))


def test_a_watcher_is_told_of_cases_launches_and_the_budget_that_is_used(executed):
    watcher = Told()
    timed = settings("timing", launches=2, looks=(2,))

    executed(timed, [case("selu")], watcher=watcher)

    assert watcher.words == [
        ("run", 7, 1000.0),
        *[("begins", "shapes"), ("ended", "shapes", 1.0)],
        *[("begins", "check"), ("ended", "check", 2.0), ("begins", "check"), ("ended", "check", 3.0)],
        # JAX's process, and the peer's
        *[("begins", "timing"), ("ended", "timing", 4.0), ("begins", "timing"), ("ended", "timing", 5.0)],
        *[("begins", "timing"), ("ended", "timing", 6.0), ("begins", "timing"), ("ended", "timing", 7.0)],
        ("ends", "selu", 7.0),
        ("over",),
    ]


def test_a_case_at_whose_turn_the_budget_is_just_used_up_is_lost(executed):
    watcher = Told()

    executed(settings(), [case("selu"), case("matmul")], budget_s=3.0, watcher=watcher)

    told = [word for word in watcher.words if word[0] not in ("begins", "ended")]
    assert [word[0] for word in told] == ["run", "ends", "lost", "over"]
    assert told[2][2] == "the budget of 3 s is used up; go on with --resume"


def test_a_case_of_which_nothing_can_be_run_is_lost_where_no_budget_is_left(executed):
    skipped = samples.planned_variant("a:jit", skip="needs 2 devices, found 1")

    run, _ = executed(fixed(), [samples.planned_case(variants=(skipped,))], budget_s=0.0)

    assert len(run.lost()) == 1


def test_samples_that_are_taken_from_an_interrupted_run_count_as_launches_too(executed, tmp_path):
    timed = settings("timing", launches=1, looks=(1,))
    executed(timed, [case("selu")])
    folder = RunFolder(tmp_path)
    folder.mark.unlink()
    folder.case(case("selu").id).record.unlink()
    watcher = Told()

    executed(timed, [case("selu")], watcher=watcher)

    assert [word[:2] for word in watcher.words].count(("ended", "timing")) == 2


@pytest.mark.parametrize(("own_s", "expected_s"), [(None, 90.0), (7.0, 7.0)])
def test_a_stage_may_take_as_long_as_the_workload_says_else_as_the_run(measured, own_s, expected_s):
    _, server = measured(settings(stage_limit_s=90.0), time_limit_s=own_s)

    assert set(server.limits_s) == {expected_s}
