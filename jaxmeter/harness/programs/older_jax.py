"""What releases of jax from 0.4.31 on name differently, or lack. Code that runs in another environment asks here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax

SUITES_ARE_FOR = (0, 9)
"""The oldest release that our own suites are written for. An older one may lack what they, or flax, call."""

_FROM = re.compile(r"cannot import name '([^']+)' from '([^']+)'")
_OPTION = re.compile(r"\b(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def describe_missing_name(error: BaseException) -> str:
    """Say which name an older release lacks: `jax 0.4.31 has no jax.typeof`; empty for any other error."""
    if jax.__version_info__ >= SUITES_ARE_FOR:
        return ""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        missing = f"{error.obj.__name__}.{error.name}"
    elif isinstance(error, ImportError) and (found := _FROM.search(str(error))) is not None:
        missing = f"{found[2]}.{found[1]}"
    elif isinstance(error, ModuleNotFoundError):
        missing = str(error.name)
    elif isinstance(error, TypeError) and (found := _OPTION.search(str(error))) is not None:
        missing = f"option {found[2]} of {found[1]}()"
    else:
        return ""
    return f"jax {jax.__version__}, or a package installed with it, has no {missing}"


def make_devices_of_cpu(count: int) -> None:
    """Divide the processor among so many devices, before jax begins; a setting of jax from 0.4.38 on."""
    if hasattr(jax.config, "jax_num_cpu_devices"):
        jax.config.update("jax_num_cpu_devices", count)
    else:
        flag = f"--xla_force_host_platform_device_count={count}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()


def is_committed(array: jax.Array) -> bool:
    """Return whether an array is bound to its devices; public from jax 0.4.36 on."""
    committed: bool = array.committed if hasattr(array, "committed") else array._committed
    return committed


def stop_listening(*, duration: Callable[..., Any] | None = None, event: Callable[..., Any] | None = None) -> None:
    """Remove listeners of `jax.monitoring`; public from jax 0.9 on."""
    if duration is not None:
        _find_remover("event_duration_listener")(duration)
    if event is not None:
        _find_remover("event_listener")(event)


def _find_remover(kind: str) -> Callable[[Callable[..., Any]], object]:
    public = getattr(jax.monitoring, f"unregister_{kind}", None)
    if public is not None:
        return public  # type: ignore[no-any-return]
    from jax._src import monitoring

    return getattr(monitoring, f"_unregister_{kind}_by_callback")  # type: ignore[no-any-return]
