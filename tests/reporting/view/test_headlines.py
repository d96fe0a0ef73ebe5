import math

import msgspec
import pytest

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.reporting.view.headlines import count_sides, find_surest_speedup
from jaxmeter.reporting.view.page_model import Tone
from tests import samples
from tests.reporting.views import by_variant, page_of, section, texts


def processes(ratio, *log_errors, baseline_s=1e-3):
    """A time in as many processes as errors, with its paired speedup over the baseline."""
    log_ratios = tuple(math.log(ratio) + error for error in log_errors)
    values = {"execution_s": tuple(baseline_s / math.exp(one) for one in log_ratios), "log_ratio": log_ratios}
    return {"timing": Outcome(status=Status.OK, values=values)}


SURE, WILD = (-0.01, 0.0, 0.01), (-0.6, 0.0, 0.6)
WIDE, MEANINGLESS = (-0.1, 0.0, 0.1), (-0.001, 0.0, 0.001)
BASELINE = {"timing": samples.timing(1e-3, processes=3)}


def page_with(**speedups):
    """One case: a baseline, and a variant `name:jit` for each ratio with the errors of its processes."""
    planned = samples.planned_case(variants=("base:eager", *(f"{name}:jit" for name in speedups)))
    outcomes = {f"{name}:jit": processes(ratio, *errors) for name, (ratio, errors) in speedups.items()}
    return page_of(samples.run((planned, samples.record(planned, {"base:eager": BASELINE, **outcomes}))))


def test_a_count_of_pairs_names_those_that_are_not_told_apart():
    faster, slower = Interval(1.5, 2.0, 2.5, 3), Interval(0.4, 0.5, 0.6, 3)
    undecided = Interval(0.9, 1.2, 1.5, 3), Interval(1.01, 1.02, 1.03, 3), Interval(None, 9.0, None, 2)

    assert count_sides([faster, *undecided, slower, faster]) == "2 faster, 1 slower, 3 undecided"


def test_the_surest_speedup_has_the_highest_lower_bound_and_not_the_highest_estimate():
    sure, lucky = Interval(3.9, 4.0, 4.1, 5), Interval(1.1, 9.0, 80.0, 3)

    assert find_surest_speedup([(lucky, "lucky"), (sure, "sure")]) == (sure, "sure")


@pytest.mark.parametrize(
    "speedup",
    [
        Interval(0.9, 9.0, 90.0, 3),
        Interval(0.4, 0.5, 0.6, 3),
        Interval(1.01, 1.02, 1.03, 3),
        Interval(None, 9.0, None, 2),
    ],
    ids=["includes 1", "slower", "below the minimum effect", "no bounds"],
)
def test_what_is_not_told_to_be_faster_leads_nothing(speedup):
    assert find_surest_speedup([(speedup, "")]) is None


def test_the_largest_speedup_is_a_sure_one_with_its_interval():
    answer = section(page_with(lucky=(9, WILD), sure=(4, SURE)), "speed").answer

    assert "Largest speedup: 4.0× [3.8, 4.2], " in answer
    assert answer.endswith(" · sure:jit · ● cpu.")


def test_where_no_speedup_is_told_apart_the_answer_says_so():
    answer = section(page_with(lucky=(9, WILD), even=(1.01, MEANINGLESS)), "speed").answer

    assert answer.endswith(": 0 faster, 0 slower, 2 undecided.")


def test_the_matrix_shows_the_surest_speedup_with_its_interval():
    page = page_with(lucky=(9, WILD), sure=(4, SURE))

    (row,) = page.matrix.rows
    assert texts(row)[1] == "250 µs · 4.0× [3.8, 4.2] sure:jit"


def test_the_matrix_says_that_a_speedup_is_undecided():
    (row,) = page_with(wide=(1.1, WIDE)).matrix.rows

    assert row.cells[1].text.endswith("· 1.10× [0.62, 2.0] undecided")


def test_the_median_speedup_of_jit_lies_between_the_median_bounds():
    cases = []
    for n, (ratio, errors) in enumerate(((2, SURE), (4, SURE), (8, WILD))):
        planned = samples.planned_case(params={"n": n}, variants=("f:eager", "f:jit"))
        outcomes = {"f:eager": BASELINE, "f:jit": processes(ratio, *errors)}
        cases.append((planned, samples.record(planned, outcomes)))

    answer = section(page_of(samples.run(*cases)), "speed").answer

    # The wild one has the lowest low bound and the highest high one.
    assert "(median 4.0× [1.9, 4.2])" in answer


def test_the_matrix_does_not_lead_with_a_speedup_that_was_not_paired_by_the_moment_where_a_side_is_contended():
    planned = samples.planned_case(variants=("base:eager", "numpy:native"))
    baseline = {"timing": samples.timing(1e-3, processes=3, contended=1)}
    record = samples.record(planned, {"base:eager": baseline, "numpy:native": processes(4, *SURE)})

    (row,) = page_of(samples.run((planned, record))).matrix.rows

    assert row.cells[1].detail.endswith("base:eager · ! contended")
    assert row.cells[1].tone is Tone.WARN


def test_the_matrix_marks_a_speedup_that_is_not_to_be_trusted():
    (row,) = page_of(samples.run(doubtful_case(1, doubtful=True))).matrix.rows

    assert row.cells[1].detail.endswith("f:jit · ! contended")
    assert row.cells[1].tone is Tone.WARN


