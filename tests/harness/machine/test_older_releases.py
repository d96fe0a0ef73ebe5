"""What an older release of jax lacks is named where suites need it, and is no failure."""

from types import SimpleNamespace

import jax
import pytest

from jaxmeter.harness.machine import jax_internals
from jaxmeter.harness.machine.jax_internals import describe_missing_name
from jaxmeter.harness.probes.context import describe_failure
from jaxmeter.harness.record import Status


def raised(call):
    with pytest.raises(Exception) as caught:  # noqa: PT011  its kind is what is tested
        call()
    return caught.value


def lacks_a_name():
    return jax.name_of_another_release


def lacks_an_import():
    from jax import name_of_another_release  # noqa: F401


def lacks_a_module():
    import jax.module_of_another_release  # noqa: F401


def lacks_an_option():
    def jit(function):
        return function

    jit(1, compiler_options={})


@pytest.fixture
def old(monkeypatch):
    monkeypatch.setattr(jax_internals, "_find_version", lambda name: "0.4.31")


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        (lacks_a_name, "jax.name_of_another_release"),
        (lacks_an_import, "jax.name_of_another_release"),
        (lacks_a_module, "jax.module_of_another_release"),
        (lacks_an_option, "option compiler_options of jit()"),
    ],
)
def test_what_an_older_release_lacks_is_named_and_no_failure(call, missing, old):
    found = describe_failure(raised(call), "prepare")

    assert found.status is Status.UNSUPPORTED
    assert found.reason.endswith(f"has no {missing}")


@pytest.mark.parametrize("call", [lacks_a_name, lacks_an_import, lacks_a_module, lacks_an_option])
def test_under_a_release_that_suites_are_for_the_same_is_a_mistake(call):
    assert describe_failure(raised(call), "prepare").status is Status.FAILED


def test_other_errors_of_an_older_release_are_failures(old):
    assert not describe_missing_name(ValueError("wrong"))
    assert not describe_missing_name(raised(lambda: SimpleNamespace().name))
    assert not describe_missing_name(TypeError("unsupported operand"))
