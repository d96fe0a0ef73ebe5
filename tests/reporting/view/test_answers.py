import math

import msgspec
import pytest

from jaxmeter.document.model import Tone
from jaxmeter.harness.record import Answer, Outcome, Status, TimingDetails
from jaxmeter.reporting.view.answers import choose_standing
from jaxmeter.reporting.view.runs import gather_cases, label_runs
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_text
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


def line_of(run):
    """The only answer of a run's page."""
    (line,) = answers_of_suites(page_of(run))
    return line


def answered(answer, jit, *, eager=None, variants=("f:eager", "f:jit"), **changes):
    """The answer of a case with eager code as baseline, and jit with what its probes told."""
    eager = {"timing": timed(is_baseline=True)} if eager is None else eager
    return line_of(
        samples.one_case({"f:eager": eager, "f:jit": jit}, {"variants": variants, "answer": answer, **changes})
    )


RATIOS = ((4, STEADY), (0.25, STEADY), (1.01, STEADY), (4, (0.0, 0.1)), (9, (-0.1, 0.0, 0.1)))


def answered_by_a_ratio(ratio, errors):
    eager = {"timing": timed(1, (0.0,) * len(errors), is_baseline=True)}
    return answered(JIT_OVER_EAGER, {"timing": timed(ratio, errors)}, eager=eager)


MIB = 2**20


def answered_by_memory():
    memory, less = ({"memory": samples.memory(0, 0, size * MIB)} for size in (32, 1))
    return answered(Answer("?", "f:jit", against="f:eager", metric="temp_bytes"), less, eager=memory)


def answered_by_a_rate():
    case = {"answer": Answer("?", "f:jit", metric="achieved_flops"), "cost": samples.Cost(flops=2_000_000)}
    return line_of(samples.one_case({"f:jit": timed(is_baseline=True)}, case))


MEASURED = "measured on this machine at 2026-01-02: products and x + 2 y, median of 5, spread at most 3 %"
WORK = {"cost": samples.Cost(flops=2_000_000, bytes=4_000_000), "items": 64, "items_unit": "tokens"}


def answered_by(metric, *, against=None, peaks=True, source=MEASURED, **case):
    """An answer by a metric of jitted code that takes 0.25 ms, beside eager code that takes 1 ms."""
    case = {"answer": Answer("?", "f:jit", metric=metric, against=against), **WORK, **case}
    known = {"peak_flops": {"float32": 20e9}, "peak_bytes_per_s": 80e9, "peaks_source": source} if peaks else {}
    times = {"f:eager": timed(is_baseline=True), "f:jit": timed(4)}
    return line_of(samples.one_case(times, case, environment=samples.environment(**known)))


BY_WORK = {
    "a share of the peak FLOP/s": ("flops_share", {}),
    "a share of the peak bandwidth": ("bandwidth_share", {}),
    "a share of a data sheet's peak, without items": (
        "flops_share",
        {"source": "the data sheet", "items": None, "items_unit": ""},
    ),
    "a throughput": ("items_per_s", {}),
    "two shares": ("flops_share", {"against": "f:eager"}),
    "two throughputs": ("items_per_s", {"against": "f:eager"}),
    "a share above the peak": ("flops_share", {"cost": samples.Cost(flops=20_000_000)}),
    "no peak": ("flops_share", {"peaks": False}),
    "no cost": ("flops_share", {"cost": None}),
    "no items": ("items_per_s", {"items": None, "items_unit": ""}),
    "no items of two": ("items_per_s", {"items": None, "items_unit": "", "against": "f:eager"}),
}


@pytest.mark.parametrize(
    ("metric", "jit", "eager", "tone"),
    [
        ("temp_bytes", 1, 2, Tone.GOOD),
        ("temp_bytes", 2, 1, Tone.WORSE),
        ("temp_bytes", 1, 1, Tone.PLAIN),
        ("temp_bytes", 0, 1, Tone.PLAIN),
        ("donation_saves_bytes", 2, 1, Tone.GOOD),
        ("code_bytes", 1, 2, Tone.GOOD),
        ("alias_bytes", 1, 2, Tone.PLAIN),
    ],
)
def test_of_two_values_the_metric_s_direction_says_which_is_better(metric, jit, eager, tone):
    sides = {"eager": eager, "jit": jit}
    outcomes = {mode: Outcome(status=Status.OK, values={metric: (size * MIB,)}) for mode, size in sides.items()}

    line = answered(
        Answer("?", "f:jit", against="f:eager", metric=metric),
        {"memory": outcomes["jit"]},
        eager={"memory": outcomes["eager"]},
    )

    assert line.tone is tone


def answered_by_a_first_call(processes):
    return answered(
        Answer("?", "f:jit", against="f:eager", metric="first_call_s"),
        {"compilation": samples.compilation(0.1, 0.1, 0.1, 0.001, processes=processes)},
        eager={"compilation": samples.compilation(0.08, processes=processes)},
    )


