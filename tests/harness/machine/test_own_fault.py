"""A failure of jaxmeter's own analysis is distinguished from the user's errors, and says what it leaves unknown."""

import pickle

import pytest

from jaxmeter.harness.machine.own_fault import (
    OwnFaultError,
    ReleaseLacksError,
    analysing,
    describe_own_fault,
    is_own_fault,
)
from jaxmeter.harness.record.outcomes import OWN_FAULT
from jaxmeter.harness.traces import hlo


def raise_key_error():
    return {}["absent"]


def find_error(call):
    with pytest.raises(Exception) as raised:  # noqa: PT011  of any kind: that is what is asked
        call()
    return raised.value


def test_a_mistake_in_a_line_of_jaxmeter_is_its_own_fault():
    error = find_error(lambda: hlo.parse(None))

    assert isinstance(error, AttributeError)
    assert is_own_fault(error)
    assert "harness/traces/hlo.py:" in describe_own_fault(error, "the program")


def test_the_same_mistake_in_the_users_code_is_not():
    assert not is_own_fault(find_error(raise_key_error))


def test_errors_that_jaxmeter_raises_on_purpose_are_not():
    assert not is_own_fault(find_error(lambda: hlo.parse("no program")))


def test_whatever_an_analysis_raises_is_its_own_fault_with_what_is_unknown():
    def analyse():
        with analysing("the format of its products"):
            raise_key_error()

    error = find_error(analyse)

    assert is_own_fault(error)
    assert describe_own_fault(error) == f"{OWN_FAULT}: cannot determine the format of its products: {error}"
    assert describe_own_fault(error, "its tolerance") == f"{OWN_FAULT}: cannot determine its tolerance: {error}"
    assert str(error) == "KeyError: 'absent'"


def test_an_own_fault_survives_the_way_to_another_process():
    fault = pickle.loads(pickle.dumps(OwnFaultError("no body", "what loops cost")))

    assert (str(fault), fault.unknown) == ("no body", "what loops cost")


def test_a_known_limit_of_a_release_is_no_fault():
    limit = ReleaseLacksError("jax 0.6.0 has none", "its largest buffers")

    assert not is_own_fault(limit)
    assert describe_own_fault(limit) == "cannot determine its largest buffers: jax 0.6.0 has none"


def test_an_error_inside_jax_of_which_it_has_removed_the_frames_is_not_ours():
    error = find_error(lambda: hlo.parse(None))
    error.add_note("For simplicity, JAX has removed its internal frames from the traceback of the following exception.")

    assert not is_own_fault(error)


def test_an_inner_analysis_says_best_what_is_unknown():
    def analyse():
        with analysing("the whole"):
            raise OwnFaultError("no body", "what loops cost")

    assert find_error(analyse).unknown == "what loops cost"
