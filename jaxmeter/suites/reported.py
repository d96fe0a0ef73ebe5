"""Reported: small versions of programs that users reported as slower or faster with a release of jax."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Needs, Reported, levels, workload

WIDE = Needs(config={"jax_enable_x64": True})
"""Most of these programs were slower in float64."""

IN_FLOAT64 = 1e-9
"""Error allowed in float64: errors accumulate over thousands of dependent steps."""

SLOPE_STEP = 1e-30
"""Size of the complex step, whose derivatives need no subtraction. Source: Squire and Trapp, SIAM Review 40, 1998."""

THUNKS = {"before": "0.4.31", "after": "0.4.33"}
"""Releases before and after XLA's new runtime for CPUs; there is no 0.4.32."""


def slope_in_numpy(function, x):
    """Return the gradient of an analytic function, (k,) -> (k,); the function takes (k, k), a row for each entry."""
    return function(x + 1j * SLOPE_STEP * np.eye(len(x))).imag / SLOPE_STEP


def reported(issue, factor, **options):
    """Return the report of a workload; the default releases are before and after the new runtime."""
    return (Reported(source=issue, factor=factor, **(THUNKS | options)),)


# A while loop that walks an array


def marked_array(key, *, n):
    """Return ones, shape (n,) float32, with 0 as the last entry."""
    return (jnp.ones(n, "float32").at[-1].set(0.0),)


@workload(
    inputs=marked_array,
    params={"n": levels(full=20_000)},
    reference=lambda x: np.argmin(x).astype("int32"),
    modes=("jit",),
    compiles=1,
    reported=reported("jax issue 25190", 21.0, differs="Reported with many host devices."),
    level="full",
)
def array_walk(x):
    """Index of the first entry that is not 1, by `lax.while_loop`, (n,) float32 -> () int32.

    Source: jax issue 25190.
    """
    return jax.lax.while_loop(lambda place: x[place] == 1.0, lambda place: place + 1, jnp.int32(0))


# A model neuron


STEPS, STEP_MS = 200, 0.1

CONDUCTANCES, REVERSALS = (4.4, 8.0, 2.0), (120.0, -84.0, -60.0)
"""Values of calcium, potassium and the leak."""


def membrane_step(v, w, current, xp):
    """Run a step of a neuron's voltage and potassium gate. Source: Morris and Lecar, Biophys. J. 35, 1981, table 1."""

    def logistic(x):
        return 1.0 / (1.0 + xp.exp(-x))

    calcium = logistic((v + 1.2) / 9.0)
    target = logistic((v - 2.0) / 15.0)
    rate = 0.04 * (xp.exp((v - 2.0) / 60.0) + xp.exp(-(v - 2.0) / 60.0)) / 2.0
    flows = (
        conductance * gate * (v - reversal)
        for conductance, gate, reversal in zip(CONDUCTANCES, (calcium, w, 1.0), REVERSALS, strict=True)
    )
    return v + STEP_MS * (current - sum(flows)) / 20.0, w + (1.0 - xp.exp(-STEP_MS * rate)) * (target - w)


def last_voltages_in_numpy(currents):
    """Return the sum of squared voltages after all steps; neurons are in the last axis."""
    v, w = np.full_like(currents, -60.0), np.full_like(currents, 0.01)
    for _ in range(STEPS):
        v, w = membrane_step(v, w, currents, np)
    return np.sum((v / 100.0) ** 2, -1)


@workload(
    inputs=lambda key, *, neurons: (jax.random.uniform(key, (neurons,), "float64", 40.0, 120.0),),
    params={"neurons": levels(full=8)},
    reference=partial(slope_in_numpy, last_voltages_in_numpy),
    modes=("jit",),
    compiles=1,
    tolerance=IN_FLOAT64,
    needs=WIDE,
    reported=reported("jax issue 26145; jaxley issue 571", 7.0, differs="Reported for a many-compartment simulator."),
    level="full",
)
def neuron(currents):
    """Gradient of the last voltages of neurons by their currents, a scan of 200 steps, (k,) float64 -> (k,).

    Source: jax issue 26145.
    """

    def last_voltages(currents):
        def step(state, _):
            return membrane_step(*state, currents, jnp), None

        begun = jnp.full_like(currents, -60.0), jnp.full_like(currents, 0.01)
        return jnp.sum((jax.lax.scan(step, begun, None, length=STEPS)[0][0] / 100.0) ** 2)

    return jax.grad(last_voltages)(currents)


