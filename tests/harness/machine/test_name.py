"""What a machine is called where nobody gives it a name."""

import pytest

from jaxmeter.harness.machine.environment import LONGEST_NAME, is_name, name_machine
from tests import samples


def test_a_machine_is_named_by_processor_cores_and_devices():
    here = samples.environment(processor="Intel(R)  Xeon(R) Processor", allowed_cores=2)
    there = samples.environment(allowed_cores=1, device_kind="Sample GPU", device_count=8)

    assert name_machine(here) == "Intel(R) Xeon(R) Processor, 2 cores, 1 x cpu"
    assert name_machine(there) == "Sample Processor 1, 1 core, 8 x Sample GPU"


def test_neither_host_nor_versions_are_part_of_the_name():
    other = samples.environment(
        host="1" * 12, python="3.13.0", packages={"jax": "0.11.0"}, image="one", system="Linux 7"
    )

    assert name_machine(other) == name_machine(samples.environment())


@pytest.mark.parametrize("name", ["lab 3", "é", "x" * LONGEST_NAME, "", "  ", "two\nlines", "\x1b[31m", "x" * 1000])
def test_a_name_is_a_line_of_text_that_can_stand_in_a_sentence(name):
    assert is_name(name) is (name in ("lab 3", "é", "x" * LONGEST_NAME))
    assert not is_name(name + "x" * (LONGEST_NAME + 1))
