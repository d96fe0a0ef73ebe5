"""Transformer: training a decoder; scanned layers, remat, formats, donation, micro-batches, attention."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jaxmeter import Answer, Cost, Items, Skip, State, itemsize, levels, workload
from jaxmeter.suites import transformer_in_numpy as reference
from jaxmeter.suites.transformer_networks import (
    RATE,
    WEIGHT_DECAY,
    Block,
    Decoder,
    Size,
    apply_block,
    block_flops,
    drawn,
    gradient,
    initial_state,
    of_state,
    split,
    stack,
    step_cost,
    train_step,
    unstack,
    update,
)

SIZES = {
    128: Size(width=128, depth=2, heads=4, vocabulary=512, length=64, batch=4),
    256: Size(width=256, depth=4, heads=8, vocabulary=2_048, length=256, batch=4),
    1_024: Size(width=1_024, depth=4, heads=16, vocabulary=16_384, length=1_024, batch=4),
}
"""Sizes by width: a step of tens of milliseconds on two cores, a step of a second, and a step that fills a GPU."""

WIDTHS = levels(quick=128, full=256, by_device={"gpu": 1_024, "tpu": 1_024})
OF_DEVICES = levels(quick=128, by_device={"gpu": 1_024, "tpu": 1_024})

MICRO_BATCHES = 4

IN_BFLOAT16 = 0.1
"""Error allowed if computation is in bfloat16 and storage in float32. Measured at width 128: 1.5e-2 of the largest
change."""

BLOCKS = {
    128: Size(width=128, depth=1, heads=4, vocabulary=0, length=512, batch=1),
    1_024: Size(width=1_024, depth=1, heads=16, vocabulary=0, length=4_096, batch=1, dtype="bfloat16"),
}
"""Sizes of a block by width, with sequences so long that attention takes a large share of the time."""

WINDOW = 64
"""Number of earlier positions that each position sees in a local window; at most an eighth of a sequence."""


# Inputs


def training(key, size, **options):
    """Return the graph of a decoder, its state with separate layers, and tokens (batch, length + 1)."""
    of_params, of_tokens = jax.random.split(key)
    graph, shapes = split(partial(Decoder, size, **options))
    tokens = jax.random.randint(of_tokens, (size.batch, size.length + 1), 0, size.vocabulary)
    return graph, initial_state(drawn(of_params, shapes)), tokens


def one_step(key, *, width, dtype):
    """Return graph, state and tokens of a step in a format."""
    return training(key, SIZES[width], dtype=dtype)


def both_formats(key, *, width):
    """Return graphs that compute in float32 and in bfloat16, and state and tokens of a step."""
    graph, state, tokens = training(key, SIZES[width])
    in_bfloat16, _ = split(partial(Decoder, SIZES[width], dtype="bfloat16"))
    return {"float32": graph, "bfloat16": in_bfloat16}, state, tokens


def deep(width, depth):
    """Return a size with another number of layers."""
    return replace(SIZES[width], depth=depth)


def both_layouts(key, *, width, depth):
    """Return graphs and states with separate layers (Python loop) and with stacked layers (`lax.scan`), and tokens."""
    graph, state, tokens = training(key, deep(width, depth))
    in_a_loop, _ = split(partial(Decoder, deep(width, depth), scanned=True))
    return {"unrolled": graph, "scan": in_a_loop}, {"unrolled": state, "scan": of_state(stack, state)}, tokens


def stacked_layers(key, *, width, depth):
    """Return the graph and state for `lax.scan`, and tokens."""
    graphs, states, tokens = both_layouts(key, width=width, depth=depth)
    return graphs["scan"], states["scan"], tokens


def block_and_slope(key, *, width):
    """Return a block's graph and parameters, its input and the gradient at its output, both (batch, length, width)."""
    size = BLOCKS[width]
    of_params, *others = jax.random.split(key, 3)
    graph, shapes = split(partial(Block, size, dtype=jnp.dtype(size.dtype), param_dtype=jnp.dtype(size.dtype)))
    x, slope = (jax.random.normal(subkey, (size.batch, size.length, size.width), size.dtype) for subkey in others)
    return graph, drawn(of_params, shapes), x, slope


# Reference


def changes(after, before):
    """Return the change of each parameter; in the state itself, the tolerance would hide most of the change."""
    return jax.tree.map(np.subtract, after[0], before[0])


