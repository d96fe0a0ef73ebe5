"""Placement: data on one device, function on another; what moves, when, and the cost of a transfer by size."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding
from msgspec.structs import replace

from jaxmeter import Answer, Cost, Figure, Needs, Published, Skip, itemsize, levels, workload
from jaxmeter.suites.selu import OPERATIONS, activations, selu, selu_in_numpy

TWO_PROCESSORS = {"jax_num_cpu_devices": 2}
"""Without an accelerator, cpu:0 is device A and cpu:1 is device B: two devices of one kind in one memory. With an
accelerator, the accelerator is A, the host's processor is B, and cpu:1 is not used."""

ALIGNMENT = 64
"""Bytes. XLA on the CPU uses a NumPy array without a copy if it begins at a multiple of this (`cpu::MinAlign`)."""

AS_ALLOCATED = 16
"""Bytes beyond a multiple of ALIGNMENT at which the C library places a large array, after the allocator's header."""

PLATFORMS = "The source's default device is a GPU, the other its host's processor; here only in runs on a GPU."
BY_BACKEND = f"The source uses jit(backend='cpu'), which is deprecated; jaxmeter uses in_shardings. {PLATFORMS}"
ONE_PROCESSOR = "both devices here are one processor with one memory, so a move is a copy within this memory"

in_book = partial(Published, device="A100-SXM4-40GB and its host", backend="gpu", differs=PLATFORMS)
listing_5_4 = partial(in_book, source="Sapunov, JAX in Action (MEAP v3, 2022), listing 5.4")
listing_5_5 = partial(in_book, source="Sapunov, JAX in Action (MEAP v3, 2022), listing 5.5")
in_notebook = partial(
    Published,
    source="a notebook on jax.jit, JAX 0.4 era",
    device="a CUDA GPU, unnamed, and its host",
    backend="gpu",
    differs=PLATFORMS,
)


def between_devices(*claims):
    """Return the claims for each backend, undecided on a CPU alone, which has no transfer between devices."""
    return tuple(
        replace(claim, at={**claim.at, "backend": name}, undecided=ONE_PROCESSOR if name == "cpu" else "")
        for claim in claims
        for name in ("cpu", "gpu", "tpu")
    )


@cache
def device(place):
    """Return the default device or the other one: the host's CPU next to an accelerator, else the second CPU device."""
    default = jax.devices()[0]
    return default if place == "default" else next(cpu for cpu in jax.devices("cpu") if cpu != default)


def elsewhere(data_on):
    """Return the device without the data; uncommitted data are on the default device."""
    return device("default" if data_on == "other" else "other")


def placed(key, *, n, data_on):
    """Return standard normal numbers, shape (n,) float32, committed to a device or uncommitted on the default one."""
    x = activations(key, n=n, dtype="float32")
    return x if data_on == "uncommitted" else jax.device_put(x, device(data_on))


def only_uncommitted(data_on):
    """Return a Skip for committed data, which stay on their device whatever the default device is."""
    return None if data_on == "uncommitted" else Skip("a default device does not move committed data")


jitted_selu = jax.jit(selu.function)


@cache
def selu_on(where):
    """Return SELU compiled for one device; jit itself moves data from other devices to it."""
    return jax.jit(selu.function, in_shardings=SingleDeviceSharding(where))


