"""Every metric, declared once: all that is shown, compared or explained of it is made from its entry."""

from __future__ import annotations

from functools import partial

from jaxmeter.harness.metrics import derived
from jaxmeter.harness.metrics.metric import Direction, Family, Metric, Summary, Unit
from jaxmeter.harness.metrics.statistics import SLOW_SPELL_S

THROUGHPUT = "items_per_s"

SHARES_OF_PEAK = ("flops_share", "bandwidth_share")

_timed = partial(Metric, unit=Unit.SECONDS, direction=Direction.LOWER, probe="timing", summary=Summary.TIMING)
_compiled = partial(
    Metric, unit=Unit.SECONDS, direction=Direction.LOWER, probe="compilation", summary=Summary.PROCESSES
)
_counted = partial(Metric, unit=Unit.COUNT, direction=Direction.NEITHER, probe="compilation", exact=True)
_in_program = partial(_counted, family=Family.PROGRAM)
_sized = partial(
    Metric,
    unit=Unit.BYTES,
    direction=Direction.LOWER,
    probe="compilation",
    exact=True,
    # Every process that writes a program may write another size of the same.
    summary=Summary.MEDIAN,
)
_compiles = partial(_counted, direction=Direction.LOWER, summary=Summary.LARGEST)
_cached = partial(Metric, unit=Unit.SECONDS, direction=Direction.LOWER, probe="caching", summary=Summary.PROCESSES)
_planned = partial(Metric, unit=Unit.BYTES, direction=Direction.LOWER, probe="memory", exact=True)
_rate = partial(Metric, direction=Direction.HIGHER, summary=Summary.TIMING)

