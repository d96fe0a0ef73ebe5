from harness.listing import catalogue_lines, plan_lines
from harness.messages import Description, SuiteDescription, WorkloadDescription
from tests import samples

SELU = WorkloadDescription(
    name="selu",
    description="Scaled.",
    params={"n": (10, 20), "dtype": ("float32",)},
    variants=(("selu:eager", "Scaled."), ("numpy:native", "With NumPy.")),
    baseline="selu:eager",
    cases=2,
)
CATALOGUE = Description(
    suites=(SuiteDescription(name="selu", description="Element-wise.", workloads=(SELU,)),), cases=(), environment=None
)


def test_the_catalogue_shows_suites_workloads_params_and_variants():
    assert list(catalogue_lines(CATALOGUE)) == [
        "selu: Element-wise.",
        "  selu: Scaled.  (2 cases)",
        "    n = 10, 20",
        "    dtype = float32",
        "    selu:eager    Scaled.  (baseline)",
        "    numpy:native  With NumPy.",
        "",
    ]


def test_the_plan_shows_cases_variants_and_what_is_skipped_and_why():
    skipped = samples.planned_variant("loop:jit", skip="too long")
    cases = [
        samples.planned_case("selu", params={"n": 1}, variants=("selu:jit", "numpy:native", skipped)),
        samples.planned_case("sum", params={"n": 1}, variants=(skipped,)),
    ]

    lines = list(plan_lines(cases, samples.settings(probes=("numerics", "timing"), looks=(5, 8, 12), budget_s=600.0)))

    assert lines[0].startswith("selu: 1 case, about ")
    assert lines[0].endswith(" s and what compiling takes")
    assert lines[1:3] == ["  selu[n=1]: selu:jit, numpy:native", "    not loop:jit: too long"]
    assert lines[4] == "  sum[n=1]: nothing"
    assert lines[-1].startswith("2 cases, about ")
    assert lines[-1].endswith("; budget 10.0 min. Probes: numerics, timing. Timing launches: 5 or 8 or 12.")


def test_a_fixed_count_of_launches_is_shown_as_it_is():
    *_, last = plan_lines([], samples.settings(looks=(4,), launches=4, budget_s=90.0))

    assert last.endswith("budget 90 s. Probes: numerics, compilation, timing, memory. Timing launches: 4.")
