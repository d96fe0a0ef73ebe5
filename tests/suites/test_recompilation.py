import jax
import numpy as np
import pytest

from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.suites import recompilation

KEY = jax.random.key(0)


def compiled(function, items):
    """Programs that a stream compiles from empty caches, and that a second pass does."""
    counts = []
    jax.clear_caches()
    for _ in range(2):
        with watch_jax() as seen:
            jax.block_until_ready([function(*item) for item in items])
        counts.append(seen.compiled)
    return counts


def of_number(function, *kinds):
    items = [(np.ones(4, "float32"), np.float32(index / 2), kind) for index, kind in enumerate(kinds)]
    return compiled(function, items)[0]


@pytest.mark.parametrize(("length", "size"), [(1, 32), (32, 32), (33, 64), (64, 64), (65, 128), (512, 512)])
def test_a_bucket_is_the_smallest_power_of_two_that_a_sequence_fits_into(length, size):
    assert recompilation.bucket(length) == size


def test_lengths_all_differ():
    assert len(set(recompilation.lengths_of(64))) == 64


def test_static_values_are_compiled_each_and_python_numbers_are_not():
    items = recompilation.shifts(KEY, values=3)

    assert compiled(recompilation.as_static, items) == [3, 0]
    assert compiled(recompilation.as_python_number, items) == [1, 0]


def test_padding_keeps_the_softmax():
    sequence = np.arange(40, dtype="float32")

    assert np.allclose(recompilation.buckets(sequence), recompilation.softmax_in_numpy(sequence), atol=1e-6)
    assert recompilation.buckets(sequence).shape == (40,)


def test_buckets_are_compiled_once_each_unless_their_results_are_cut_on_the_device():
    items = recompilation.sequences(KEY, count=6)
    buckets = recompilation.buckets_of(6)

    assert buckets < 6
    assert compiled(recompilation.buckets, items) == [buckets, 0]
    assert compiled(recompilation.buckets_cut_on_the_device, items) == [buckets + 6, 0]


def test_a_symbolic_length_spares_tracing_but_no_compilation():
    traced = []

    def softmax(x):
        traced.append(x.shape)
        return jax.nn.softmax(x)

    (length,) = jax.export.symbolic_shape("length")
    exported = jax.jit(
        jax.export.export(jax.jit(softmax))(jax.ShapeDtypeStruct((length,), "float32")).call,
    )
    items = recompilation.sequences(KEY, count=3)

    assert compiled(exported, items) == [3, 0]
    assert len(traced) == 1
    assert compiled(recompilation.symbolic, items) == [3, 0]


def test_kinds_of_one_type_share_a_program_and_weak_types_do_not():
    kinds = range(recompilation.KINDS)

    assert of_number(recompilation.numpy_and_jax, *kinds) == 1
    assert of_number(recompilation.weak_and_strong, *kinds) == 2
    assert of_number(recompilation.python_ints_and_floats, *kinds) == 2
    assert of_number(recompilation.dtypes_that_flip, *kinds) == 3
    assert of_number(recompilation.converted, *kinds) == 1


def test_the_kinds_are_two_weak_types_and_two_strong_ones():
    weak = [jax.numpy.asarray(make(np.float32(1.5))).weak_type for make in recompilation.AS_FOUR]

    assert weak == [True, False, False, True]