def step_in_numpy(graph, state, tokens, *, width):
    """Compute a step of AdamW on the mean loss: (state, loss), and the change of each parameter."""
    after, loss = reference.train_step(state, tokens, heads=SIZES[width].heads, rate=RATE, decay=WEIGHT_DECAY)
    return (after, loss), changes(after, state)


def step_and_changes(result, *, inputs):
    """Return the values of a result (state, loss) that match the reference `step_in_numpy`.

    Changes are compared in bfloat16, whose tolerance suits them: 3e-2 of the largest change. Parameters are up to ten
    thousand times as large as their changes, and float32 rounds parameters. Measured errors: 5e-4 of the largest
    change, and 1e-2 without weight decay.
    """
    _, before, _ = inputs
    return result, jax.tree.map(lambda change: change.astype(jnp.bfloat16), changes(result[0], before))


def scanned_step_in_numpy(graph, state, tokens, *, width):
    """Compute the step of a state with stacked layers."""
    (after, loss), changed = step_in_numpy(graph, of_state(unstack, state), tokens, width=width)
    return (of_state(stack, after), loss), stack(changed)


def step_of_either(graphs, states, tokens, *, width):
    """Compute the step for both layouts; the result has stacked layers."""
    return scanned_step_in_numpy(graphs, states["scan"], tokens, width=width)


def compared_of_either(result, *, inputs):
    """Return the values that match the reference `step_of_either`; separate layers are stacked first."""
    (after, loss), (graphs, states, tokens) = result, inputs
    after = of_state(stack, after) if 0 in after[0]["blocks"] else after
    return step_and_changes((after, loss), inputs=(graphs, states["scan"], tokens))


def seen_by(mask, length):
    """Return which positions each position sees, (length, length)."""
    if mask == "none":
        return np.ones((length, length), bool)
    causal = reference.causal(length)
    return causal if mask == "causal" else causal & ~np.tri(length, k=-WINDOW - 1, dtype=bool)


def block_in_numpy(graph, params, x, slope, *, width, mask):
    """Return the output of a block, and the gradients by its input and its parameters."""
    passed = reference.block(params, x, heads=BLOCKS[width].heads, seen=seen_by(mask, x.shape[1]))
    return passed.output, *passed.backward(slope)


# Cost


def block_cost(*, width, mask):
    """Count forward products, and twice as many backward products.

    Bytes: parameters, input and the gradient at the output are read; the output and both gradients are written.
    """
    size = BLOCKS[width]
    numbers = 2 * size.params_in_block + 4 * size.tokens * size.width
    return Cost(
        flops=3 * block_flops(size, size.tokens, int(seen_by(mask, size.length).sum())),
        bytes=numbers * itemsize(size.dtype),
    )


# Workloads


@workload(
    inputs=one_step,
    params={"width": WIDTHS, "dtype": levels(quick="float32", by_device={"gpu": "bfloat16", "tpu": "bfloat16"})},
    reference=step_in_numpy,
    compare=step_and_changes,
    cost=lambda *, width: step_cost(SIZES[width]),
    items=Items("tokens", lambda *, width: SIZES[width].tokens),
    modes=("jit",),
    implementation="step",
    compiles=1,
    state=State(carry={"state": 0}, donate=("state",)),
    queued=16,
    answer=Answer(
        "How near the peak is training?",
        "step:jit",
        metric="flops_share",
        rank=1,
    ),
)
def transformer_step(graph, state, tokens):
    """Training step of a decoder, (graph, state, tokens (b, l + 1)) -> (state, loss); the float32 state is donated.

    Source: Touvron et al., LLaMA, 2023, section 2, at a small size: RMSNorm, rotary positions, gated MLP, AdamW.
    """
    return train_step(graph, state, tokens)


@workload(
    inputs=both_layouts,
    params={"depth": levels(default=4, full=(8, 12, 24)), "width": OF_DEVICES},
    reference=step_of_either,
    compare=compared_of_either,
    cost=lambda *, depth, width: step_cost(deep(width, depth)),
    items=Items("tokens", lambda *, width: SIZES[width].tokens),
    modes=("jit",),
    implementation="scan",
    baseline="unrolled:jit",
    compiles=1,
    measures="compilation",
    level="default",
)
def transformer_depth(graphs, states, tokens):
    """Training step by depth, (graphs, states, tokens (b, l + 1)) -> (state, loss), `lax.scan` over stacked layers.

    Source: as `transformer_step`; JAX's documentation of `jax.lax.scan`, which compiles the body of a loop once.
    """
    return train_step(graphs["scan"], states["scan"], tokens)


