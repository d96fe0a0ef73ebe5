"""What releases of jax from 0.4.31 on name differently. Code that runs in another release's environment asks here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.jax_internals import find_jax_release

REFERENCES: tuple[type, ...] = (jax.Ref,) if hasattr(jax, "Ref") else ()
"""Types of mutable arrays, which older releases lack."""

RuntimeFailure: type[Exception] = getattr(jax.errors, "JaxRuntimeError", RuntimeError)
"""What XLA raises. In older releases its type, a RuntimeError, has no public name."""


COPIES = (0, 6)
"""The oldest release whose `jax.device_put(…, may_alias=False)` copies an array that is where it should be."""


def find_type(x: Any) -> Any:
    """Return the type of an array as a program sees it."""
    find = jax.typeof if hasattr(jax, "typeof") else jax.core.get_aval  # type: ignore[attr-defined]  # of an older one
    return find(x)


def copy_array(array: jax.Array | numpy.ndarray[Any, Any]) -> jax.Array:
    """Return a copy in a buffer of JAX's own, on the same devices; of NumPy's array, on the first device."""
    if isinstance(array, numpy.ndarray):  # releases before 0.11 may share its buffer in spite of `may_alias`
        array = jax.numpy.asarray(array)
    is_old = find_jax_release() < COPIES
    copied: jax.Array = jax.numpy.copy(array) if is_old else jax.device_put(array, may_alias=False)
    copied.block_until_ready()
    return copied


def jit(function: Callable[..., Any], compiler_options: Mapping[str, Any], **options: Any) -> Any:
    """Return a jitted function; with XLA's options of its own where there are some, which older releases refuse."""
    if compiler_options:
        options["compiler_options"] = dict(compiler_options)
    return jax.jit(function, **options)


def make_devices_of_cpu(count: int) -> None:
    """Divide the processor among so many devices, before jax begins."""
    if hasattr(jax.config, "jax_num_cpu_devices"):
        jax.config.update("jax_num_cpu_devices", count)
    else:
        flag = f"--xla_force_host_platform_device_count={count}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()


def is_committed(array: jax.Array) -> bool:
    """Return whether an array is bound to its devices."""
    name = "committed" if hasattr(array, "committed") else "_committed"
    return bool(getattr(array, name))


def stop_listening(*, duration: Callable[..., Any] | None = None, event: Callable[..., Any] | None = None) -> None:
    """Remove listeners of `jax.monitoring`."""
    if duration is not None:
        internals.FORGET_DURATION.load()(duration)
    if event is not None:
        internals.FORGET_EVENT.load()(event)
