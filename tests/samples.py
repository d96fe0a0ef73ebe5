"""Made-up runs for tests: plausible in shape, measured nowhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jaxmeter.harness.machine.platforms import Target
from jaxmeter.harness.metrics.statistics import VERSION as STATISTICS_VERSION
from jaxmeter.harness.record import (
    SCHEMA_VERSION,
    Answer,
    Buffer,
    CacheStateCall,
    CachingDetails,
    CaseRecord,
    CompilationDetails,
    Cost,
    Environment,
    Figure,
    Manifest,
    MemoryDetails,
    Number,
    NumericsDetails,
    Outcome,
    Param,
    PlannedCase,
    PlannedVariant,
    ProcessWarning,
    Published,
    RunRecord,
    Settings,
    Status,
    TimingDetails,
    TraceDetails,
    VariantRecord,
    write_json,
)
from jaxmeter.harness.record.self_test import SelfTest, Tally
from jaxmeter.harness.record.trace_summary import TracedDevice, TracedOperation, TraceSummary

WOBBLE = (1.0, 1.01, 0.99, 1.005, 0.995)
"""Process to process; its geometric mean is nearly 1."""

CALIBRATION = "alu 1"
"""The identity of a calibration loop that nobody has timed."""

STARTED = "2026-01-02T03:04:05Z"


def environment(**changes: Any) -> Environment:
    """A machine that does not exist."""
    made_up = Environment(
        python="3.11.0",
        system="Linux-0.0-test",
        machine="x86_64",
        packages={"jax": "0.10.0", "jaxlib": "0.10.0", "numpy": "2.0.0"},
        device_kind="cpu",
        device_name="Sample Processor 1",
        device_count=1,
        platform_version=None,
        processor="Sample Processor 1",
        cores=2,
        allowed_cores=2,
        cpu_quota=None,
        governor=None,
        memory_bytes=8 * 2**30,
        load_average=0.1,
        threads={"OMP_NUM_THREADS": None},
        variables={},
        x64=False,
        matmul_precision=None,
        host="0" * 12,
        git_revision="0" * 40,
        git_dirty=False,
        image=None,
    )
    return msgspec.structs.replace(made_up, **changes)


def target(name: str = "cpu:made-up", **changes: Any) -> Target:
    """A target that the CPU's own compiler stands for: no case of it is ever called."""
    made_up = Target(
        name=name,
        device=name.partition(":")[0],
        jax_platforms="cpu",
        jax_backend="cpu",
        looked_for="a compiler",
        extra="jaxmeter",
        memory_bytes=2**30,
        product_dtype="float32",
    )
    return msgspec.structs.replace(made_up, **changes)


def settings(**changes: Any) -> Settings:
    """The settings of a quick run."""
    made_up = Settings(
        level="quick",
        probes=("numerics", "compilation", "timing", "memory"),
        fewest_rounds=1,
        most_rounds=12,
        budget_s=600.0,
        stage_limit_s=120.0,
        block_s=0.02,
        sample_s=0.0002,
        blocks=5,
        seed=0,
        confidence=0.99,
        target_half_width=0.02,
        select=(),
        suites=("jaxmeter.suites",),
    )
    return msgspec.structs.replace(made_up, **changes)


def planned_variant(name: str, **changes: Any) -> PlannedVariant:
    """A variant by its name `implementation:mode`."""
    implementation, _, mode = name.partition(":")
    return PlannedVariant(
        name=name, implementation=implementation, mode=mode, description="Sample.", source="0" * 16, **changes
    )


ABOUT_COMPILING = Answer("What does the first call cost?", "a:jit", metric="first_call_s")


def planned_case(
    workload: str = "selu",
    *,
    params: Mapping[str, Param] | None = None,
    variants: Iterable[str | PlannedVariant] = ("selu:eager", "selu:jit"),
    **changes: Any,
) -> PlannedCase:
    """A case whose baseline variant is its first."""
    params = {"dtype": "float32", "n": 10_000} if params is None else dict(params)
    planned = tuple(planned_variant(one) if isinstance(one, str) else one for one in variants)
    inner = ",".join(f"{key}={value}" for key, value in sorted(params.items()))
    made_up = PlannedCase(
        id=f"{workload}-{'-'.join(str(value) for value in params.values())}",
        name=f"{workload}[{inner}]",
        suite=workload,
        workload=workload,
        platform="cpu",
        description=f"Sample workload {workload}.",
        params=params,
        definition="0" * 16,
        baseline=planned[0].name if planned else "",
        variants=planned,
        cost=None,
    )
    return msgspec.structs.replace(made_up, **changes)


