"""Every metric, declared once: its unit, which direction is better, and what exactly it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a metric's numbers count. Records hold these units; scaling happens when shown."""

    SECONDS = "s"
    BYTES = "B"
    COUNT = "count"
    RATIO = "ratio"
    LOG_RATIO = "log ratio"
    FLOP_PER_SECOND = "FLOP/s"
    BYTES_PER_SECOND = "B/s"


class Direction(StrEnum):
    """Which way is better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"
    EXACT = "exact"


@dataclass(frozen=True)
class Metric:
    """A named result. `probe` is the probe that measures it, or None where it is derived on reading."""

    name: str
    unit: Unit
    direction: Direction
    probe: str | None
    definition: str


_TABLE = (
    Metric(
        "max_error",
        Unit.RATIO,
        Direction.LOWER,
        "numerics",
        "Largest absolute difference from the reference, over the reference's largest absolute entry.",
    ),
    Metric(
        "execution_s",
        Unit.SECONDS,
        Direction.LOWER,
        "timing",
        "One call until its result is ready, compiled and warmed up: the median over the clean blocks of one launch.",
    ),
    Metric(
        "log_ratio",
        Unit.LOG_RATIO,
        Direction.HIGHER,
        "timing",
        "log(baseline variant's time / this variant's time): the median over one launch's sweeps, each sweep "
        "timing both within the same moment. Peers, launched on their own, are paired by launch order instead.",
    ),
    Metric(
        "dispatch_s",
        Unit.SECONDS,
        Direction.LOWER,
        "timing",
        "One call until it returns, whether or not its result is ready; taken apart from execution_s. "
        "The median over one launch.",
    ),
    Metric(
        "trace_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "Python function to jaxpr (`jit(f).trace`), first time in a fresh process; one value per cold process.",
    ),
    Metric(
        "lower_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "Jaxpr to StableHLO (`.lower`), first time in a fresh process; one value per cold process.",
    ),
    Metric(
        "compile_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "StableHLO to executable (`.compile`) with the persistent compilation cache off, in a fresh process; one value "
        "per cold process.",
    ),
    Metric(
        "first_call_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "The first call until its result is ready, after the stages above; for eager code it holds every "
        "operation's own compilation.",
    ),
    Metric(
        "jaxpr_equations",
        Unit.COUNT,
        Direction.NEITHER,
        "compilation",
        "Equations at the top level of the jaxpr.",
    ),
    Metric(
        "jaxpr_equations_nested",
        Unit.COUNT,
        Direction.NEITHER,
        "compilation",
        "Equations of the jaxpr at all levels, those of loop bodies, branches and nested calls too.",
    ),
    Metric(
        "stablehlo_operations",
        Unit.COUNT,
        Direction.NEITHER,
        "compilation",
        "Operations of the lowered program (StableHLO), at all levels, without module and functions themselves.",
    ),
    Metric(
        "hlo_instructions",
        Unit.COUNT,
        Direction.LOWER,
        "compilation",
        "Instructions of the optimised program (HLO), in all its computations, those inside fusions too.",
    ),
    Metric(
        "hlo_fusions",
        Unit.COUNT,
        Direction.NEITHER,
        "compilation",
        "Fusions in the optimised program: operations that run as one kernel or loop.",
    ),
    Metric(
        "hlo_custom_calls",
        Unit.COUNT,
        Direction.NEITHER,
        "compilation",
        "Custom calls in the optimised program: libraries and hand-written kernels.",
    ),
    Metric(
        "hlo_collectives",
        Unit.COUNT,
        Direction.NEITHER,
        "compilation",
        "Collectives in the optimised program; a start and its done count as one.",
    ),
    Metric(
        "executable_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "compilation",
        "Size of the serialised executable, as the persistent cache would hold it before compression.",
    ),
    Metric(
        "counted_flops",
        Unit.COUNT,
        Direction.NEITHER,
        "compilation",
        "XLA's own count of one device's floating-point operations (`cost_analysis`). XLA counts a loop's body once; "
        "it counts here as often as it runs. No value where that is not known, or with custom calls or conditionals. "
        "Transcendental functions are not among them.",
    ),
    Metric(
        "counted_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "compilation",
        "XLA's own count of bytes that one device reads and writes (`cost_analysis`), as for counted_flops.",
    ),
    Metric(
        "compiles",
        Unit.COUNT,
        Direction.LOWER,
        "compilation",
        "Programs that XLA compiled until the first result in a cold process, counted by `jax.monitoring`; of a "
        "stream, in its first pass.",
    ),
    Metric(
        "recompiles",
        Unit.COUNT,
        Direction.LOWER,
        "compilation",
        "Programs that XLA compiled in a second, equal call (of a stream, pass); 0 unless something defeats the cache.",
    ),
    Metric(
        "cache_entries",
        Unit.COUNT,
        Direction.LOWER,
        "compilation",
        "Entries of the jitted function's own cache after the first call (of a stream, pass). jax keeps one for each "
        "kind of call that it has seen, and several may share a program: it is no count of compilations.",
    ),
    Metric(
        "executable_load_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "The executable from its bytes (`serialize_executable.deserialize_and_load`), in the process that compiled it; "
        "nothing is traced, lowered or compiled. Mode `aot` only, after everything else; so the next ones.",
    ),
    Metric(
        "executable_first_call_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "The first call of the executable that was loaded, until its result is ready.",
    ),
    Metric(
        "exported_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "compilation",
        "Size of the program that `jax.export` serialises: StableHLO, not yet compiled.",
    ),
    Metric(
        "export_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "`jax.export.export` and `.serialize` of the function that was traced before: lowering anew, and writing.",
    ),
    Metric(
        "exported_load_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "`jax.export.deserialize` of these bytes; nothing is compiled yet.",
    ),
    Metric(
        "exported_first_call_s",
        Unit.SECONDS,
        Direction.LOWER,
        "compilation",
        "The first call of the program that was loaded, under `jax.jit`, until its result is ready: it is compiled "
        "with it, persistent cache off.",
    ),
    Metric(
        "cold_s",
        Unit.SECONDS,
        Direction.LOWER,
        "caching",
        "First call of the jitted function until its result is ready, in a fresh process that has not compiled it, "
        "persistent cache off. Making the inputs and one trivial program have been compiled, jax imported.",
    ),
    Metric(
        "cached_s",
        Unit.SECONDS,
        Direction.LOWER,
        "caching",
        "The same in a fresh process whose persistent compilation cache holds the program.",
    ),
    Metric(
        "warm_s",
        Unit.SECONDS,
        Direction.LOWER,
        "caching",
        "The second, equal call in a process that has compiled the program: one call, not a steady mean.",
    ),
    Metric(
        "new_shape_s",
        Unit.SECONDS,
        Direction.LOWER,
        "caching",
        "The call after that with arguments of another shape, as the workload names them; persistent cache off.",
    ),
    Metric(
        "new_static_s",
        Unit.SECONDS,
        Direction.LOWER,
        "caching",
        "The call after that with another value of a static argument, as the workload names it; persistent cache off.",
    ),
    Metric(
        "argument_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "Memory of the program's arguments, as the compiler plans it (`memory_analysis`).",
    ),
    Metric(
        "output_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "Memory of the program's outputs, as the compiler plans it (`memory_analysis`).",
    ),
    Metric(
        "temp_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "Memory of temporaries, as the compiler plans it (`memory_analysis`).",
    ),
    Metric(
        "alias_bytes",
        Unit.BYTES,
        Direction.NEITHER,
        "memory",
        "Output memory that reuses argument memory (donated buffers), as the compiler plans it.",
    ),
    Metric(
        "code_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "Size of the generated code (`memory_analysis`); 0 where the backend does not tell.",
    ),
    Metric(
        "peak_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "The most that the program holds at once on one device, by the compiler's plan: `peak_memory_in_bytes`, or "
        "arguments + outputs + temporaries - aliased where that leaves out temporaries (CPU) or is not told.",
    ),
    Metric(
        "donation_saves_bytes",
        Unit.BYTES,
        Direction.HIGHER,
        "memory",
        "peak_bytes less that of the same program compiled with all its arguments donated (compiled, not run).",
    ),
    Metric(
        "runtime_peak_bytes",
        Unit.BYTES,
        Direction.LOWER,
        "memory",
        "The most that was held during a call, in a process of its own, arguments included: the peak of the device's "
        "allocator with the first call, where it counts; else the arguments plus the growth of the process's resident "
        "memory during a warmed-up call, on all devices together.",
    ),
    Metric(
        "trace_file_bytes",
        Unit.BYTES,
        Direction.NEITHER,
        "trace",
        "Size of the captured profile (`*.xplane.pb`).",
    ),
    Metric(
        "speedup",
        Unit.RATIO,
        Direction.HIGHER,
        None,
        "Baseline variant's time over this variant's time: exp of the mean log_ratio over launches.",
    ),
    Metric(
        "break_even_calls",
        Unit.COUNT,
        Direction.LOWER,
        None,
        "Calls after which jit has paid for its compilation against eager code, both from a cold process.",
    ),
    Metric(
        "capacity_share",
        Unit.RATIO,
        Direction.LOWER,
        None,
        "peak_bytes over the memory of one device (environment.device_memory_bytes).",
    ),
    Metric(
        "cache_saving_s",
        Unit.SECONDS,
        Direction.HIGHER,
        None,
        "cold_s - cached_s: what a filled persistent compilation cache saves a fresh process, means over processes.",
    ),
    Metric(
        "growth_exponent",
        Unit.RATIO,
        Direction.NEITHER,
        None,
        "Slope of log(metric) against log(n) over a sweep of n, or of devices: 1 is linear, 2 is quadratic.",
    ),
    Metric(
        "compile_exponent",
        Unit.RATIO,
        Direction.NEITHER,
        None,
        "growth_exponent of trace_s + lower_s + compile_s; it is of a workload, not of one case.",
    ),
    Metric(
        "first_result_s",
        Unit.SECONDS,
        Direction.LOWER,
        None,
        "Until the first result of a cold process: trace_s, lower_s, compile_s and first_call_s, as a mode has them.",
    ),
    Metric(
        "achieved_flops",
        Unit.FLOP_PER_SECOND,
        Direction.HIGHER,
        None,
        "Declared floating-point operations over execution_s.",
    ),
    Metric(
        "achieved_bandwidth",
        Unit.BYTES_PER_SECOND,
        Direction.HIGHER,
        None,
        "Declared bytes that must move over execution_s.",
    ),
    Metric(
        "algorithm_bandwidth",
        Unit.BYTES_PER_SECOND,
        Direction.HIGHER,
        None,
        "Of a collective: its declared message over execution_s, as NCCL's tests define it.",
    ),
    Metric(
        "bus_bandwidth",
        Unit.BYTES_PER_SECOND,
        Direction.HIGHER,
        None,
        "Of a collective: what one device's link must carry over execution_s, as NCCL's tests define it; to be "
        "compared with the link's peak, whatever the number of devices.",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}


REGIMES = {
    "cold_s": "cold",
    "cached_s": "filled persistent cache",
    "warm_s": "warm",
    "new_shape_s": "new shape",
    "new_static_s": "new static argument",
}
"""Metrics of the probe `caching`, and what the state of the caches is called that each is measured in."""

NOT_PROVEN = "not proven"
"""After a regime's name: what its note says where the caches were not shown to be in that state."""


def metrics_of(probe: str) -> tuple[str, ...]:
    """Names of the metrics that a probe measures."""
    return tuple(metric.name for metric in _TABLE if metric.probe == probe)
