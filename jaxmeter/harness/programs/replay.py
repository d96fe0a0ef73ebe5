"""A program as a file that a later run can compile and interleave with its own, by `jax.export`.

The program is written for flat arrays, so that users' own tree types need not be registered. A replay takes the trees
of today's function and is jitted like it, so that the overhead of a call is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
from jax import export

from jaxmeter.harness.machine.environment import describe_error
from jaxmeter.harness.programs.arguments import RefusedError, split

ALLOWED_TARGETS = frozenset(
    {
        *(
            f"lapack_{letter}{routine}_ffi"
            for letters, routines in (
                ("sdcz", ("potrf", "geqrf", "geev", "gesdd", "getrf", "gehrd", "gees", "trsm", "gtsv")),
                ("sd", ("orgqr", "syevd", "sytrd")),
                ("cz", ("ungqr", "heevd", "hetrd")),
            )
            for letter in letters
            for routine in routines
        ),
        *(f"cusolver_{routine}_ffi" for routine in ("getrf", "geqrf", "orgqr", "potrf", "syevd", "gesvd", "gesvdj")),
        *("cusolver_sytrd_ffi", "cusparse_gtsv2_ffi", "cu_lu_pivots_to_permutation", "cu_threefry2x32_ffi"),
        *("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"),
        *("Eigh", "Qr", "ProductOfElementaryHouseholderReflectors", "LuDecomposition", "ApproxTopK"),
        *("AllocateBuffer", "shape_assertion"),
        *("stablehlo.dynamic_approx_top_k", "stablehlo.dynamic_reduce_window"),
        *("stablehlo.dynamic_rng_bit_generator", "stablehlo.dynamic_top_k"),
    }
)
"""Custom calls that a replay may make: those that jax.export promises to keep, but for TensorFlow's, AMD's and kernels
that hold code of their own (Pallas). The target of a Python callback holds a pointer into a process that is gone: to
compile it would be to call any address.
Source: JAX's documentation, "Exporting and serializing", compatibility guarantees for custom calls."""

LOCATIONS = "jax_traceback_in_locations_limit"
"""JAX's name of the option that limits how many Python frames a program names."""

CUSTOM_CALL = "stablehlo.custom_call"
TARGET = "call_target_name"


class ReplayError(RefusedError):
    """A program that an earlier run has kept cannot be interleaved with today's; the message says why."""


def write_program(jitted: Any, args: Sequence[Any]) -> bytes:
    """Return the jitted function's program for arguments of these types, as bytes.

    Raises:
      Any error of JAX: for effects, callbacks, and types that it cannot write.
    """
    leaves, tree = jax.tree.flatten(tuple(args))
    function = jitted.__wrapped__

    def flat(*flat_args: Any) -> list[Any]:
        return jax.tree.leaves(function(*jax.tree.unflatten(tree, flat_args)))

    with _without_locations():
        return bytes(export.export(jax.jit(flat))(*leaves).serialize())


@contextmanager
def _without_locations() -> Iterator[None]:
    """Programs name no file or line meanwhile: paths are somebody's own, and a kept program may be sent on."""
    before = jax.config.values[LOCATIONS]
    jax.config.update(LOCATIONS, 0)
    try:
        yield
    finally:
        jax.config.update(LOCATIONS, before)


def read_program(data: bytes) -> export.Exported:
    """A program that was written before. Nothing of it is compiled.

    Raises:
      ReplayError: It is damaged, or of another age of jax.
    """
    try:
        program = export.deserialize(bytearray(data))
        version = int(program.calling_convention_version)
    except Exception as error:
        raise ReplayError(f"the kept program cannot be read: {describe_error(error)}") from error
    oldest, newest = (
        export.minimum_supported_calling_convention_version,
        export.maximum_supported_calling_convention_version,
    )
    if version < oldest:
        raise ReplayError(
            f"the kept program has expired: it is of calling convention {version}, this jax runs {oldest} to {newest}; "
            "measure a new baseline run"
        )
    if version > newest:
        raise ReplayError(f"the kept program was written by a newer jax, of calling convention {version}")
    return program


def make_replay(program: export.Exported, function: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """The program as a function that takes and gives what today's function does.

    Raises:
      ReplayError: Its arguments or results are of other types, it was made for another kind or number of devices, or
        it calls what is not allowed.
    """
    arguments = split(tuple(args))
    leaves = jax.tree.leaves(arguments.traced)
    expected, result_tree = jax.tree.flatten(jax.eval_shape(arguments.close_over(function), *arguments.traced[0]))
    _compare_types("arguments", program.in_avals, jax.eval_shape(lambda *same: same, *leaves))
    _compare_types("results", program.out_avals, expected)
    devices = max((len(leaf.sharding.device_set) for leaf in leaves if isinstance(leaf, jax.Array)), default=1)
    if program.nr_devices != devices:
        raise ReplayError(f"the kept program is for {program.nr_devices} devices, and today's runs on {devices}")
    platform = jax.default_backend()
    of_platform = {"gpu": ("cuda", "rocm")}.get(platform, (platform,))
    if not set(of_platform) & set(program.platforms):
        raise ReplayError(f"the kept program is for {', '.join(program.platforms)}, and this is {platform}")

    def replay(*today: Any) -> Any:
        return jax.tree.unflatten(result_tree, program.call(*jax.tree.leaves(split(today).traced)))

    try:
        lowered = jax.jit(arguments.close_over(replay)).lower(*arguments.traced[0])
    except Exception as error:
        raise ReplayError(f"the kept program cannot be lowered: {describe_error(error)}") from error
    module: Any = lowered.compiler_ir("stablehlo")
    refused = sorted(set(list_targets(module.operation)) - ALLOWED_TARGETS)
    if refused:
        raise ReplayError(f"the kept program makes the custom call {refused[0]!r}, which is not on the list of allowed")
    return replay


def list_targets(operation: Any) -> Iterator[str]:
    """Targets of all custom calls inside an MLIR operation."""
    for region in operation.regions:
        for block in region:
            for inner in block:
                if inner.operation.name == CUSTOM_CALL:
                    yield _read_text(inner.operation.attributes[TARGET])
                yield from list_targets(inner.operation)


def _read_text(attribute: Any) -> str:
    """A string attribute's value; of bytes that are no text their form as MLIR writes it."""
    try:
        return str(attribute.value)
    except UnicodeDecodeError:
        return str(attribute)


def _compare_types(what: str, kept: Sequence[Any], today: Sequence[Any]) -> None:
    """Raises ReplayError where shapes or dtypes are not the same, in order."""
    sides = [[(tuple(leaf.shape), str(leaf.dtype)) for leaf in side] for side in (kept, today)]
    if sides[0] == sides[1]:
        return
    if len(sides[0]) != len(sides[1]):
        raise ReplayError(f"the kept program has {len(sides[0])} {what}, today's {len(sides[1])}")
    index = next(index for index, (old, new) in enumerate(zip(*sides, strict=True)) if old != new)
    was, now_is = (f"{dtype}{list(shape)}" for shape, dtype in (sides[0][index], sides[1][index]))
    raise ReplayError(f"{what} of the kept program are of other types: number {index} was {was}, today it is {now_is}")
