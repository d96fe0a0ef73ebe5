import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxmeter.suites.placement import (
    ALIGNMENT,
    AS_ALLOCATED,
    device_to_host,
    host_to_device,
    in_host_memory,
    np_asarray,
    on_device,
    on_host,
    placement,
    unread,
    zero_copy,
)

CHECKOUT = Path(__file__).parents[2]

IN_TWO_PLACES = """
import json
import jax
jax.config.update("jax_num_cpu_devices", 2)
from jaxmeter.harness.declare.declaration import call_with
from jaxmeter.suites.placement import placement

found = {}
for data_on in ("default", "other", "uncommitted"):
    params = {"n": 1000, "data_on": data_on}
    x = call_with(placement.declaration.inputs, params, jax.random.key(0))
    found[data_on] = {"data": [x.device.id, x.committed]}
    for one in placement.implementations:
        if one.find_skip(params, "cpu") is None:
            try:
                found[data_on][one.name] = call_with(one.function, params, x).device.id
            except jax.errors.JaxRuntimeError as error:
                found[data_on][one.name] = str(error)
print(json.dumps(found))
"""


@pytest.mark.end_to_end
def test_functions_run_where_they_say_and_the_guard_names_the_one_array_that_moves():
    ended = subprocess.run(
        [sys.executable, "-c", IN_TWO_PLACES], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )

    found = json.loads(ended.stdout)

    for data_on, (here, committed) in {"default": (0, True), "other": (1, True), "uncommitted": (0, False)}.items():
        seen, there = found[data_on], 1 - here
        said = seen.pop("one_array_moves")
        assert seen.pop("data") == [here, committed]
        assert {name for name, device in seen.items() if device == here} == {"beside", "nothing_moves"}
        assert {name for name, device in seen.items() if device == there} >= {"moved", "moved_then_jit", "in_shardings"}
        assert "device-to-device transfer: aval=ShapedArray(float32[1000])" in said
        assert f"CpuDevice(id={there})" in said


def test_a_default_device_is_tried_only_where_it_moves_something():
    default_device, _ = placement.find_variant("default_device:eager")

    skipped = {
        data_on: default_device.find_skip({"data_on": data_on}, "cpu") is not None for data_on in placement_values()
    }

    assert skipped == {"default": True, "other": True, "uncommitted": False}


def placement_values():
    return placement.params["data_on"].at("full", "cpu")


@pytest.mark.parametrize("beyond", [0, AS_ALLOCATED])
def test_an_array_lies_in_the_hosts_memory_where_it_is_wanted(beyond):
    values = np.arange(100, dtype=np.float32)

    copy = in_host_memory(values, beyond=beyond)

    assert copy.ctypes.data % ALIGNMENT == beyond
    assert np.array_equal(copy, values)
    assert not np.shares_memory(copy, values)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="an accelerator has a memory of its own")
@pytest.mark.parametrize(("implementation", "is_a_view"), [("aligned", True), ("not_aligned", False), ("view", True)])
def test_on_a_cpu_alignment_decides_whether_a_transfer_is_a_copy(implementation, is_a_view):
    arguments = zero_copy.declaration.inputs(jax.random.key(0), n=1000)
    one, _ = zero_copy.find_variant(f"{implementation}:")

    result = np.asarray(one.function(*arguments))

    assert any(np.shares_memory(result, np.asarray(argument)) for argument in arguments) == is_a_view


@pytest.mark.parametrize(
    "name", [f"{one.name}:eager" for one in host_to_device.implementations if one.modes == ("eager",)]
)
def test_what_is_timed_to_the_device_is_a_copy_everywhere(name):
    x = on_host(jax.random.key(0), n=1000)
    expected = x.copy()

    result = host_to_device.find_variant(name)[0].function(x)
    x[:] = 0

    assert np.array_equal(result, expected)


def test_what_is_timed_to_the_host_is_a_copy_everywhere():
    x = on_device(jax.random.key(0), n=1000)

    result = device_to_host(x)

    assert np.array_equal(result, x)
    assert not np.shares_memory(result, np.asarray(x))


def test_an_array_that_was_read_is_not_remembered_by_its_buffers_next_handle():
    x = on_device(jax.random.key(0), n=1000)
    first = np.asarray(x)

    again = unread(x)

    assert again is not x
    assert again.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert np.asarray(x) is not np_asarray(x)
    assert np.array_equal(np_asarray(x), first)
