"""Compile time of a decoder by depth, width and shapes, with and without scan over layers; chains of operations."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import Answer, Caching, Cost, Figure, Published, Skip, itemsize, levels, workload
from jaxmeter.suites.networks_in_numpy import softmax
from jaxmeter.suites.networks_in_numpy import swish as swish_in_numpy

FLOAT_BYTES = itemsize("float32")

# A decoder

WIDTH, HEADS = 64, 4
BATCH, LENGTH = 2, 32
"""Small sizes, because compile time is the subject; `compile_width` measures the cost of more width."""

HIDDEN = 3
"""Ratio of the gated MLP's width to attention's: its three products cost about as much as the usual two of ratio 4."""

KERNELS = 4 + 3 * HIDDEN
"""Products of a layer in units of (width, inner): four of attention, and three of the MLP, each HIDDEN as wide."""

RMS_EPSILON = 1e-6

STRIDE = 16
"""Difference between the inner widths of layers of different shapes: a multiple of the number of heads."""


def layers_of(key, inner):
    """Return NumPy parameters of layers with these inner widths, and standard normal inputs, (2, 32, width).

    The inputs and outputs of all layers have the first layer's inner width. Kernels are normal with variance
    1 / fan-in. NumPy draws them, because JAX would compile a program for each shape.
    """
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    width = inner[0]

    def drawn(*shape):
        return (generator.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)

    def layer(inner):
        hidden = HIDDEN * inner
        return {
            "attention_norm": np.ones(width, np.float32),
            "query": drawn(width, inner),
            "key": drawn(width, inner),
            "value": drawn(width, inner),
            "output": drawn(inner, width),
            "mlp_norm": np.ones(width, np.float32),
            "gate": drawn(width, hidden),
            "up": drawn(width, hidden),
            "down": drawn(hidden, width),
        }

    x = generator.standard_normal((BATCH, LENGTH, width)).astype(np.float32)
    return list(map(layer, inner)), x


def stack(layers):
    """Return parameters of equal layers, stacked along a new first axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *layers)


def apart_and_stacked(key, *, depth, width):
    """Return parameters of the layers, separate and stacked, and inputs."""
    layers, x = layers_of(key, [width] * depth)
    return {"apart": layers, "stacked": stack(layers)}, x


def equal_layers(key, *, depth, width):
    """Return separate parameters of the layers, and inputs."""
    return layers_of(key, [width] * depth)


def inner_widths(depth, shapes):
    """Return the inner width of each layer: `shapes` different widths in turn."""
    return [WIDTH + STRIDE * (at % shapes) for at in range(depth)]


def unlike_layers(key, *, depth, shapes):
    """Return parameters of layers of `shapes` different shapes, and inputs."""
    return layers_of(key, inner_widths(depth, shapes))


def rms_norm(x, scale):
    """Return each row divided by its root mean square, times `scale`.

    Source: Zhang & Sennrich 2019, equation 4.
    """
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + RMS_EPSILON) * scale


def layer(x, params):
    """Return the output of a decoder layer, (b, l, width) -> (b, l, width).

    The layer is causal attention, then a gated MLP; each is added to its input.
    """
    *around, _ = x.shape
    normal = rms_norm(x, params["attention_norm"])
    heads = ((normal @ params[name]).reshape(*around, HEADS, -1) for name in ("query", "key", "value"))
    mixed = jax.nn.dot_product_attention(*heads, is_causal=True).reshape(*around, -1)
    x = x + mixed @ params["output"]
    normal = rms_norm(x, params["mlp_norm"])
    return x + (jax.nn.silu(normal @ params["gate"]) * (normal @ params["up"])) @ params["down"]


jitted_layer = jax.jit(layer)


def one_by_one(layers, x, apply=layer):
    """Return the output of the layers, applied in a Python loop."""
    for params in layers:
        x = apply(x, params)
    return x


def layer_in_numpy(x, params):
    """Return the output of the layer with NumPy."""
    *around, _ = x.shape

    def norm(x, scale):
        return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + RMS_EPSILON) * scale

    normal = norm(x, params["attention_norm"])
    query, key, value = (
        (normal @ params[name]).reshape(*around, HEADS, -1).swapaxes(1, 2) for name in ("query", "key", "value")
    )
    scores = query @ key.swapaxes(2, 3) / np.sqrt(query.shape[-1])
    seen = np.tri(around[-1], dtype=bool)
    mixed = softmax(np.where(seen, scores, -np.inf)) @ value
    x = x + mixed.swapaxes(1, 2).reshape(*around, -1) @ params["output"]
    normal = norm(x, params["mlp_norm"])
    gate = swish_in_numpy(normal @ params["gate"]).output
    return x + (gate * (normal @ params["up"])) @ params["down"]


def layers_in_numpy(layers, x):
    """Return the output of the layers with NumPy."""
    return one_by_one(layers, x, layer_in_numpy)


def forward_cost(inner):
    """Return the cost: products with kernels and of causal pairs; parameters and inputs are read, outputs written."""
    width, tokens, pairs = inner[0], BATCH * LENGTH, BATCH * LENGTH * (LENGTH + 1) // 2
    numbers = sum(KERNELS * width * each + 2 * width for each in inner) + 2 * tokens * width
    flops = sum(2 * tokens * KERNELS * width * each + 2 * 2 * pairs * each for each in inner)
    return Cost(flops=flops, bytes=numbers * FLOAT_BYTES)


