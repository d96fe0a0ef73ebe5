"""Verdicts as they are read from what the tools printed: real output, with one result made slower or faster."""

from benchmarks.peer_tools import flag_asv, flag_pyperf, flag_pytest_benchmark

PYPERF = """\
matmul: Mean +- std dev: [perf_b] 1.94 ms +- 0.10 ms -> [perf_c] 2.91 ms +- 0.14 ms: 1.50x slower

Benchmark hidden because not significant (2): selu, mlp_step

Geometric mean: 1.14x slower
"""

PYPERF_UNCHANGED = """\
Benchmark hidden because not significant (3): selu, matmul, mlp_step

Geometric mean: 1.47x faster
"""

ASV = """\

All benchmarks:

| Change   | Before [77be0911] <main~1>   | After [41d3fd9e] <main>   | Ratio   | Benchmark (Parameter)               |
|----------|------------------------------|---------------------------|---------|-------------------------------------|
| +        | 1.44±0.4ms                   | 3.64±1ms                  | 2.53    | twelve.Twelve.time_case('matmul')   |
| -        | 698±40μs                     | 127±2μs                   | 0.18    | twelve.Twelve.time_case('mlp_step') |
|          | 43.5±10μs                    | 49.1±20μs                 | ~1.13   | twelve.Twelve.time_case('selu')     |
"""


def bench(**least_s: float) -> dict:
    """What `--benchmark-json` writes, shortened."""
    return {"benchmarks": [{"param": case, "stats": {"min": value}} for case, value in least_s.items()]}


def test_pyperf_names_the_cases_that_its_test_calls_significant():
    assert flag_pyperf(PYPERF) == {"matmul"}
    assert flag_pyperf(PYPERF_UNCHANGED) == set()


def test_asv_marks_cases_as_better_and_as_worse():
    assert flag_asv(ASV) == {"matmul", "mlp_step"}


def test_pytest_benchmark_s_limit_is_held_against_a_change_in_either_direction():
    first, second = (
        bench(same=1.0, within=1.0, slower=1.0, faster=1.06),
        bench(same=1.0, within=1.04, slower=1.06, faster=1.0),
    )

    assert flag_pytest_benchmark(first, second, "min", 5.0) == {"slower", "faster"}
