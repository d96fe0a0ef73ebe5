"""In what two runs were measured, and how both would be measured in turns: sentences and commands.

A run is measured in a container's image or a local environment, and in a checkout of the user's code.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from jaxmeter.harness.record import Manifest

OWN_IMAGES = "jaxmeter"
"""Repository of the images that the launcher builds: another for each state of the code, so their tags say nothing."""


OWN_SUITES = "jaxmeter.suites"

DEFAULT_BACKEND = "cpu"

_HOME = re.compile(r"~/[\w./-]*")
"""A path that a shell has to expand, without anything else that it would."""

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class Runtime:
    """What ran the processes of a run.

    Args:
      python: Its version.
      image: Name of the container's image; empty outside of containers.
      identity: By which an engine knows the image, whatever its name.
    """

    python: str
    image: str = ""
    identity: str = ""

    def is_like(self, other: Runtime) -> bool:
        """Whether it is the same: the same Python, in no image, in the same, or in one of the same repository.

        Python's version counts whole: the calibration loop, by which times of two runs are compared, is Python code.
        """
        is_same_image = bool(self.identity) and self.identity == other.identity
        return self.python == other.python and (is_same_image or self.repository == other.repository)

    def __str__(self) -> str:
        """`image jaxmeter:cpu-1f0c9a7b3d52 (Python 3.13.5)`, `a local environment (Python 3.11.7)`."""
        return f"{f'image {self.image}' if self.image else 'a local environment'} (Python {self.python})"

    @property
    def repository(self) -> str:
        """The image's name without tag and digest; empty outside of containers."""
        path, slash, last = self.image.partition("@")[0].rpartition("/")
        return f"{path}{slash}{last.partition(':')[0]}"

    @property
    def option(self) -> str:
        """What has the launcher measure in it."""
        if not self.image:
            return "--runtime local"
        return "--runtime container" + ("" if self.repository == OWN_IMAGES else f" --image {self.image}")


def read_runtime(manifest: Manifest) -> Runtime:
    """Return in what a run was measured."""
    return make_runtime(manifest.environment.python, manifest.environment.image or "")


def make_runtime(python: str, image: str) -> Runtime:
    """Return the runtime of a Python and an image, name and identity as a record has them."""
    name, _, identity = image.partition(" ")
    return Runtime(python, name, identity)


def describe_other_runtime(before: Runtime, after: Runtime, backend: str) -> str:
    """Name two runtimes and the command that makes a baseline in the later one; empty where they are the same."""
    if before.is_like(after):
        return ""
    return (
        f"the baseline was measured in {before}, the candidate in {after}: a difference may be that of the runtimes; "
        f"jaxmeter run --backend {backend} {after.option} makes a comparable baseline"
    )


def name_confirming_command(before: Manifest, after: Manifest, run: str) -> str:
    """Return the command that measures the whole call of two commits in lock-step, and so confirms a difference.

    Args:
      before, after: Of the baseline run and of the candidate, whose suites are named.
      run: The baseline run, as a person would type it.
    """
    revision = before.environment.git_revision or ""
    commit = revision[:_SHOWN_DIGITS] if _COMMIT.fullmatch(revision) else "COMMIT"
    own = [name for name in after.settings.suites if not name.startswith(OWN_SUITES)]
    words = [run, *(word for name in own for word in ("--suites", name)), "--baseline-checkout", "../base"]
    words += [] if after.backend == DEFAULT_BACKEND else ["--backend", after.backend]
    words += [] if after.settings.data is None else ["--data", after.settings.data]
    quoted = (word if _HOME.fullmatch(word) else shlex.quote(word) for word in ("jaxmeter", "gate", *words))
    return f"git worktree add ../base {commit} && {' '.join(quoted)}"