@workload(
    inputs=apart_and_stacked,
    params={"depth": levels(default=(2, 8, 32), full=80), "width": WIDTH},
    reference=lambda params, x: layers_in_numpy(params["apart"], x),
    cost=lambda *, depth, width: forward_cost([width] * depth),
    modes=("jit",),
    implementation="unrolled",
    compiles=1,
    measures="compilation",
    caching=Caching(default_threshold=True),
    level="default",
    traps=("unrolled",),
    answer=Answer(
        "Does lax.scan save compile time?",
        "scan:jit",
        against="unrolled:jit",
        metric="compile_total_s",
        at={"depth": 32},
        rank=4,
    ),
)
def compile_depth(params, x):
    """Forward pass of a decoder, {depth layers}, (2, 32, width) -> (2, 32, width), with a Python loop over layers.

    Source: Touvron et al., LLaMA, 2023, section 2.2, for the layer (here without rotation), and table 2 for 32 and 80
    layers; a comment in JAX's issue 1897, 2019, for "linear (or worse)" in the number of layers.
    """
    return one_by_one(params["apart"], x)


@compile_depth.implementation
def scan(params, x):
    """One `lax.scan` over the stacked parameters of all layers: the program contains one layer."""
    return jax.lax.scan(lambda x, params: (layer(x, params), None), x, params["stacked"])[0]


@workload(
    inputs=equal_layers,
    params={"width": levels(default=(64, 512), full=(128, 1_024)), "depth": 2},
    reference=layers_in_numpy,
    cost=lambda *, width, depth: forward_cost([width] * depth),
    modes=("jit",),
    implementation="unrolled",
    compiles=1,
    measures="compilation",
    level="default",
)
def compile_width(layers, x):
    """Forward pass of a decoder of two layers, {2 layers}, (2, 32, width) -> (2, 32, width), by width.

    Source: as `compile_depth`.
    """
    return one_by_one(layers, x)


@workload(
    inputs=unlike_layers,
    params={"shapes": levels(default=(1, 4), full=(2, 8)), "depth": 8},
    reference=layers_in_numpy,
    cost=lambda *, shapes, depth: forward_cost(inner_widths(depth, shapes)),
    modes=("jit",),
    implementation="unrolled",
    compiles=1,
    measures="compilation",
    level="default",
)
def compile_shapes(layers, x):
    """Forward pass of a decoder with layers of `shapes` shapes, {8 layers}, (2, 32, 64) -> (2, 32, 64).

    Source: as `compile_depth`. A scan needs layers of one shape.
    """
    return one_by_one(layers, x)


@compile_shapes.implementation(name="jitted_layer")
def layers_jitted(layers, x):
    """One jitted function for all layers within the program: its Python code is traced once for each shape."""
    return one_by_one(layers, x, jitted_layer)


# Chains of single operations

CHAINED = 1_000
"""Entries of the arrays in the chains: few, because compile time is the subject."""

LONGEST_REDUCTIONS = 100
"""Longest chain within the compile budget: on two cores, 100 steps take 3 s and 300 steps take 47 s."""


def short_array(key):
    """Return a standard normal array, shape (1000,) float32."""
    return jax.random.normal(key, (CHAINED,))


def sines_in_numpy(x, *, n):
    """Return x after n applications of the sine."""
    for _ in range(n):
        x = np.sin(x)
    return x


def centred_in_numpy(x, *, n):
    """Return x after n subtractions of its mean."""
    for _ in range(n):
        x = x - x.mean()
    return x


def square(figure):
    """Return the published claim that compile time grows with the square of the number of operations."""
    return Published(
        source="Sapunov, JAX in Action (MEAP v3, 2022), chapter 5",
        device="not stated",
        timed='"roughly the square" of the number of operations, for XLA compile time',
        figure=Figure(figure, 2.0, metric="compile_exponent"),
        differs="the source names no operations; XLA has changed since; here tracing and lowering count too",
    )


@workload(
    inputs=short_array,
    params={"n": levels(quick=10, default=(30, 100, 300, 1_000), full=3_000)},
    reference=sines_in_numpy,
    cost=lambda *, n: Cost(flops=n * CHAINED, bytes=2 * CHAINED * FLOAT_BYTES),
    modes=("jit",),
    compiles=1,
    measures="compilation",
    published=(square("operations:jit"),),
    traps=("unrolled",),
)
def operations(x, *, n):
    """Unrolled chain of n element-wise operations, (1000,) -> (1000,): XLA can fuse them into one loop.

    Source: Sapunov, JAX in Action, 2022, chapter 5.
    """
    for _ in range(n):
        x = jnp.sin(x)
    return x


@operations.implementation
def loop(x, *, n):
    """`lax.fori_loop` over the same operation: the program contains it once, for any n."""
    return jax.lax.fori_loop(0, n, lambda _, value: jnp.sin(value), x)


def reductions_within_budget(n):
    """Return a Skip where the unrolled program takes longer than the compile budget."""
    if n > LONGEST_REDUCTIONS:
        return Skip(f"compile budget: unrolled only up to n = {LONGEST_REDUCTIONS}")
    return None


@workload(
    inputs=short_array,
    params={"n": levels(quick=10, default=(30, 60), full=(100, 300))},
    reference=centred_in_numpy,
    cost=lambda *, n: Cost(flops=n * 2 * CHAINED, bytes=2 * CHAINED * FLOAT_BYTES),
    modes=("jit",),
    compiles=1,
    limit=reductions_within_budget,
    measures="compilation",
    published=(square("reductions:jit"),),
    level="full",
)
def reductions(x, *, n):
    """Unrolled x - mean(x), n times, (1000,) -> (1000,): each needs the whole previous array, so XLA fuses none.

    Source: Sapunov, JAX in Action, 2022, chapter 5, which does not name the operations.
    """
    for _ in range(n):
        x = x - jnp.mean(x)
    return x


@reductions.implementation(name="loop")
def reductions_in_a_loop(x, *, n):
    """`lax.fori_loop` over the same step."""
    return jax.lax.fori_loop(0, n, lambda _, value: value - jnp.mean(value), x)
