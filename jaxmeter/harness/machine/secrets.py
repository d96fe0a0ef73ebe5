"""Secrets in what a run records: values of variables, and the words of errors. No jax.

A record may be shared. A secret that cannot be recognised stays in it: a suite chooses the words of its errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "***"

SHORTEST_SECRET = 6
"""Shortest value of a variable, in characters, that is searched in texts: shorter values occur there by chance."""

_SECRET = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "API")
_SWITCH = ("", "0", "1", "true", "false", "True", "False")
"""No secret: jax's own switches have such words in their names too, as JAX_COMPILER_ENABLE_REMAT_PASS."""

_SECRET_SETTING = re.compile(
    "key|token|secret|passw|passphrase|credential|auth|signature|^pass$|^sig$", flags=re.IGNORECASE
)
"""The name of a part of a value. XLA's flags speak of passes, and mean the compiler's."""

_BETWEEN_SETTINGS = re.compile(r"([\s&,;?=]+)")
_WHO = re.compile(r"(?<=://)[^\s/]+(?=@)|(?<![^\s/=,@])[^\s/=,@]+(?=@)")
"""Name and password before the host of an address. Each begins at one place, so that long values cost no more."""

_WHO_IN_TEXT = re.compile(r"(?<=://)[^\s/@]+(?=@)")
"""The same in a text, where an @ alone is a product of matrices."""

_SETTING_IN_TEXT = re.compile(
    r"""(
        (?:secret|passw(?:or)?d|passphrase|credentials?|authorization|(?:api|access|private)[_-]?key|x-amz-\w+)
        (?:["']?[ ]?[=:][ ]?["']?)(?:(?:bearer|basic)[ ])?
        | token(?:["'][ ]?:|[ ]?=)[ ]?["']?
        | (?<=[?&])sig=
    )[^\s"'&,;)\]}]{6,}""",
    flags=re.IGNORECASE | re.VERBOSE,
)
"""`password=…`, `"token": "…"`, `Authorization: Bearer …`: with words of its own, since a jax text has keys and
tokens that are none."""


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable's value is a secret, by the variable's name."""
    return value not in _SWITCH and any(word in name.upper() for word in _SECRET)


def hide_in_value(value: str) -> str:
    """Return a variable's value without the names, passwords and tokens that addresses and flags may hold."""
    parts = _BETWEEN_SETTINGS.split(_WHO.sub(HIDDEN, value))
    for index in range(2, len(parts), 2):
        if parts[index - 1].startswith("=") and _SECRET_SETTING.search(parts[index - 2]):
            parts[index] = HIDDEN
    return "".join(parts)


def hide_in_text(text: str, variables: Mapping[str, str]) -> str:
    """Return a text without values of variables that are secrets, nor what it calls a password, a token or a key."""
    secrets = {value for name, value in variables.items() if len(value) >= SHORTEST_SECRET and is_secret(name, value)}
    for value in sorted(secrets, key=len, reverse=True):  # one may be a part of another
        text = text.replace(value, HIDDEN)
    return _SETTING_IN_TEXT.sub(rf"\g<1>{HIDDEN}", _WHO_IN_TEXT.sub(HIDDEN, text))
