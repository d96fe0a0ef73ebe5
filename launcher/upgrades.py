"""What `nox -s upgrade` was asked for: an old and a new environment, and what to measure in both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.environments import Wanted, read_wanted
from launcher.options import UsageError, refuse, take_option
from launcher.runs import DEFAULT_OUT

JUDGING = ("--min-effect", "--markdown", "--verdict", "--budgets")
"""Options of the comparison; all others are of the measurement."""

FORBIDDEN = {
    "--against": "the old environment is measured anew",
    "--lock-step": "that is the old environment: --old",
    "--suspects": "all is confirmed",
    "--resume": "an upgrade is measured anew",
    "--run-id": "an upgrade makes two runs, and names them",
    "--dry-run": "an upgrade that measures nothing can say nothing; jaxmeter run --dry-run tells how long",
    "--image": "an upgrade is of two: --old name@sha256:… --new name@sha256:…",
    "--probe": "an upgrade looks at times, programs, compilation and memory",
}

BEFORE = ("--probe", "compilation", "--probe", "memory")
"""What the old environment tells by itself: how long its calls take, it tells beside the new one."""

AFTER = ("--probe", "timing", *BEFORE)


_IMAGE = re.compile(r"(?:\S+@)?sha256:[0-9a-f]{64}")
"""One image: that of a registry by its digest, or one of this machine by its id."""

_LIKE_IMAGE = re.compile(r"\S*@?sha256:\S*")


@dataclass(frozen=True)
class UpgradeRequest:
    """An upgrade.

    Args:
      old, new: Packages, or names of images.
      measuring: Arguments of both measurements.
      judging: Arguments of the comparison.
      out: Where runs are kept.
    """

    old: Wanted | str
    new: Wanted | str
    measuring: tuple[str, ...]
    judging: tuple[str, ...]
    out: Path


def read_upgrade_request(arguments: Sequence[str]) -> UpgradeRequest:
    """`--old PACKAGES --new PACKAGES`, or two images; options of the comparison, and the measurement's.

    Raises:
      UsageError: One of the two is missing, they are not of one kind, or what an upgrade does not take.
    """
    refuse(arguments, FORBIDDEN)
    old, rest = take_option(arguments, "--old")
    new, rest = take_option(rest, "--new")
    if old is None or new is None:
        raise UsageError(
            'name both environments: nox -s upgrade -- --old "jax==0.10.0" --new "jax==0.10.2"; packages, a '
            "requirements file, the folder of a package, or an image by its digest"
        )
    arms = (_read_arm(old), _read_arm(new))
    if isinstance(arms[0], str) != isinstance(arms[1], str):
        raise UsageError("an image on one side alone; give two images (name@sha256:…), or packages on both sides")
    judging: list[str] = []
    for name in JUDGING:
        value, rest = take_option(rest, name)
        judging += [] if value is None else [name, value]
    out, _ = take_option(rest, "--out")
    return UpgradeRequest(*arms, tuple(rest), tuple(judging), Path(out or DEFAULT_OUT))


def _read_arm(words: str) -> Wanted | str:
    """Packages, or the name of an image.

    Raises:
      UsageError: It is neither.
    """
    if _IMAGE.fullmatch(words):
        return words
    if _LIKE_IMAGE.fullmatch(words):
        raise UsageError(f"{words}: no image; a digest is sha256: and 64 digits, as `docker images --digests` tells")
    return read_wanted(words)