# Many small products


def joint(angle, twist, xp):
    """Return the transform of a joint, (4, 4). Source: Denavit and Hartenberg, J. Appl. Mech. 22, 1955."""
    c, s, ct, st = xp.cos(angle), xp.sin(angle), xp.cos(twist), xp.sin(twist)
    rows = (
        (c, -s * ct, s * st, 0.3 * c),
        (s, c * ct, -c * st, 0.3 * s),
        (0 * c, st, ct, 0.1 + 0 * c),
        (0 * c, 0 * c, 0 * c, 1 + 0 * c),
    )
    return xp.stack([xp.stack(row) for row in rows])


def reach(angles, twists, xp):
    """Return the pose of an arm's end, (4, 4): the product of its joints."""
    place = xp.eye(4)
    for angle, twist in zip(angles, twists, strict=True):
        place = place @ joint(angle, twist, xp)
    return place


@workload(
    inputs=lambda key, *, joints: tuple(jax.random.normal(key, (2, joints), "float64")),
    params={"joints": levels(full=32)},
    reference=partial(reach, xp=np),
    modes=("jit",),
    compiles=1,
    tolerance=IN_FLOAT64,
    needs=WIDE,
    reported=reported("jax issue 26021", 3.0),
    level="full",
)
def arm(angles, twists):
    """Pose of a robot arm's end: 32 products of (4, 4) matrices of sines and cosines, two (k,) float64 -> (4, 4).

    Source: jax issue 26021.
    """
    return reach(list(angles), list(twists), jnp)


# Orbits


ORBIT_STEPS, ORBIT_STEP = 300, 0.01


def pull(places, masses, xp):
    """Return the acceleration of each body by all others, (..., bodies, 2)."""
    apart = places[..., None, :, :] - places[..., :, None, :]
    distance = xp.sum(apart**2, -1) + 1e-2  # softened: otherwise a body divides by its distance 0 to itself
    return xp.sum(masses[..., None, :, None] * apart * (distance**-1.5)[..., None], -2)


def leap(state, masses, xp):
    """Move bodies half a step, change velocities by a step, move bodies half a step.

    Source: Verlet, Phys. Rev. 159, 1967.
    """
    places, speeds = state
    places = places + ORBIT_STEP / 2 * speeds
    speeds = speeds + ORBIT_STEP * pull(places, masses, xp)
    return places + ORBIT_STEP / 2 * speeds, speeds


def begun_orbits(xp):
    """Return initial positions and velocities of three bodies."""
    return xp.asarray([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), xp.asarray([[0.0, 0.0], [0.0, 1.0], [-0.7, 0.0]])


def last_place_in_numpy(masses):
    """Return the sum of squares of all coordinates after all steps."""
    state = begun_orbits(np)
    for _ in range(ORBIT_STEPS):
        state = leap(state, masses, np)
    return np.sum(state[0] ** 2, (-1, -2))


@workload(
    inputs=lambda key: (jnp.asarray([1.0, 1e-2, 2e-2]) + 1e-3 * jax.random.uniform(key, (3,), "float64"),),
    reference=partial(slope_in_numpy, last_place_in_numpy),
    modes=("jit",),
    compiles=1,
    tolerance=IN_FLOAT64,
    needs=WIDE,
    reported=reported("jnkepler issue 18", 14.0),
    level="full",
)
def orbit(masses):
    """Gradient of the final positions of three bodies by their masses, a scan of 300 steps, (3,) float64 -> (3,).

    Source: jnkepler issue 18.
    """

    def last_place(masses):
        state = jax.lax.scan(lambda state, _: (leap(state, masses, jnp), None), begun_orbits(jnp), None, ORBIT_STEPS)[0]
        return jnp.sum(state[0] ** 2)

    return jax.grad(last_place)(masses)


# A small carry


TRANSITION = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.1], [0.0, 0.0, 0.7]])
NOISE = 0.1 * np.eye(3)


