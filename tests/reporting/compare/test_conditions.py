import pytest

from jaxmeter.harness.record import Manifest
from jaxmeter.reporting.compare.conditions import LONGEST_FACT, MOST_NAMED, Conditions, compare_conditions
from tests import samples
from tests.reporting.compare import changed

NEWER = {"packages": {"jax": "0.10.0", "jaxlib": "0.10.2", "numpy": "2.0.0"}}


def made(*, machine: str | None = "here", backend: str = "cpu", **facts) -> Manifest:
    return samples.manifest((), machine=machine, backend=backend, environment=samples.environment(**facts))


def compared(before: Manifest | None = None, **changes) -> Conditions:
    return compare_conditions(before or made(), made(**changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"backend": "gpu"}, "backend cpu → gpu"),
        ({"x64": True}, "x64 False → True"),
        ({"matmul_precision": "highest"}, "matmul precision none → highest"),
    ],
)
def test_some_facts_make_a_number_another_thing(changes, told):
    found = compared(**changes)

    assert found.incomparable == told
    assert not found.anything


@pytest.mark.parametrize(
    ("changes", "told", "is_hardware"),
    [
        (NEWER, "jaxlib 0.10.0 → 0.10.2", False),
        ({"variables": {"XLA_FLAGS": "--x"}}, "XLA_FLAGS none → --x", False),
        ({"threads": {"OMP_NUM_THREADS": "1"}}, "OMP_NUM_THREADS none → 1", False),
        ({"platform_version": "CUDA 13"}, "platform version none → CUDA 13", False),
        ({"driver": "580"}, "driver none → 580", True),
        ({"device_kind": "other"}, "device kind cpu → other", True),
        ({"device_name": "other"}, "device name Sample Processor 1 → other", True),
        ({"device_count": 2}, "device count 1 → 2", True),
        ({"processor": "other"}, "processor Sample Processor 1 → other", True),
        ({"allowed_cores": 1}, "allowed cores 2 → 1", True),
        ({"cpu_quota": 1.5}, "cpu quota none → 1.5", True),
    ],
)
def test_what_a_time_hangs_on_weakens_and_hardware_does_in_lock_step_too(changes, told, is_hardware):
    found = compared(**changes)

    assert (found.incomparable, found.steering, found.others) == ("", (told,), ())
    assert found.weak == found.describe() == told
    assert found.weak_in_lock_step == (told if is_hardware else "")
    assert found.anything


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (NEWER, ""),
        ({"variables": {"XLA_FLAGS": "--x", "JAX_X": "1", "LIBTPU_INIT_ARGS": "a"}, "platform_version": "13"}, ""),
        ({"variables": {"CUDA_X": "1"}}, "CUDA_X none → 1"),
        ({"packages": {**NEWER["packages"], "jax-cuda13-plugin": "1", "nvidia-cudnn": "9"}}, "nvidia-cudnn none → 9"),
        ({"threads": {"OMP_NUM_THREADS": "1"}, "driver": "580"}, "OMP_NUM_THREADS none → 1, driver none → 580"),
    ],
)
def test_code_of_other_libraries_minds_nothing_of_jax(changes, told):
    assert compared(**changes).describe_beside_jax() == told


@pytest.mark.parametrize("changes", [{}, {"load_average": 9.0}, {"governor": "other"}, {"git_revision": "1" * 40}])
def test_of_equal_runs_and_of_what_no_program_hangs_on_nothing_is_said(changes):
    assert compared(**changes) == Conditions()
    assert not compared(**changes).anything
    assert compared(**changes).describe(everything=True) == ""


def test_sides_of_a_comparison_are_named_with_the_variables_by_which_they_differ():
    before = changed.plain(changed.BEFORE)
    after = changed.plain(changed.AFTER, environment=samples.environment(variables={"XLA_FLAGS": "--xla_a=1"}))

    assert changed.compare(before, after).sides == ("before (XLA_FLAGS unset)", "after (XLA_FLAGS=--xla_a=1)")
    assert changed.compare(before, changed.plain(changed.AFTER)).sides == ("before", "after")


def test_a_package_that_compiles_nothing_is_told_apart():
    found = compared(packages={"jax": "0.10.0", "jaxlib": "0.10.0", "numpy": "2.1.0", "flax": "0.12"})

    assert (found.steering, found.others) == ((), ("numpy 2.0.0 → 2.1.0", "flax none → 0.12"))
    assert (found.weak, found.describe()) == ("", "")
    assert found.describe(everything=True) == found.describe_beside_jax() == "numpy 2.0.0 → 2.1.0, flax none → 0.12"
    assert found.anything


def test_another_machine_is_said_and_long_facts_are_cut():
    (flags,) = compared(variables={"XLA_FLAGS": "--f=" + "x" * 500}).steering

    assert compared(made(machine="here"), machine="there").other_machine == "another machine: here → there"
    assert compared(made(machine="here"), machine="here").other_machine == ""
    assert len(compared(made(machine="h" * 200), machine="there").other_machine) == LONGEST_FACT
    assert flags.startswith("XLA_FLAGS none → --f=x")
    assert len(flags) == LONGEST_FACT


@pytest.mark.parametrize(("more", "end"), [(0, "XLA_3 none → 1"), (1, " and 1 more"), (2, " and 2 more")])
def test_of_many_facts_the_first_are_named_and_the_others_counted(more, end):
    variables = {f"XLA_{index}": "1" for index in range(MOST_NAMED + more)}

    assert compared(variables=variables).weak.endswith(f"XLA_{MOST_NAMED - 1} none → 1{end if more else ''}")
