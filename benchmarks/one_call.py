"""How long `jaxmeter.measure` of a jitted step takes, next to compiling and calling the step once.

    python -m benchmarks.one_call [LIBRARY ...]

Each library has a fresh process. The first figure is the first call of a step. Then the step is measured, with the
import of jaxmeter in the time. Last, an equal new step is measured, which has not been compiled. The difference of the
last figure and the first has the goal. `pip install equinox diffrax numpyro` installs what jaxmeter does not need.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

GOAL_S = 5.0
"""For a measurement without its compilation, on an idle machine."""

Step = tuple[Callable[..., Any], tuple[Any, ...]]


def main() -> None:
    """Prints a table; or, in a process of one library, its figures."""
    if sys.argv[1:2] == ["--in-process"]:
        print(json.dumps(_measure(LIBRARIES[sys.argv[2]])))
        return
    from benchmarks.here import describe_here  # not in the timed processes

    names = sys.argv[1:] or list(LIBRARIES)
    if unknown := set(names) - set(LIBRARIES):
        sys.exit(f"no library {min(unknown)!r}; there are {', '.join(LIBRARIES)}")
    packages = sorted({package for name in names for package in PACKAGES[name] if find_spec(package)})
    print(describe_here("jax", *packages))
    print(f"{'library':12}{'compile + call [s]':>20}{'measure [s]':>13}{'measure, new step [s]':>23}{'difference':>12}")
    for name in names:
        if missing := [package for package in PACKAGES[name] if not find_spec(package)]:
            print(f"{name:12}not measured: {missing[0]} is not installed")
            continue
        command = [sys.executable, "-m", "benchmarks.one_call", "--in-process", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name:12}not measured: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
            continue
        once_s, warm_s, cold_s = json.loads(done.stdout.splitlines()[-1])
        met = "met" if cold_s - once_s <= GOAL_S and warm_s <= GOAL_S else "not met"
        print(f"{name:12}{once_s:20.2f}{warm_s:13.2f}{cold_s:23.2f}{cold_s - once_s:12.2f} {met}")


def _measure(make: Callable[[], Step]) -> list[float]:
    """Seconds of a step's first call, of measuring it, and of measuring a new one."""
    import jax

    step, args = make()
    seconds = []

    def take(call: Callable[[], object]) -> None:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)

    def measure() -> None:
        import jaxmeter

        jaxmeter.measure.with_options(progress=False)(step, *args)

    take(lambda: jax.block_until_ready(step(*args)))
    take(measure)
    step, args = make()
    take(measure)
    return seconds


def _draw() -> tuple[Any, Any]:
    """Inputs (256, 64) and targets (256, 10)."""
    import jax

    keys = jax.random.split(jax.random.key(0))
    return jax.random.normal(keys[0], (256, 64)), jax.random.normal(keys[1], (256, 10))


def _make_linen() -> Step:
    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen
    from flax.training.train_state import TrainState

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x: Any, train: bool = True) -> Any:
            for _ in range(3):
                x = linen.Dropout(0.1, deterministic=not train)(linen.relu(linen.Dense(256)(x)))
            return linen.Dense(10)(x)

    (x, y), key, network = _draw(), jax.random.key(2), Network()
    params = network.init(key, x, train=False)
    state = TrainState.create(apply_fn=network.apply, params=params, tx=optax.adamw(1e-3))

    @jax.jit
    def step(state: Any, x: Any, y: Any, key: Any) -> Any:
        def loss(params: Any) -> Any:
            return jnp.mean((state.apply_fn(params, x, rngs={"dropout": key}) - y) ** 2)

        value, gradients = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=gradients), value

    return step, (state, x, y, key)


def _make_nnx() -> Step:
    import jax.numpy as jnp
    import optax
    from flax import nnx

    rngs = nnx.Rngs(0)
    layers = (nnx.Linear(64, 256, rngs=rngs), nnx.relu, nnx.BatchNorm(256, rngs=rngs), nnx.Linear(256, 10, rngs=rngs))
    model = nnx.Sequential(*layers)
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        value, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
        optimizer.update(model, gradients)
        return value

    return step, (model, optimizer, *_draw())


def _make_equinox() -> Step:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    model, optimizer = eqx.nn.MLP(64, 10, 256, 3, key=jax.random.key(2)), optax.adam(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model: Any, state: Any, x: Any, y: Any) -> Any:
        loss = eqx.filter_value_and_grad(lambda model: jnp.mean((jax.vmap(model)(x) - y) ** 2))
        value, gradients = loss(model)
        updates, state = optimizer.update(gradients, state, model)
        return eqx.apply_updates(model, updates), state, value

    return step, (model, state, *_draw())


def _make_diffrax() -> Step:
    import diffrax
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    class Field(eqx.Module):
        weights: jax.Array

        def __call__(self, t: Any, y: Any, args: Any) -> Any:
            return jnp.tanh(y @ self.weights)

    controller = diffrax.PIDController(rtol=1e-4, atol=1e-6)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(field: Any, start: Any) -> Any:
        term, solver = diffrax.ODETerm(field), diffrax.Tsit5()
        solution = diffrax.diffeqsolve(term, solver, 0.0, 1.0, 0.05, start, stepsize_controller=controller)
        return jnp.mean(solution.ys**2)

    key = jax.random.key(0)
    return loss, (Field(jax.random.normal(key, (32, 32)) / 6), jax.random.normal(key, (64, 32)))


def _make_numpyro() -> Step:
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    def model(x: Any, y: Any = None) -> None:
        weights = numpyro.sample("weights", distributions.Normal(jnp.zeros(64), 1).to_event(1))
        numpyro.sample("y", distributions.Bernoulli(logits=x @ weights), obs=y)

    x = _draw()[0]
    y = (x[:, 0] > 0).astype(jnp.int32)
    svi = SVI(model, autoguide.AutoNormal(model), numpyro.optim.Adam(1e-2), Trace_ELBO())
    return jax.jit(functools.partial(svi.update)), (svi.init(jax.random.key(0), x, y), x, y)


LIBRARIES = {
    "flax linen": _make_linen,
    "flax nnx": _make_nnx,
    "equinox": _make_equinox,
    "diffrax": _make_diffrax,
    "numpyro": _make_numpyro,
}
PACKAGES = {
    "flax linen": ("flax",),
    "flax nnx": ("flax",),
    "equinox": ("equinox",),
    "diffrax": ("diffrax", "equinox"),
    "numpyro": ("numpyro",),
}


if __name__ == "__main__":
    main()
