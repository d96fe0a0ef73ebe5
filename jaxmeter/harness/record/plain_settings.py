"""Which recorded variables and settings may be set again: numbers, switches and words, and nothing that names a file.

A record may come from somebody else, and some flags of compilers name files that are loaded or run as code.
"""

from __future__ import annotations

import re

DUMPS = re.compile(r"--xla\w*_dump_\w+(=\S*)?\s*")
"""Flags that say what XLA writes down, and where: they steer no program."""

DUMP_VARIABLES = frozenset({"JAX_DUMP_IR_TO", "JAX_DUMP_IR_MODES"})

_FLAG = re.compile(r"--(?P<name>[A-Za-z][A-Za-z0-9_]*)(=(?P<value>.*))?")
_PLAIN = re.compile(r"(?!.*\.[A-Za-z])[A-Za-z0-9_.,:+= -]*")
"""No slash, home or variable of a shell, and no name with an ending: what is left can name no file elsewhere."""

_NAMES_A_FILE = re.compile(
    r"(^|_)(dir|directory|path|file|filename|prefix|library|lib|plugin|plugins|cache|address)(_|$)|_(to|from)$|dump",
    flags=re.IGNORECASE,
)

FLAGS = frozenset({"XLA_FLAGS", "LIBTPU_INIT_ARGS"})
"""Variables that hold flags; XLA takes any other first word of its variable for the name of a file with more."""


def is_plain_setting(name: str, value: object) -> bool:
    """Return whether a recorded variable, or an option of JAX, can be set again without following a path."""
    if name in FLAGS:
        return isinstance(value, str) and all(map(_is_plain_flag, value.split()))
    if isinstance(value, str):
        return _PLAIN.fullmatch(value) is not None and not _NAMES_A_FILE.search(name)
    return isinstance(value, bool | int | float) and not _NAMES_A_FILE.search(name)


def _is_plain_flag(word: str) -> bool:
    flag = _FLAG.fullmatch(word)
    if flag is None or _NAMES_A_FILE.search(flag["name"]):
        return False
    return _PLAIN.fullmatch(flag["value"] or "") is not None


def leave_out_dumps(name: str, value: str) -> str | None:
    """Return a variable's value without what is written down while compiling; None where that is all of it."""
    if name in DUMP_VARIABLES:
        return None
    if name not in FLAGS:
        return value
    left = DUMPS.sub("", value).strip()
    return left or (value if not value.strip() else None)
