import jax
import jax.numpy as jnp
import pytest

from jaxmeter.harness.probes.evaluation import choose_coarsest, find_formats

X = jnp.ones((4, 4))
NARROW = X.astype("bfloat16")


def formats_of(function, *args):
    return find_formats(jax.jit(function).trace(*args).jaxpr.jaxpr)


def through_bfloat16(x):
    return (x.astype("bfloat16") * 2).astype("float32")


@pytest.mark.parametrize(
    "function",
    [
        through_bfloat16,
        jax.jit(through_bfloat16),
        jax.checkpoint(through_bfloat16),
        lambda x: jax.lax.scan(lambda c, _: (through_bfloat16(c), None), x, None, length=2)[0],
        lambda x: jax.lax.cond(x[0, 0] > 0, through_bfloat16, lambda x: x, x),
        lambda x: jax.lax.fori_loop(0, 2, lambda _, c: through_bfloat16(c), x),
        lambda x: jax.vmap(through_bfloat16)(x) + 1,
    ],
    ids=["plain", "jit", "checkpoint", "scan", "cond", "loop", "vmap"],
)
def test_a_lower_format_on_the_way_is_found_wherever_it_is(function):
    assert formats_of(function, X) == ("bfloat16",)


def test_each_output_has_its_own_way():
    assert formats_of(lambda x: (through_bfloat16(x), x + 1, x.argmax()), X) == ("bfloat16", "float32", None)


def test_an_argument_of_a_lower_format_is_exact_until_something_is_rounded_to_it():
    def product(a, b):
        return jnp.matmul(a.T, b[::-1], preferred_element_type=jnp.float32)

    assert formats_of(product, NARROW, NARROW) == ("float32",)
    assert formats_of(lambda a, b: jnp.matmul(a, b).astype("float32"), NARROW, NARROW) == ("bfloat16",)


def test_a_mask_made_of_a_lower_format_is_not_rounded():
    assert formats_of(lambda x, y: jnp.where(y * 2 > 1, x, 0.0), X, NARROW) == ("float32",)


def test_the_format_of_an_output_is_on_its_way():
    assert formats_of(lambda x: x, NARROW) == ("bfloat16",)
    assert formats_of(lambda x: x.astype("float8_e4m3fn").astype("float32"), X) == ("float8_e4m3fn",)


def test_the_coarsest_has_the_largest_tolerance():
    assert choose_coarsest(["float32", None, "bfloat16", "float16"]) == "bfloat16"
    assert choose_coarsest([None]) is None