def filtered(covariance, xp):
    """Run a step of a Kalman filter's covariance; the first entry is observed. Source: Kalman, 1960."""
    predicted = TRANSITION.astype(covariance.dtype) @ covariance @ TRANSITION.T.astype(covariance.dtype) + NOISE.astype(
        covariance.dtype
    )
    gain = predicted[:, 0] / (predicted[0, 0] + 1)
    return predicted - xp.outer(gain, predicted[0]), predicted[0, 0]


def covariances_in_numpy(covariance, *, n):
    """Return the variance of the observed entry at each step, (n,)."""
    variances = []
    for _ in range(n):
        covariance, variance = filtered(covariance, np)
        variances.append(variance)
    return np.stack(variances)


@workload(
    inputs=lambda key, *, dtype: (jnp.diag(jax.random.uniform(key, (3,), dtype, 1.0, 2.0)),),
    params={"n": 2_000, "dtype": levels(full=("float64", "float32"))},
    reference=covariances_in_numpy,
    modes=("jit",),
    compiles=1,
    needs=WIDE,
    reported=(Reported(source="jax issue 36799; tinygp", factor=10.0, at={"dtype": "float64"}, **THUNKS),),
    level="full",
)
def small_carry(covariance, *, n):
    """Variances of a Kalman filter by a scan with a small carry, (3, 3) -> (n,).

    Source: jax issue 36799.
    """
    return jax.lax.scan(lambda carry, _: filtered(carry, jnp), covariance, None, length=n)[1]


# Sampling a regression


LEAPS, LEAP = 10, 0.02


def log_slope(weights, features, labels, xp):
    """Return the gradient of a logistic regression's log density with a standard normal prior, (k,) -> (k,)."""
    return features.T @ (labels - 1 / (1 + xp.exp(-(features @ weights)))) - weights


def trajectory(weights, momentum, features, labels, xp, slope):
    """Run ten leapfrog steps. Source: Neal, MCMC Using Hamiltonian Dynamics, 2011, section 2.3."""
    for _ in range(LEAPS):
        momentum = momentum + LEAP / 2 * slope(weights, features, labels, xp)
        weights = weights + LEAP * momentum
        momentum = momentum + LEAP / 2 * slope(weights, features, labels, xp)
    return weights, momentum


def regression(key, *, examples):
    """Return weights and momentum (10,), features (n, 10), labels (n,), all float32."""
    of_weights, of_momentum, of_features, of_labels = jax.random.split(key, 4)
    features = jax.random.normal(of_features, (examples, 10), "float32")
    labels = (jax.random.uniform(of_labels, (examples,), "float32") < 0.5).astype("float32")
    return *(jax.random.normal(subkey, (10,), "float32") for subkey in (of_weights, of_momentum)), features, labels


@workload(
    inputs=regression,
    params={"examples": levels(full=200)},
    reference=lambda *inputs: trajectory(*inputs, np, log_slope),
    modes=("jit",),
    compiles=1,
    reported=reported(
        "blackjax issue 746", 2.0, before="0.4.30", after="0.4.34", differs="Reported for the library's NUTS and HMC."
    ),
    level="full",
)
def hamiltonian(weights, momentum, features, labels):
    """Ten leapfrog steps of HMC on a logistic regression, two (k,), (n, k), (n,) -> weights and momentum, (k,) each.

    Source: blackjax issue 746.
    """

    def log_density(weights, features, labels):
        logits = features @ weights
        return jnp.sum(labels * logits - jnp.logaddexp(0.0, logits)) - jnp.sum(weights**2) / 2

    def slope(weights, features, labels, _):
        return jax.grad(log_density)(weights, features, labels)

    def step(state, _):
        weights, momentum = state
        momentum = momentum + LEAP / 2 * slope(weights, features, labels, None)
        weights = weights + LEAP * momentum
        return (weights, momentum + LEAP / 2 * slope(weights, features, labels, None)), None

    return jax.lax.scan(step, (weights, momentum), None, length=LEAPS)[0]


