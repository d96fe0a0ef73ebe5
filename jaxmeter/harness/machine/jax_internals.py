"""Internals of JAX and XLA that jaxmeter reads: a row each, and what older releases lack. No jax."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from types import ModuleType
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
    """A name of an internal, from the release `since` on, and before the release `until`.

    Args:
      text: A key, an attribute, a dotted path, or a part of a text.
    """

    text: str
    since: Release = OLDEST
    until: Release | None = None

    def is_in(self, release: Release) -> bool:
        """Return whether a release has this name."""
        return self.since <= release and (self.until is None or release < self.until)


@dataclass(frozen=True)
class Internal:
    """A row of the table: an internal that jaxmeter reads.

    Args:
      what: Description for a person.
      unknown: What is unknown without the internal, as the object of a sentence.
      names: Names of the internal, the newest first.
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
        """Return the value of the first of the names that a mapping or an object has.

        Raises:
          ReleaseLacksError: By this row, the installed release has none of the names.
          OwnFaultError: By this row, the installed release has a name, but the holder has none of them.
        """
        for name in self.names:
            if isinstance(holder, Mapping):
                if name.text in holder:
                    return holder[name.text]
            elif hasattr(holder, name.text):
                return getattr(holder, name.text)
        raise self._describe_missing()

    def get(self, holder: Any) -> Any:
        """Return what `find` returns; None if, by this row, the installed release lacks the internal.

        Raises:
          OwnFaultError: As `find` does.
        """
        try:
            return self.find(holder)
        except ReleaseLacksError:
            return None

    def load(self) -> Any:
        """Return the object at the first of the dotted paths that exists.

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
CALLBACKS = "how often a program calls Python"

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
WHILE_CONDITION_COUNT = _row("the number of constants of a while condition", DEPENDENCE, "cond_nconsts")
WHILE_BODY = _row("the body of the primitive while", DEPENDENCE, "body_jaxpr")
WHILE_BODY_COUNT = _row("the number of constants of a while body", DEPENDENCE, "body_nconsts")
BRANCHES = _row("the branches of the primitive cond", DEPENDENCE, "branches")
CALL_BODY = _row("the body of a jitted call", f"its captured constants, and {ROUNDING}", "jaxpr")
DONATED = _row("the donated arguments of a jitted call", "whether eager and jit are one program", "donated_invars")
DIMENSIONS = _row("the contracted axes of a product or convolution", COST, "dimension_numbers")
PRECISION = _row("the precision of a product or convolution", "the format in which products are computed", "precision")

# Names of primitives.
JIT = _row(
    "the primitive of a jitted call",
    f"its captured constants, and {ROUNDING}",
    Name("jit", since=(0, 7, 0)),
    Name("pjit", until=(0, 7, 0)),
)

CALLS = frozenset(
    {
        *("jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "xla_metadata_call"),
        *("remat", "remat2", "checkpoint", "custom_vmap_call"),
        *("custom_jvp_call", "custom_jvp_call_jaxpr", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    }
)
"""Primitives with one inner function, which has the inputs and the outputs of the primitive."""

OTHERS_WITH_FUNCTIONS = frozenset(
    {
        *("scan", "while", "cond", "shard_map", "xla_pmap", "pallas_call", "custom_linear_solve", "linear_call"),
        *("composite", "core_map", "custom_partitioning", "custom_transpose_call", "run_state", "run_scoped"),
        *("call_exported", "call_hi_primitive", "call_hi_primitive_linearized", "mpmd_map", "parallel_loop"),
    }
)
"""Other primitives with inner functions. Readers know these functions, or treat them as opaque."""

REDUCTIONS = ("scatter", "reduce", "select_and", "arg", "cum", "sort")
"""Prefixes of primitives whose inner function combines two elements."""

# Functions and classes that have no public counterpart, or can change.
EVALUATE = _row("the evaluation of a jaxpr", ROUNDING, "jax.core.eval_jaxpr")
DEAD_CODE = _row(
    "the removal of dead equations", "how much dead work there is", "jax.interpreters.partial_eval.dce_jaxpr"
)
# Not by jax.extend: in 0.12 that imports Pallas, whose options empty the caches of every compiled function.
SOURCE_LINE = _row("the source line of an equation", "source lines", "jax._src.source_info_util.summarize")
PURE_CALLBACK = _row("the function that runs a pure callback", CALLBACKS, "jax._src.callback.pure_callback_impl")
IO_CALLBACK = _row("the function that runs an I/O callback", CALLBACKS, "jax._src.callback.io_callback_impl")
DEBUG_CALLBACK = _row("the function that runs a debug callback", CALLBACKS, "jax._src.debugging.debug_callback_p.impl")
DEBUG_PRINT = _row("the function that runs a print of eager code", CALLBACKS, "jax._src.debugging.debug_callback_impl")
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
PEAK_BYTES = _row(
    "the peak of a compiled program's memory",
    "its planned peak memory",
    Name("peak_memory_in_bytes", since=(0, 7, 0)),
)
TOTAL_BYTES = _row(
    "all allocations of a compiled program",
    "its planned allocations",
    Name("total_allocation_bytes", since=(0, 11, 2)),
)
UNPADDED_BYTES = _row(
    "the peak without padding",
    "the padding of its planned peak",
    Name("peak_unpadded_heap_bytes", since=(0, 11, 2)),
)
SERIALIZE = _row("the bytes of an executable", "the size of the executable", Name("serialize", since=(0, 8, 0)))
CACHE_SIZE = _row("the size of a jitted function's cache", "its number of entries", "_cache_size")

# Events of `jax.monitoring`.
TRACED = _row("the event of a traced function", "how often JAX traces", "/jax/core/compile/jaxpr_trace_duration")
LOWERED = _row(
    "the event of a lowered function", "how long lowering takes", "/jax/core/compile/jaxpr_to_mlir_module_duration"
)
COMPILED = _row(
    "the event of a compiled program", "how many programs were compiled", "/jax/core/compile/backend_compile_duration"
)
CACHE_HIT = _row("the event of a hit in the persistent cache", "its cache state", "/jax/compilation_cache/cache_hits")
CACHE_MISS = _row(
    "the event of a miss in the persistent cache", "its cache state", "/jax/compilation_cache/cache_misses"
)

# Keys of `cost_analysis`.
COUNTED_FLOPS = _row("XLA's count of FLOPs", "XLA's count of FLOPs", "flops")
COUNTED_BYTES = _row("XLA's count of bytes", "XLA's count of bytes", "bytes accessed")

# What JAX writes: log messages, warnings.
CACHE_MISS_MESSAGE = _row("JAX's explanation of a cache miss", "why more was compiled than declared", "CACHE MISS")
TRUNCATION = _row("JAX's warning of a narrower dtype", "whether it truncates dtypes", "requested dtype")

# Parts of HLO text and of its attributes.
OUTPUT_ALIASES = _row("the aliases of arguments and outputs", "which donated arrays are reused", "-alias")
CUSTOM_FUSION = _row("a fusion that a library runs", "which products the plan leaves out", "kind=kCustom")
ELIDED = _row("the placeholder for the values of a large constant", "the fingerprint of the program", "constant({...})")
TRIP_COUNT = _row("the trip count of a loop", "what loops cost", Name("known_trip_count", since=(0, 4, 33)))

FUSION_KIND = _row("the library of a fused product", "which products the plan leaves out", "fusion_config")

# Planes, lines, statistics and events of profiler captures. Patterns of events are regular expressions.
HOST_PLANE = _row("the plane of the host's threads", "what the host does in a step", "/host:CPU")
GPU_PLANE = _row("the planes of GPUs", "what the device does in a step", "/device:GPU")
TPU_PLANE = _row("the planes of TPUs", "what the device does in a step", "/device:TPU")
METADATA_PLANE = _row("the plane of compiled programs", "names and costs of operations", "/host:metadata")
PROGRAM_STATISTIC = _row("a program in the plane of compiled programs", "names and costs of operations", "Hlo Proto")
GPU_LINE = _row("the lines of a GPU's operations", "what the device does in a step", "Stream")
TPU_LINE = _row("the line of a TPU's operations", "what the device does in a step", "XLA Ops")
TRANSFER_EVENT = _row(
    "the host's transfers",
    "how long transfers take",
    "H2D Dispatch|DevicePut|CopyToDevice|BufferFromHostBuffer|ToLiteral|CopyToHost",
)
COMPILE_EVENT = _row(
    "the host's compilations",
    "how long compilations take in a step",
    r"backend_compile|lower_sharding_computation|XlaCompile|[Cc]ompile(AndLoad|d?Impl)?\b|RunBackend|RunHloPasses"
    "|LlvmCompile",
)
DISPATCH_EVENT = _row(
    "the host's dispatch", "how long dispatch takes", r"PjitFunction\(|PmapFunction\(|LoadedExecutable::Execute"
)
AWAIT_EVENT = _row("the host's wait for a buffer", "how long the host waits", "CommonPjRtBuffer::Await")
RUN_END_EVENT = _row(
    "the end of a program's run on the host", "when a run ends", "ThunkExecutor::Execute (wait for completion)"
)

INTERNALS: Mapping[str, Internal] = {name: row for name, row in globals().items() if isinstance(row, Internal)}
"""All rows, by the name of the constant."""


def read_release(text: str) -> Release:
    """Return the numbers of a version: (0, 12, 0, 1)."""
    return tuple(map(int, _NUMBERS.findall(text.partition("+")[0].partition(".dev")[0])))


def describe_untested(packages: Mapping[str, str]) -> str:
    """Return a note if jax is newer than the newest tested release; otherwise an empty text.

    Args:
      packages: Versions by name.
    """
    installed = packages.get("jax", "")
    if read_release(installed) <= read_release(NEWEST_TESTED):
        return ""
    return (
        f"jax {installed} is newer than {NEWEST_TESTED}, the newest release that jaxmeter was tested with: "
        "jaxmeter reports each internal that it cannot read as its own fault"
    )


def check_known(primitive: str) -> None:
    """Check that jaxmeter knows a primitive that has an inner function.

    Raises:
      OwnFaultError: A release has renamed or added the primitive.
    """
    if primitive not in CALLS | OTHERS_WITH_FUNCTIONS and not primitive.startswith(REDUCTIONS):
        raise OwnFaultError(f"jaxmeter does not know the primitive {primitive} of jax {version('jax')}", ROUNDING)


def count_scan(params: Mapping[str, Any], inputs: Sequence[Any]) -> tuple[int, int]:
    """Return how many inputs of a scan are constants, and how many are carried values.

    Args:
      params: Parameters of the equation.
      inputs: Inputs of the equation: constants, carried values, then arrays that the scan slices.
    Raises:
      OwnFaultError: The installed jax stores both numbers in another form.
    """
    given = SCAN_COUNTS.find(params)
    if isinstance(given, int):
        return given, SCAN_CARRIED.find(params)
    parts = [len(part) for part in given.unpack()]  # trees, whose lengths are numbers of leaves
    if len(parts) != 3 or sum(parts) != len(inputs):
        raise OwnFaultError(f"a scan of jax {version('jax')} has another form", SCAN_COUNTS.unknown)
    return parts[0], parts[1]


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
    elif isinstance(error, ImportError) and (match := _FROM.search(str(error))) is not None:
        missing = f"{match[2]}.{match[1]}"
    elif isinstance(error, ModuleNotFoundError):
        missing = str(error.name)
    elif isinstance(error, TypeError) and (match := _OPTION.search(str(error))) is not None:
        missing = f"option {match[2]} of {match[1]}()"
    else:
        return ""
    return f"jax {_find_version('jax')}, or a package installed with it, has no {missing}"
