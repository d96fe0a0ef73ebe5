import pytest
from msgspec import structs

from jaxmeter.harness.record import MemoryDetails
from tests import samples
from tests.reporting.views import page_of


def results_of(outcomes):
    (suite,) = page_of(samples.one_case(outcomes)).suites
    return {one.variant: one for case in suite.cases for one in case.results}


@pytest.mark.parametrize(("spread", "wide"), [(1.0, False), (40.0, True)])
def test_an_interval_wider_than_a_factor_of_two_is_said_to_be_wide(spread, wide):
    time = results_of({"f:jit": samples.timing(1e-3, spread=spread)})["f:jit"].time

    assert time.text.endswith(" wide") is wide
    assert (time.high / time.low > 2) is wide


CALL = samples.measured_memory(2048)


@pytest.mark.parametrize(
    ("unplanned", "call", "leading"),
    [
        (("ynn_fusion",), CALL, (2048, "call")),
        (("ynn_fusion",), samples.measured_memory(None), (1024, "plan")),
        ((), CALL, (1024, "plan")),
        (None, CALL, (1024, "plan")),
    ],
    ids=["it leaves out products", "nothing was measured", "it leaves out nothing", "unknown"],
)
def test_memory_is_the_plan_and_where_that_is_none_or_leaves_out_working_memory_the_measured_peak(
    unplanned, call, leading
):
    plan = structs.replace(samples.memory(1024, 0, 0), details=MemoryDetails(unplanned=unplanned))
    found = results_of({"f:jit": {"memory": plan, "measured_memory": call}, "numpy:native": {"measured_memory": CALL}})

    assert (found["f:jit"].memory.value, found["f:jit"].memory_of) == leading
    assert (found["numpy:native"].memory.value, found["numpy:native"].memory_of) == (2048, "call")