def test_the_matrix_says_that_no_jit_variant_is_surely_faster_than_the_baseline():
    planned = samples.planned_case(variants=("base:jit", "lucky:jit"))
    record = samples.record(planned, {"base:jit": BASELINE, "lucky:jit": processes(9, *WILD)})

    (row,) = page_of(samples.run((planned, record))).matrix.rows

    assert row.cells[1].text == "1.0\u202fms · baseline"


def doubtful_case(n, *, doubtful):
    """Jit is twice as fast, or seems to be nine times as fast in processes that were disturbed."""
    planned = samples.planned_case(params={"n": n}, variants=("f:eager", "f:jit"))
    jit = processes(2 if not doubtful else 9, *SURE)
    details = samples.TimingDetails(processes=3, doubtful_ratios=doubtful)
    jit["timing"] = msgspec.structs.replace(jit["timing"], details=details)
    return planned, samples.record(planned, {"f:eager": BASELINE, "f:jit": jit})


def test_pairs_that_are_not_to_be_trusted_are_counted_apart_and_are_not_in_the_median():
    page = page_of(samples.run(doubtful_case(1, doubtful=False), doubtful_case(2, doubtful=True)))

    assert (
        "1 faster, 0 slower, 0 undecided, 1 not to be trusted (median 2.0× [1.9, 2.1])" in section(page, "speed").answer
    )


def test_where_no_pair_is_to_be_trusted_there_is_no_median():
    page = page_of(samples.run(doubtful_case(1, doubtful=True)))

    assert "median" not in section(page, "speed").answer
    assert "Largest" not in section(page, "speed").answer


def test_a_speedup_that_is_not_to_be_trusted_leads_no_suite():
    planned = samples.planned_case(variants=("base:eager", "wild:jit", "sure:jit"))
    wild = processes(9, *SURE)
    details = samples.TimingDetails(processes=3, doubtful_ratios=True)
    wild["timing"] = msgspec.structs.replace(wild["timing"], details=details)
    outcomes = {"base:eager": BASELINE, "wild:jit": wild, "sure:jit": processes(4, *SURE)}

    (row,) = page_of(samples.run((planned, samples.record(planned, outcomes)))).matrix.rows

    assert row.cells[1].detail.endswith("sure:jit")


def paying(ratio, errors, *, cold_processes=3, **details):
    """Of an eager call of 1 ms, where jit's first result takes 0.1 s longer."""
    planned = samples.planned_case(variants=("f:eager", "f:jit"))
    eager = Outcome(status=Status.OK, values={"execution_s": (1e-3,) * 3})
    first = (
        Outcome(status=Status.OK, values=dict.fromkeys(names, (seconds,) * cold_processes))
        for names, seconds in ((["first_call_s"], 0.1), (["trace_s", "lower_s", "compile_s", "first_call_s"], 0.05))
    )
    outcomes = {
        "f:eager": {"timing": eager, "compilation": next(first)},
        "f:jit": {**processes(ratio, *errors), "compilation": next(first)},
    }
    told = samples.TimingDetails(processes=3, **details)
    outcomes["f:jit"]["timing"] = msgspec.structs.replace(outcomes["f:jit"]["timing"], details=told)
    return by_variant(page_of(samples.run((planned, samples.record(planned, outcomes)))))["f:jit"]["jit pays"]


def test_jit_pays_after_a_range_of_calls():
    # The speedup lies between 1.8886 and 2.1180, so 1 ms becomes less by 0.4705 to 0.5279 ms.
    assert paying(2, SURE) == "191 to 214 calls"


def test_calls_of_a_speedup_that_is_not_to_be_trusted_are_marked():
    assert paying(2, SURE, doubtful_ratios=True) == "! 191 to 214 calls"


def test_a_speedup_over_eager_code_that_is_not_to_be_trusted_is_said_though_the_one_over_the_baseline_is():
    planned = samples.planned_case(variants=("base:jit", "f:eager", "f:jit"))
    busy = samples.timing(1e-3, baseline_s=1e-3, processes=3, contended=1, parallelism=(1.9,) * 3)
    timed = samples.timing(5e-4, baseline_s=1e-3, processes=3, parallelism=(1.0,) * 3)
    outcomes = {
        "base:jit": BASELINE,
        "f:eager": {"timing": busy, "compilation": samples.compilation(0.1)},
        "f:jit": {"timing": timed, "compilation": samples.compilation(0.1, 0.1, 0.1, 0.1)},
    }

    row = by_variant(page_of(samples.run((planned, samples.record(planned, outcomes)))))["f:jit"]

    assert "speedup over eager code not to be trusted: " in row["Notes"]
    assert row["jit pays"].startswith("! ")
    assert not row["Speedup"].startswith("!")


def test_jit_that_may_not_be_faster_pays_after_at_least_so_many_calls():
    # At most a speedup of 1.9509, so 0.4874 ms less.
    assert paying(1.1, WIDE) == "at least 207 calls"


def test_without_intervals_of_the_cold_processes_the_calls_have_none():
    assert paying(2.1, SURE, cold_processes=1) == "192 calls no interval"
