"""Secrets in what a run records: values of variables, and the words of errors. No jax.

A record may be shared. A secret that cannot be recognised stays in it: a suite chooses the words of its errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "***"

SHORTEST_SECRET = 6
"""Shortest value of a variable, in characters, that is searched in texts: shorter values occur there by chance."""

_SECRET = re.compile(
    r"""KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|API|SIGNATURE|WEBHOOK
    | (?<![A-Z])(?:BEARER|COOKIES?|CREDS?|DSN|JWT|OTP|PAT|PWD|SAS|SESSION|SIG)(?![A-Z])  # PATH and DESIGN are none""",
    flags=re.IGNORECASE | re.VERBOSE,
)
_NO_SECRET = re.compile(r"(?:OLD)?PWD|XDG_\w+|DBUS_\w+|DESKTOP_SESSION|SESSION_MANAGER")
"""Variables of shells and desktops: the working folder, the kind of session."""

_SWITCH = ("", "0", "1", "true", "false", "True", "False")
"""No secret: jax's own switches have such words in their names too, as JAX_COMPILER_ENABLE_REMAT_PASS."""

_SECRET_SETTING = re.compile(
    "key|token|secret|passw|passphrase|credential|auth|signature|webhook|^pass$"
    "|(?<![a-z])(?:bearer|cookies?|creds?|dsn|jwt|pat|pwd|session|sig)(?![a-z])",
    flags=re.IGNORECASE,
)
"""The name of a part of a value. XLA's flags speak of passes, and mean the compiler's."""

_BETWEEN_SETTINGS = re.compile(r"([\s&,;?=]+)")
_WHO = re.compile(r"(?<=://)[^\s/]+(?=@)|(?<![^\s/=,@])[^\s/=,@]+(?=@)")
"""Name and password before the host of an address. Each begins at one place, so that long values cost no more."""

_WHO_IN_TEXT = re.compile(r"(?<=://)[^\s/@]+(?=@)")
"""The same in a text, where an @ alone is a product of matrices."""

_SETTING_IN_TEXT = re.compile(
    r"""(
        (?:secret|passw(?:or)?d|passphrase|credentials?|authorization|(?:api|access|private)[_-]?key|x-amz-\w+
        |(?<![a-z])(?:pwd|dsn|cookie|jwt|webhook|session[_-]?(?:id|key)))
        (?:["']?[ ]?[=:][ ]?["']?)(?:(?:bearer|basic)[ ])?
        | token(?:["'][ ]?:|[ ]?=)[ ]?["']?
        | (?<=[?&])sig=
    )[^\s"'&,;)\]}]{6,}""",
    flags=re.IGNORECASE | re.VERBOSE,
)
"""`password=…`, `"token": "…"`, `Authorization: Bearer …`: with words of its own, since a jax text has keys and
tokens that are none."""


_NOT_WITHIN = r"(?:(?<![A-Za-z0-9])|(?<=\\n))"
_KNOWN_FORM = re.compile(
    r"-----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY[\s\S]*?(?:-----END[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----|\Z)"
    rf"""|{_NOT_WITHIN}(?:
        A[KS]IA[A-Za-z0-9]{{16,}}  # Amazon
        | gh[oprsu]_[A-Za-z0-9_]{{16,}} | github_pat_[A-Za-z0-9_]{{16,}}
        | gl(?:pat|dt|rt|ptt|cbt|ft|soat)-[\w-]{{16,}}  # GitLab
        | xox[a-z]-[\w-]{{10,}} | xapp-[\w-]{{10,}} | hooks\.slack\.com/services/[\w/]{{10,}}
        | AIza[\w-]{{30,}} | ya29\.[\w-]{{16,}} | GOCSPX-[\w-]{{16,}}  # Google
        | hf_[A-Za-z0-9]{{24,}} | pypi-[\w-]{{24,}} | npm_[A-Za-z0-9]{{24,}} | dckr_pat_[\w-]{{16,}}
        | sk-(?=[\w-]{{0,60}}\d)[\w-]{{20,}}  # OpenAI, Anthropic, Stripe
        | [Bb]earer[ ](?=[\w.~+/-]{{0,60}}\d)[\w.~+/-]{{16,}}=*
    )
    | (?<![\w-])eyJ[\w-]{{8,}}\.[\w-]{{4,}}(?:\.[\w-]*)?  # a JSON web token""",
    flags=re.ASCII | re.VERBOSE,
)
"""What issuers of keys and tokens make recognisable. Not within a longer word: base64 holds anything by chance."""


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable's value is a secret, by the variable's name."""
    return value not in _SWITCH and _SECRET.search(name) is not None and not _NO_SECRET.fullmatch(name)


def hide_in_value(value: str) -> str:
    """Return a variable's value without the names, passwords and tokens that addresses and flags may hold."""
    parts = _BETWEEN_SETTINGS.split(_WHO.sub(HIDDEN, value))
    for index in range(2, len(parts), 2):
        if parts[index - 1].startswith("=") and _SECRET_SETTING.search(parts[index - 2]):
            parts[index] = HIDDEN
    return "".join(parts)


def hide_in_text(text: str, variables: Mapping[str, str]) -> str:
    """Return a text without values of secret variables, what it calls a password or a key, and known forms of keys."""
    secrets = {value for name, value in variables.items() if len(value) >= SHORTEST_SECRET and is_secret(name, value)}
    for value in sorted(secrets, key=len, reverse=True):  # one may be a part of another
        text = text.replace(value, HIDDEN)
    return _KNOWN_FORM.sub(HIDDEN, _SETTING_IN_TEXT.sub(rf"\g<1>{HIDDEN}", _WHO_IN_TEXT.sub(HIDDEN, text)))
