import re

import msgspec

from jaxmeter.harness.listing import catalogue_lines, data_warnings, plan_lines
from jaxmeter.harness.plan.messages import Description, SuiteDescription, WorkloadDescription
from jaxmeter.harness.plan.processes import plan_processes
from tests import samples

SELU = WorkloadDescription(
    name="selu",
    description="Scaled.",
    params={"n": (10, 20), "dtype": ("float32",)},
    variants=(("selu:eager", "Scaled."), ("numpy:native", "With NumPy.")),
    baseline="selu:eager",
    cases=2,
)
CATALOGUE = Description(
    suites=(SuiteDescription(name="selu", description="Element-wise.", workloads=(SELU,)),), cases=(), environment=None
)


def test_the_catalogue_shows_suites_workloads_params_and_variants():
    assert list(catalogue_lines(CATALOGUE)) == [
        "selu: Element-wise.",
        "  selu: Scaled.  (2 cases)",
        "    n = 10, 20",
        "    dtype = float32",
        "    selu:eager    Scaled.  (baseline)",
        "    numpy:native  With NumPy.",
        "",
    ]


def test_the_plan_shows_cases_variants_and_what_is_skipped_and_why():
    skipped = samples.planned_variant("loop:jit", skip="too long")
    cases = [
        samples.planned_case("selu", params={"n": 1}, variants=("selu:jit", "numpy:native", skipped)),
        samples.planned_case("sum", params={"n": 1}, variants=(skipped,)),
    ]

    settings = samples.settings(probes=("numerics", "timing"), fewest_rounds=3, most_rounds=8, budget_s=600.0)

    lines = list(plan_lines(cases, plan_processes(cases, settings), settings))

    assert re.fullmatch(r"selu: 1 case, about \d+ s to \d+ s, 9 to 19 processes", lines[0])
    assert lines[1:3] == ["  selu[n=1]: selu:jit, numpy:native", "    not loop:jit: too long"]
    assert lines[4] == "  sum[n=1]: nothing"
    assert lines[3] == "sum: 1 case, about 0 s, 0 processes"
    assert lines[-2].startswith("2 cases, about ")
    assert ", 9 to 19 processes; budget" in lines[-2]
    assert lines[-2].endswith(
        "; budget 10.0 min. Probes: numerics, timing. Timing processes: 3 to 8, by the time given."
    )


def test_a_plan_of_a_number_of_processes_that_nobody_limited_has_no_budget():
    cases = [samples.planned_case("selu", params={"n": 1}, variants=("selu:jit",))]
    asked = samples.settings(probes=("timing",), processes=30, fewest_rounds=30, most_rounds=30, finishes_fewest=True)
    given = msgspec.structs.replace(asked, finishes_fewest=False)

    unlimited, limited = (list(plan_lines(cases, plan_processes(cases, one), one))[-2] for one in (asked, given))

    assert "; no budget. Probes: timing. Timing processes: 30." in unlimited
    assert "; budget " in limited


FOLDER = samples.settings(data="~/sets")


def test_a_folder_without_a_data_set_is_told_once_with_the_workloads_that_read_other_data_in_its_place():
    lacking = {"data": "made up", "data_missing": "digits' files (a.txt)"}
    cases = [
        *(samples.planned_case("learn", params={"n": n}, **lacking) for n in (1, 2)),
        samples.planned_case("infer", **lacking),
        samples.planned_case("look", data="photographs"),
    ]

    assert list(data_warnings(cases, FOLDER)) == [
        "--data '~/sets' has none of digits' files (a.txt); the inputs of learn, infer are made up"
    ]


def test_a_folder_that_no_case_says_to_read_is_told_and_one_that_is_read_is_not():
    assert list(data_warnings([samples.planned_case("selu")], FOLDER)) == [
        "--data '~/sets' may have no effect: no selected case says that it reads a data set"
    ]
    assert list(data_warnings([samples.planned_case("selu"), samples.planned_case("look", data="real")], FOLDER)) == []


def test_without_a_folder_nothing_is_said_of_data():
    assert list(data_warnings([samples.planned_case("look", data="made up")], samples.settings())) == []


def test_a_fixed_count_of_processes_is_shown_as_it_is():
    *_, summary, _ = plan_lines([], [], samples.settings(processes=4, budget_s=90.0))

    assert summary.endswith("budget 90 s. Probes: numerics, compilation, timing, memory. Timing processes: 4.")


def test_a_plan_says_that_calls_longer_than_a_block_take_longer_than_planned():
    *_, last = plan_lines([], [], samples.settings(block_s=0.002))

    assert last.startswith("Calls longer than a block (2 ms)")


def test_a_budget_that_one_round_does_not_fit_into_is_told():
    settings = samples.settings(probes=("numerics", "timing"), fewest_rounds=3, most_rounds=8, budget_s=1.0)
    cases = [samples.planned_case("selu", params={"n": n}) for n in range(2)]

    *_, last = plan_lines(cases, plan_processes(cases, settings), settings)

    assert re.fullmatch(
        r"One round takes about \d+ s, more than the budget: cases will be lost. Give more with --budget, or .*", last
    )
