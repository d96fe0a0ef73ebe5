"""Under which conditions two runs were made: what forbids to compare them, and what may explain a change."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.across import find_worst
from jaxmeter.harness.metrics.derived import find_trace
from jaxmeter.harness.metrics.reading import Case, Run, Variant
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import NATIVE, Environment, Manifest, NumericsDetails, PlannedVariant, Status
from jaxmeter.harness.record.differences import Fact, facts_of, find_differences, steers_programs
from jaxmeter.harness.record.environment import ChangedPackage, find_changed_packages
from jaxmeter.harness.record.outcomes import CALLBACKS, list_all_traps
from jaxmeter.harness.record.wording import counted, shorten, visible, write_options
from jaxmeter.harness.traces.growth import find_grown
from jaxmeter.harness.traces.summary import find_busy_s

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


TRACE = "trace"
"""The probe that captures."""

LEAST_GROWTH = 0.02
"""Of the device's busy time in a step; captures of equal programs differ by as much."""

NOTHING_KNOWN = "nothing known"
"""A cause where nothing that is recorded has changed."""

MOST_GROWN = 3
"""Operations that a cause names."""

DESCRIBED_BY = {
    "hlo_fusions": "fusion",
    "hlo_custom_calls": "custom call",
    "hlo_collectives": "collective",
    "hlo_instructions": "instruction",
}
"""What a changed program is described by: metrics, and what each counts."""


@dataclass(frozen=True)
class RunPair:
    """Two runs that are compared.

    Args:
      after: Brought to the reference speed of the earlier run.
      minimum_effect: The smallest difference of a time that is worth a verdict, as a share.
      explained_by: The run whose probes explain what the later one confirms; None if the later run explains itself.
    """

    before: Run
    after: Run
    conditions: Conditions
    minimum_effect: float
    explained_by: Run | None = None

    def at(self, platform: str) -> RunPair:
        """Return the comparison of the cases of a platform, under its conditions."""
        if platform == self.after.where:
            return self
        conditions = compare_conditions(self.before.manifest, self.after.manifest, platform)
        return replace(self, conditions=conditions)


