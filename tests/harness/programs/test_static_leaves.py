import dataclasses
import enum

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.programs.arguments import (
    RefusedError,
    find_fixed,
    is_traced,
    name_leaf,
    refuse_hidden_arrays,
    split,
)


class Kind(enum.Enum):
    SUM = "sum"


ARRAYS = [jnp.ones(2), np.ones(2), np.float32(1), jax.random.key(0), 1, 1.5, True, 1j, jax.ShapeDtypeStruct((2,), "f4")]
OTHERS = ["max", b"max", jnp.tanh, Kind.SUM, object(), np.array(["a"]), np.array([None]), np.dtype("float32")]


LEAVES = [(leaf, True) for leaf in ARRAYS] + [(leaf, False) for leaf in OTHERS]


@pytest.mark.parametrize(("leaf", "traced"), LEAVES, ids=range(len(LEAVES)))
def test_arrays_and_numbers_are_traced_and_other_leaves_are_static(leaf, traced):
    assert is_traced(leaf) is traced


def test_arguments_without_static_leaves_are_the_very_objects():
    args, kwargs = ({"x": jnp.ones(2)}, 3), {"y": jnp.ones(2)}

    arguments = split(args, kwargs)

    assert arguments.traced[0] is args
    assert arguments.traced[1] is kwargs
    assert arguments.static == {}


trees = st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.sampled_from(Kind)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner, inner), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.lists(trees, max_size=3).map(tuple), st.dictionaries(st.text(max_size=3), trees, max_size=2))
def test_what_is_split_is_whole_when_it_is_taken_back(args, kwargs):
    arguments = split(args, kwargs)

    assert arguments.take_back(*arguments.traced) == (args, kwargs)
    assert all(map(is_traced, jax.tree.leaves(arguments.traced)))


def call(function, arguments):
    return jax.jit(arguments.close_over(function))(*arguments.traced[0], **arguments.traced[1])


def test_a_jitted_call_gets_its_static_leaves_back():
    def function(x, how, *, options):
        assert options["act"] is jnp.tanh
        return options["act"](x) if how == "tanh" else x

    result = call(function, split((jnp.full(2, 2.0), "tanh"), {"options": {"act": jnp.tanh, "none": None}}))

    assert result == pytest.approx(np.tanh([2.0, 2.0]))


def trace(function):
    return lambda arguments: jax.jit(arguments.close_over(function)).trace(*arguments.traced[0], **arguments.traced[1])


def test_numbers_are_traced_weakly_typed():
    traced = trace(lambda x, factor: x * factor)(split((jnp.ones(2, jnp.bfloat16), 2.0)))

    assert traced.out_info.dtype == jnp.bfloat16


def fixed_names(function, args, kwargs=None):
    return [name_leaf(path, ("x", "n", "f")) for path in find_fixed(trace(function), args, kwargs)]


@pytest.mark.parametrize(
    ("function", "args", "names"),
    [
        (lambda x, n, f: x * n * f, (jnp.ones(2), 3, 2.0), []),
        (lambda x, n, f: jnp.zeros(n) + f, (jnp.ones(2), 3, 2.0), ["n"]),
        (lambda x, n, f: x.reshape(n) * f, (jnp.ones(6), (2, 3), 2.0), ["n[0]", "n[1]"]),
        (lambda x, n, f: x.sum(axis=n) * f, (jnp.ones((2, 2)), 1, 2.0), ["n"]),
        (lambda x, n, f: x if n else -x * f, (jnp.ones(2), True, 2.0), ["n"]),
        (lambda x, n, f: x[: n["k"]] * f, (jnp.ones(4), {"k": 2, "other": 1}, 2.0), ["n['k']"]),
    ],
)
def test_a_number_is_static_only_where_tracing_it_fails(function, args, names):
    assert fixed_names(function, args) == names


def test_a_number_by_keyword_is_named_by_its_keyword():
    assert fixed_names(lambda x, *, size: jnp.zeros(size), (jnp.ones(2),), {"size": 3}) == ["size"]


def test_of_many_numbers_all_are_static():
    names = fixed_names(lambda x, n, f: jnp.zeros(n[0]), (jnp.ones(2), list(range(1, 11)), 1.0))

    assert len(names) == 11


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (
            lambda x, n, f: x if x.sum() > 0 else -x,
            jax.errors.TracerBoolConversionError,
            "depends on the value of the argument x",
        ),
        (lambda x, n, f: x + jnp.ones(3), TypeError, "incompatible shapes"),
    ],
)
def test_what_no_static_number_helps_is_raised_as_it_was(function, error, words):
    with pytest.raises(error, match=words):
        fixed_names(function, (jnp.ones(2), 1, 1.0))


@dataclasses.dataclass
class Hidden:
    weights: jax.Array


@dataclasses.dataclass
class Options:
    rate: float = 0.1


def test_arrays_inside_what_is_no_pytree_are_refused_with_the_line_to_write():
    with pytest.raises(RefusedError, match=r"is a Hidden.*write jax.tree_util.register_dataclass\(Hidden\)"):
        refuse_hidden_arrays(split(({"a": Hidden(jnp.ones(2))}, Options())), ("state", "options"))


def test_static_leaves_without_arrays_are_not_refused():
    arguments = split((Options(), jnp.tanh, "max", np, Hidden))

    refuse_hidden_arrays(arguments)

    assert len(arguments.static) == 5
