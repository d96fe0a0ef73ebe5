import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.programs.modes import FEW, make_wait


class Late:
    """A leaf that says whether somebody has waited for it."""

    def __init__(self):
        self.waited = False

    def block_until_ready(self):
        self.waited = True
        return self


RESULTS = {
    "one": lambda leaf: leaf(),
    "a few": lambda leaf: (leaf(), leaf()),
    "many": lambda leaf: [leaf() for _ in range(FEW + 1)],
    "a tree": lambda leaf: {"w": [leaf()], "b": leaf()},
    "beside numbers": lambda leaf: (leaf(), 3, "text", None),
    "in a tree of numbers": lambda leaf: {"loss": 0.5, "state": (leaf(), 1)},
}
WITHOUT_ARRAYS = {
    "nothing": None,
    "a number": 3,
    "numbers": [1, 2.0, True],
    "a host's array": np.ones(3),
    "a tree": {"a": 1, "b": (2, "text")},
    "an empty tuple": (),
}
FIRST = RESULTS | {f"no array: {name}": lambda leaf, one=one: one for name, one in WITHOUT_ARRAYS.items()}


def leaves(result):
    return [leaf for leaf in jax.tree.leaves(result) if isinstance(leaf, Late)]


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_every_array_of_a_first_result_is_waited_for(result):
    made = result(Late)

    assert make_wait()(made) is made
    assert all(leaf.waited for leaf in leaves(made))


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
@pytest.mark.parametrize("later", RESULTS.values(), ids=RESULTS)
def test_a_later_result_of_any_structure_is_waited_for(first, later):
    wait, made = make_wait(), later(Late)
    wait(first(Late))

    assert wait(made) is made
    assert all(leaf.waited for leaf in leaves(made))


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_a_later_result_may_be_one_array_or_a_random_key(first):
    wait = make_wait()
    wait(first(Late))

    for made in (jnp.ones(3), jax.random.key(0), (jnp.ones(3), jax.random.key(0))):
        assert wait(made) is made


@pytest.mark.parametrize("result", WITHOUT_ARRAYS.values(), ids=WITHOUT_ARRAYS)
def test_a_result_without_arrays_is_given_back(result):
    wait = make_wait()

    assert wait(result) is result
    assert wait(result) is result


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_an_array_of_jax_is_ready_after_the_wait(result):
    slow = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda _, y: y @ x, x))  # too long to run inside its call
    wait, x = make_wait(), jnp.zeros((200, 200))
    made = wait(result(lambda: slow(x)))

    made = wait(result(lambda: slow(x)))

    assert all(leaf.is_ready() for leaf in jax.tree.leaves(made) if isinstance(leaf, jax.Array))