@workload(
    inputs=placed,
    params={"n": 1_000_000, "data_on": levels(quick="default", default="uncommitted", full="other")},
    reference=selu_in_numpy,
    cost=lambda *, n: Cost(flops=OPERATIONS * n, bytes=2 * n * itemsize("float32")),
    modes=("eager", "jit"),
    implementation="beside",
    baseline="beside:jit",
    compiles=1,
    needs=Needs(config=TWO_PROCESSORS),
    published=(
        *between_devices(
            listing_5_4(
                timed="uncommitted data on the GPU, function compiled for the CPU and the GPU",
                figure=Figure("in_shardings:mixed", 1.81e-3, 178e-6),
                against=Figure("beside:jit", 165e-6, 247e-6),
                differs=BY_BACKEND,
                at={"data_on": "uncommitted"},
            ),
            in_notebook(
                timed="data on the GPU; function on the CPU, and on the GPU",
                figure=Figure("in_shardings:mixed", 1.47e-3, 85.8e-6),
                against=Figure("beside:jit", 22.3e-6, 10.6e-6),
                differs=BY_BACKEND,
                at={"data_on": "default"},
            ),
            in_notebook(
                timed="data on the CPU; function on the GPU, and on the CPU",
                figure=Figure("in_shardings:mixed", 858e-6, 199e-6),
                against=Figure("beside:jit", 138e-6, 80.6e-6),
                differs=BY_BACKEND,
                at={"data_on": "other"},
            ),
            in_notebook(
                timed="uncommitted data; function compiled for the CPU, and for the GPU",
                figure=Figure("in_shardings:mixed", 1.44e-3, 151e-6),
                against=Figure("beside:jit", 47.1e-6, 58.9e-6),
                differs=BY_BACKEND,
                at={"data_on": "uncommitted"},
            ),
        ),
        listing_5_4(
            timed="uncommitted data on the GPU",
            figure=Figure("beside:eager", 791e-6, 66.8e-6),
            against=Figure("beside:jit", 165e-6, 247e-6),
            at={"data_on": "uncommitted"},
        ),
        listing_5_5(
            timed="data placed on the GPU",
            figure=Figure("beside:eager", 872e-6, 80.8e-6),
            against=Figure("beside:jit", 27.1e-6, 4.94e-6),
            at={"data_on": "default"},
        ),
        listing_5_5(
            timed="data placed on the CPU",
            backend="cpu",
            figure=Figure("beside:eager", 2.74e-3, 95.8e-6),
            against=Figure("beside:jit", 437e-6, 4.29e-6),
            at={"data_on": "other"},
        ),
        in_notebook(
            timed="data and function on the GPU",
            figure=Figure("beside:eager", 99.6e-6, 21.6e-6),
            against=Figure("beside:jit", 22.3e-6, 10.6e-6),
            at={"data_on": "default"},
        ),
        in_notebook(
            timed="data and function on the CPU",
            backend="cpu",
            figure=Figure("beside:eager", 793e-6, 187e-6),
            against=Figure("beside:jit", 138e-6, 80.6e-6),
            at={"data_on": "other"},
        ),
    ),
    level="default",
    answer=Answer("What does moving data cost?", "beside:jit", against="moved_then_jit:mixed"),
)
def placement(x):
    """SELU on the device of its data, (n,) -> (n,): nothing moves.

    Source: Sapunov, JAX in Action, listings 5.4 and 5.5; JAX's documentation, "Transfer guard".
    """
    return selu(x)


@placement.implementation(modes=("eager",))
def moved(x, *, data_on):
    """Data moved to the other device by `device_put`, n x 4 bytes in one transfer; then SELU there, eagerly."""
    return selu(jax.device_put(x, elsewhere(data_on)))


@placement.implementation(modes=("mixed",), compiles=1)
def moved_then_jit(x, *, data_on):
    """Data moved by `device_put`, n x 4 bytes in one transfer; then jitted SELU on the device of the moved data."""
    return jitted_selu(jax.device_put(x, elsewhere(data_on)))


@placement.implementation(modes=("mixed",), compiles=1)
def in_shardings(x, *, data_on):
    """SELU compiled for the other device by `in_shardings`: jit moves the data, and no transfer guard sees the move."""
    return selu_on(elsewhere(data_on))(x)


@placement.implementation(modes=("eager",), limit=only_uncommitted)
def default_device(x):
    """`jax.default_device` set to the other device: each operation that reads uncommitted data moves them again."""
    with jax.default_device(device("other")):
        return selu(x)


@placement.implementation(modes=("mixed",), compiles=1)
def nothing_moves(x):
    """Jitted SELU on the device of its data under a transfer guard; the absence of errors proves that nothing moves."""
    with jax.transfer_guard("disallow_explicit"):
        return jitted_selu(x)


@placement.implementation(modes=("mixed",), raises=jax.errors.JaxRuntimeError)
def one_array_moves(x, *, data_on):
    """`moved_then_jit` under the same guard: the error names the array that would move, and its destination."""
    with jax.transfer_guard("disallow_explicit"):
        return moved_then_jit(x, data_on=data_on)


