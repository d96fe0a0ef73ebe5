import math

import msgspec
import pytest

from jaxmeter.harness.record import Answer, Artifact, Outcome, Status, TimingDetails
from jaxmeter.reporting.view.answers import choose_standing
from jaxmeter.reporting.view.cases import gather_cases
from jaxmeter.reporting.view.page_model import Tone
from jaxmeter.reporting.view.runs import label_runs
from tests import samples
from tests.reporting.views import answers_of_suites, kept, page_of

STEADY = (-0.01, 0.0, 0.01)
JIT_OVER_EAGER = Answer("What is fusing worth?", "f:jit", against="f:eager")


def timed(ratio=1.0, errors=STEADY, *, is_baseline=False, **details):
    """A time in as many processes as errors, with its speedup over a baseline of 1 ms."""
    logs = tuple(math.log(ratio) + error for error in errors)
    values = {"execution_s": tuple(1e-3 / math.exp(one) for one in logs)}
    values |= {} if is_baseline else {"log_ratio": logs}
    told = TimingDetails(processes=len(errors), **details)
    return Outcome(status=Status.OK, values=values, details=told)


def answered(answer, jit, *, eager=None, variants=("f:eager", "f:jit"), **changes):
    """The only answer of a page: of a case with eager code as baseline, and jit with what its probes told."""
    planned = samples.planned_case(variants=variants, answer=answer, **changes)
    eager = {"timing": timed(is_baseline=True)} if eager is None else eager
    record = samples.record(planned, {"f:eager": eager, "f:jit": jit})
    (line,) = answers_of_suites(page_of(samples.run((planned, record))))
    return line


def plain(text):
    return text.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("ratio", "errors", "text", "tone"),
    [
        (4, STEADY, "f:jit is 4.0× [3.8, 4.2] as fast as f:eager.", Tone.GOOD),
        (0.25, STEADY, "f:jit is 0.25× [0.24, 0.26] as fast as f:eager.", Tone.WARN),
        (1.01, STEADY, "No difference is told: f:jit is 1.01× [0.95, 1.07] as fast as f:eager.", Tone.MUTED),
        (4, (0.0, 0.1), "f:jit is 4.2× as fast as f:eager; no interval from 2 processes.", Tone.MUTED),
        (9, (-0.1, 0.0, 0.1), "f:jit is 9.0× [5.1, 16] as fast as f:eager; a wide interval.", Tone.GOOD),
    ],
)
def test_a_ratio_is_told_with_its_interval_or_why_it_has_none(ratio, errors, text, tone):
    line = answered(
        JIT_OVER_EAGER,
        {"timing": timed(ratio, errors)},
        eager={"timing": timed(1, (0.0,) * len(errors), is_baseline=True)},
    )

    assert (line.text, line.tone) == (text, tone)


def test_an_answer_names_its_suite_question_case_and_place():
    line = answered(JIT_OVER_EAGER, {"timing": timed(4)})

    assert (line.suite, line.question) == ("selu", "What is fusing worth?")
    assert line.of == "selu[dtype=float32,n=10000] · ● cpu"


def test_a_ratio_that_is_not_to_be_trusted_is_told_with_the_reason():
    line = answered(JIT_OVER_EAGER, {"timing": timed(4, doubtful_ratios=True)})

    assert line.text == (
        "f:jit is 4.0× [3.8, 4.2] as fast as f:eager; not to be trusted: too few of its processes were quiet on "
        "both sides."
    )
    assert line.tone is Tone.WARN


MIB = 2**20


def test_memory_is_told_of_both_sides():
    memory = {"memory": samples.memory(0, 0, 32 * MIB)}
    less = {"memory": samples.memory(0, 0, MIB)}

    line = answered(Answer("?", "f:jit", against="f:eager", metric="temp_bytes"), less, eager=memory)

    assert plain(line.text) == "Temporary memory: 1.00 MiB by f:jit, 32.0 MiB by f:eager; about 32 times as much."


