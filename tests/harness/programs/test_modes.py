import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.declare.declaration import MIXED, MODES
from jaxmeter.harness.programs.modes import How, prepare_as
from jaxmeter.harness.record import NATIVE

ALL = (*MODES, MIXED, NATIVE)


def double(x):
    return 2 * x


@pytest.fixture
def prepare(clock):
    """Prepares `double`, or another function, in a mode."""
    return lambda mode, function=double: prepare_as(
        mode, function, (jnp.arange(3.0),), How(), clock, lambda stage: None
    )


@pytest.mark.parametrize("mode", ALL)
def test_every_mode_gives_what_the_function_gives(prepare, mode):
    ready = prepare(mode)

    assert np.array_equal(ready.wait(ready.call(*ready.args)), [0.0, 2.0, 4.0])


@pytest.mark.parametrize("mode", ["jit", "aot"])
def test_compiled_modes_have_stages_whose_times_are_taken_one_after_the_other(clock, mode):
    def slow_to_trace(x):
        clock.advance(8.0)
        return 2 * x

    stages = prepare_as(mode, slow_to_trace, (jnp.ones(3),), How(), clock, lambda stage: None).stages

    assert (stages.trace_s, stages.lower_s, stages.compile_s) == (8.0, 0.0, 0.0)


@pytest.mark.parametrize("mode", ["eager", "mixed", "native"])
def test_modes_without_a_program_have_no_stages(prepare, mode):
    assert prepare(mode).stages is None


def test_aot_calls_the_compiled_program_itself(prepare):
    ready = prepare("aot")

    assert isinstance(ready.call, jax.stages.Compiled)
    assert ready.call is ready.stages.compiled


@pytest.mark.parametrize("mode", ["jit", "aot"])
def test_a_function_that_was_compiled_before_is_traced_anew(prepare, mode):
    traced = []

    def counted(x):
        traced.append(x)
        return x

    for _ in range(2):
        ready = prepare(mode, counted)
        ready.wait(ready.call(*ready.args))

    assert len(traced) == 2


def test_only_a_peer_has_its_result_when_it_returns(prepare):
    assert [mode for mode in ALL if not prepare(mode).returns_early] == ["native"]
