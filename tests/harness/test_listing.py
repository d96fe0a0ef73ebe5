import re

import pytest

from jaxmeter.document import terminal
from jaxmeter.harness.listing import data_warnings, describe_catalogue, describe_plan
from jaxmeter.harness.plan.messages import Description, SuiteDescription, WorkloadDescription
from jaxmeter.harness.plan.processes import plan_processes
from tests import samples
from tests.golden_texts import check_golden_scenes

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


def plan_of(cases, **settings):
    """A plan as text, of which times and counts of processes are constants of the estimate."""
    made = samples.settings(**settings)
    text = terminal.write(describe_plan(cases, plan_processes(cases, made), made))
    return re.sub(r"about [\d.]+ (s|min)( to [\d.]+ (s|min))?", "about TIME", text)


def test_catalogues_and_plans_read_as_their_golden_text():
    skipped = samples.planned_variant("loop:jit", skip="too long")
    selu = samples.planned_case("selu", params={"n": 1}, variants=("selu:jit", "numpy:native", skipped))
    cases = [selu, samples.planned_case("sum", params={"n": 1}, variants=(skipped,))]
    rounds = {"probes": ("numerics", "timing"), "fewest_rounds": 3, "most_rounds": 8}
    counted = {"probes": ("timing",), "processes": 30, "fewest_rounds": 30, "most_rounds": 30}
    scenes = {
        "a catalogue": terminal.write(describe_catalogue(CATALOGUE)),
        "a plan, and what is skipped": plan_of(cases, **rounds),
        "a number of processes that nobody limited": plan_of([selu], **counted, finishes_fewest=True),
        "a number of processes within a budget": plan_of([selu], **counted),
        "a fixed count of processes, and longer blocks": plan_of([], processes=4, block_s=0.002),
        "a budget that one round does not fit into": plan_of(cases, **rounds, budget_s=1.0),
    }

    check_golden_scenes("plans", scenes)


FOLDER = samples.settings(data="~/sets")


LACKING = {"data": "made up", "data_missing": "digits' files (a.txt)"}
READS = samples.planned_case("look", data="real")


@pytest.mark.parametrize(
    ("cases", "settings", "warnings"),
    [
        (
            [
                *(samples.planned_case("learn", params={"n": n}, **LACKING) for n in (1, 2)),
                samples.planned_case("infer", **LACKING),
                READS,
            ],
            FOLDER,
            ["--data '~/sets' has none of digits' files (a.txt); the inputs of learn, infer are made up"],
        ),
        (
            [samples.planned_case("selu")],
            FOLDER,
            ["--data '~/sets' may have no effect: no selected case says that it reads a data set"],
        ),
        ([samples.planned_case("selu"), READS], FOLDER, []),
        ([samples.planned_case("look", data="made up")], samples.settings(), []),
    ],
    ids=["a folder without a data set", "one that no case reads", "one that is read", "no folder"],
)
def test_a_folder_that_gives_no_data_is_told_once(cases, settings, warnings):
    assert list(data_warnings(cases, settings)) == warnings
