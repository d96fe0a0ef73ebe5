import itertools

import jax
import jax.numpy as jnp
import pytest

import jaxmeter
from jaxmeter.harness.record import Status

X = jnp.ones(4)
MOST = 40
COUNTS = {"calls": itertools.count()}


def tick(*_):
    next(COUNTS["calls"])


def count_after(function, *args, **options):
    """How often `tick` was called while a function is measured, and the result."""
    COUNTS["calls"] = itertools.count()
    measurement = jaxmeter.measure.with_options(most_calls=MOST, **options)(function, *args)
    jax.effects_barrier()
    return next(COUNTS["calls"]), measurement


def announces(measurement, what):
    return any(what in note and f"called at most {MOST} times" in note for note in measurement.record.notes)


@jax.jit
def calling(x):
    jax.debug.callback(tick, x.sum())
    return x + 1


def around(x):
    return calling(x)


@pytest.mark.parametrize(
    ("function", "options"),
    [(around, {"modes": ("eager",)}), (around, {}), (calling, {}), (calling.lower(X).compile(), {})],
)
def test_callbacks_that_another_program_holds_are_limited(function, options):
    calls, measurement = count_after(function, X, **options)

    assert 0 < calls <= MOST
    assert announces(measurement, "calls back into Python")


def failing_if_negative(x):
    """As a library checks its arguments."""
    return jax.lax.cond(x.sum() < 0, lambda y: jax.pure_callback(tick, jax.typeof(y), y), lambda y: y * 2, x)


@pytest.mark.parametrize("function", [failing_if_negative, jax.jit(failing_if_negative)], ids=["plain", "jitted"])
def test_a_callback_in_a_branch_that_is_not_taken_limits_nothing(function):
    calls, measurement = count_after(function, X, modes=("jit",))

    assert calls == 0
    assert not any("called at most" in note for note in measurement.record.notes)
    assert "trap" not in str(measurement)
    assert "pure_callback can call Python, in a branch (notebook/test_effects.py:" in str(measurement)


@pytest.mark.parametrize("options", [{}, {"modes": ("eager",)}])
def test_python_code_that_prints_is_limited(options, capsys):
    def function(x):
        print("line")
        return x + 1

    _, measurement = count_after(function, X, **options)

    assert 0 < len(capsys.readouterr().out.splitlines()) <= MOST
    assert announces(measurement, "writes to stdout or stderr")
    assert {variant.outcomes["numerics"].status for variant in measurement.record.variants} == {Status.OK}


def test_printing_while_the_program_runs_is_limited(capsys):
    def function(x):
        jax.debug.print("line {}", x.sum())
        return x + 1

    _, measurement = count_after(function, X)

    jax.effects_barrier()
    assert 0 < len(capsys.readouterr().out.splitlines()) <= MOST
    assert announces(measurement, "calls back into Python")


def test_printing_while_it_is_traced_limits_no_compiled_program(capsys):
    def function(x):
        print("line")
        return x + 1

    _, measurement = count_after(function, X, modes=("jit",))

    assert not any("called at most" in note for note in measurement.record.notes)
    assert len(capsys.readouterr().out.splitlines()) <= MOST
