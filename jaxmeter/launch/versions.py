"""Versions of packages: only what PEP 440 calls one passes, since it may come from a record that somebody sent."""

from __future__ import annotations

import re

LONGEST = 64
"""Characters. Longer than any version that a package index holds."""

_VERSION = re.compile(
    r"""v?
    (?:(?P<epoch>[0-9]+)!)?
    (?P<release>[0-9]+(?:\.[0-9]+)*)
    (?P<pre>[-_.]?(?P<pre_name>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_number>[0-9]*))?
    (?P<post>-(?P<post_dash>[0-9]+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>[0-9]*))?
    (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>[0-9]*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?""",
    re.VERBOSE,
)
"""Source: https://peps.python.org/pep-0440/, appendix B, without white space around."""

_PHASES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def normalise_version(text: str) -> str | None:
    """Return a version in the one spelling that PEP 440 gives it; None for any other text."""
    match = _VERSION.fullmatch(text.lower()) if text.isascii() and len(text) <= LONGEST else None
    if match is None:
        return None
    part = match.groupdict()
    epoch = f"{int(part['epoch'])}!" if int(part["epoch"] or 0) else ""
    release = ".".join(str(int(number)) for number in part["release"].split("."))
    pre = "" if part["pre"] is None else f"{_name_phase(part['pre_name'])}{int(part['pre_number'] or 0)}"
    post = "" if part["post"] is None else f".post{int(part['post_dash'] or part['post_number'] or 0)}"
    dev = "" if part["dev"] is None else f".dev{int(part['dev_number'] or 0)}"
    local = "" if part["local"] is None else f"+{_normalise_local(part['local'])}"
    return f"{epoch}{release}{pre}{post}{dev}{local}"


def _name_phase(name: str) -> str:
    return _PHASES.get(name, name)


def _normalise_local(local: str) -> str:
    parts = re.split(r"[-_.]", local)
    return ".".join(str(int(part)) if part.isdecimal() else part for part in parts)
