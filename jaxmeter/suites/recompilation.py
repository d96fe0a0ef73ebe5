"""Recompilation: what makes jit recompile, the cost, and how to avoid it."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Needs, levels, workload
from jaxmeter.suites.networks_in_numpy import softmax as softmax_in_numpy

LENGTH = 1_000
"""Entries of the arrays: few, so that compilation dominates the time."""

LONGEST = 512
SMALLEST_BUCKET = 32
"""Sequences have up to 512 entries; buckets are 32, 64, 128 and so on."""

LENGTHS_SEED = 0


def shifts(key, *, values):
    """Return one pair for each value: the same standard normal array (1000,), and a different shift."""
    x = jax.random.normal(key, (LENGTH,))
    return [(x, np.int32(shift)) for shift in range(1, values + 1)]


@workload(
    inputs=shifts,
    params={"values": levels(default=12, full=64)},
    reference=np.roll,
    modes=("jit",),
    implementation="as_array",
    stream=True,
    needs=Needs(host=("shift",)),
    compiles=1,
    level="default",
)
def static_arguments(x, shift):
    """Roll of an array by another shift in each call, (1000,), () -> (1000,); the shift is an array.

    Source: the documentation of JAX, "Just-in-time compilation", on marking arguments as static.
    """
    return jnp.roll(x, shift)


rolled = jax.jit(jnp.roll)
rolled_by_constant = jax.jit(jnp.roll, static_argnames="shift")


@static_arguments.implementation(modes=("mixed",), compiles=lambda *, values: values)
def as_static(x, shift):
    """The shift as a static argument: one program for each value."""
    return rolled_by_constant(x, shift=int(shift))


@static_arguments.implementation(modes=("mixed",), compiles=1)
def as_python_number(x, shift):
    """The shift as a Python number: jit treats it as an array, not as a constant."""
    return rolled(x, int(shift))


def lengths_of(count):
    """Return distinct lengths from 1 to 512, the same in every run, unsorted."""
    return random.Random(LENGTHS_SEED).sample(range(1, LONGEST + 1), count)


def bucket(length):
    """Return the smallest bucket that a sequence fits into."""
    return max(SMALLEST_BUCKET, 1 << (length - 1).bit_length())


def buckets_of(count):
    """Return the number of different buckets that the sequences need."""
    return len(set(map(bucket, lengths_of(count))))


def sequences(key, *, count):
    """Return standard normal sequences of different lengths, in host memory."""
    rows = np.asarray(jax.random.normal(key, (count, LONGEST)))
    return [(row[:length],) for row, length in zip(rows, lengths_of(count), strict=True)]


@workload(
    inputs=sequences,
    params={"count": levels(default=12, full=64)},
    reference=softmax_in_numpy,
    modes=("jit",),
    implementation="exact",
    stream=True,
    needs=Needs(host=("sequence",)),
    compiles=lambda *, count: count,
    level="default",
    answer=Answer(
        "What makes jit compile again?",
        "buckets:mixed",
        against="exact_to_host:mixed",
        metric="first_call_s",
    ),
)
def lengths(sequence):
    """Softmax of sequences of different lengths, (length,) -> (length,): one program for each length.

    Source: the documentation of JAX, "Shape polymorphism", for the value of a symbolic length.
    """
    return jax.nn.softmax(sequence)


softmax = jax.jit(jax.nn.softmax)


def padded(sequence):
    """Pad the sequence with -inf, which does not contribute to a softmax, to the size of its bucket."""
    room = bucket(len(sequence)) - len(sequence)
    return np.pad(sequence, (0, room), constant_values=-np.inf)


@lengths.implementation(modes=("mixed",), compiles=lambda *, count: count)
def exact_to_host(sequence):
    """One program for each length; each call waits and copies its result to the host: the transfers of `buckets`."""
    return np.asarray(softmax(sequence))


@lengths.implementation(modes=("mixed",), compiles=lambda *, count: buckets_of(count))
def buckets(sequence):
    """Padding to a bucket and slicing on the host: one program for each bucket.

    The time includes waiting for each result and copying it to the host, as in `exact_to_host`. `exact` leaves its
    results on the device and issues the next call at once.
    """
    return np.asarray(softmax(padded(sequence)))[: len(sequence)]


@lengths.implementation(modes=("mixed",), compiles=lambda *, count: buckets_of(count) + count)
def buckets_cut_on_the_device(sequence):
    """Padding on the host, but `result[:length]` of a JAX array: again one program for each length."""
    return softmax(padded(sequence))[: len(sequence)]


@functools.cache
def exported_softmax():
    """Return jitted softmax, exported with a symbolic length."""
    (length,) = jax.export.symbolic_shape("length")
    return jax.jit(jax.export.export(softmax)(jax.ShapeDtypeStruct((length,), jnp.float32)).call)


@lengths.implementation(modes=("mixed",), compiles=lambda *, count: count)
def symbolic(sequence):
    """`jax.export` with a symbolic length: JAX traces the Python code once, but XLA compiles for each length."""
    return exported_softmax()(sequence)


KINDS = 4


def factors(key, *, count):
    """Return `count` triples: the same array (1000,), a different factor, and the kind of number for the factor.

    Factors are multiples of 1/2: exact in every dtype, and every second factor is an integer.
    """
    x = jax.random.normal(key, (LENGTH,))
    return [(x, np.float32(index / 2), np.int32(index % KINDS)) for index in range(count)]


def product_in_numpy(x, factor, kind):
    """Return the product, which does not depend on the kind."""
    del kind
    return x * factor


@workload(
    inputs=factors,
    params={"count": 8},
    reference=product_in_numpy,
    modes=("jit",),
    implementation="one_kind",
    stream=True,
    needs=Needs(host=("factor", "kind")),
    compiles=1,
    level="full",
)
def kinds_of_numbers(x, factor, kind):
    """Array times a number, (1000,), () -> (1000,); the number is always a NumPy float32.

    Source: the documentation of JAX, "Type promotion semantics", on weakly typed values.
    """
    del kind
    return x * factor


def fresh_product():
    """Return a jitted product with its own cache."""
    return jax.jit(lambda x, factor: x * factor)


of_python, of_arrays, of_four, of_dtypes, of_converted = (fresh_product() for _ in range(5))


def python_number(factor):
    """Return a Python int if the factor is an integer, else a Python float."""
    number = float(factor)
    return int(number) if number.is_integer() else number


def on_device(factor):
    """Return a float32 array. `jnp.float32(factor)` returns the same, but compiles a separate small program."""
    return jax.device_put(factor)


def weakly_typed(factor):
    """Return a weakly typed float32 array, which adopts the dtype of other operands like a Python number."""
    return jax.device_put(float(factor))


AS_FOUR = (float, np.float32, on_device, weakly_typed)
AS_STRONG = (np.float32, on_device, np.asarray, on_device)
DTYPES = ("float32", "float16", "bfloat16", "float32")


@kinds_of_numbers.implementation(modes=("mixed",), compiles=2)
def python_ints_and_floats(x, factor, kind):
    """Python's int and float in alternation: two weak types, two programs."""
    del kind
    return of_python(x, python_number(factor))


@kinds_of_numbers.implementation(modes=("mixed",), compiles=1)
def numpy_and_jax(x, factor, kind):
    """NumPy's and JAX's float32, as number or array: one type, one program."""
    return of_arrays(x, AS_STRONG[kind](factor))


@kinds_of_numbers.implementation(modes=("mixed",), compiles=2)
def weak_and_strong(x, factor, kind):
    """Python's float, NumPy's and JAX's float32, and a weakly typed array: weak and strong, two programs."""
    return of_four(x, AS_FOUR[kind](factor))


@kinds_of_numbers.implementation(modes=("mixed",), compiles=3)
def dtypes_that_flip(x, factor, kind):
    """float32, float16 and bfloat16 in alternation: one program for each dtype."""
    return of_dtypes(x, np.asarray(factor).astype(jnp.dtype(DTYPES[kind])))


@kinds_of_numbers.implementation(modes=("mixed",), compiles=1)
def converted(x, factor, kind):
    """Python's float, NumPy's and JAX's float32 and the weak array, converted to NumPy before the call: one program."""
    return of_converted(x, np.float32(AS_FOUR[kind](factor)))
