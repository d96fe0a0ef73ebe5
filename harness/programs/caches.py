"""Compilation caches of a measuring process: the run's private one, and none."""

from __future__ import annotations

import jax
from jax.experimental.compilation_cache import compilation_cache


def use_cache(folder: str) -> None:
    """Has this process keep all that it compiles in a folder, and take from it what is there."""
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def forget_compiled(*, persistent: bool) -> None:
    """Forgets what making the inputs compiled.

    One trivial program is compiled, so that the compiler's own start does not count for the first variant.

    Args:
      persistent: Whether to compile without the persistent cache from here on.
    """
    if persistent:
        jax.config.update("jax_enable_compilation_cache", False)
        compilation_cache.reset_cache()
    jax.clear_caches()
    jax.jit(lambda: jax.numpy.zeros(()))().block_until_ready()