@transformer_depth.implementation
def unrolled(graphs, states, tokens):
    """Layers in a Python loop, each with its own parameters: the program contains every layer."""
    return train_step(graphs["unrolled"], states["unrolled"], tokens)


@workload(
    inputs=stacked_layers,
    params={"width": OF_DEVICES, "depth": 4},
    reference=scanned_step_in_numpy,
    compare=step_and_changes,
    cost=lambda *, width, depth: step_cost(deep(width, depth)),
    items=Items("tokens", lambda *, width: SIZES[width].tokens),
    modes=("jit",),
    implementation="no_remat",
    compiles=1,
    level="full",
)
def transformer_remat(graph, state, tokens):
    """Step with scanned layers, all intermediates saved, (graph, state, tokens (b, l + 1)) -> (state, loss).

    Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016; JAX's `jax.checkpoint_policies`.
    """
    return train_step(graph, state, tokens)


def recomputing(policy, graph, state, tokens):
    """Run the step with blocks that recompute what a policy does not save."""
    # A scan's backward pass is a separate loop. The compiler cannot merge both loops, so `prevent_cse` is not needed.
    return train_step(graph, state, tokens, nnx.remat(apply_block, policy=policy, prevent_cse=False))


@transformer_remat.implementation
def dots_saveable(graph, state, tokens):
    """`nnx.remat` around each block that saves matrix products, including attention scores."""
    return recomputing(jax.checkpoint_policies.dots_saveable, graph, state, tokens)


@transformer_remat.implementation
def dots_with_no_batch_dims_saveable(graph, state, tokens):
    """`nnx.remat` that saves products with a parameter, but not attention products, which have a batch dimension."""
    return recomputing(jax.checkpoint_policies.dots_with_no_batch_dims_saveable, graph, state, tokens)


@transformer_remat.implementation
def nothing_saveable(graph, state, tokens):
    """`nnx.remat` that saves only the input of each block: the forward pass runs twice."""
    return recomputing(jax.checkpoint_policies.nothing_saveable, graph, state, tokens)


@workload(
    inputs=both_formats,
    params={"width": WIDTHS},
    reference=step_in_numpy,
    compare=step_and_changes,
    cost=lambda *, width: step_cost(SIZES[width]),
    items=Items("tokens", lambda *, width: SIZES[width].tokens),
    modes=("jit",),
    implementation="float32",
    compiles=1,
    state=State(carry={"state": 0}),
    level="default",
)
def transformer_formats(graphs, state, tokens):
    """Training step that computes in float32, (graphs, state, tokens (b, l + 1)) -> (state, loss).

    Source: as `transformer_step`; Micikevicius et al., Mixed Precision Training, 2018, section 3.1.
    """
    return train_step(graphs["float32"], state, tokens)


@transformer_formats.implementation(tolerance=IN_BFLOAT16)
def bfloat16(graphs, state, tokens):
    """Training step that computes in bfloat16; parameters, moments and the loss of the logits stay float32."""
    return train_step(graphs["bfloat16"], state, tokens)


@workload(
    inputs=partial(one_step, dtype="float32"),
    params={"width": WIDTHS},
    reference=step_in_numpy,
    compare=step_and_changes,
    cost=lambda *, width: step_cost(SIZES[width]),
    items=Items("tokens", lambda *, width: SIZES[width].tokens),
    modes=("jit",),
    implementation="at_once",
    compiles=1,
    state=State(carry={"state": 0}),
    level="full",
)
def transformer_accumulation(graph, state, tokens):
    """Training step on a whole batch, (graph, state, tokens (b, l + 1)) -> (state, loss).

    Source: as `transformer_step`; gradient accumulation follows Huang et al., GPipe, 2019, section 2.2.
    """
    return train_step(graph, state, tokens)


