import sys

import jax
import jax.numpy as jnp
import pytest

from jaxmeter.harness.programs.callbacks import has_callbacks, is_calling_python, watch_writing

X = jnp.ones(4)


def with_print(x):
    jax.debug.print("{}", x)
    return x


def with_callback(x):
    jax.debug.callback(lambda value: None, x)
    return x


def with_pure_callback(x):
    return jax.pure_callback(lambda value: value, jax.typeof(x), x)


def inside_scan(x):
    return jax.lax.scan(lambda carry, row: (with_callback(carry), None), x, None, length=2)[0]


CALLING = (with_print, with_callback, with_pure_callback, inside_scan)


@pytest.mark.parametrize("function", CALLING)
def test_a_program_that_calls_python_is_known_before_and_after_it_is_compiled(function):
    traced = jax.jit(function).trace(X)

    assert has_callbacks(traced.jaxpr.jaxpr)
    assert is_calling_python(traced.lower().compile())


def test_another_program_calls_no_python():
    traced = jax.jit(jnp.linalg.inv).trace(jnp.eye(4))  # a custom call of LAPACK

    assert not has_callbacks(traced.jaxpr.jaxpr)
    assert not is_calling_python(traced.lower().compile())


def test_a_program_without_a_text_is_not_known_to_call_python():
    class Silent:
        def as_text(self):
            return None

    assert not is_calling_python(Silent())


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_writing_is_noted_and_written(stream, capsys):
    before = getattr(sys, stream)
    with watch_writing() as written:
        print("line", file=getattr(sys, stream))

    assert written.is_any
    assert getattr(capsys.readouterr(), stream[3:]) == "line\n"
    assert getattr(sys, stream) is before


def test_streams_are_as_before_after_an_exception():
    before = sys.stdout, sys.stderr
    with pytest.raises(ValueError, match="no"), watch_writing() as written:
        raise ValueError("no")

    assert (sys.stdout, sys.stderr) == before
    assert not written.is_any
