"""What jaxmeter needs of older releases of jax is found under their names."""

from types import SimpleNamespace

import jax
import pytest

from jaxmeter.harness.programs.older_jax import is_committed, stop_listening


@pytest.mark.parametrize("committed", [True, False])
def test_arrays_of_older_releases_say_under_another_name_where_they_are_bound(committed):
    assert is_committed(SimpleNamespace(_committed=committed)) is committed


def test_an_array_that_was_put_on_a_device_is_bound_to_it():
    x = jax.numpy.ones(3)

    assert not is_committed(x)
    assert is_committed(jax.device_put(x, jax.devices()[0]))


def test_listeners_are_removed_where_only_the_private_name_exists(monkeypatch):
    removed = []
    for kind in ("event_duration_listener", "event_listener"):
        monkeypatch.delattr(f"jax.monitoring.unregister_{kind}")
        monkeypatch.setattr(
            f"jax._src.monitoring._unregister_{kind}_by_callback",
            lambda callback, kind=kind: removed.append((kind, callback)),
            raising=False,
        )

    stop_listening(duration=print, event=len)

    assert removed == [("event_duration_listener", print), ("event_listener", len)]
