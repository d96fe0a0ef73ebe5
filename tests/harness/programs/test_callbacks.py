import sys
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import checkify

from jaxmeter.harness.machine.jax_internals import Internal, Name
from jaxmeter.harness.machine.own_fault import OwnFaultError
from jaxmeter.harness.programs import traps
from jaxmeter.harness.programs.traps import RUNNERS, watch_callbacks, watch_writing

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


def with_io_callback(x):
    return jax.experimental.io_callback(lambda value: value, jax.typeof(x), x, ordered=True)


def in_a_branch(x, *, is_taken):
    return jax.lax.cond((x.sum() > 0) == is_taken, with_pure_callback, lambda y: y + 1, x)


def for_each_element(x):
    """A branch on values of a batch becomes a selection, which computes both sides."""

    def one(element):
        return jax.lax.cond(element > 100, with_pure_callback_in_turn, lambda y: y + 1, element)

    return jax.vmap(one)(x)


def with_pure_callback_in_turn(x):
    return jax.pure_callback(lambda value: value, jax.typeof(x), x, vmap_method="sequential")


def branch_of_a_batch(x):
    """A branch on a value that the batch shares stays one."""

    def one(element):
        return jax.lax.cond(x.sum() > 100, with_pure_callback_in_turn, lambda y: y + 1, element)

    return jax.vmap(one)(x)


def checked(x):
    checkify.check(x.sum() > 0, "the sum must be positive")
    return x + 1


OFTEN = {
    "print": (with_print, 1),
    "debug callback": (with_callback, 1),
    "pure callback": (with_pure_callback, 1),
    "I/O callback": (with_io_callback, 1),
    "in a loop": (inside_scan, 2),
    "in a branch that is taken": (partial(in_a_branch, is_taken=True), 1),
    "in a branch that is not taken": (partial(in_a_branch, is_taken=False), 0),
    "in a branch on values of a batch": (for_each_element, 4),
    "in a branch of a batch": (branch_of_a_batch, 0),
    "a check of checkify": (checkify.checkify(checked), 0),
    "none": (jnp.sin, 0),
}


@pytest.mark.parametrize(("function", "often"), OFTEN.values(), ids=OFTEN)
@pytest.mark.parametrize("transform", [lambda function: function, jax.jit], ids=["eager", "jit"])
def test_the_calls_of_python_that_a_program_makes_are_counted(function, often, transform):
    call = transform(function)
    call(X)  # what is compiled before is watched, too

    with watch_callbacks() as called:
        call(X)

    assert len(called.callbacks) == often


def test_after_the_watch_jax_is_as_before():
    before = [row.load() for row in RUNNERS]

    with pytest.raises(ZeroDivisionError), watch_callbacks():
        1 / 0  # noqa: B018

    assert [row.load() for row in RUNNERS] == before


def test_without_what_runs_callbacks_the_number_of_calls_is_unknown(monkeypatch):
    row = Internal("what runs callbacks", "how often a program calls Python", (Name("jax._src.callback.gone"),))
    monkeypatch.setattr(traps, "RUNNERS", (*RUNNERS, row))

    with watch_callbacks() as called:
        with_pure_callback(X)

    assert called.callbacks == []
    assert isinstance(called.fault, OwnFaultError)


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
