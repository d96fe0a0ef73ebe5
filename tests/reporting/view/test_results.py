import pytest
from msgspec import structs

from jaxmeter.harness.record import MemoryDetails, Status
from tests import samples
from tests.reporting.views import page_of


def results_of(*pairs, **changes):
    page = page_of(samples.run(*pairs, **changes))
    return {one.variant: one for suite in page.suites for case in suite.cases for one in case.results}


@pytest.mark.parametrize(("spread", "wide"), [(1.0, False), (40.0, True)])
def test_an_interval_wider_than_a_factor_of_two_is_said_to_be_wide(spread, wide):
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3, spread=spread)}})

    time = results_of((planned, record))["f:jit"].time

    assert time.text.endswith(" wide") is wide
    assert (time.high / time.low > 2) is wide


@pytest.mark.parametrize(
    ("unplanned", "measured", "leading"),
    [
        (("ynn_fusion",), 2048, (2048, "call")),
        (("ynn_fusion",), None, (1024, "plan")),
        ((), 2048, (1024, "plan")),
        (None, 2048, (1024, "plan")),
    ],
    ids=["it leaves out products", "nothing was measured", "it leaves out nothing", "unknown"],
)
def test_where_a_plan_leaves_out_working_memory_the_measured_peak_comes_first(unplanned, measured, leading):
    planned = samples.planned_case(variants=("f:jit",))
    plan = samples.memory(1024, 0, 0)
    plan = structs.replace(plan, details=MemoryDetails(unplanned=unplanned))
    record = samples.record(planned, {"f:jit": {"memory": plan, "measured_memory": samples.measured_memory(measured)}})

    result = results_of((planned, record))["f:jit"]

    assert (result.memory.value, result.memory_of) == leading


def test_memory_is_the_plan_and_without_one_what_a_call_held():
    planned = samples.planned_case(variants=("f:jit", "numpy:native"))
    call = samples.Outcome(status=Status.OK, values={"measured_peak_bytes": (2048,)})
    record = samples.record(
        planned,
        {
            "f:jit": {"memory": samples.memory(1024, 0, 0), "measured_memory": call},
            "numpy:native": {"measured_memory": call},
        },
    )

    results = results_of((planned, record))

    found = {name: (result.memory.value, result.memory_of) for name, result in results.items()}
    assert found == {"f:jit": (1024, "plan"), "numpy:native": (2048, "call")}
