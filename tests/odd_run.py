"""A made-up run in which nearly everything happens that may."""

import math

import msgspec

from jaxmeter.harness.record import Answer, Artifact, CompilationDetails, Figure, NumericsDetails, ProcessWarning, Trap
from tests import samples

IN_ROUNDS = samples.settings(most_rounds=12, shown_confidence=0.95)


def timed(seconds, **changes):
    return {"numerics": samples.numerics(), "timing": samples.timing(seconds, **changes)}


def case(name, outcomes, *, record=None, **changes):
    planned = samples.planned_case(name, params={"n": 10}, variants=tuple(outcomes), **changes)
    return planned, samples.record(planned, outcomes, **(record or {}))


def odd_run(**changes):
    """A run with traps, doubts of several kinds, kept files, data that are not there and rates of a collective."""
    traps = (
        Trap(kind="dead_work", evidence="98 % of the traced FLOPs", sources=("jaxmeter/suites/a.py:3",), share=0.98),
        Trap(kind="callbacks", evidence="debug_print", count=1),
        Trap(kind="of tomorrow", evidence="something new"),
    )
    declared = msgspec.structs.replace(traps[0], declared=True)
    compiled = samples.compilation(0.01, 0.01, 0.01, 0.01, processes=3, counts={"compiles": 2, "cache_entries": 4})
    trapped, as_declared = (
        {"compilation": msgspec.structs.replace(compiled, details=CompilationDetails(traps=found))}
        for found in (traps, (declared,))
    )
    ratios = tuple(math.log(2 * factor) for factor in samples.WOBBLE)
    at_odds = samples.with_values(samples.timing(2.5e-4), log_ratio=ratios)
    loaded_again = {"executable_bytes": 2048, "executable_load_s": 0.002, "executable_first_call_s": 0.001}
    raised = samples.Outcome(status=samples.Status.OK, details=NumericsDetails(raised="Argument types differ"))
    failed, wrong = (
        samples.Outcome(status=status, reason="exited with code 1")
        for status in (samples.Status.FAILED, samples.Status.WRONG)
    )
    undecided = {"cold_s": (1.0, 1.2, 1.4), "cached_s": (0.9, 1.1, 1.3)}
    calibration_s = tuple(1e-4 * factor for factor in samples.WOBBLE)
    artifacts = tuple(
        Artifact(kind=kind, variant="f:jit", path=path, size_bytes=2048, sha256="0" * 64)
        for kind, path in (("trace", "trace/f-jit/x.xplane.pb"), ("hlo", "programs/f-jit/hlo.txt"))
    )
    pairs = (
        case(
            "trapped",
            {
                "f:eager": timed(1e-3),
                "f:jit": {**timed(1e-5, baseline_s=1e-3), **trapped},
                "f:aot": {**timed(1e-5, baseline_s=1e-3), **trapped},
                "g:jit": {**timed(1e-5, baseline_s=1e-3), **as_declared},
            },
            answer=Answer("How fast?", "f:jit", against="f:eager", rank=1),
        ),
        case("at_odds", {"f:eager": timed(1e-3), "f:jit": {"timing": at_odds}}),
        case(
            "doubtful",
            {
                "base:jit": timed(1e-3),
                "f:eager": timed(1e-3, baseline_s=1e-3, contended=3, parallelism=(1.9,) * 5),
                "f:jit": {**timed(5e-4, baseline_s=1e-3, parallelism=(1.0,) * 5), "compilation": compiled},
                "g:jit": timed(5e-4, baseline_s=1e-3, doubtful_ratios=True),
                "numpy:native": timed(2e-3, baseline_s=1e-3, contended=3),
            },
        ),
        case(
            "collective",
            {"f:eager": timed(1e-3), "f:jit": {**timed(5e-4, baseline_s=1e-3), "compilation": compiled}},
            cost=samples.Cost(flops=7_000, bytes=80_000, message_bytes=4_000_000, bus_bytes=7_000_000),
            devices=8,
            config={"jax_enable_x64": True},
            data="synthetic",
            data_missing="digits' files (a.txt)",
            record={"artifacts": artifacts},
            answer=Answer("What is the first call?", "f:jit", metric="first_call_s", rank=2),
            published=(
                samples.claim(Figure("f:eager", 786e-6, 31.8e-6), Figure("f:jit", 132e-6, 260e-6)),
                samples.claim(Figure("f:jit", 4e-3), Figure("f:eager", 2e-3)),
                samples.claim(Figure("f:eager", 1.0), Figure("numpy:native", 0.5)),
                samples.claim(Figure("f:jit", 2, metric="compiles")),
            ),
        ),
        case(
            "normalised",
            {
                "f:eager": timed(1e-3, calibration_s=calibration_s, processes=5, spread=4),
                "f:jit": timed(1e-4, baseline_s=1e-3, calibration_s=calibration_s, slow_share=0.25, replaced=2),
                "g:jit": timed(1e-3, baseline_s=1e-3, calibration_s=(0.0,) * 5),
                "two:jit": timed(1e-4, baseline_s=1e-3, calibration_s=(1e-4, 1.1e-4), processes=2),
                "p:native": timed(1e-3, baseline_s=1e-3, spread=40),
            },
            record={"process_gap_s": 9.0},
        ),
        case(
            "loaded",
            {
                "f:aot": {"compilation": samples.compilation(0.01, 0.01, 0.05, 0.01, counts=loaded_again)},
                "f:mixed": {"numerics": raised},
                "g:jit": {"memory": samples.memory(4, 4, 4, more={"donation_saves_bytes": -6}, notes=("slow",))},
                "h:jit": {"memory": samples.memory(4096, 2048, 1024, alias=2048, code=10)},
            },
        ),
        case(
            "failing", {name: {"numerics": failed, "memory": failed} for name in ("f:eager", "f:jit", "f:aot", "g:jit")}
        ),
        case(
            "caches",
            {
                "f:jit": {"caching": samples.Outcome(status=samples.Status.OK, values=undecided)},
                "g:jit": {"caching": samples.caching(processes=2, cold_s=0.06, cached_s=0.012, warm_s=5e-5)},
                "h:jit": {"caching": failed},
            },
        ),
        case(
            "wrong_baseline",
            {"f:eager": {"numerics": wrong, "timing": samples.timing(1e-3)}, "f:jit": timed(1e-4, baseline_s=1e-3)},
        ),
    )
    changes = {"settings": IN_ROUNDS, "self_test": samples.self_test(), "run_id": "odd 1", **changes}
    made = samples.run(*pairs, **changes)
    return msgspec.structs.replace(made, warnings=(ProcessWarning(text="flags.cc:1] a retired flag", processes=3),))
