"""What older releases of jax lack: said by name where suites need it, and done by other names where jaxmeter does."""

from types import SimpleNamespace

import jax
import pytest

from jaxmeter.harness.probes.look_at_each import describe_failure
from jaxmeter.harness.programs import older_jax
from jaxmeter.harness.programs.older_jax import describe_missing_name, is_committed, stop_listening
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
    monkeypatch.setattr(older_jax.jax, "__version_info__", (0, 4, 31))


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


@pytest.mark.parametrize("committed", [True, False])
def test_arrays_of_older_releases_say_under_another_name_where_they_are_bound(committed):
    assert is_committed(SimpleNamespace(_committed=committed)) is committed


def test_an_array_that_was_put_on_a_device_is_bound_to_it():
    x = jax.numpy.ones(3)

    assert not is_committed(x)
    assert is_committed(jax.device_put(x, jax.devices()[0]))


def test_listeners_are_removed_where_only_the_private_name_exists(monkeypatch):
    removed = []
    monkeypatch.setattr(older_jax.jax, "monitoring", SimpleNamespace())
    for kind in ("event_duration_listener", "event_listener"):
        monkeypatch.setattr(
            f"jax._src.monitoring._unregister_{kind}_by_callback",
            lambda callback, kind=kind: removed.append((kind, callback)),
            raising=False,
        )

    stop_listening(duration=print, event=len)

    assert removed == [("event_duration_listener", print), ("event_listener", len)]
