"""Under which conditions two runs were made: what forbids to compare them, what weakens it, and what may explain it.

A run has a machine, an environment (packages and variables), a runtime (a container's image or a local environment) and
the code that is measured: the suite's and the user's own packages.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from jaxmeter.harness.record import Environment, Manifest, PlannedVariant
from jaxmeter.harness.record.differences import Fact, facts_of, find_differences, steers_programs
from jaxmeter.harness.record.environment import ChangedPackage, find_changed_packages
from jaxmeter.harness.record.wording import counted, shorten, write_options

from .programs import Program

FORBIDDING = ("backend", "x64", "matmul_precision")
"""Facts that make two numbers of one name two things."""

FORBIDDING_VARIABLES = ("JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION")
"""By which a process sets the last two of them."""

WEAKENING = (
    *("packages", "variables", "threads", "platform_version", "driver", "device_kind", "device_name", "device_count"),
    *("processor", "allowed_cores", "cpu_quota"),
)
"""Facts on which a program's time hangs, besides the program. A kept program runs under those of today."""

HARDWARE = ("driver", "device_kind", "device_name", "device_count", "processor", "allowed_cores", "cpu_quota")
"""Of these what no environment brings with it: the earlier run's own, in lock-step, runs under those of today too."""

OF_JAX = (
    *("packages.jax", "packages.libtpu", "variables.JAX_", "variables.XLA_", "variables.LIBTPU_"),
    "platform_version",
)
"""Beginnings of facts on which JAX's code hangs, and no other library's. CUDA's packages are not among them."""

RELEASED = ("packages.jax", "packages.jaxlib")
"""Packages whose releases can plan the same program differently."""

MOST_NAMED = 4
LONGEST_FACT = 120
LONGEST_VARIABLE = 60
LONGEST_RUNTIMES = 500

MOST_PACKAGES, LONGEST_PACKAGE = 3, 200
"""Packages of the user's own that a cause names, and letters of each."""

OWN_IMAGES = "jaxmeter"
"""Repository of the images that the launcher builds: another for each state of the code, so their tags say nothing."""

OWN_SUITES = "jaxmeter.suites"

DEFAULT_BACKEND = "cpu"

_HOME = re.compile(r"~/[\w./-]*")
"""A path that a shell has to expand, without anything else that it would."""

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class Conditions:
    """What is not the same.

    Args:
      incomparable: Why nothing can be compared; empty where it can.
      other_machine: That stored times are of two machines; empty where they are not.
      steering: What has changed that steers compiled programs, as `jaxlib 0.10.1 → 0.10.2`.
      others: What else has changed of packages.
      hardware: Of `steering` what the earlier run's environment does not bring with it.
      beside_jax: What has changed that code of other libraries hangs on too.
      other_runtime: That the runs are of two runtimes, in a sentence; empty where they are not.
      releases: Entries of `steering` about the releases of jax and jaxlib.
    """

    incomparable: str = ""
    other_machine: str = ""
    steering: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    beside_jax: tuple[str, ...] = ()
    other_runtime: str = ""
    releases: tuple[str, ...] = ()

    @property
    def weak(self) -> str:
        """Why a difference of two compiled programs may have another cause than the code; empty where it may not."""
        return _join(self.steering)

    @property
    def weak_in_lock_step(self) -> str:
        """The same where the earlier run's own environment takes turns with today's."""
        return _join(self.hardware)

    @property
    def anything(self) -> bool:
        """Whether anything has changed."""
        return bool(self.steering or self.others)

    def describe(self, *, everything: bool = False) -> str:
        """What has changed; empty where nothing has.

        Args:
          everything: Also what does not steer compiled programs.
        """
        return _join((*self.steering, *(self.others if everything else ())))

    def describe_beside_jax(self) -> str:
        """What has changed that another library's code hangs on; empty where nothing has."""
        return _join(self.beside_jax)


