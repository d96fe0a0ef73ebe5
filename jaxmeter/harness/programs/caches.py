"""Compilation caches of a measuring process: the run's private one, and none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from jaxmeter.harness.machine import jax_internals as internals


def use_cache(folder: str, *, default_thresholds: bool = False) -> None:
    """Has this process keep what it compiles in a folder, and take from it what is there.

    Args:
      default_thresholds: Whether only what JAX keeps by itself, else all.
    """
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", folder)
    if default_thresholds:
        return
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@contextmanager
def without_cache() -> Iterator[None]:
    """Compiles without any persistent cache meanwhile; that of the process, a user's own, is back afterwards."""
    enabled = bool(jax.config.values["jax_enable_compilation_cache"])
    _enable_cache(False)
    try:
        yield
    finally:
        _enable_cache(enabled)


def stop_using_cache() -> None:
    """Have this process compile without the persistent cache from here on."""
    if jax.config.values["jax_enable_compilation_cache"]:
        _enable_cache(False)


def _enable_cache(enabled: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", enabled)
    internals.RESET_CACHE.load()()  # it decides only once whether there is one


def forget_compiled(*, persistent: bool) -> None:
    """Forgets what making the inputs compiled.

    One trivial program is compiled, so that the compiler's own start does not count for the first variant.

    Args:
      persistent: Whether to compile without the persistent cache from here on.
    """
    if persistent:
        stop_using_cache()
    jax.clear_caches()
    jax.jit(lambda: jax.numpy.zeros(()))().block_until_ready()