_MEASURED = (
    Metric(
        name="max_error",
        title="max error",
        unit=Unit.RELATIVE_ERROR,
        direction=Direction.LOWER,
        probe="numerics",
        summary=Summary.MEDIAN,
        definition="Largest absolute difference from the reference, over the reference's largest absolute entry.",
    ),
    _timed(
        name="execution_s",
        in_history=True,
        title="execution time",
        definition=(
            "One call until its result is ready, compiled and warmed up: the median over the clean blocks of one "
            "process. The time of a block is the mean of its samples without the slowest tenth."
        ),
    ),
    _timed(
        name="log_ratio",
        in_history=True,
        title="log ratio",
        unit=Unit.LOG_RATIO,
        direction=Direction.HIGHER,
        definition=(
            "log(baseline variant's time / this variant's time): the median over one process's passes. A pass times "
            "both variants interleaved. Peers have processes of their own: their times, over the same calibration "
            "loop if both have it, are paired in the order of the processes."
        ),
    ),
    _timed(
        name="return_s",
        title="time until return",
        definition=(
            "One call until it returns, whether or not its result is ready; measured separately from execution_s. The "
            "median over one process."
        ),
    ),
    _timed(
        name="calibration_s",
        in_history=True,
        title="calibration loop",
        direction=Direction.NEITHER,
        summary=Summary.MEDIAN,
        definition=(
            "A fixed loop of Python in the process that timed the variant, before and after each block: the speed of "
            "the machine's cores meanwhile. For a block it is the slower of both, for a process the median over its "
            "blocks. No value if a separate device is timed."
        ),
    ),
    _timed(
        name="over_calibration",
        in_history=True,
        title="time over the calibration loop",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        summary=Summary.MEDIAN,
        definition=(
            "execution_s of a block divided by the time of the calibration loop next to it: the median over the clean "
            f"blocks of one process. Blocks longer than {SLOW_SPELL_S:g} s are divided by calibration_s."
        ),
    ),
    _timed(
        name="parallelism",
        title="processors kept busy",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        summary=Summary.LARGEST,
        definition=(
            "Processor time over wall time of the variant's blocks in one process. The largest value counts, because "
            "interference only reduces it."
        ),
    ),
    _timed(
        name="isolated_s",
        title="time alone",
        summary=Summary.MEDIAN,
        definition=(
            "One call until its result is ready, as execution_s, but in a few consecutive blocks of this variant "
            "after the passes. The median over one process. No value for slow calls, or if a process times one "
            "variant only."
        ),
    ),
    _timed(
        name="pipelined_s",
        title="pipelined time",
        definition=(
            "The time per call in a queue. The workload declares how many calls are issued one after the other; only "
            "the last is waited for. The median over one process; queues are interleaved with the process's blocks."
        ),
    ),
    _timed(
        name="pipelined_speedup",
        title="speedup by queueing",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        definition=(
            "The time per call if each call is waited for, over the time per call in a queue of as many calls: the "
            "median over the passes of one process. It shows the cost of waiting for each call; 1 is no cost."
        ),
    ),
    _compiled(
        name="trace_s",
        title="trace",
        column="trace",
        definition=(
            "Python function to jaxpr (`jit(f).trace`), first time in a fresh process; one value per cold process."
        ),
    ),
    _compiled(
        name="lower_s",
        title="lower",
        column="lower",
        definition="Jaxpr to StableHLO (`.lower`), first time in a fresh process; one value per cold process.",
    ),
    _compiled(
        name="compile_s",
        title="compile",
        column="compile",
        definition=(
            "StableHLO to executable (`.compile`) with the persistent compilation cache off, in a fresh process; one "
            "value per cold process."
        ),
    ),
    _compiled(
        name="first_call_s",
        title="first call",
        column="first call",
        definition=(
            "The first call until its result is ready, after the stages above; for eager code it holds every "
            "operation's own compilation."
        ),
    ),
    _counted(
        name="jaxpr_equations",
        budget="equations",
        title="jaxpr equations",
        column="Equations",
        detail="jaxpr",
        definition="Equations at the top level of the jaxpr.",
    ),
    _counted(
        name="jaxpr_equations_nested",
        title="jaxpr equations at all levels",
        definition="Equations of the jaxpr at all levels, those of loop bodies, branches and nested calls too.",
    ),
    _in_program(
        name="stablehlo_operations",
        budget="operations",
        title="StableHLO operations",
        column="Operations",
        detail="StableHLO",
        definition=(
            "Operations of the lowered program (StableHLO), at all levels, without module and functions themselves."
        ),
    ),
    _in_program(
        name="hlo_instructions",
        in_history=True,
        budget="instructions",
        title="HLO instructions",
        column="Instructions",
        detail="HLO",
        direction=Direction.LOWER,
        definition=("Instructions of the optimised program (HLO), in all its computations, those inside fusions too."),
    ),
    _in_program(
        name="hlo_fusions",
        in_history=True,
        budget="fusions",
        title="fusions",
        definition="Fusions in the optimised program: operations that run as one kernel or loop.",
    ),
    _in_program(
        name="hlo_custom_calls",
        budget="custom_calls",
        title="custom calls",
        definition="Custom calls in the optimised program: libraries and hand-written kernels.",
    ),
    _in_program(
        name="hlo_collectives",
        budget="collectives",
        title="collectives",
        definition="Collectives in the optimised program; a start and its done count as one.",
    ),
    _sized(
        name="executable_bytes",
        title="executable",
        family=Family.PROGRAM,
        definition="Size of the serialised executable, as in the persistent cache before compression.",
    ),
    _in_program(
        name="counted_flops",
        budget="flops",
        title="counted FLOP",
        column="FLOP",
        detail="XLA's count",
        unit=Unit.FLOP,
        definition=(
            "XLA's own count of one device's floating-point operations (`cost_analysis`). XLA counts a loop's body "
            "once; here it counts as often as it runs. No value if that is unknown, or with custom calls or "
            "conditionals. Transcendental functions are not included."
        ),
    ),
    _in_program(
        name="counted_bytes",
        budget="bytes",
        title="counted bytes",
        column="Bytes",
        detail="XLA's count",
        unit=Unit.BYTES,
        direction=Direction.LOWER,
        definition=(
            "XLA's own count of bytes that one device reads and writes (`cost_analysis`), as for counted_flops."
        ),
    ),
    _compiles(
        name="compiles",
        budget="compiles",
        fails_gate=True,
        in_history=True,
        title="compiled programs",
        column="Compiles",
        definition=(
            "Programs that XLA compiled until the first result in a cold process, counted by `jax.monitoring`; of a "
            "stream, in its first pass."
        ),
    ),
    _compiles(
        name="recompiles",
        budget="recompiles",
        fails_gate=True,
        in_history=True,
        title="programs compiled again",
        definition=(
            "Programs that XLA compiled in a second, equal call (of a stream, pass); 0 unless something defeats the "
            "cache."
        ),
    ),
    _compiles(
        name="cache_entries",
        title="cache entries",
        definition=(
            "Entries of the jitted function's own cache after the first call (of a stream, pass). jax keeps one "
            "entry for each kind of call, and several entries can share a program. So this does not count "
            "compilations."
        ),
    ),
    _compiled(
        name="executable_load_s",
        title="load of the executable",
        column="Load",
        detail="executable",
        definition=(
            "The executable from its bytes (`serialize_executable.deserialize_and_load`), in the process that "
            "compiled it. Nothing is traced, lowered or compiled. Mode `aot` only, after all other stages."
        ),
    ),
    _compiled(
        name="executable_first_call_s",
        title="first call of the executable",
        column="First call",
        detail="executable",
        definition="The first call of the loaded executable until its result is ready. Mode `aot` only.",
    ),
    _sized(
        name="exported_bytes",
        title="exported program",
        column="Exported",
        detail="size",
        definition="Size of the program that `jax.export` serialises: StableHLO, not yet compiled. Mode `aot` only.",
    ),
    _compiled(
        name="export_s",
        title="export",
        definition=("`jax.export.export` and `.serialize` of a traced function; it is lowered again. Mode `aot` only."),
    ),
    _compiled(
        name="exported_load_s",
        title="load of the exported program",
        column="Load",
        detail="exported",
        definition="`jax.export.deserialize` of these bytes; nothing is compiled yet. Mode `aot` only.",
    ),
    _compiled(
        name="exported_first_call_s",
        title="first call of the exported program",
        column="First call",
        detail="exported",
        definition=(
            "The first call of the loaded program under `jax.jit` until its result is ready. It includes "
            "compilation, with the persistent cache off."
        ),
    ),
    _cached(
        name="cold_s",
        title="cold",
        definition=(
            "First call of the jitted function until its result is ready, in a fresh process that has not compiled "
            "it; persistent cache off. Before it, the process imports jax, makes the inputs and compiles one trivial "
            "program."
        ),
    ),
    _cached(
        name="cached_s",
        title="filled cache",
        definition="The same in a fresh process, with the program in the persistent compilation cache.",
    ),
    _cached(
        name="warm_s",
        title="warm",
        definition=("The second, equal call in a process that has compiled the program: one call, not a steady mean."),
    ),
    _cached(
        name="default_threshold_s",
        title="JAX's threshold",
        definition=(
            "As cached_s, but the cache was filled with JAX's own thresholds, which keep programs that took at least a "
            "second to compile. Other programs compile again."
        ),
    ),
    _cached(
        name="new_shape_s",
        title="new shape",
        definition=(
            "The call after that with arguments of another shape, as the workload names them; persistent cache off."
        ),
    ),
    _cached(
        name="new_static_s",
        title="new static",
        definition=(
            "The call after that with another value of a static argument, as the workload names it; persistent cache "
            "off."
        ),
    ),
    _planned(
        name="argument_bytes",
        title="argument memory",
        column="argument",
        definition="Memory of the program's arguments, as the compiler plans it (`memory_analysis`).",
    ),
    _planned(
        name="output_bytes",
        title="output memory",
        column="output",
        definition="Memory of the program's outputs, as the compiler plans it (`memory_analysis`).",
    ),
    _planned(
        name="temp_bytes",
        title="temporary memory",
        column="temp",
        definition="Memory of temporaries, as the compiler plans it (`memory_analysis`).",
    ),
    _planned(
        name="alias_bytes",
        title="aliased memory",
        column="alias",
        direction=Direction.NEITHER,
        definition="Output memory that reuses argument memory (donated buffers), as the compiler plans it.",
    ),
    _planned(
        name="code_bytes",
        title="code size",
        column="code",
        definition="Size of the generated code (`memory_analysis`); 0 where the backend does not report it.",
    ),
    _planned(
        name="planned_peak_bytes",
        budget="peak_memory",
        fails_gate=True,
        in_history=True,
        title="planned peak memory",
        column="Planned",
        detail="at its peak",
        definition=(
            "The most memory that the program needs at once on a device, by the compiler's plan: "
            "`peak_memory_in_bytes`. If that leaves out temporaries (CPU) or is not reported: arguments + outputs + "
            "temporaries - aliased. On a CPU, the plan leaves out the working memory of matrix products and "
            "convolutions, which measured_peak_bytes includes."
        ),
    ),
    _planned(
        name="allocated_bytes",
        title="planned allocations",
        column="Allocated",
        detail="with constants",
        definition=(
            "All memory that the compiler allocates in the device's main memory for one call: arguments, outputs, "
            "temporaries and constants (`total_allocation_bytes`). planned_peak_bytes leaves out constants on a CPU, "
            "and can include on-chip memory on a TPU. jaxlib 0.11.2 or newer; otherwise no value."
        ),
    ),
    _planned(
        name="padding_bytes",
        title="padding of the planned peak",
        column="Padding",
        detail="of the peak",
        definition=(
            "`peak_memory_in_bytes` minus `peak_unpadded_heap_bytes`: what the padding of arrays to the device's tiles "
            "adds to the planned peak. jaxlib 0.11.2 or newer, and not on a CPU; otherwise no value."
        ),
    ),
    _planned(
        name="donation_saves_bytes",
        title="saving by donation",
        column="Donation saves",
        detail="of the plan",
        direction=Direction.HIGHER,
        signed=True,
        definition="planned_peak_bytes minus its value with all arguments donated (that program is compiled, not run).",
    ),
    Metric(
        name="measured_peak_bytes",
        title="measured peak memory",
        unit=Unit.BYTES,
        direction=Direction.LOWER,
        probe="measured_memory",
        summary=Summary.MEDIAN,
        column="A call",
        detail="measured peak",
        definition=(
            "The most memory used during a call, in a process of its own. If the device's allocator counts, on the "
            "first device: the arguments plus the increase of allocated memory up to its peak in the first call. "
            "Otherwise, on all devices together: the arguments plus the increase of resident memory during a "
            "warmed-up call."
        ),
    ),
    Metric(
        name="trace_file_bytes",
        title="captured profile",
        unit=Unit.BYTES,
        direction=Direction.NEITHER,
        probe="trace",
        definition="Size of the captured profile (`*.xplane.pb`).",
    ),
)