def test_a_number_by_itself_is_told_with_its_interval():
    planned = samples.planned_case(
        variants=("f:jit",), answer=Answer("?", "f:jit", metric="achieved_flops"), cost=samples.Cost(flops=2_000_000)
    )
    record = samples.record(planned, {"f:jit": {"timing": timed(is_baseline=True)}})

    (line,) = answers_of_suites(page_of(samples.run((planned, record))))

    assert plain(line.text) == "Achieved FLOP/s: 2.0 GFLOP/s [1.9, 2.1] by f:jit."


@pytest.mark.parametrize(
    ("processes", "text"),
    [
        (3, "First call: 1.0 ms [0.9, 1.1] by f:jit, 80 ms [76, 85] by f:eager; about 80 times as much."),
        (2, "First call: 1.00 ms (1.00 to 1.01) by f:jit, 80.4 ms (80.0 to 80.8) by f:eager; about 80 times as much."),
        (1, "First call: 1.00 ms by f:jit, 80.0 ms by f:eager; about 80 times as much."),
    ],
)
def test_times_of_cold_processes_have_bounds_or_their_range(processes, text):
    line = answered(
        Answer("?", "f:jit", against="f:eager", metric="first_call_s"),
        {"compilation": samples.compilation(0.1, 0.1, 0.1, 0.001, processes=processes)},
        eager={"compilation": samples.compilation(0.08, processes=processes)},
    )

    assert plain(line.text) == text


FAILED = Outcome(status=Status.FAILED, reason="out of memory")


@pytest.mark.parametrize(
    ("answer", "jit", "reason"),
    [
        (JIT_OVER_EAGER, {"timing": FAILED}, "timing failed: out of memory"),
        (JIT_OVER_EAGER, {"numerics": samples.numerics()}, "no record of its timing"),
        (Answer("?", "f:aot", against="f:eager"), {"timing": timed(2)}, "the case has no variant f:aot"),
        (Answer("?", "f:jit", against="f:aot"), {"timing": timed(2)}, "the case has no variant f:aot"),
        (Answer("?", "f:jit", metric="taste"), {"timing": timed(2)}, "this version of jaxmeter knows no metric taste"),
        (
            Answer("?", "f:jit", metric="compile_exponent"),
            {"timing": timed(2)},
            "this version of jaxmeter knows no metric compile_exponent",
        ),
        (Answer("?", "f:jit", metric="temp_bytes"), {"memory": FAILED}, "memory failed: out of memory"),
    ],
)
def test_without_a_number_the_reason_stands_in_its_place(answer, jit, reason):
    line = answered(answer, jit)

    assert (line.text, line.tone) == (f"No answer: {reason}.", Tone.MUTED)


def test_processes_that_timed_only_one_side_each_give_no_ratio():
    jit = timed(2)
    apart = msgspec.structs.replace(jit, values={**jit.values, "log_ratio": (None, None, None)})

    assert answered(JIT_OVER_EAGER, {"timing": apart}).text == "No answer: no process timed both."


def test_a_lost_case_says_why():
    planned = samples.planned_case(variants=("f:eager", "f:jit"), answer=JIT_OVER_EAGER)

    (line,) = answers_of_suites(page_of(samples.run((planned, None), ended=None)))

    assert line.text.startswith("No answer: ")
    assert "no record" in line.text


def test_a_suite_that_declares_no_answer_is_told_by_its_surest_speedup():
    planned = samples.planned_case(variants=("base:eager", "wild:jit", "sure:jit"), represents_workload=True)
    outcomes = {"base:eager": timed(is_baseline=True), "wild:jit": timed(9, (-0.6, 0.0, 0.6)), "sure:jit": timed(4)}
    record = samples.record(planned, {name: {"timing": one} for name, one in outcomes.items()})

    (line,) = answers_of_suites(page_of(samples.run((planned, record))))

    assert line.text == "sure:jit is 4.0× [3.8, 4.2] as fast as base:eager."
    assert line.question == "Sample workload selu."


def test_a_suite_with_one_variant_and_no_answer_is_told_by_its_time():
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": timed(is_baseline=True)}})

    (line,) = answers_of_suites(page_of(samples.run((planned, record))))

    assert plain(line.text) == "Execution time: 1.0 ms [0.9, 1.1] by f:jit."


