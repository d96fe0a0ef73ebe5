import numpy as np
import pytest

from jaxmeter.suites import collectives
from tests.suites.many_devices import on_eight_devices

OPERATIONS = collectives.collective.params["operation"].at("full", "cpu")


def eight_devices(operations, **more):
    """What eight devices give, by operation and implementation."""
    cases = [{"operation": operation, "devices": 8, "n": 64} for operation in operations]
    takes = ("operation", "devices")
    told = on_eight_devices("collectives", "collective", cases, taken=takes, of_reference=takes, **more)
    return {(one["params"]["operation"], one["implementation"]): one for one in told}


@pytest.fixture(scope="module")
def found():
    return eight_devices(OPERATIONS)


@pytest.mark.end_to_end
def test_each_operation_is_one_collective_of_its_name(found):
    written = {operation: found[operation, "shard_map"]["collectives"] for operation in OPERATIONS}

    assert written == {
        "all_reduce": {"all-reduce": 1},
        "all_gather": {"all-gather": 1},
        "reduce_scatter": {"reduce-scatter": 1},
        "all_to_all": {"all-to-all": 1},
        "permute": {"collective-permute": 1},
    }


@pytest.mark.end_to_end
def test_the_compiler_finds_them_by_itself_but_for_a_scattered_sum_on_the_cpu(found):
    different = {
        operation: found[operation, "automatic"]["collectives"]
        for operation in OPERATIONS
        if found[operation, "automatic"]["collectives"] != found[operation, "shard_map"]["collectives"]
    }

    assert different == {"reduce_scatter": {"all-reduce": 1}}


@pytest.mark.end_to_end
def test_every_result_is_right_and_divided_as_the_operation_has_it(found):
    whole = {operation for (operation, _), one in found.items() if one["divided"] == [False]}

    assert len(found) == 2 * len(OPERATIONS)
    assert all(one["error"] < 1e-6 for one in found.values())
    assert whole == {"all_reduce", "all_gather"}


@pytest.mark.parametrize(
    ("operation", "factor"),
    [("all_reduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875), ("all_to_all", 0.875), ("permute", 1)],
)
def test_a_bus_carries_what_nccl_s_tests_say(operation, factor):
    cost = collectives.traffic(operation=operation, devices=8, n=1000)

    assert cost.message_bytes == 4000
    assert cost.bus_bytes == factor * 4000


@pytest.mark.parametrize("operation", OPERATIONS)
def test_memory_traffic_is_every_device_s_row_and_its_result(operation):
    devices, n = 4, 40
    given = np.zeros((devices, n // devices if operation == "all_gather" else n), "float32")

    result = collectives.in_numpy(given, operation=operation, devices=devices)

    copies = devices if operation in ("all_reduce", "all_gather") else 1
    cost = collectives.traffic(operation=operation, devices=devices, n=n)
    assert cost.bytes == given.nbytes + copies * result.nbytes


@pytest.mark.end_to_end
def test_an_operation_that_moves_nothing_is_wrong():
    forgotten = {"all_reduce": "psum", "all_to_all": "all_to_all", "permute": "ppermute"}

    found = eight_devices(forgotten, without=tuple(forgotten.values()))

    wrong = {operation for (operation, implementation), one in found.items() if one["error"] > 0.1}
    assert wrong == forgotten.keys()
    assert all(found[operation, "automatic"]["error"] < 1e-6 for operation in forgotten)


def test_rows_are_passed_to_the_next_device():
    x = np.arange(4.0)[:, None]

    assert collectives.in_numpy(x, operation="permute", devices=4).ravel().tolist() == [3, 0, 1, 2]


def test_in_an_exchange_each_device_gets_its_block_of_every_row():
    x = np.array([["a0", "a1"], ["b0", "b1"]])

    assert collectives.in_numpy(x, operation="all_to_all", devices=2).tolist() == [["a0", "b0"], ["a1", "b1"]]