@dataclass(frozen=True)
class VariantPair:
    """A variant in both runs; `case` is that of the later one."""

    runs: RunPair
    case: Case
    old: Variant
    new: Variant

    @property
    def name(self) -> str:
        """The variant's."""
        return self.new.planned.name

    @property
    def fingerprints(self) -> tuple[str | None, str | None]:
        """Of both programs; None of what has none, or where nobody told."""
        return find_fingerprint(self.old), find_fingerprint(self.new)

    @property
    def is_same_program(self) -> bool:
        """Whether it is the same program, of the same versions on the same device, and calls no Python code."""
        was, now_is = self.fingerprints
        is_equal = was is not None and was == now_is and not self.runs.conditions.weak
        return is_equal and not any(map(calls_back, (self.old, self.new)))

    @property
    def is_same_code(self) -> bool:
        """Whether nothing has changed that is recorded of the code and of what it runs under."""
        conditions = self.runs.conditions
        has_changed = bool(conditions.beside_jax) if self.is_native else conditions.anything
        return self.old.planned.source == self.new.planned.source and not (has_changed or self._changed_packages)

    @property
    def has_same_sources(self) -> bool:
        """Whether both runs recorded the code of the suite and of the user's own packages, and all of it is equal."""
        is_recorded = None not in (self.runs.before.manifest.own_packages, self.runs.after.manifest.own_packages)
        return is_recorded and self.old.planned.source == self.new.planned.source and not self._changed_packages

    @property
    def _changed_packages(self) -> str:
        """What has changed of the user's own packages that the suite imports."""
        return describe_changed_packages(self.runs.before.manifest, self.runs.after.manifest, self.case.planned.suite)

    @property
    def has_another_program(self) -> bool:
        """Whether both are known and differ."""
        return None not in self.fingerprints and len(set(self.fingerprints)) == 2

    @property
    def is_native(self) -> bool:
        """Whether another library runs it, which no version of JAX changes."""
        return self.new.planned.mode == NATIVE

    @property
    def explaining(self) -> VariantPair:
        """The same variant in the run that explains: a run that only confirms has timed it, and nothing else."""
        run = self.runs.explained_by
        case = None if run is None else run.by_key.get((self.case.planned.name, self.case.planned.platform))
        variant = None if case is None else case.find(self.name)
        if run is None or case is None or variant is None:
            return self
        return VariantPair(replace(self.runs, after=run, explained_by=None), case, self.old, variant)

    def explain(self, *, is_slower: bool) -> str:
        """Return what may explain a time that changed, and where the time went."""
        explaining = self.explaining
        return "; ".join(filter(None, (explaining.find_cause(), explaining.describe_grown(is_slower=is_slower))))

    def describe_grown(self, *, is_slower: bool) -> str:
        """Return the operations that take longer, or less long, in the later capture; empty without both captures.

        A difference of captures alone is no verdict: this only explains a time that is told apart.
        """
        before, after = find_trace(self.old), find_trace(self.new)
        if before is None or after is None:
            return ""
        least_s = LEAST_GROWTH * (find_busy_s(before.busiest) or 0.0)
        grown = [
            operation
            for operation in find_grown(before, after)
            if (operation.difference_s > 0) == is_slower
            and abs(operation.difference_s) >= least_s
            and None not in (operation.before_s, operation.after_s)
        ]
        largest = sorted(grown, key=lambda operation: -abs(operation.difference_s))[:MOST_GROWN]
        more = "more" if is_slower else "less"
        words = [
            f"{visible(operation.name)}{f' ({visible(operation.source)})' if operation.source else ''} takes "
            f"{numbers.difference(abs(operation.difference_s))} {more}"
            for operation in largest
        ]
        return f"in their captured steps {', '.join(words)}" if words else ""

    def describe_program(self) -> str:
        """Return `2 fusions fewer, 31 instructions more in its program`; empty if it is the same, or unknown."""
        if not self.has_another_program:
            return ""
        counts = {
            noun: (before, after)
            for metric, noun in DESCRIBED_BY.items()
            for before, after in [tuple(side.read(metric).estimate for side in (self.old, self.new))]
            if before is not None and after is not None
        }
        different = [
            f"{counted(int(abs(after - before)), noun)} {'more' if after > before else 'fewer'}"
            for noun, (before, after) in counts.items()
            if before != after
        ]
        if different:
            return f"{', '.join(different)} in its program"
        return "another program, with as many instructions" if counts else "another program"

    def find_cause(self, *, of_program: bool = False) -> str:
        """Return what may explain a change, likeliest first, and then how the program differs: an effect, no cause.

        Args:
          of_program: Whether it is the program that changed: then nothing is said of how it differs.
        """
        conditions = self.runs.conditions
        if self.is_native:
            others = conditions.describe_beside_jax()
        else:
            others = conditions.describe(everything=None in self.fingerprints)
        causes = (
            describe_changed_code(self.new.planned.implementation, self.old.planned, self.new.planned),
            self._changed_packages,
            others,
        )
        cause = "; ".join(filter(None, causes)) or NOTHING_KNOWN
        return "; ".join(filter(None, (cause, "" if of_program else self.describe_program())))


def find_status(variant: Variant) -> tuple[Status, str]:
    """Return how a variant ended, and why. A capture only explains a time: without one the time still counts."""
    measured = {probe: outcome for probe, outcome in variant.outcomes.items() if probe != TRACE}
    _, worst = find_worst(measured or variant.outcomes)
    return worst.status, worst.reason or ""


def calls_back(variant: Variant) -> bool:
    """Return whether the program is known to call Python code, which its fingerprint does not describe."""
    return any(trap.kind == CALLBACKS for trap in list_all_traps(variant.outcomes))


def find_fingerprint(variant: Variant) -> str | None:
    """Of the program that was checked, and timed."""
    if variant.planned.mode == NATIVE:
        return None
    all_details = (outcome.details for outcome in variant.outcomes.values())
    return next((details.fingerprint for details in all_details if isinstance(details, NumericsDetails)), None)


def read_raw(variant: Variant, metric: str) -> Sequence[float | None]:
    """What a probe recorded of a metric, unchecked."""
    outcome = variant.outcomes.get(METRICS[metric].probe or "")
    return () if outcome is None else outcome.values.get(metric, ())
