import time

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache

from jaxmeter.harness.probes.sampler import Sampler
from jaxmeter.harness.programs.jax_events import use_cache, watch_jax
from jaxmeter.harness.programs.modes import How, prepare_as

CACHE_OPTIONS = (
    "jax_enable_compilation_cache",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@pytest.fixture
def filled_cache(tmp_path):
    """A persistent cache with the programs of `compiling`, as a process before has left it."""
    before = {name: jax.config.values[name] for name in CACHE_OPTIONS}
    use_cache(str(tmp_path))
    compilation_cache.reset_cache()  # jax decides once whether there is one
    jax.block_until_ready(compiling(jnp.ones(3)))
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def compiling(x):
    """Jits a new function in each call."""
    return jax.jit(lambda x: jnp.sin(x) + 1)(x)


def calibrated(function, *args, how=None) -> Sampler:
    """A variant that was called once, and has its number of calls."""
    prepared = prepare_as("mixed", function, args, how or How(), time.perf_counter, lambda stage: None)
    prepared.reset()
    prepared.wait(prepared.call(*prepared.args))
    sampler = Sampler(prepared, time.perf_counter, sample_s=0.0)
    sampler.calibrate()
    return sampler


def test_a_call_that_compiles_says_how_many_programs():
    assert calibrated(compiling, jnp.ones(3)).record("a", cores=1).compiles_per_call == 1
    assert calibrated(lambda x: compiling(compiling(x)), jnp.ones(3)).compiles_per_call == 2


def test_a_call_that_finds_its_programs_compiles_none():
    jitted = jax.jit(jnp.sin)

    assert calibrated(jitted, jnp.ones(3)).record("a", cores=1).compiles_per_call == 0


def test_a_state_that_is_weakly_typed_at_first_is_no_compiling_call():
    step = jax.jit(lambda state: state + jnp.ones(()))

    sampler = calibrated(step, jnp.asarray(1.0), how=How(carry={0: 0}))
    sampler.prepared.reset()
    with watch_jax() as first:
        sampler.prepared.call(*sampler.prepared.args)

    assert sampler.compiles_per_call == 0
    assert first.requested == 0


def test_a_call_that_compiles_is_timed_without_the_cache_that_an_earlier_process_has_filled(filled_cache):
    with watch_jax() as read:
        compiling(jnp.ones(3))
    sampler = calibrated(compiling, jnp.ones(3))

    with watch_jax() as timed:
        sampler.prepared.wait(sampler.prepared.call(*sampler.prepared.args))

    assert (read.hits, read.compiled) == (1, 0)
    assert timed.hits == 0
    assert timed.compiled > 0


def test_the_cache_stays_on_for_calls_that_compile_nothing(filled_cache):
    calibrated(jax.jit(jnp.sin), jnp.ones(3))

    assert jax.config.values["jax_enable_compilation_cache"]