FAILED = Outcome(status=Status.FAILED, reason="out of memory")


LACKING = {
    "failed": (JIT_OVER_EAGER, {"timing": FAILED}),
    "no record": (JIT_OVER_EAGER, {"numerics": samples.numerics()}),
    "no variant": (Answer("?", "f:aot", against="f:eager"), {"timing": timed(2)}),
    "nothing to compare with": (Answer("?", "f:jit", against="f:aot"), {"timing": timed(2)}),
    "no metric": (Answer("?", "f:jit", metric="taste"), {"timing": timed(2)}),
    "no metric of a case": (Answer("?", "f:jit", metric="compile_exponent"), {"timing": timed(2)}),
    "failed memory": (Answer("?", "f:jit", metric="temp_bytes"), {"memory": FAILED}),
}


def timed_apart():
    jit = timed(2)
    return {"timing": msgspec.structs.replace(jit, values={**jit.values, "log_ratio": (None, None, None)})}


def answer_of(outcomes, **changes):
    if outcomes:
        return line_of(samples.one_case(outcomes, changes))
    return line_of(samples.run((samples.planned_case(variants=("f:eager", "f:jit"), **changes), None), ended=None))


UNANSWERED = {"base:eager": timed(is_baseline=True), "wild:jit": timed(9, (-0.6, 0.0, 0.6)), "sure:jit": timed(4)}
AS_THEY_ARE = {"f:mixed": timed(is_baseline=True), "g:mixed": timed(4)}


def test_answers_read_as_their_golden_text():
    lines = {
        **{f"{ratio}, with errors of {errors}": answered_by_a_ratio(ratio, errors) for ratio, errors in RATIOS},
        "not to be trusted": answered(JIT_OVER_EAGER, {"timing": timed(4, doubtful_ratios=True)}),
        "memory of both sides": answered_by_memory(),
        "a number by itself": answered_by_a_rate(),
        **{name: answered_by(metric, **changes) for name, (metric, changes) in BY_WORK.items()},
        **{f"cold times of {processes}": answered_by_a_first_call(processes) for processes in (3, 2, 1)},
        **{f"without a number: {name}": answered(*lacking) for name, lacking in LACKING.items()},
        "timed apart": answered(JIT_OVER_EAGER, timed_apart()),
        "a lost case": answer_of({}, answer=JIT_OVER_EAGER),
        "one variant and no answer": answer_of({"f:jit": timed(is_baseline=True)}),
        "no answer declared: the surest speedup": answer_of(UNANSWERED, represents_workload=True),
        "functions that run as they are": answer_of(AS_THEY_ARE, answer=Answer("?", "g:mixed", "f:mixed")),
        "judged by another level than is shown": answered_by_two_levels(),
    }

    check_golden_scenes("answers", {rule: write_text(line) for rule, line in lines.items()})


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


def answered_by_two_levels():
    """An interval without 1 that is not sure enough at the level for verdicts."""
    values = {"execution_s": (1e-4,) * 3, "log_ratio": (0.05, 0.16, 0.12)}
    jit = Outcome(status=Status.OK, values=values, details=TimingDetails(processes=3))
    times = {"f:eager": samples.timing(1e-4, processes=3), "f:jit": jit}
    return line_of(samples.one_case(times, settings=samples.settings(shown_confidence=0.8)))


def answered_by_temporary_memory(*, wrong=(), **variants):
    """What is said of f and g, by the temporary memory of all variants in bytes."""
    outcomes = {f"{name}:jit": {"memory": samples.memory(0, 0, size)} for name, size in variants.items()}
    for name in wrong:
        outcomes[f"{name}:jit"]["numerics"] = Outcome(status=Status.WRONG, reason="another result")
    case = {"answer": Answer("?", "f:jit", "g:jit", metric="temp_bytes")}
    return line_of(samples.one_case(outcomes, case, settings=samples.settings(probes=("memory",)))).text.replace(
        "\u202f", " "
    )


def test_a_variant_that_is_far_better_than_both_of_an_answer_is_named():
    assert "; least: h:jit 100 B" in answered_by_temporary_memory(f=200, g=900, h=100)
    assert "least" not in answered_by_temporary_memory(f=200, g=900, h=150)
    assert "least" not in answered_by_temporary_memory(f=200, g=900, h=2_000)
    assert "; least: h:jit 0 B" in answered_by_temporary_memory(f=200, g=900, h=0)
    assert "least" not in answered_by_temporary_memory(f=0, g=900, h=0)
    assert "least" not in answered_by_temporary_memory(f=0, g=0, h=9)
    assert "least" not in answered_by_temporary_memory(f=200, g=900, h=100, wrong="h")
