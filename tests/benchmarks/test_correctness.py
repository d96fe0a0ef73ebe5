import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.correctness.checking import check_program, find_programs
from benchmarks.correctness.planting import plant

X = jnp.asarray(np.random.default_rng(0).normal(size=(8, 8)), "float32")


def network(x, w):
    hidden = jnp.tanh(x @ w)
    return jax.lax.scan(lambda h, row: (jnp.tanh(h + row), h @ w), hidden[0], hidden)


def test_each_planted_fault_changes_the_result_and_the_function_itself_stays():
    before = jax.tree.leaves(network(X, X))

    faults = {name: jax.tree.leaves(jax.jit(faulty)(X, X)) for name, faulty in plant(network, (X, X), 1e-3).items()}

    assert set(faults) == {"sign", "missing term", "bfloat16", "transposed", "scaled", "zeros"}
    for changed in faults.values():
        assert any(not np.allclose(one, other, rtol=1e-4) for one, other in zip(changed, before, strict=True))
    assert all(np.array_equal(*pair) for pair in zip(jax.tree.leaves(network(X, X)), before, strict=True))


def test_a_scaled_output_is_off_by_ten_tolerances():
    scaled = plant(jnp.matmul, (X, X), 1e-3)["scaled"](X, X)

    np.testing.assert_allclose(scaled, 1.01 * (X @ X), rtol=1e-5)


@pytest.mark.parametrize("name", ["matrix product", "variance by squares", "(1e8 + x) - 1e8"])
def test_a_correct_program_is_never_called_wrong_and_no_planted_fault_is_missed(name):
    checked = check_program(name)

    assert not any(one.is_failed for one in checked)
    assert {one.fault for one in checked} > {""}


def test_at_least_sixty_programs_are_tried():
    assert len(find_programs()) >= 60
