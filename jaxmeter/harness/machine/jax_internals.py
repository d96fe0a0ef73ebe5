"""What jaxmeter reads of JAX and XLA that neither promises to keep: a row each, by release. No jax.

A reader stays where its subject is, and takes the name from here. A release that lacks it by its row has a known limit,
ReleaseLacksError. Where JAX renames or removes it, the reader fails, and that is jaxmeter's own fault, OwnFaultError.
Both name what is unknown. The bounds were found by running every release.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from jaxmeter.harness.machine.own_fault import OwnFaultError, ReleaseLacksError, UnknownError

NEWEST_TESTED = "0.12.0.1"
"""The newest release of jax that the tests passed with."""

Release = tuple[int, ...]

OLDEST: Release = (0, 4, 31)
"""The oldest release that jaxmeter compares with."""

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True)
class Name:
    """A name of an internal, from one release until the one before another.

    Args:
      text: A key, an attribute, a dotted path, or a part of a text.
    """

    text: str
    since: Release = OLDEST
    until: Release | None = None

    def is_in(self, release: Release) -> bool:
        """Return whether a release has it."""
        return self.since <= release and (self.until is None or release < self.until)


@dataclass(frozen=True)
class Internal:
    """A row: one thing that is read.

    Args:
      what: What it is, for a person.
      unknown: What is unknown without it, as the object of a sentence.
      names: Its names, the newest first.
    """

    what: str
    unknown: str
    names: tuple[Name, ...] = field(default=())

    @property
    def name(self) -> str:
        """The name in the newest release."""
        return self.names[0].text

    @property
    def all_names(self) -> frozenset[str]:
        """The names in all releases."""
        return frozenset(name.text for name in self.names)

    def find(self, holder: Any) -> Any:
        """Return what a mapping or an object has by the first of the names that it has.

        Raises:
          ReleaseLacksError: The installed release has none of them by this row.
          OwnFaultError: It has another one, which jaxmeter does not know.
        """
        for name in self.names:
            if isinstance(holder, Mapping):
                if name.text in holder:
                    return holder[name.text]
            elif hasattr(holder, name.text):
                return getattr(holder, name.text)
        raise self._describe_missing()

    def load(self) -> Any:
        """Return what a module has by the first of the dotted paths that exists.

        Raises:
          ReleaseLacksError, OwnFaultError: As `find` does.
        """
        for name in self.names:
            try:
                return pkgutil.resolve_name(name.text)
            except (ImportError, AttributeError):
                continue
        raise self._describe_missing()

    def _describe_missing(self) -> UnknownError:
        installed = read_release(version("jax"))
        is_expected = installed > read_release(NEWEST_TESTED) or any(name.is_in(installed) for name in self.names)
        names = " or ".join(name.text for name in self.names)
        kind = OwnFaultError if is_expected else ReleaseLacksError
        return kind(f"jax {version('jax')} has no {names} ({self.what})", self.unknown)


def _row(what: str, unknown: str, *names: Name | str) -> Internal:
    return Internal(what, unknown, tuple(Name(name) if isinstance(name, str) else name for name in names))


DEPENDENCE = "which outputs depend on an argument"
ROUNDING = "how far rounding moves the result"
COST = "how many operations the traced function has"

# Parameters of primitives, in `equation.params`.
SCAN_COUNTS = _row(
    "the numbers of constants and carried values of the primitive scan",
    f"{DEPENDENCE}, and {ROUNDING}",
    Name("ft_in", since=(0, 11, 0)),
    Name("num_consts", until=(0, 11, 0)),
)
SCAN_CARRIED = _row(
    "the number of carried values of the primitive scan",
    f"{DEPENDENCE}, and {ROUNDING}",
    Name("num_carry", until=(0, 11, 0)),
)
SCAN_BODY = _row("the body of the primitive scan", f"{DEPENDENCE}, and {ROUNDING}", "jaxpr")
SCAN_LENGTH = _row("the length of the primitive scan", COST, "length")
SCAN_REVERSE = _row("the direction of the primitive scan", ROUNDING, "reverse")
WHILE_CONDITION = _row("the condition of the primitive while", DEPENDENCE, "cond_jaxpr")
WHILE_CONDITION_COUNT = _row("the number of its condition's constants", DEPENDENCE, "cond_nconsts")
WHILE_BODY = _row("the body of the primitive while", DEPENDENCE, "body_jaxpr")
WHILE_BODY_COUNT = _row("the number of its body's constants", DEPENDENCE, "body_nconsts")
BRANCHES = _row("the branches of the primitive cond", DEPENDENCE, "branches")
CALL_BODY = _row("the function that a jitted call calls", f"its captured constants, and {ROUNDING}", "jaxpr")
DONATED = _row("what a jitted call donates", "whether eager and jit are one program", "donated_invars")
DIMENSIONS = _row("the contracted axes of a product or convolution", COST, "dimension_numbers")
PRECISION = _row("the precision of a product or convolution", "the format that products are computed in", "precision")

# Names of primitives.
JIT = _row(
    "the primitive of a jitted call",
    f"its captured constants, and {ROUNDING}",
    Name("jit", since=(0, 7, 0)),
    Name("pjit", until=(0, 7, 0)),
)

# Modules that have no public counterpart, or may change.
EVALUATE = _row("the evaluation of a jaxpr", ROUNDING, "jax.core.eval_jaxpr")
DEAD_CODE = _row(
    "the removal of dead equations", "how much dead work there is", "jax.interpreters.partial_eval.dce_jaxpr"
)
SOURCE_LINE = _row("the source line of an equation", "source lines", "jax.extend.source_info_util.summarize")
PROFILER_STATE = _row(
    "the state of a profiler session", "whether a failed session has ended", "jax._src.profiler._profile_state"
)
MODULE_COST = _row(
    "XLA's count of one computation",
    "what loops cost",
    Name("jax._src.lib._jax.hlo_module_cost_analysis", since=(0, 6, 1)),
)
MODULE_FROM_TEXT = _row(
    "XLA's parser of HLO text",
    "what loops cost",
    Name("jaxlib._hlo.hlo_module_from_text", since=(0, 10, 2)),
    Name("jax._src.lib._jax.hlo_module_from_text", since=(0, 6, 1), until=(0, 10, 2)),
)
PRINT_OPTIONS = _row(
    "options of HLO text",
    "the values of large constants",
    Name("jaxlib._hlo.HloPrintOptions", since=(0, 10, 2)),
    Name("jax._src.lib._jax.HloPrintOptions", since=(0, 6, 1), until=(0, 10, 2)),
)
RESET_CACHE = _row(
    "the reset of the persistent cache",
    "whether a program was compiled or loaded",
    "jax.experimental.compilation_cache.compilation_cache.reset_cache",
)
FORGET_DURATION = _row(
    "the removal of a listener of durations",
    "how often JAX compiles",
    Name("jax.monitoring.unregister_event_duration_listener", since=(0, 8, 1)),
    Name("jax._src.monitoring._unregister_event_duration_listener_by_callback", until=(0, 8, 1)),
)
FORGET_EVENT = _row(
    "the removal of a listener of events",
    "how often JAX compiles",
    Name("jax.monitoring.unregister_event_listener", since=(0, 8, 1)),
    Name("jax._src.monitoring._unregister_event_listener_by_callback", until=(0, 8, 1)),
)

# Attributes of JAX's and XLA's objects.
BUFFERS = _row(
    "the buffer assignment of a compiled program",
    "its largest buffers",
    Name("serialized_buffer_assignment_proto", since=(0, 6, 1)),
)
CACHE_SIZE = _row("the size of a jitted function's cache", "its number of entries", "_cache_size")

# Events of `jax.monitoring`.
TRACED = _row("the event of a traced function", "how often JAX traces", "/jax/core/compile/jaxpr_trace_duration")
LOWERED = _row(
    "the event of a lowered function", "how long lowering takes", "/jax/core/compile/jaxpr_to_mlir_module_duration"
)
COMPILED = _row(
    "the event of a compiled program", "how many programs were compiled", "/jax/core/compile/backend_compile_duration"
)
CACHE_HIT = _row(
    "the event of a program found in the persistent cache", "its cache state", "/jax/compilation_cache/cache_hits"
)
CACHE_MISS = _row(
    "the event of a program missing from the persistent cache", "its cache state", "/jax/compilation_cache/cache_misses"
)

# Parts of HLO text and of its attributes.
ELIDED = _row("what stands for the values of a large constant", "which program it is", "constant({...})")
TRIP_COUNT = _row("how often a loop runs", "what loops cost", Name("known_trip_count", since=(0, 4, 33)))
PYTHON_TARGET = _row(
    "XLA's custom call of Python",
    "whether a compiled program calls Python",
    Name("xla_ffi_python", since=(0, 6, 0)),
    Name("xla_python", until=(0, 6, 0)),
)

# Planes, statistics and events of profiler captures.
HOST_PLANE = _row("the plane of the host's threads", "what the host does in a step", "/host:CPU")
GPU_PLANE = _row("the planes of GPUs", "what the device does in a step", "/device:GPU")
TPU_PLANE = _row("the planes of TPUs", "what the device does in a step", "/device:TPU")
METADATA_PLANE = _row("the plane of the programs", "names and costs of operations", "/host:metadata")
PROGRAM_STATISTIC = _row("a program in that plane", "names and costs of operations", "Hlo Proto")
AWAIT_EVENT = _row("the host's wait for a buffer", "how long the host waits", "CommonPjRtBuffer::Await")
RUN_END_EVENT = _row(
    "the end of a program's run on the host", "when a run ends", "ThunkExecutor::Execute (wait for completion)"
)

INTERNALS: Mapping[str, Internal] = {name: row for name, row in globals().items() if isinstance(row, Internal)}
"""All rows, by constant."""


def read_release(text: str) -> Release:
    """Return the numbers of a version: (0, 12, 0, 1)."""
    return tuple(map(int, _NUMBERS.findall(text.partition("+")[0].partition(".dev")[0])))


def describe_untested(packages: Mapping[str, str]) -> str:
    """Return a note where jax is newer than the newest tested release; else nothing.

    Args:
      packages: Versions by name.
    """
    installed = packages.get("jax", "")
    if read_release(installed) <= read_release(NEWEST_TESTED):
        return ""
    return (
        f"jax {installed} is newer than {NEWEST_TESTED}, the newest release that jaxmeter was tested with: "
        "what jaxmeter cannot read is unknown, and named as jaxmeter's own fault"
    )


def count_scan(params: Mapping[str, Any], inputs: Sequence[Any]) -> tuple[int, int]:
    """Return how many of a scan's inputs are constants, and how many are carried.

    Args:
      params: Of the equation.
      inputs: Of the equation: constants, carried values, then what is sliced.
    Raises:
      OwnFaultError: The installed jax has them in another form.
    """
    given = SCAN_COUNTS.find(params)
    if isinstance(given, int):
        return given, SCAN_CARRIED.find(params)
    parts = [len(part) for part in given.unpack()]  # trees; their lengths count leaves
    if len(parts) != 3 or sum(parts) != len(inputs):
        raise OwnFaultError(f"a scan of jax {version('jax')} has another form", SCAN_COUNTS.unknown)
    return parts[0], parts[1]