def in_host_memory(values, *, beyond):
    """Return a copy of a NumPy array that begins `beyond` bytes after a multiple of ALIGNMENT."""
    memory = np.empty(values.nbytes + ALIGNMENT + beyond, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT + beyond
    copy = memory[begin : begin + values.nbytes].view(values.dtype)
    copy[...] = values
    return copy


def unread(x):
    """Return the same buffer as a new array, because an array caches its NumPy value after its first copy.

    The timed call includes the creation of this array. At n = 10 000 the creation can dominate the time.
    """
    return jax.make_array_from_single_device_arrays(x.shape, x.sharding, [x])


def on_device(key, *, n):
    """Return standard normal numbers, shape (n,) float32, on the device."""
    return activations(key, n=n, dtype="float32")


def on_host(key, *, n):
    """Return standard normal numbers, shape (n,) float32: a NumPy array where the C library places large arrays."""
    return in_host_memory(np.asarray(on_device(key, n=n)), beyond=AS_ALLOCATED)


def on_both(key, *, n):
    """Return the same values, shapes (n,) float32, as an aligned and an unaligned NumPy array and as a device array."""
    x = on_device(key, n=n)
    values = np.asarray(x)
    return in_host_memory(values, beyond=0), in_host_memory(values, beyond=AS_ALLOCATED), x


def itself(x):
    """Return the input, which is the result of a correct transfer."""
    return x


def transferred(*, n):
    """Return the cost of a transfer, which moves every byte once."""
    return Cost(bytes=n * itemsize("float32"))


def only_where_it_copies(backend):
    """Return a Skip on a CPU, where no data move."""
    return Skip("on a CPU this is a view, not a copy: see zero_copy") if backend == "cpu" else None


def only_in_shared_memory(backend):
    """Return a Skip on accelerators, which have their own memory."""
    return None if backend == "cpu" else Skip("the device has its own memory: see host_to_device, device_to_host")


TRANSFERRED = levels(default=1_000_000, full=(10_000, 10_000_000), by_device={"gpu": 100_000_000, "tpu": 100_000_000})


@workload(
    inputs=on_host,
    needs=Needs(host=("x",)),
    params={"n": TRANSFERRED},
    reference=itself,
    cost=transferred,
    peers={"numpy": np.copy},
    modes=("eager",),
    implementation="device_put",
    tolerance=0.0,
    level="default",
)
def host_to_device(x):
    """`jax.device_put` of a NumPy array, (n,) -> (n,); not aligned for XLA, so that a CPU copies it too.

    Source: JAX's documentation, `jax.device_put`.
    """
    return jax.device_put(x)


@host_to_device.implementation(name="jnp.array")
def jnp_array(x):
    """`jnp.array` of a NumPy array, (n,) -> (n,): a copy by contract, made on the host before the transfer."""
    return jnp.array(x)


@workload(
    inputs=on_device,
    params={"n": TRANSFERRED},
    reference=itself,
    cost=transferred,
    peers={"numpy": np.copy},
    modes=("mixed",),
    implementation="np.array",
    tolerance=0.0,
    level="default",
)
def device_to_host(x):
    """`np.array` of an array not read before, (n,) -> (n,): on every backend a NumPy array with its own memory.

    Source: JAX's documentation, `jax.device_get`.
    """
    return np.array(unread(x))


@device_to_host.implementation(name="np.asarray", limit=only_where_it_copies)
def np_asarray(x):
    """`np.asarray` of an array not read before, (n,) -> (n,): only the transfer."""
    return np.asarray(unread(x))


@workload(
    inputs=on_both,
    needs=Needs(host=("aligned", "unaligned")),
    params={"n": levels(default=1_000_000, full=(10_000, 10_000_000))},
    reference=lambda aligned, unaligned, x: x,
    # No copy is necessary.
    modes=("eager",),
    implementation="aligned",
    limit=only_in_shared_memory,
    tolerance=0.0,
    level="default",
)
def zero_copy(aligned, unaligned, x):
    """`jax.device_put` on a CPU of an array aligned to 64 bytes, (n,) -> (n,): no copy, a time independent of n.

    Source: JAX's documentation, `jax.device_put` and its `may_alias`.
    """
    return jax.device_put(aligned)


@zero_copy.implementation(limit=only_in_shared_memory)
def not_aligned(aligned, unaligned, x):
    """`jax.device_put` of an array 16 bytes beyond an aligned address, (n,) -> (n,): a copy."""
    return jax.device_put(unaligned)


@zero_copy.implementation(limit=only_in_shared_memory)
def asked_to_copy(aligned, unaligned, x):
    """`may_alias=False` with the aligned array, (n,) -> (n,): documented as a copy, which the time can confirm."""
    return jax.device_put(aligned, may_alias=False)


@zero_copy.implementation(modes=("mixed",), limit=only_in_shared_memory)
def view(aligned, unaligned, x):
    """`np.asarray` of a device array, not read before, (n,) -> (n,): a NumPy view of the array's memory."""
    return np.asarray(unread(x))