def claim(figure: Figure, against: Figure | None = None, **changes: Any) -> Published:
    """What somebody who does not exist has published."""
    made_up = Published(
        source="Sample, On Nothing, 2020, table 1",
        device="Sample Device 2",
        timed="a sample call",
        figure=figure,
        against=against,
        differs="device",
    )
    return msgspec.structs.replace(made_up, **changes)


def timing(
    execution_s: float,
    *,
    baseline_s: float | None = None,
    processes: int = 5,
    contended: int = 0,
    spread: float = 1,
    calibration_s: tuple[Number | None, ...] = (),
    parallelism: tuple[Number | None, ...] = (),
    **details: Any,
) -> Outcome:
    """Processes that wobble around a time by `spread` percent; the ratio to the baseline wobbles less.

    Args:
      calibration_s, parallelism: By process; where there is a calibration loop, it is CALIBRATION unless `details` say
        otherwise.
      details: What else the details tell.
    """
    wobble = [WOBBLE[index % len(WOBBLE)] ** spread for index in range(processes)]
    values: dict[str, tuple[Number | None, ...]] = {
        "execution_s": tuple(execution_s * factor for factor in wobble),
        "return_s": tuple(min(4e-6, execution_s / 2) * factor for factor in wobble),
    }
    if baseline_s is not None:
        values["log_ratio"] = tuple(math.log(baseline_s / execution_s) + math.log(factor) / 2 for factor in wobble)
    values |= {"calibration_s": calibration_s} if calibration_s else {}
    values |= {"parallelism": parallelism} if parallelism else {}
    told = {
        "processes": processes,
        "contended": contended,
        "calibration": CALIBRATION if calibration_s else None,
        **details,
    }
    return Outcome(status=Status.OK, values=values, details=TimingDetails(**told))


