"""XLA's words about a compiler option that it does not take, as a reason that names it and says what to do."""

from __future__ import annotations

import re

import jax

from jaxmeter.harness.programs.older_jax import RuntimeFailure

_REFUSED = re.compile(r"No such compile option: '(?P<unknown>[^']*)'|While setting option (?P<name>\S+), (?P<why>.*)")


def describe_refused_option(error: Exception) -> str | None:
    """Return which compiler option the backend refuses, and what to do; None of any other error."""
    found = _REFUSED.search(str(error)) if isinstance(error, RuntimeFailure) else None
    if found is None:
        return None
    if (unknown := found["unknown"]) is not None:
        problem = f"no compiler option '{unknown}' on backend '{jax.default_backend()}' with jax {jax.__version__}"
        return f"{problem}; correct its name, or declare limit= where it is unknown"
    return f"compiler option '{found['name']}': {found['why']} Correct its value in compiler_options="
