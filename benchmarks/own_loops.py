"""`jaxmeter.measure` compared with a careful loop of a user's own, in the same process: programs that take a while.

    python -m benchmarks.own_loops [PROGRAM ...]

Each program is a callable as users write it: wrapped, donated, sharded, changing its model in place. The loop is timed
before and after `measure`; the ratio is that of the time as measured to the median of both loops.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import optax
from flax import linen, nnx
from jax.sharding import NamedSharding, PartitionSpec

from benchmarks.here import describe_here
from jaxmeter import measure

LOOP_S = 1.0
WARM_UPS = 3
WIDTH, BATCH = 512, 256

Loop = Callable[[], Any]
Program = tuple[Any, tuple[Any, ...], dict[str, Any], Loop]
"""The callable, its arguments by position and by keyword, and one step of the loop, which waits for its result."""


class Model(nnx.Module):
    """Two layers of WIDTH units."""

    def __init__(self) -> None:
        self.first = nnx.Linear(WIDTH, WIDTH, rngs=nnx.Rngs(0))
        self.second = nnx.Linear(WIDTH, WIDTH, rngs=nnx.Rngs(1))

    def __call__(self, x: Any) -> Any:
        """(BATCH, WIDTH) -> (BATCH, WIDTH)."""
        return self.second(nnx.relu(self.first(x)))


def train_in_place(model: Any, optimizer: Any, x: Any) -> Any:
    """One step that changes the model and the optimizer in place, as in flax's own examples."""
    loss, gradient = nnx.value_and_grad(lambda model: ((model(x) - x) ** 2).mean())(model)
    optimizer.update(model, gradient)
    return loss


def make_batch() -> Any:
    """(BATCH, WIDTH), float32."""
    return jax.random.normal(jax.random.key(0), (BATCH, WIDTH))


def in_place(donate: tuple[int, ...] = ()) -> Program:
    """`nnx.jit` of a step in place."""
    step = nnx.jit(train_in_place, donate_argnums=donate)

    def make() -> tuple[Any, Any]:
        model = Model()
        return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    own, batch = make(), make_batch()
    return step, (*make(), batch), {}, lambda: jax.block_until_ready(step(*own, batch))


def pure(donate: tuple[int, ...] = (), *, by_keyword: bool = False) -> Program:
    """A pure step of parameters and optimizer state: linen and optax."""
    model, optimizer, batch = linen.Dense(WIDTH), optax.adamw(1e-3), make_batch()

    def step(state: Any, batch: Any) -> Any:
        params, slots = state
        loss, gradient = jax.value_and_grad(lambda params: ((model.apply(params, batch) - batch) ** 2).mean())(params)
        updates, slots = optimizer.update(gradient, slots, params)
        return (optax.apply_updates(params, updates), slots), loss

    def make() -> Any:
        params = model.init(jax.random.key(1), batch)
        return params, optimizer.init(params)

    jitted, own = jax.jit(step, donate_argnums=donate), [make()]

    def loop() -> None:
        own[0], loss = jitted(own[0], batch)
        jax.block_until_ready((own[0], loss))

    if by_keyword:
        return jitted, (make(),), {"batch": batch}, loop
    return jitted, (make(), batch), {}, loop


def on_devices(*, mapped: bool) -> Program:
    """A product on four devices: by `pmap`, or sharded by the batch."""
    weights = jax.random.normal(jax.random.key(2), (WIDTH, WIDTH))

    def apply(x: Any, weights: Any) -> Any:
        for _ in range(4):
            x = jnp.tanh(x @ weights)
        return x

    if mapped:
        function = jax.pmap(apply, in_axes=(0, None))
        args = (make_batch().reshape(4, -1, WIDTH), weights)
    else:
        mesh = jax.make_mesh((4,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
        rows = NamedSharding(mesh, PartitionSpec("batch"))
        function = jax.jit(apply, out_shardings=rows)
        args = (jax.device_put(make_batch(), rows), jax.device_put(weights, NamedSharding(mesh, PartitionSpec())))
    return function, args, {}, lambda: jax.block_until_ready(function(*args))


def donated_buffer() -> Program:
    """One row of 64 MB is set; donation is what makes it cheap."""
    function = jax.jit(lambda table, row: table.at[0].set(row) * 1.0, donate_argnums=0)
    own, row = [jnp.zeros((16_384, 1024))], jnp.ones(1024)

    def loop() -> None:
        own[0] = jax.block_until_ready(function(own[0], row))

    return function, (jnp.zeros((16_384, 1024)), row), {}, loop


PROGRAMS: dict[str, Callable[[], Program]] = {
    "nnx.jit, model and optimizer in place": in_place,
    "nnx.jit, donated": partial(in_place, (0, 1)),
    "jax.jit, pure": pure,
    "jax.jit, donated state": partial(pure, (0,)),
    "jax.jit, batch by keyword": partial(pure, by_keyword=True),
    "pmap on 4 devices": partial(on_devices, mapped=True),
    "jax.jit, sharded on 4 devices": partial(on_devices, mapped=False),
    "jax.jit, a donated buffer of 64 MB": donated_buffer,
}


def main() -> None:
    """Prints a row for each program."""
    wanted = sys.argv[1:]
    print(describe_here("jax", "flax", "optax"))
    for name, make in PROGRAMS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        function, args, kwargs, loop = make()
        before = time_loop(loop)
        measured_s = measure(function, *args, **kwargs).value("as_given", "execution_s")
        own_s = statistics.median([before, time_loop(loop)])
        if measured_s is None:
            print(f"{name}: not measured", flush=True)
            continue
        times = f"measured {measured_s * 1e3:.3f} ms, own loop {own_s * 1e3:.3f} ms"
        print(f"{name}: {times}, ratio {measured_s / own_s:.2f}", flush=True)


def time_loop(loop: Loop) -> float:
    """Median seconds of a call, over LOOP_S after WARM_UPS calls."""
    for _ in range(WARM_UPS):
        loop()
    times: list[float] = []
    begun = time.perf_counter()
    while time.perf_counter() - begun < LOOP_S:
        start = time.perf_counter()
        loop()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    main()