def compilation(
    *stages_s: float,
    equations: int = 6,
    processes: int = 1,
    counts: Mapping[str, Number] | None = None,
    fingerprints: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Outcome:
    """trace, lower, compile and first call over cold processes; one stage alone is an eager first call.

    Args:
      counts: What else was counted: one value by metric.
    """
    names = ("trace_s", "lower_s", "compile_s", "first_call_s")[-1 if len(stages_s) == 1 else 0 :]
    values: dict[str, tuple[Number | None, ...]] = {
        name: wobbling(stage_s, processes) for name, stage_s in zip(names, stages_s, strict=True)
    }
    if len(stages_s) > 1:
        values["jaxpr_equations"] = (equations,)
    values |= {name: (number,) for name, number in (counts or {}).items()}
    return Outcome(status=Status.OK, values=values, details=CompilationDetails(fingerprints=fingerprints), notes=notes)


def wobbling(value: float, processes: int) -> tuple[float, ...]:
    """A value in each of some processes; one alone is exact."""
    return tuple(value * WOBBLE[index % len(WOBBLE)] for index in range(processes))


PROGRAM = {
    "jaxpr_equations_nested": 45,
    "stablehlo_operations": 60,
    "hlo_instructions": 120,
    "hlo_fusions": 7,
    "hlo_custom_calls": 1,
    "hlo_collectives": 0,
    "executable_bytes": 50_000,
    "counted_flops": 2_040_000,
    "counted_bytes": 6_000_000,
    "compiles": 1,
    "recompiles": 0,
}
"""Counts of a program."""


def caching(
    *,
    processes: int = 3,
    calls: tuple[CacheStateCall, ...] | None = None,
    notes: tuple[str, ...] = (),
    **cache_states_s: float,
) -> Outcome:
    """Cache states by metric, in seconds, each proven in every process unless other calls are given."""
    values: dict[str, tuple[Number | None, ...]] = {
        name: wobbling(value, processes) for name, value in cache_states_s.items()
    }
    proven = tuple(
        CacheStateCall(cache_state=name.removesuffix("_s"), proven=True, elapsed_s=elapsed_s, traces=1, compiled=1)
        for name, times in values.items()
        for elapsed_s in times
        if elapsed_s is not None
    )
    details = CachingDetails(calls=proven if calls is None else calls)
    return Outcome(status=Status.OK, values=values, details=details, notes=notes)


def memory(
    argument: int,
    output: int,
    temp: int,
    *,
    alias: int = 0,
    code: int = 0,
    more: Mapping[str, Number | None] | None = None,
    buffers: tuple[Buffer, ...] = (),
    notes: tuple[str, ...] = (),
) -> Outcome:
    """A memory analysis, in bytes; its peak is all that is not aliased.

    Args:
      more: Further sizes by metric: another peak, what donation saves.
    """
    sizes = {"argument_bytes": argument, "output_bytes": output, "temp_bytes": temp}
    sizes |= {"alias_bytes": alias, "code_bytes": code, "planned_peak_bytes": argument + output + temp - alias}
    values: dict[str, tuple[Number | None, ...]] = {name: (size,) for name, size in {**sizes, **(more or {})}.items()}
    return Outcome(status=Status.OK, values=values, details=MemoryDetails(buffers=buffers), notes=notes)


def measured_memory(measured_peak_bytes: Number | None = None, *, notes: tuple[str, ...] = ()) -> Outcome:
    """Measured peak memory at most, in bytes."""
    values = {} if measured_peak_bytes is None else {"measured_peak_bytes": (measured_peak_bytes,)}
    return Outcome(status=Status.OK, values=values, notes=notes)


def traced(
    *traced_s: float,
    busy: float = 0.9,
    platform: str = "cpu",
    ledger: Mapping[str, float] | None = None,
    **changes: Any,
) -> Outcome:
    """A capture of some steps in which one device was busy for a share of each.

    Args:
      ledger: By part; what the device computes and the host's own code by default.
      changes: Of the summary.
    """
    device = TracedDevice(name="0", busy_s=tuple(busy * step_s for step_s in traced_s))
    operations = (
        traced_operation("dot.1", share=0.75, opcode="dot", source="train.py:48", flops=2e6, bytes=3e6),
        traced_operation("fusion.2", share=0.2, opcode="fusion", source="train.py:50"),
    )
    summary = {
        "platform": platform,
        "steps_from": "step annotations",
        "traced_s": traced_s,
        "devices": (device,),
        "operations": operations,
        "others": 3,
        "others_share": 0.05,
        "ledger": {"compute": busy, "host after": 1 - busy} if ledger is None else dict(ledger),
        **changes,
    }
    return Outcome(
        status=Status.OK,
        values={"trace_file_bytes": (20_000,)},
        details=TraceDetails(summary=TraceSummary(**summary), discarded=10),
    )


def traced_operation(name: str, *, share: float, total_s: float = 1e-3, **changes: Any) -> TracedOperation:
    """An operation that ran ten times."""
    fields = {
        "module": "jit_step",
        "category": "compute",
        "count": 10,
        "total_s": total_s,
        "self_s": total_s,
        **changes,
    }
    return TracedOperation(name=name, share=share, **fields)


def buffer(size_bytes: int, **changes: Any) -> Buffer:
    """A buffer of a program."""
    made_up = Buffer(
        kind="temporary",
        size_bytes=size_bytes,
        shape="f32[1000,1000]",
        instruction="dot.3",
        operation="jit(selu)/dot_general",
        source="~/suites/activations.py:12",
    )
    return msgspec.structs.replace(made_up, **changes)


def numerics(max_error: float = 1.2e-7) -> Outcome:
    """A correct result."""
    return Outcome(status=Status.OK, values={"max_error": (max_error,)})


def record(planned: PlannedCase, outcomes: Mapping[str, Mapping[str, Outcome]], **changes: Any) -> CaseRecord:
    """A finished case with the outcomes given by variant and probe."""
    made_up = CaseRecord(
        id=planned.id,
        name=planned.name,
        started=STARTED,
        elapsed_s=1.0,
        processes=5,
        variants=tuple(VariantRecord(name=name, outcomes=dict(probes)) for name, probes in outcomes.items()),
        statistics_version=STATISTICS_VERSION,
    )
    return msgspec.structs.replace(made_up, **changes)


def fast_case(planned: PlannedCase, *, eager_s: float = 5e-4, jit_s: float = 5e-5) -> CaseRecord:
    """A case of which every probe of an eager and a jit variant is ok."""
    eager, jit = (variant.name for variant in planned.variants[:2])
    size = 4 * int(planned.params.get("n", 1000))
    return record(
        planned,
        {
            eager: {"numerics": numerics(), "timing": timing(eager_s), "compilation": compilation(0.08)},
            jit: {
                "numerics": numerics(),
                "timing": timing(jit_s, baseline_s=eager_s),
                "compilation": compilation(0.004, 0.006, 0.05, 0.001),
                "memory": memory(size, size, size // 2),
            },
        },
    )


def manifest(cases: Iterable[PlannedCase], **changes: Any) -> Manifest:
    """The manifest of a CPU run that planned these cases."""
    made_up = Manifest(
        schema_version=SCHEMA_VERSION,
        run_id="2026-01-02T03-04-05Z-cpu-0000000",
        tool_version="0.0.0",
        started=STARTED,
        backend="cpu",
        environments={},
        settings=settings(),
        cases=(),
        machine="",
    )
    own = changes.pop("environment", None) or environment()
    backend = changes.get("backend", made_up.backend)
    environments = {backend: own, **changes.pop("environments", {})}
    placed = [one if one.platform in environments else msgspec.structs.replace(one, platform=backend) for one in cases]
    own_changes = {"cases": tuple(placed), "machine": own.device_name, **changes}
    return msgspec.structs.replace(made_up, environments=environments, **own_changes)


def self_test(**changes: Any) -> SelfTest:
    """What was found of a machine that does not exist."""
    speedups = Tally(compared=48, differ=0, intervals=48, held_shown=45, held_decisive=48, smallest_difference=0.03)
    times = Tally(compared=24, differ=1, intervals=48, held_shown=41, held_decisive=46, smallest_difference=0.2)
    made_up = SelfTest(
        machine="Sample Processor 1, 2 cores, 1 x cpu",
        at="2026-01-01T03:04:05Z",
        tool_version="0.0.0",
        packages={"jax": "0.10.0", "jaxlib": "0.10.0"},
        runs=2,
        cases=24,
        processes=240,
        shown_confidence=0.95,
        confidence=0.99,
        minimum_effect=0.03,
        speedups=speedups,
        times=times,
    )
    return msgspec.structs.replace(made_up, **changes)


def run(*pairs: tuple[PlannedCase, CaseRecord | None], **changes: Any) -> RunRecord:
    """A run of planned cases and their records (None: lost); without any, of one case of which all is ok."""
    if not pairs:
        planned = planned_case()
        pairs = ((planned, fast_case(planned)),)
    records = tuple(one for _, one in pairs if one is not None)
    ended = changes.pop("ended", changes.get("started", "2026-01-02T03:05:05Z"))
    return RunRecord(manifest=manifest([one for one, _ in pairs], **changes), cases=records, ended=ended)


def pair(
    outcomes: Mapping[str, Outcome | Mapping[str, Outcome]], case: PlannedCase | None = None, **changes: Any
) -> tuple[PlannedCase, CaseRecord]:
    """A planned case and its record, with outcomes by variant and probe; a timing alone needs no probe.

    Args:
      changes: What `planned_case` takes in addition to the variants.
    """
    planned = case or planned_case(**{"variants": tuple(outcomes), **changes})
    probes = {name: {"timing": one} if isinstance(one, Outcome) else one for name, one in outcomes.items()}
    return planned, record(planned, probes)


def one_case(
    outcomes: Mapping[str, Outcome | Mapping[str, Outcome]],
    case: PlannedCase | Mapping[str, Any] | None = None,
    **changes: Any,
) -> RunRecord:
    """A run of one case; see `pair`."""
    made = pair(outcomes, case) if isinstance(case, PlannedCase) else pair(outcomes, **(case or {}))
    return run(made, **changes)


def change_outcomes(made: RunRecord, change: Callable[..., Mapping[str, Outcome]]) -> RunRecord:
    """The run with what `change` makes of the outcomes of each variant: `change(outcomes, variant's name, params)`."""
    params = {planned.id: planned.params for planned in made.manifest.cases}
    cases = [
        msgspec.structs.replace(
            case,
            variants=tuple(
                msgspec.structs.replace(one, outcomes=dict(change(one.outcomes, one.name, params[case.id])))
                for one in case.variants
            ),
        )
        for case in made.cases
    ]
    return msgspec.structs.replace(made, cases=tuple(cases))


def change_timings(made: RunRecord, change: Callable[[Outcome, str], Outcome]) -> RunRecord:
    """The run with what `change` makes of the timing of each variant that has one."""
    return change_outcomes(
        made,
        lambda outcomes, name, _: {
            **outcomes,
            **({"timing": change(outcomes["timing"], name)} if "timing" in outcomes else {}),
        },
    )


def with_values(outcome: Outcome, **values: tuple[Number | None, ...]) -> Outcome:
    return msgspec.structs.replace(outcome, values={**outcome.values, **values})


def sweep_run(**changes: Any) -> RunRecord:
    """A run of cumulative_sum over n: an unrolled loop, a scan, and a loop that is skipped where n is large."""
    pairs = []
    for n in (16, 64, 256, 1024):
        loop = planned_variant("loop:jit", skip="unrolled, minutes to compile" if n > 256 else None)
        planned = planned_case("cumulative_sum", params={"n": n}, variants=("scan:jit", loop, "numpy:native"))
        right, baseline_s = numerics(), n * 1e-7
        rolled = compilation(0.003, 0.004, 0.04, 0.001, equations=4)
        unrolled = compilation(n * 3e-4, n * 2e-4, n * 2e-3, 0.001, equations=3 * n)
        outcomes = {
            "scan:jit": {"numerics": right, "timing": timing(n * 1e-7), "compilation": rolled},
            "numpy:native": {"numerics": numerics(0.0), "timing": timing(n * 2e-9 + 1e-6, baseline_s=baseline_s)},
        }
        if n <= 256:
            timed = timing(n * 2e-8, baseline_s=baseline_s)
            outcomes["loop:jit"] = {"numerics": right, "timing": timed, "compilation": unrolled}
        pairs.append((planned, record(planned, outcomes)))
    return run(*pairs, **changes)


def troubled_run(**changes: Any) -> RunRecord:
    """A run with one variant of every status, a lost case and contended, vague and null values."""
    names = ("a:eager", "ok:jit", "wrong:jit", "failed:jit", "killed:jit", "slow:jit", "gone:jit")
    skipped = planned_variant("skipped:jit", skip="needs 2 devices, found 1")
    odd = planned_case("odd", variants=(*names, skipped, "torch:native"))
    baseline_s, right, null = 1e-3, numerics(), Outcome(status=Status.OK, values={"argument_bytes": (None,)})
    wrong = Outcome(status=Status.WRONG, reason="largest error 0.5, allowed 1e-05", values={"max_error": (0.5,)})
    failed = Outcome(status=Status.FAILED, reason="XlaRuntimeError: out of memory", stderr="Traceback\n  line 2")
    stages = Outcome(status=Status.UNSUPPORTED, reason="native code has no stages")
    slow, vague = timing(2e-3, baseline_s=baseline_s, processes=2), timing(9e-4, baseline_s=baseline_s, spread=8)
    outcomes = {
        "a:eager": {"numerics": right, "timing": timing(baseline_s, contended=3)},
        "ok:jit": {"numerics": right, "timing": vague, "memory": null},
        "wrong:jit": {"numerics": wrong, "timing": timing(1e-6, baseline_s=baseline_s)},
        "failed:jit": {"numerics": right, "timing": failed},
        "killed:jit": {"numerics": Outcome(status=Status.KILLED, reason="ended by signal 9")},
        "slow:jit": {"numerics": right, "timing": Outcome(status=Status.TIMED_OUT, reason="longer than 120 s")},
        "torch:native": {"numerics": right, "timing": slow, "compilation": stages},
    }
    return run((odd, record(odd, outcomes)), (planned_case("lost"), None), **changes)


def inconsistent_run() -> RunRecord:
    """A jitted variant that the times make 4 times as fast, and the speedup twice."""
    fast = with_values(timing(2.5e-4), log_ratio=tuple(math.log(2 * factor) for factor in WOBBLE))
    return one_case({"f:eager": timing(1e-3), "f:jit": fast, "g:jit": timing(5e-4, baseline_s=1e-3)})


def gpu_run(**changes: Any) -> RunRecord:
    """A run on a GPU that does not exist, with other versions and larger cases."""
    pairs = []
    for n in (10_000, 100_000_000):
        planned = planned_case(params={"dtype": "float32", "n": n}, cost=Cost(flops=5 * n, bytes=8 * n))
        pairs.append((planned, fast_case(planned, eager_s=2e-4 + n * 2e-11, jit_s=1e-5 + n * 2e-12)))
    machine = {
        "device_kind": "Sample GPU",
        "device_name": "Sample GPU",
        "packages": {"jax": "0.10.1", "jaxlib": "0.10.1"},
    }
    usual = {"run_id": "2026-01-03T03-04-05Z-gpu-0000000", "started": "2026-01-03T03:04:05Z", "backend": "gpu"}
    return run(*pairs, **{**usual, "environment": environment(**machine), **changes})


HOSTILE = (
    "</script></style><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><b onclick='alert(3)'>",
    "{{ 7 * 7 }} {% raw %} [red]markup[/red] :rocket: @someone #1 | `code` **bold** [a](https://example.invalid)",
    "\u202eright to left\u202c שלום עולם 👩\u200d🔬",
    "NUL \x00 escape \x1b[31m delete \x7f next line \x85 two\nlines",
    "$\\frac{$ _under",
    "long " + "x" * 600,
)
"""Texts that a record may hold and no renderer may obey."""


def hostile_run(**changes: Any) -> RunRecord:
    """A run in which every text is hostile: names, params, reasons, stderr, notes, machine."""
    pairs = []
    for n, text in enumerate(HOSTILE, start=1):
        skipped = planned_variant(f"{text}:aot", skip=text)
        planned = planned_case(
            text,
            params={text: text, "n": n},
            variants=(f"{text}:eager", f"{text}:jit", f"failed {text}:jit", skipped),
            id=str(n),
            description=text,
            no_reference=text,
            items=n,
            items_unit=text,
            new_shape={text: text},
            new_static={text: text},
            published=(
                _hostile_claim(text, Figure(f"{text}:eager", 2e300, -1), Figure(f"{text}:jit", 1e-300)),
                _hostile_claim(text, Figure(f"failed {text}:jit", 2), Figure(f"{text}:aot", 1)),
                _hostile_claim(text, Figure(text, 2, metric=text), Figure(text, 0, metric=text)),
                *(_hostile_claim(text, Figure(text, 2, 1, one)) for one in (text, "compiles", "compile_exponent")),
            ),
        )
        ended = fast_case(planned)
        failed = Outcome(status=Status.FAILED, reason=text, stderr=text, notes=(text,))
        platform = buffer(n, kind=text, shape=text, instruction=text, operation=text, source=text)
        outcomes = {
            "timing": failed,
            "compilation": compilation(1, 1, 1, 1, counts=PROGRAM, fingerprints=(text, text + text), notes=(text,)),
            "caching": caching(cold_s=1, calls=(CacheStateCall(cache_state=text, proven=False),), notes=(text,)),
            "memory": memory(1, 1, 1, buffers=(platform,), notes=(text,)),
            "measured_memory": measured_memory(1, notes=(text,)),
            "numerics": Outcome(status=Status.OK, details=NumericsDetails(products=text, raised=text)),
        }
        variants = (*ended.variants, VariantRecord(name=f"failed {text}:jit", outcomes=outcomes))
        pairs.append((planned, msgspec.structs.replace(ended, variants=variants, notes=(text,))))
    machine = environment(
        processor=HOSTILE[0], device_name=HOSTILE[0], host=HOSTILE[1], variables={text: text for text in HOSTILE}
    )
    trust = self_test(machine=HOSTILE[0], at=HOSTILE[1], tool_version=HOSTILE[2], packages={HOSTILE[3]: HOSTILE[4]})
    changes = {"machine": HOSTILE[0], "self_test": trust, **changes}
    made = run(*pairs, **{"environment": machine, "run_id": HOSTILE[2], **changes})
    return msgspec.structs.replace(made, warnings=tuple(ProcessWarning(text=text, processes=1) for text in HOSTILE))


def _hostile_claim(text: str, figure: Figure, against: Figure | None = None) -> Published:
    return claim(figure, against, source=text, device=text, timed=text, differs=text, at={text: text})


def write_run(folder: Path, run: RunRecord, *, cut_short: bool = False) -> Path:
    """The run as the harness leaves it: manifest, a file for each case, and run.json unless it was cut short."""
    write_json(folder / "manifest.json", run.manifest)
    for index, case in enumerate(run.cases):
        write_json(folder / "cases" / f"{index:02d}" / "case.json", case)
    if not cut_short:
        write_json(folder / "run.json", run)
    return folder
