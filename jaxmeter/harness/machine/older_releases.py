"""What an older release of jax, or of a package that fits it, lacks, by the error of code that is newer. No jax."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.metadata import version
from types import ModuleType

from jaxmeter.harness.machine.jax_internals import read_release

SUITES_ARE_FOR = (0, 9)
"""The oldest release that our own suites are written for. An older one may lack what they, or flax, call."""

BUDGETS_ARE_FOR = (0, 10)
"""The oldest release that declared numbers of compilations hold for. jax 0.4.38 and 0.5.0, for example, compile a
program again when the first call follows `lower().compile()`: a fact about the release, and no fault of the program."""

_FROM = re.compile(r"cannot import name '([^']+)' from '([^']+)'")
_OPTION = re.compile(r"\b(\w+)\(\) got an unexpected keyword argument '(\w+)'")


def find_jax_release() -> tuple[int, ...]:
    """Return the release of jax that is installed: (0, 4, 31)."""
    return read_release(_find_version("jax"))[:3]


_find_version = lru_cache(version)
"""Reading a package's metadata takes 1 ms, and a run asks thousands of times."""


def describe_missing_name(error: BaseException) -> str:
    """Say what is missing: `jax 0.4.31, or a package installed with it, has no jax.typeof`; empty for other errors."""
    if find_jax_release() >= SUITES_ARE_FOR:
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
    return f"jax {_find_version('jax')}, or a package installed with it, has no {missing}"