# Many scalars


RING_STEPS = 200


def around(scalars, xp):
    """Move each scalar towards the next one."""
    return [x + 0.1 * xp.sin(other - x) for x, other in zip(scalars, (*scalars[1:], scalars[0]), strict=True)]


def ring_in_numpy(x):
    """Return the sum of squares after all steps; the scalars are in the last axis."""
    for _ in range(RING_STEPS):
        x = x + 0.1 * np.sin(np.roll(x, -1, -1) - x)
    return np.sum(x**2, -1)


@workload(
    inputs=lambda key, *, scalars: (jax.random.normal(key, (scalars,), "float32"),),
    params={"scalars": levels(default=40)},
    reference=partial(slope_in_numpy, ring_in_numpy),
    modes=("jit",),
    compiles=1,
    reported=reported("jax issue 40150", 60.0),
    answer=Answer("How long do many scalar carries take?", "scalar_leaves:jit"),
    level="default",
)
def scalar_leaves(x):
    """Gradient through a scan of 200 steps with a carry of k scalars, (k,) float32 -> (k,).

    Source: jax issue 40150.
    """

    def total(x):
        last = jax.lax.scan(lambda carry, _: (around(carry, jnp), None), list(x), None, length=RING_STEPS)[0]
        return sum(scalar**2 for scalar in last)

    return jax.grad(total)(x)


# Squared differences


def differences_in_numpy(x):
    """Return twice the differences between each entry and its neighbours, along all axes."""
    slope = np.zeros_like(x)
    for axis in range(x.ndim):
        apart = 2 * np.diff(x, axis=axis)
        ends = [(0, 0)] * x.ndim
        slope += np.pad(apart, [*ends[:axis], (1, 0), *ends[axis + 1 :]])
        slope -= np.pad(apart, [*ends[:axis], (0, 1), *ends[axis + 1 :]])
    return slope


@workload(
    inputs=lambda key, *, n: (jax.random.normal(key, (n, n, n), "float32"),),
    params={"n": levels(full=128)},
    reference=differences_in_numpy,
    modes=("jit",),
    compiles=1,
    reported=(
        Reported(source="jax issue 37465", factor=1.8, before="0.5.0", after="0.5.3"),
        Reported(source="jax issue 37465", factor=1.4, before="0.7.2", after="0.8.0"),
    ),
    level="full",
)
def squared_differences(x):
    """Gradient of the squared differences of neighbours along three axes, (n, n, n) float32 -> (n, n, n).

    Source: jax issue 37465.
    """
    return jax.grad(lambda x: sum(jnp.sum(jnp.diff(x, axis=axis) ** 2) for axis in range(3)))(x)


# A buffer that a loop updates


def buffer_in_numpy(x, tangents, *, n):
    """Return the derivative of the buffer along each tangent, (k, n); each entry depends on the entry before it."""
    value, slope = x, tangents
    rows = []
    for _ in range(n):
        value, slope = np.sin(value + 1.0), np.cos(value + 1.0) * slope
        rows.append(slope)
    return np.stack(rows, -1)


@workload(
    inputs=lambda key, *, tangents: (jnp.float32(0.5), jax.random.normal(key, (tangents,), "float32")),
    params={"n": 300, "tangents": levels(full=32)},
    reference=buffer_in_numpy,
    modes=("jit",),
    compiles=1,
    reported=(Reported(source="jax issue 31282; equinox issue 1088", factor=33.0, before="0.7.0", after="0.7.1"),),
    level="full",
)
def updated_buffer(x, tangents, *, n):
    """Linearised loop that writes a buffer, along many tangents by vmap, (), (k,) float32 -> (k, n).

    Source: jax issue 31282.
    """

    def fill(x):
        def step(place, state):
            value, buffer = state
            value = jnp.sin(value + 1.0)
            return value, buffer.at[place].set(value)

        return jax.lax.fori_loop(0, n, step, (x, jnp.zeros(n, x.dtype)))[1]

    return jax.vmap(jax.linearize(fill, x)[1])(tangents)