@transformer_accumulation.implementation
def accumulated(graph, state, tokens):
    """Training step on the mean gradient of four micro-batches, which `lax.scan` computes in sequence."""

    def add(total, part):
        return jax.tree.map(jnp.add, total, gradient(graph, state[0], part)), None

    nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, state[0])
    parts = tokens.reshape(MICRO_BATCHES, -1, tokens.shape[1])
    loss, slopes = jax.tree.map(lambda total: total / MICRO_BATCHES, jax.lax.scan(add, nothing, parts)[0])
    return update(state, slopes), loss


@workload(
    inputs=partial(one_step, dtype="float32"),
    params={"width": OF_DEVICES},
    reference=step_in_numpy,
    compare=step_and_changes,
    cost=lambda *, width: step_cost(SIZES[width]),
    items=Items("tokens", lambda *, width: SIZES[width].tokens),
    modes=("jit",),
    implementation="plain",
    compiles=1,
    state=State(carry={"state": 0}),
    level="full",
)
def transformer_jit_options(graph, state, tokens):
    """Training step compiled by `jax.jit` without options, (graph, state, tokens (b, l + 1)) -> (state, loss).

    Source: as `transformer_step`; JAX's documentation of `jax.jit`: `donate_argnames`, `compiler_options`.
    """
    return train_step(graph, state, tokens)


def needs_llvm(backend):
    """Return a Skip on TPUs, because XLA uses LLVM only for processors and GPUs."""
    return Skip("XLA does not compile with LLVM for a TPU") if backend == "tpu" else None


@transformer_jit_options.implementation(donate=("state",))
def donated(graph, state, tokens):
    """Training step with donated state: parameters and moments are updated in place."""
    return train_step(graph, state, tokens)


@transformer_jit_options.implementation(limit=needs_llvm, compiler_options={"xla_backend_optimization_level": 0})
def unoptimized(graph, state, tokens):
    """Training step without LLVM's optimizations: a shorter compilation, and slower steps."""
    return train_step(graph, state, tokens)


def needs_cudnn(backend, width):
    """Return a Skip where cuDNN's kernel cannot run: it needs an NVIDIA GPU and 16-bit numbers."""
    if backend != "gpu":
        return Skip("cuDNN runs on NVIDIA GPUs only")
    return None if BLOCKS[width].dtype == "bfloat16" else Skip("cuDNN's attention takes float16 and bfloat16 only")


def block_gradient(attend, graph, params, x, slope):
    """Return the output of a block, and the gradients by its input and its parameters."""
    output, pull_back = jax.vjp(lambda x, params: nnx.merge(graph, params)(x, attend)[0], x, params)
    return output, *pull_back(slope)


def attention_by(implementation, mask):
    """Return `jax.nn.dot_product_attention` with the mask as an option."""

    def attend(query, key, value):
        return jax.nn.dot_product_attention(
            query,
            key,
            value,
            is_causal=mask != "none",
            local_window_size=(WINDOW, 0) if mask == "local_window" else None,
            implementation=implementation,
        ), None

    return attend


@workload(
    inputs=block_and_slope,
    params={
        "mask": levels(default="causal", full=("local_window", "none"), by_device={"gpu": ("local_window", "none")}),
        "width": OF_DEVICES,
    },
    reference=block_in_numpy,
    cost=block_cost,
    items=Items("tokens", lambda *, width: BLOCKS[width].tokens),
    modes=("jit",),
    implementation="xla",
    compiles=1,
    level="default",
)
def transformer_attention(graph, params, x, slope, *, mask):
    """Block and gradient by XLA, (graph, params, (1, l, width) twice) -> output, gradients by input and params.

    Source: as `transformer_step`; local windows follow Child et al., Sparse Transformers, 2019, section 4.
    """
    return block_gradient(attention_by("xla", mask), graph, params, x, slope)


@transformer_attention.implementation
def mask_array(graph, params, x, slope, *, mask):
    """Attention with the mask as a boolean array, (l, l), from which no implementation can skip whole blocks."""

    def attend(query, key, value):
        seen = jnp.asarray(seen_by(mask, query.shape[1]))
        return jax.nn.dot_product_attention(query, key, value, mask=seen[None, None], implementation="xla"), None

    return block_gradient(attend, graph, params, x, slope)


@transformer_attention.implementation(limit=needs_cudnn)
def cudnn(graph, params, x, slope, *, mask):
    """`jax.nn.dot_product_attention` by cuDNN's fused kernels, which store no scores and skip masked blocks."""
    return block_gradient(attention_by("cudnn", mask), graph, params, x, slope)