_DERIVED = (
    Metric(
        name="normalised_s",
        title="normalised time",
        unit=Unit.SECONDS,
        direction=Direction.LOWER,
        derive=derived.derive_normalised,
        summary=Summary.TIMING,
        definition=(
            "over_calibration times the median calibration_s of the run: the time of a call at the run's median "
            "machine speed. A comparison uses the median of the baseline run. In older records without "
            "over_calibration, execution_s is divided by calibration_s."
        ),
    ),
    Metric(
        name="speedup",
        title="speedup",
        unit=Unit.RATIO,
        direction=Direction.HIGHER,
        derive=derived.derive_speedup,
        summary=Summary.TIMING,
        definition="Baseline variant's time over this variant's time: exp of the mean log_ratio over processes.",
    ),
    Metric(
        name="break_even_calls",
        title="calls until jit pays",
        unit=Unit.COUNT,
        direction=Direction.LOWER,
        derive=derived.derive_break_even,
        column="jit pays",
        detail="after",
        definition=(
            "Calls after which the faster calls of jit outweigh its compilation, compared with eager code, both from "
            "a cold process. The range follows from the intervals of speedup, eager call and cold processes."
        ),
    ),
    Metric(
        name="compile_total_s",
        title="trace + lower + compile",
        unit=Unit.SECONDS,
        direction=Direction.LOWER,
        derive=derived.derive_compile_total,
        summary=Summary.PROCESSES,
        definition="Python function to executable: trace_s, lower_s and compile_s, added up in each cold process.",
    ),
    Metric(
        name="first_result_s",
        title="first result",
        unit=Unit.SECONDS,
        direction=Direction.LOWER,
        derive=derived.derive_first_result,
        summary=Summary.PROCESSES,
        definition=(
            "Until the first result of a cold process: trace_s, lower_s, compile_s and first_call_s, as a mode has "
            "them, added up in each process."
        ),
    ),
    Metric(
        name="compile_exponent",
        title="scaling exponent of the compile time",
        unit=Unit.EXPONENT,
        direction=Direction.NEITHER,
        exponent_of="compile_total_s",
        definition=(
            "The exponent p of a + b * n**p, fitted to compile_total_s over the sizes n of a workload; a is 0 below "
            "5 sizes. 1 is linear, 2 is quadratic."
        ),
    ),
    Metric(
        name="flops_over_declared",
        title="counted FLOP over declared",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        exact=True,
        derive=derived.derive_flops_over_declared,
        definition="counted_flops times the number of devices, over the operations that the workload declares.",
    ),
    Metric(
        name="bytes_over_declared",
        title="counted bytes over declared",
        unit=Unit.RATIO,
        direction=Direction.LOWER,
        exact=True,
        derive=derived.derive_bytes_over_declared,
        definition="counted_bytes times the number of devices, over the bytes that the workload declares.",
    ),
    Metric(
        name="cache_saving_s",
        title="saving by the cache",
        unit=Unit.SECONDS,
        direction=Direction.HIGHER,
        derive=derived.derive_cache_saving,
        signed=True,
        column="The cache saves",
        detail="cold − filled",
        definition=(
            "cold_s - cached_s: what a filled persistent compilation cache saves a fresh process. Difference of two "
            "arithmetic means over processes, with Welch's t interval."
        ),
    ),
    Metric(
        name="capacity_share",
        title="share of the device's memory",
        unit=Unit.SHARE,
        direction=Direction.LOWER,
        exact=True,
        derive=derived.derive_capacity_share,
        column="Of the device",
        detail="planned",
        definition="planned_peak_bytes over the memory of one device (environment.device_memory_bytes).",
    ),
    Metric(
        name="measured_over_planned",
        title="measured over planned peak memory",
        unit=Unit.RATIO,
        direction=Direction.LOWER,
        derive=derived.derive_call_over_plan,
        definition="measured_peak_bytes over planned_peak_bytes, which is the plan of one device.",
    ),
    Metric(
        name="donation_share",
        title="saving by donation, of the plan",
        unit=Unit.SHARE,
        direction=Direction.HIGHER,
        exact=True,
        derive=derived.derive_donation_share,
        signed=True,
        definition="donation_saves_bytes over planned_peak_bytes.",
    ),
    Metric(
        name="device_busy_s",
        title="device busy time",
        unit=Unit.SECONDS,
        direction=Direction.LOWER,
        derive=derived.derive_device_time,
        summary=Summary.STEPS,
        definition=(
            "Union of the operations of the busiest device in a step: the median over the captured steps. On a GPU "
            "or TPU, by the device's own clock. On a CPU, busy_share times execution_s; no value if "
            f"traced_over_timed is not between {derived.SPED_UP:g} and {derived.SLOWED_DOWN:g}."
        ),
    ),
    Metric(
        name="busy_share",
        title="device busy",
        unit=Unit.SHARE,
        direction=Direction.NEITHER,
        derive=derived.derive_busy_share,
        summary=Summary.STEPS,
        definition=("Share of the captured steps' time in which the busiest device ran an operation."),
    ),
    Metric(
        name="traced_over_timed",
        title="traced step over timed step",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        derive=derived.derive_slowdown,
        summary=Summary.STEPS,
        definition=(
            "Median wall time of the captured steps over execution_s: how much tracing slows the program down. Do "
            "not use traced wall times as times of the program; a capture gives shares."
        ),
    ),
    Metric(
        name="launch_delay_s",
        title="launch delay",
        unit=Unit.SECONDS,
        direction=Direction.LOWER,
        derive=derived.derive_launch_delay,
        summary=Summary.STEPS,
        definition=(
            "The time from the start of a kernel launch on the host to the kernel's start on the device: the median "
            "over the kernels of all captured steps. GPUs only."
        ),
    ),
    Metric(
        name="flops_share",
        title="share of the peak FLOP/s",
        unit=Unit.SHARE,
        direction=Direction.HIGHER,
        derive=derived.derive_flops_share,
        summary=Summary.TIMING,
        definition=(
            "FLOPs of a call over its time, over the peak of the case's devices (environment.peak_flops) for the "
            "format of products. FLOPs are declared or else counted from the program. The time is device_busy_s of a "
            "GPU or TPU, or execution_s of a CPU."
        ),
    ),
    Metric(
        name="bandwidth_share",
        title="share of the peak bandwidth",
        unit=Unit.SHARE,
        direction=Direction.HIGHER,
        derive=derived.derive_bandwidth_share,
        summary=Summary.TIMING,
        definition=(
            "Bytes of a call over its time, over the peak memory bandwidth of the case's devices "
            "(environment.peak_bytes_per_s). Bytes are declared or else counted from the program. The time is "
            "device_busy_s of a GPU or TPU, or execution_s of a CPU."
        ),
    ),
    Metric(
        name="operational_intensity",
        title="operational intensity",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        derive=derived.derive_intensity,
        definition="FLOPs over bytes of a call, each declared or else counted from the program: FLOP/B.",
    ),
    _rate(
        name=THROUGHPUT,
        title="throughput",
        unit=Unit.ITEMS_PER_SECOND,
        derive=derived.derive_throughput,
        definition=(
            "Declared items of a call, such as tokens or examples, over execution_s, with its interval. Two runs are "
            "compared by execution_s."
        ),
    ),
    _rate(
        name="achieved_flops",
        title="achieved FLOP/s",
        unit=Unit.FLOP_PER_SECOND,
        derive=derived.rate_of("achieved_flops", lambda cost: cost.flops),
        definition="Declared floating-point operations over execution_s.",
    ),
    _rate(
        name="achieved_bandwidth",
        title="achieved bandwidth",
        unit=Unit.BYTES_PER_SECOND,
        derive=derived.rate_of("achieved_bandwidth", lambda cost: cost.bytes),
        definition="Declared bytes that must move over execution_s.",
    ),
    _rate(
        name="algorithm_bandwidth",
        title="algorithm",
        unit=Unit.BYTES_PER_SECOND,
        derive=derived.rate_of("algorithm_bandwidth", lambda cost: cost.message_bytes),
        definition="Of a collective: its declared message over execution_s, as NCCL's tests define it.",
    ),
    _rate(
        name="bus_bandwidth",
        title="bus",
        unit=Unit.BYTES_PER_SECOND,
        derive=derived.rate_of("bus_bandwidth", lambda cost: cost.bus_bytes),
        definition=(
            "Of a collective: what one device's link must carry over execution_s, as NCCL's tests define it; to be "
            "compared with the link's peak, whatever the number of devices."
        ),
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*_MEASURED, *_DERIVED)}


def metrics_in(family: Family) -> tuple[Metric, ...]:
    """The metrics of a family, in their order."""
    return tuple(metric for metric in METRICS.values() if metric.family is family)
