import jax
import numpy as np
import pytest

from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.suites.dispatch import SMALL, queued_calls, values

QUEUED = 3


@pytest.mark.parametrize("name", ["independent", "chained", "waited_for", "not_jitted"])
def test_every_queued_call_gives_an_array_of_its_own(name):
    x = values(jax.random.key(0), n=SMALL)
    one, _ = queued_calls.find_variant(f"{name}:mixed")

    results = one.function(x, queued=QUEUED)

    assert len({result.unsafe_buffer_pointer() for result in results}) == QUEUED


def test_the_numbers_compared_are_those_of_every_call():
    x = np.asarray(values(jax.random.key(0), n=SMALL), float)
    right = queued_calls.declaration.reference(x, queued=QUEUED)

    results = [*right[:-1], right[-1] + 1]

    assert queued_calls.declaration.compare(list(right)).shape == right.shape == (QUEUED, SMALL)
    assert not np.array_equal(queued_calls.declaration.compare(results), right)


def test_one_program_is_one_program_however_often_it_loops():
    x = values(jax.random.key(0), n=SMALL)
    one, _ = queued_calls.find_variant("one_program:jit")

    with watch_jax() as seen:
        result = jax.jit(lambda x: one.function(x, queued=QUEUED))(x)

    assert seen.compiled == 1
    stacked, alone = map(queued_calls.declaration.compare, (result, queued_calls(x, queued=QUEUED)))
    assert np.array_equal(stacked, alone)
