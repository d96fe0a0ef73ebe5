"""Every metric, declared once: all that is shown, compared or explained of it is made from its entry."""

from __future__ import annotations

from functools import partial

from jaxmeter.harness.metrics import derived, roofline, traced
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
            "process."
        ),
    ),
    _timed(
        name="log_ratio",
        in_history=True,
        title="log ratio",
        unit=Unit.LOG_RATIO,
        direction=Direction.HIGHER,
        definition=(
            "log(baseline variant's time / this variant's time): the median over one process's passes, "
            "each timing both within the same moment. Peers, launched on their own, are paired by process order "
            "instead, by each side's time over the calibration loop where both have the same."
        ),
    ),
    _timed(
        name="return_s",
        title="time until return",
        definition=(
            "One call until it returns, whether or not its result is ready; taken apart from execution_s. The median "
            "over one process."
        ),
    ),
    _timed(
        name="calibration_s",
        in_history=True,
        title="calibration loop",
        direction=Direction.NEITHER,
        summary=Summary.MEDIAN,
        definition=(
            "A fixed loop of Python in the process that timed the variant, before and after each block: how fast the "
            "machine's cores were meanwhile. Of a block the slower of both, of a process the median over its blocks; "
            "none where a device of its own is timed."
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
            "execution_s of each block divided by the time of the calibration loop next to it, or by calibration_s "
            f"where a block lasts longer than {SLOW_SPELL_S:g} s: the median over the clean blocks of one process."
        ),
    ),
    _timed(
        name="parallelism",
        title="processors kept busy",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        summary=Summary.LARGEST,
        definition=(
            "Processor time over wall time of the variant's blocks in one process; the largest, since what disturbs "
            "it only takes some away."
        ),
    ),
    _timed(
        name="isolated_s",
        title="time alone",
        summary=Summary.MEDIAN,
        definition=(
            "One call until its result is ready, as execution_s, but in a few blocks of this variant in a row, after "
            "the passes. The median over one process; none of slow calls, nor where a process times one variant only."
        ),
    ),
    _timed(
        name="pipelined_s",
        title="pipelined time",
        definition=(
            "A call in a queue: as many calls as the workload declares are issued one after the other, and the last is "
            "waited for; the time of all over their number. The median over one process, with whose blocks queues take "
            "turns."
        ),
    ),
    _timed(
        name="pipelined_speedup",
        title="speedup by queueing",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        definition=(
            "The time of a call in a row of calls, each waited for, over that of a call in a queue of as many: the "
            "median over the passes of one process. What waiting for each call costs; 1 where it costs nothing."
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
            "once; it counts here as often as it runs. No value where that is not known, or with custom calls or "
            "conditionals. Transcendental functions are not among them."
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
            "Entries of the jitted function's own cache after the first call (of a stream, pass). jax keeps one for "
            "each kind of call that it has seen, and several may share a program: it is no count of compilations."
        ),
    ),
    _compiled(
        name="executable_load_s",
        title="load of the executable",
        column="Load",
        detail="executable",
        definition=(
            "The executable from its bytes (`serialize_executable.deserialize_and_load`), in the process that compiled"
            " it; nothing is traced, lowered or compiled. Mode `aot` only, after everything else; so the next ones."
        ),
    ),
    _compiled(
        name="executable_first_call_s",
        title="first call of the executable",
        column="First call",
        detail="executable",
        definition="The first call of the executable that was loaded, until its result is ready.",
    ),
    _sized(
        name="exported_bytes",
        title="exported program",
        column="Exported",
        detail="size",
        definition="Size of the program that `jax.export` serialises: StableHLO, not yet compiled.",
    ),
    _compiled(
        name="export_s",
        title="export",
        definition=("`jax.export.export` and `.serialize` of a function that was traced before; it is lowered again."),
    ),
    _compiled(
        name="exported_load_s",
        title="load of the exported program",
        column="Load",
        detail="exported",
        definition="`jax.export.deserialize` of these bytes; nothing is compiled yet.",
    ),
    _compiled(
        name="exported_first_call_s",
        title="first call of the exported program",
        column="First call",
        detail="exported",
        definition=(
            "The first call of the program that was loaded, under `jax.jit`, until its result is ready: it is compiled"
            " with it, persistent cache off."
        ),
    ),
    _cached(
        name="cold_s",
        title="cold",
        definition=(
            "First call of the jitted function until its result is ready, in a fresh process that has not compiled it,"
            " persistent cache off. Making the inputs and one trivial program have been compiled, jax imported."
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
            "`peak_memory_in_bytes`, or arguments + outputs + temporaries - aliased where that leaves out temporaries "
            "(CPU) or is not reported."
        ),
    ),
    _planned(
        name="donation_saves_bytes",
        title="saving by donation",
        column="Donation saves",
        detail="of the plan",
        direction=Direction.HIGHER,
        signed=True,
        definition=(
            "planned_peak_bytes less that of the same program compiled with all its arguments donated (compiled, not "
            "run)."
        ),
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
            "The most that was held during a call, in a process of its own. Where a device's allocator counts, on the "
            "first device: the arguments there plus the growth of what it has given, to its peak in the first call. "
            "Else, on all devices together: the arguments plus the growth of the process's resident memory during a "
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
            "over_calibration times the median calibration_s of the run: what a call takes where the machine is as "
            "fast as in "
            "the middle of the run, or of that which its times are brought to. In records of before there was an "
            "over_calibration, execution_s over calibration_s."
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
            "Calls after which jit has paid for its compilation against eager code, both from a cold process: from the "
            "fewest to the most that the intervals of speedup, eager call and cold processes allow."
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
            "p of a + b * n**p through compile_total_s over a sweep of n, a being 0 below 5 sizes: 1 is linear, 2 is "
            "quadratic. It is of a workload, not of one case."
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
        derive=traced.derive_device_time,
        summary=Summary.STEPS,
        definition=(
            "Union of the operations of the busiest device in a step, the median over the captured steps. Of a GPU or "
            "TPU by the device's own clock. Of a CPU busy_share times execution_s, and none where traced_over_timed is "
            f"not between {traced.SPED_UP:g} and {traced.SLOWED_DOWN:g}."
        ),
    ),
    Metric(
        name="busy_share",
        title="device busy",
        unit=Unit.SHARE,
        direction=Direction.NEITHER,
        derive=traced.derive_busy_share,
        summary=Summary.STEPS,
        definition=("Share of the captured steps' time in which the busiest device ran an operation."),
    ),
    Metric(
        name="traced_over_timed",
        title="traced step over timed step",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        derive=traced.derive_slowdown,
        summary=Summary.STEPS,
        definition=(
            "Median wall time of the captured steps over execution_s: how much tracing slows the program down. Traced "
            "wall times are no times of the program; a capture gives shares."
        ),
    ),
    Metric(
        name="launch_delay_s",
        title="launch delay",
        unit=Unit.SECONDS,
        direction=Direction.LOWER,
        derive=traced.derive_launch_delay,
        summary=Summary.STEPS,
        definition=(
            "From the beginning of a kernel's launch on the host to its start on the device: the median over the "
            "kernels of all captured steps. GPUs only."
        ),
    ),
    Metric(
        name="flops_share",
        title="share of the peak FLOP/s",
        unit=Unit.SHARE,
        direction=Direction.HIGHER,
        derive=roofline.derive_flops_share,
        summary=Summary.TIMING,
        definition=(
            "FLOPs of a call, declared or else counted from the program, over device_busy_s of a GPU or TPU or "
            "execution_s of a CPU, over the peak of the case's devices (environment.peak_flops) in the format that "
            "products are computed in."
        ),
    ),
    Metric(
        name="bandwidth_share",
        title="share of the peak bandwidth",
        unit=Unit.SHARE,
        direction=Direction.HIGHER,
        derive=roofline.derive_bandwidth_share,
        summary=Summary.TIMING,
        definition=(
            "Bytes of a call, declared or else counted from the program, over the same time, over the peak of the "
            "memory of the case's devices (environment.peak_bytes_per_s)."
        ),
    ),
    Metric(
        name="operational_intensity",
        title="operational intensity",
        unit=Unit.RATIO,
        direction=Direction.NEITHER,
        derive=roofline.derive_intensity,
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
