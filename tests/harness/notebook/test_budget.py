"""What a notebook's measurement takes: a transformed callable as given, and more only where that is cheap."""

import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import pytest

import jaxmeter
from jaxmeter.harness.notebook import options as budgets
from jaxmeter.harness.notebook.one_process import _make_settings
from jaxmeter.harness.notebook.options import Budget
from jaxmeter.harness.programs.modes import compile_in_stages
from jaxmeter.harness.record import Status

ALL = 'measure.with_options(modes=("as given", "eager", "jit")) measures all'


def names_of(measurement):
    return [variant.name.rpartition(":")[2] for variant in measurement.record.variants]


def find_note(measurement, begin):
    return next((note for note in measurement.record.notes if note.startswith(begin)), "")


def test_a_callable_that_was_compiled_before_is_measured_as_given_alone_and_its_stages_are_cached():
    step = jax.jit(lambda x: jnp.tanh(x @ x))
    step(jnp.ones((8, 8)))

    found = jaxmeter.measure(step, jnp.ones((8, 8)))

    assert names_of(found) == ["as_given"]
    note = f"not measured: <lambda>:eager, <lambda>:jit (unknown cost: compiled before); {ALL}"
    assert note in found.record.notes
    with pytest.raises(KeyError, match="there are <lambda>:as given; not measured: <lambda>:eager"):
        found.value("jit", "execution_s")
    outcome = found.record.variants[0].outcomes["compilation"]
    assert outcome.details.cached == ("trace", "lower", "compile")
    for stage in ("trace_s", "lower_s", "compile_s"):
        assert outcome.values[stage] == (None,)
        assert found.value("as given", stage) is None
    assert repr(found).split().count("cached") == 3
    assert "cached: trace, lower, compile; this process had compiled the program before" in repr(found)


def test_a_stage_that_was_not_done_before_has_its_time():
    step = jax.jit(lambda x: jnp.tanh(x @ x))
    step.lower(jnp.ones((8, 8)))

    found = jaxmeter.measure(step, jnp.ones((8, 8)))

    assert found.record.variants[0].outcomes["compilation"].details.cached == ("trace", "lower")
    assert found.value("as given", "compile_s") > 0


def test_measuring_a_compiled_function_does_not_trace_it_again():
    """In a process of its own: an import that adds options to JAX empties its caches once in a process."""
    code = """
import jax, jax.numpy as jnp, jaxmeter
step = jax.jit(lambda x: jnp.tanh(x @ x))
step(jnp.ones((8, 8)))
jaxmeter.measure(step, jnp.ones((8, 8)))
print(step._cache_size())
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)

    assert (done.stdout, done.stderr) == ("1\n", "")


def test_modes_that_nobody_asked_for_are_measured_within_a_fifth_of_the_limit(monkeypatch):
    few = jaxmeter.measure.with_options(time_limit_s=60)(jax.jit(lambda x: x + 1), jnp.ones(4))
    monkeypatch.setattr("jaxmeter.harness.notebook.checking.OPERATION_S", 100.0)

    dear = jaxmeter.measure.with_options(time_limit_s=60)(jax.jit(lambda x: x + 1), jnp.ones(4))

    assert names_of(few) == ["as_given", "eager", "jit"]
    assert names_of(dear) == ["as_given", "jit"]
    assert find_note(dear, "not measured: <lambda>:eager (about 100").endswith(ALL)


def test_a_callable_that_fails_as_given_is_not_called_in_other_modes():
    calls = []

    def broken(x):
        calls.append(x)
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        jaxmeter.measure(jax.jit(broken), jnp.ones(4))

    assert all(isinstance(x, jax.core.Tracer) for x in calls)


def slow_when_eager(x):
    time.sleep(0.15)
    return x + 1


def test_slow_eager_code_is_timed_apart_and_has_no_speedup():
    found = jaxmeter.measure.with_options(modes=("eager", "jit", "aot"))(slow_when_eager, jnp.ones(4))

    assert found.case.baseline == "slow_when_eager:jit"
    assert found.value("eager", "execution_s") > 0.15
    passes = {item.variant: {block.pass_number for block in item.blocks} for item in found.process.variants}
    assert passes["slow_when_eager:jit"] == passes["slow_when_eager:aot"]
    assert not passes["slow_when_eager:jit"] & passes["slow_when_eager:eager"]
    assert found.find_speedup("eager") is None
    assert found.find_speedup("aot") is not None
    apart = "slow_when_eager:eager: no speedup: slow eager code, timed separately from slow_when_eager:jit"
    assert apart in repr(found).splitlines()


def test_slow_eager_functions_are_compared_with_each_other():
    functions = {"old": slow_when_eager, "new": lambda x: slow_when_eager(slow_when_eager(x)) - 1}

    found = jaxmeter.measure.with_options(modes=("eager",))(functions, jnp.ones(4))

    assert found.find_speedup("new:eager").high < 1


def test_fewer_passes_than_an_interval_needs_give_no_speedup_and_the_reason():
    def talks(x):
        print("called")
        return x + 1

    measure = jaxmeter.measure.with_options(modes=("eager",), most_calls=10)
    found = measure({"old": talks, "new": talks}, jnp.ones(4))

    assert found.find_speedup("new:eager") is None
    assert "new:eager: no speedup: 2 passes, and an interval needs 6" in repr(found).splitlines()


class Clock:
    now_s = 0.0

    def monotonic(self):
        return self.now_s


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(budgets, "time", clock)
    return clock


@pytest.mark.parametrize(
    ("limit_s", "elapsed_s", "extra_s"), [(float("inf"), 0, 2.0), (30.0, 0, 6.0), (30.0, 26.0, 4.0)]
)
def test_a_fifth_of_the_limit_is_for_modes_that_nobody_asked_for(clock, limit_s, elapsed_s, extra_s):
    budget = Budget(limit_s, _make_settings(""))
    clock.now_s = elapsed_s

    assert budget.extra_s == pytest.approx(extra_s)


def test_the_first_compilation_does_not_count(clock):
    budget = Budget(10.0, _make_settings(""))
    jitted = jax.jit(lambda x: x + 1)
    stages = compile_in_stages(
        jitted, jitted, (1.0,), {}, iter([0.0, 1.0, 1.0, 3.0, 3.0, 20.0]).__next__, lambda stage: None
    )

    budget.excuse(None)
    budget.excuse(stages)
    budget.excuse(stages)

    assert budget.left_s == 10.0 + 20.0


def test_timing_that_takes_longer_than_what_is_left_is_cut_or_not_begun(clock):
    settings = _make_settings("")
    budget = Budget(30.0, settings)

    assert budget.choose_blocks([1e-4]) == settings.blocks
    assert budget.choose_blocks([6.0]) is None
    clock.now_s = 29.99
    assert budget.choose_blocks([1e-4]) == 6
    clock.now_s = 30.0
    assert budget.choose_blocks([1e-4]) is None


def test_what_takes_longer_than_the_limit_is_skipped_with_the_reason(monkeypatch):
    monkeypatch.setattr(Budget, "choose_blocks", lambda budget, calls_s: 6 if max(calls_s) < 0.1 else None)

    found = jaxmeter.measure.with_options(modes=("jit", "eager"), time_limit_s=60)(slow_when_eager, jnp.ones(4))

    timing = {variant.name: variant.outcomes["timing"] for variant in found.record.variants}
    assert timing["slow_when_eager:jit"].status is Status.OK
    assert timing["slow_when_eager:eager"].status is Status.SKIPPED
    assert timing["slow_when_eager:eager"].reason.endswith(" s of the limit of 60 s are left")