def test_answers_with_a_rank_come_first_by_it_then_the_others_by_name():
    cases = []
    for suite, rank in (("c", None), ("b", 2), ("a", None), ("d", 1)):
        planned = samples.planned_case(suite, answer=msgspec.structs.replace(JIT_OVER_EAGER, rank=rank))
        cases.append((planned, samples.fast_case(planned)))

    assert [line.suite for line in answers_of_suites(page_of(samples.run(*cases)))] == ["d", "b", "a", "c"]


def standing(*runs):
    """By suite, the name and run of the case that stands for it."""
    cases = gather_cases(label_runs(kept(*runs)))
    return {suite: (case.planned.name, case.run.name) for suite, case in choose_standing(cases).items()}


def run_of(*planned, **changes):
    return samples.run(*((one, samples.fast_case(one)) for one in planned), **changes)


def sized(n, **changes):
    return samples.planned_case(params={"n": n}, **changes)


def test_the_case_with_the_answer_stands_for_its_suite_else_one_that_stands_for_its_workload():
    assert standing(run_of(sized(1), sized(2, answer=JIT_OVER_EAGER)))["selu"][0] == "selu[n=2]"
    assert standing(run_of(sized(1), sized(2, represents_workload=True)))["selu"][0] == "selu[n=2]"
    assert standing(run_of(sized(1), sized(2)))["selu"][0] == "selu[n=1]"


def test_of_several_answering_cases_the_one_that_most_places_ran_stands_in_its_newest_run():
    here = run_of(sized(1), sized(2, answer=JIT_OVER_EAGER), run_id="here", started="2026-01-01T00:00:00Z")
    there = run_of(sized(1), sized(2, answer=JIT_OVER_EAGER), run_id="there", started="2026-01-02T00:00:00Z")
    newest = run_of(sized(1, answer=JIT_OVER_EAGER), run_id="newest", started="2026-01-03T00:00:00Z")

    assert standing(here, there)["selu"] == ("selu[n=2]", "there")
    assert standing(here, newest)["selu"] == ("selu[n=1]", "newest")


def test_memory_and_traces_are_answered_of_all_suites_together():
    planned = samples.planned_case("big")
    kept_file = Artifact(kind="trace", variant="selu:jit", path="trace/x.xplane.pb", size_bytes=2048, sha256="0" * 64)
    record = msgspec.structs.replace(samples.fast_case(planned), artifacts=(kept_file,))

    answers = {one.suite: one for one in page_of(samples.run((planned, record))).answers}

    assert answers["memory"].text.startswith("Largest plan: ")
    assert answers["traces"].text.replace("\u202f", " ") == (
        "1 variant of 1 case, 2.00 KiB: nox -s traces -- results/2026-01-02T03-04-05Z-cpu-0000000"
    )
    assert {answers[name].target for name in ("memory", "traces")} == {answers["big"].target}


def test_what_was_not_captured_or_planned_says_so_and_ranks_last():
    planned = samples.planned_case(variants=("f:jit",))
    page = page_of(samples.run((planned, samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3)}}))))

    assert [one.suite for one in page.answers] == ["selu", "memory", "traces"]
    assert page.answers[1].text == "No answer: no memory analysis was recorded."
    assert page.answers[2].text.startswith("No answer: no profile was captured; ")


def test_an_interval_without_1_that_is_not_sure_enough_says_so():
    planned = samples.planned_case(variants=("f:eager", "f:jit"))
    logs = (0.05, 0.16, 0.12)
    values = {"execution_s": (1e-4,) * 3, "log_ratio": logs}
    record = samples.record(
        planned,
        {
            "f:eager": {"timing": samples.timing(1e-4, processes=3)},
            "f:jit": {"timing": Outcome(status=Status.OK, values=values, details=TimingDetails(processes=3))},
        },
    )
    settings = samples.settings(shown_confidence=0.8)

    line = answers_of_suites(page_of(samples.run((planned, record), settings=settings)))[0]

    assert line.text.startswith("No difference is told: f:jit is 1.1")
    assert "; at 99\u202f%, by which it is judged, it is not sure" in line.text