def compare_conditions(before: Manifest, after: Manifest, platform: str | None = None) -> Conditions:
    """Return what is not the same of two runs.

    Args:
      platform: One that both have; by default the backend of each.
    """
    sides = facts_of(before, platform), facts_of(after, platform)
    incomparable = _join(_write(name, *sides) for name in find_differences(sides, of=FORBIDDING))
    changed = find_differences(sides, of=WEAKENING)
    machines = f"another machine: {before.machine} → {after.machine}"
    return Conditions(
        incomparable,
        shorten(machines, LONGEST_FACT) if before.machine != after.machine else "",
        tuple(_write(name, *sides) for name in changed if _steers(name)),
        tuple(_write(name, *sides) for name in changed if not _steers(name)),
        tuple(_write(name, *sides) for name in changed if name in HARDWARE),
        tuple(_write(name, *sides) for name in changed if not name.startswith(OF_JAX)),
        shorten(describe_other_runtime(read_runtime(before), read_runtime(after), after.backend), LONGEST_RUNTIMES),
        tuple(_write(name, *sides) for name in changed if name in RELEASED),
    )


def name_variables(*environments: Environment) -> tuple[str, ...]:
    """Return the environment variables by which runs differ, of each: `XLA_FLAGS=--xla_…`, `XLA_FLAGS unset`.

    Empty words where all have the same.
    """
    sides = [environment.variables for environment in environments]
    different = [name for name in sorted(set().union(*sides)) if len({side.get(name) for side in sides}) > 1]
    return tuple(
        _join(
            shorten(f"{name}={side[name]}" if name in side else f"{name} unset", LONGEST_VARIABLE) for name in different
        )
        for side in sides
    )


def _join(facts: Iterable[str]) -> str:
    """The first facts, and how many more there are."""
    listed = list(facts)
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return f"{', '.join(listed[:MOST_NAMED])}{more}"


def _steers(name: str) -> bool:
    field, _, entry = name.partition(".")
    return field != "packages" or steers_programs(entry)


def _write(name: str, before: dict[str, Fact], after: dict[str, Fact]) -> str:
    """`jaxlib 0.10.1 → 0.10.2`."""
    title = name.partition(".")[2] or name.replace("_", " ")
    was, now_is = ("none" if (value := side.get(name)) is None else str(value) for side in (before, after))
    return shorten(f"{title} {was} → {now_is}", LONGEST_FACT)


def list_changed_packages(before: Manifest, after: Manifest, suite: str | None = None) -> tuple[ChangedPackage, ...]:
    """Return the packages of the user's own whose code is not known to be the same in two runs.

    Empty also where a run did not record its packages, as runs of older versions did not.

    Args:
      suite: Only packages that this suite imports, and those of which nobody knows which suites import them.
    """
    changed = find_changed_packages(before.own_packages, after.own_packages)
    return tuple(package for package in changed if suite is None or not package.suites or suite in package.suites)


def describe_changed_packages(before: Manifest, after: Manifest, suite: str | None = None) -> str:
    """Return `mypkg: step.py changed; commit a1b2c3d → d4e5f6a`; empty where nothing is known to have changed.

    Args:
      suite: As for `list_changed_packages`.
    """
    known = [package.describe() for package in list_changed_packages(before, after, suite) if package.is_known]
    more = len(known) - MOST_PACKAGES
    named = [shorten(words, LONGEST_PACKAGE) for words in known[:MOST_PACKAGES]]
    return "; ".join([*named, *([f"{counted(more, 'more package')} changed"] if more > 0 else [])])


def describe_changed_code(name: str, a: Program | PlannedVariant, b: Program | PlannedVariant) -> str:
    """What has changed of an implementation: its compiler options, else its code; empty where nothing has."""
    if a.compiler_options != b.compiler_options:
        was, now_is = (write_options(variant.compiler_options) or "none" for variant in (a, b))
        return f"the compiler options of {name} have changed: {was} → {now_is}"
    return f"the code of {name} has changed" if a.source != b.source else ""


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
    is_other = before.python != after.python and after.option == "--runtime local"
    python = f" and Python {after.python}" if is_other else ""
    return (
        f"the baseline was measured in {before}, the candidate in {after}: a difference may be that of the runtimes; "
        f"jaxmeter run --backend {backend} {after.option}{python} makes a comparable baseline"
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
