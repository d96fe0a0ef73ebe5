"""Where does PyTorch get ahead of XLA on a processor? The parts of a CNN's step and of attention, one by one.

    python -m benchmarks.torch_parts [ROUNDS]    needs PyTorch: the extra 'torch'

The two take turns in this process, on the same numbers: the convolutions of `cnn_step` at 128 images with channels
last, forward and by their gradients, its largest dense product, and causal attention over 1024 positions as in
`attention`, whole and in parts. The figures are medians over the rounds, and the median of the rounds' ratios.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.here import describe_here
from jaxmeter.suites.attention import HEAD, HEADS
from jaxmeter.suites.models import CNN_CHANNELS, CNN_HIDDEN, CNN_IMAGE

ROUNDS = 15
BATCH = 128
LENGTH = 1024
WARM_UP_CALLS = 3

Call = Callable[[], Any]
Part = tuple[str, Call, Call]


def main() -> None:
    """Prints both times and their ratio, part by part."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(f"{rounds} rounds; {describe_here('jax', 'numpy', 'torch')}")
    for name, of_jax, of_torch in (*list_convolutions(), *list_products(), *list_attention()):
        for call in (of_jax, of_torch):
            for _ in range(WARM_UP_CALLS):
                call()
        pairs = [(time_call(of_jax), time_call(of_torch)) for _ in range(rounds)]
        jax_s, torch_s = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"{name}: JAX {1e3 * jax_s:.2f} ms, PyTorch {1e3 * torch_s:.2f} ms; {ratio:.2f}", flush=True)


def time_call(call: Call) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def jitted(function: Callable[..., Any], *arguments: Any) -> Call:
    """A call of its program that waits."""
    program = jax.jit(function)
    placed = tuple(map(jnp.asarray, arguments))
    return lambda: jax.block_until_ready(program(*placed))


def list_convolutions() -> Iterator[Part]:
    """Both convolutions: forward, and their gradients by kernel and by images."""
    import torch

    def convolve(images: Any, kernel: Any) -> Any:
        form = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=form)

    draw = np.random.default_rng(0).standard_normal
    inputs, side = CNN_IMAGE[2], CNN_IMAGE[0]
    for outputs in CNN_CHANNELS:
        x, slope = (draw((BATCH, side, side, channels), np.float32) for channels in (inputs, outputs))
        kernel = draw((3, 3, inputs, outputs), np.float32)
        x_there, slope_there = (torch.from_numpy(array).permute(0, 3, 1, 2) for array in (x, slope))
        kernel_there = torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy())
        kernel_there = kernel_there.contiguous(memory_format=torch.channels_last)
        name = f"convolution {inputs} to {outputs} channels"
        yield (
            name,
            jitted(convolve, x, kernel),
            lambda x=x_there, k=kernel_there: torch.nn.functional.conv2d(x, k, padding=1),
        )
        yield (
            f"{name}, gradient by kernel",
            jitted(lambda x, k, g: jax.vjp(lambda k: convolve(x, k), k)[1](g), x, kernel, slope),
            lambda x=x_there, k=kernel_there, g=slope_there: torch.nn.grad.conv2d_weight(x, k.shape, g, padding=1),
        )
        yield (
            f"{name}, gradient by images",
            jitted(lambda x, k, g: jax.vjp(lambda x: convolve(x, k), x)[1](g), x, kernel, slope),
            lambda x=x_there, k=kernel_there, g=slope_there: torch.nn.grad.conv2d_input(x.shape, k, g, padding=1),
        )
        inputs, side = outputs, side // 2


def list_products() -> Iterator[Part]:
    """The hidden layer's product."""
    import torch

    draw = np.random.default_rng(0).standard_normal
    inputs = CNN_CHANNELS[1] * (CNN_IMAGE[0] // 4) ** 2
    x, kernel = draw((BATCH, inputs), np.float32), draw((inputs, CNN_HIDDEN), np.float32)
    x_there, kernel_there = torch.from_numpy(x), torch.from_numpy(kernel)
    yield f"dense {inputs} to {CNN_HIDDEN}", jitted(jnp.matmul, x, kernel), lambda: x_there @ kernel_there


def list_attention() -> Iterator[Part]:
    """The whole, and its products and softmax by themselves, (heads, length, d) or (heads, length, length)."""
    import torch

    draw = np.random.default_rng(0).standard_normal
    query, key, value = (draw((HEADS, LENGTH, HEAD), np.float32) for _ in range(3))
    scores = draw((HEADS, LENGTH, LENGTH), np.float32)
    q, k, v, s = (torch.from_numpy(array) for array in (query, key, value, scores))

    by_position = [array.swapaxes(0, 1)[None] for array in (query, key, value)]
    yield (
        "attention",
        jitted(lambda *of_heads: jax.nn.dot_product_attention(*of_heads, is_causal=True), *by_position),
        lambda: torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True),
    )
    yield "attention, scores", jitted(lambda q, k: q @ k.swapaxes(1, 2), query, key), lambda: q @ k.transpose(1, 2)
    yield "attention, softmax", jitted(jax.nn.softmax, scores), lambda: torch.softmax(s, -1)
    yield "attention, weights times values", jitted(jnp.matmul, scores, value), lambda: s @ v


if __name__ == "__main__":
    main()