# Small solves


def systems(key, *, systems, n):
    """Return well-conditioned systems, (systems, n, n), and their right-hand sides, (systems, n), float32."""
    of_matrices, of_sides = jax.random.split(key)
    return (
        jax.random.uniform(of_matrices, (systems, n, n), "float32") + n * jnp.eye(n, dtype="float32"),
        jax.random.normal(of_sides, (systems, n), "float32"),
    )


@workload(
    inputs=systems,
    params={"systems": levels(full=2_000), "n": 4},
    reference=lambda a, b: np.linalg.solve(a, b[..., None])[..., 0],
    modes=("jit",),
    compiles=1,
    reported=(Reported(source="jax issue 36927", factor=2.6, before="0.9.2", after="0.10.0"),),
    level="full",
)
def small_solves(a, b):
    """Solutions of many small systems of linear equations, (k, n, n), (k, n) float32 -> (k, n).

    Source: jax issue 36927.
    """
    return jnp.linalg.solve(a, b[..., None])[..., 0]


# Segment sums


SEGMENTS = 100


def segments(key, *, columns, rows):
    """Return values (columns, rows) float32 and the segment of each row, (rows,) int32."""
    of_values, of_segments = jax.random.split(key)
    return (
        jax.random.normal(of_values, (columns, rows), "float32"),
        jax.random.randint(of_segments, (rows,), 0, SEGMENTS, "int32"),
    )


def segments_in_numpy(values, ids):
    """Sum segments by `numpy.add.at` for each column."""
    totals = np.zeros((len(values), SEGMENTS), values.dtype)
    np.add.at(totals.T, ids, values.T)
    return totals


@workload(
    inputs=segments,
    params={"columns": levels(full=64), "rows": 2_000},
    reference=segments_in_numpy,
    modes=("jit",),
    compiles=1,
    reported=(
        Reported(
            source="jax issue 39959",
            factor=5.0,
            before="0.9.1",
            after="0.9.2",
            differs="The report does not name the device.",
        ),
    ),
    level="full",
)
def segment_sums(values, ids):
    """Segment sums under vmap, (columns, rows) float32, (rows,) int32 -> (columns, 100).

    Source: jax issue 39959.
    """
    return jax.vmap(lambda column: jax.ops.segment_sum(column, ids, num_segments=SEGMENTS))(values)


# A large program


def layers(key, *, depth, width):
    """Return kernels (depth, width, width) and an input (1, width), float32."""
    of_kernels, of_x = jax.random.split(key)
    kernels = jax.random.normal(of_kernels, (depth, width, width), "float32") / width
    return kernels, jax.random.normal(of_x, (1, width), "float32")


def layers_in_numpy(kernels, x):
    """Run all layers; each layer adds the tanh of a product."""
    for kernel in kernels:
        x = x + np.tanh(x @ kernel)
    return x


@workload(
    inputs=layers,
    params={"depth": levels(full=200), "width": 8},
    reference=layers_in_numpy,
    modes=("jit",),
    compiles=1,
    measures="compilation",
    reported=(
        Reported(
            source="tpu-inference PR 2949",
            factor=2.2,
            before="0.10.0",
            after="0.10.1",
            metric="trace_s",
            differs="Reported for tracing and lowering of a model on a TPU.",
        ),
    ),
    level="full",
)
def large_program(kernels, x):
    """Unrolled model of many layers, (depth, width, width), (1, width) float32 -> (1, width).

    Source: tpu-inference PR 2949.
    """
    for kernel in kernels:
        x = x + jnp.tanh(x @ kernel)
    return x
