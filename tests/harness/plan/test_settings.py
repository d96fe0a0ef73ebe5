import pytest

from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.plan.settings import MOST_ROUNDS, make_settings

LEVELS = ("quick", "default", "full")


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_decides_how_long_a_run_takes(level):
    found = make_settings(level, suites=("jaxmeter.suites",), run_id="a")

    assert found.level == level
    assert found.probes == tuple(name for name in PROBES if level != "quick" or name != "caching")
    assert (found.fewest_rounds, found.most_rounds) == (3, MOST_ROUNDS[level])
    assert found.processes is None


def test_a_fixed_count_of_processes_is_the_number_of_rounds():
    found = make_settings("default", processes=4, suites=(), run_id="a")

    assert (found.processes, found.fewest_rounds, found.most_rounds, found.cold_processes) == (4, 4, 4, 4)


def test_numerics_and_export_are_always_among_the_probes_and_numerics_is_first():
    found = make_settings("quick", probes=("timing", "memory"), suites=(), run_id="a").probes

    assert found == ("numerics", "memory", "export", "measured_memory", "timing")


@pytest.mark.parametrize("budget_s", [7.5, 0.0])
def test_a_budget_replaces_the_levels_own_and_may_be_zero(budget_s):
    assert make_settings("quick", budget_s=budget_s, suites=(), run_id="a").budget_s == budget_s


def test_the_run_id_decides_the_seed():
    first, again, other = (make_settings("quick", suites=(), run_id=name).seed for name in ("a", "a", "b"))

    assert first == again != other


@pytest.mark.parametrize(
    ("level", "probes", "expected"),
    [
        ("default", (), ()),
        ("full", (), ("measured_memory", "trace")),
        ("default", ("caching", "memory"), ("measured_memory", "caching")),
        ("full", ("timing",), ()),
        ("full", ("trace",), ("trace",)),
    ],
)
def test_what_is_asked_for_looks_at_every_case_and_traces_and_measured_memory_do_at_the_full_level(
    level, probes, expected
):
    assert make_settings(level, probes=probes, suites=(), run_id="a").everywhere == expected
