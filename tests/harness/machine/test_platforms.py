import pytest

from jaxmeter.harness.machine.platforms import BACKENDS, list_unused_variables, make_process_environment
from jaxmeter.harness.probes.evaluation import TOLERANCE

CPU, GPU = BACKENDS["cpu"], BACKENDS["gpu"]
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def test_a_process_runs_on_the_backend_that_was_asked_for():
    assert make_process_environment(GPU, {"JAX_PLATFORMS": "cpu"}, allowed_cores=2)["JAX_PLATFORMS"] == "cuda,cpu"
    assert make_process_environment(CPU, {}, allowed_cores=2)["JAX_PLATFORMS"] == "cpu"


def test_threads_are_as_many_as_cores_where_the_user_has_not_said():
    variables = make_process_environment(CPU, {"OMP_NUM_THREADS": "1"}, allowed_cores=6)

    assert [variables[name] for name in THREADS] == ["6", "1", "6"]


@pytest.mark.parametrize(
    ("inherited", "expected"), [({}, "false"), ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, "true")]
)
def test_the_memory_of_a_gpu_is_taken_as_it_is_needed_where_the_user_has_not_said(inherited, expected):
    assert make_process_environment(GPU, inherited, allowed_cores=1)["XLA_PYTHON_CLIENT_PREALLOCATE"] == expected
    assert make_process_environment(CPU, {}, allowed_cores=1).keys() == {"JAX_PLATFORMS", *THREADS}


def test_an_inherited_compilation_cache_is_left_out_and_all_else_is_passed_on():
    cache = {
        "JAX_COMPILATION_CACHE_DIR": "/cache",
        "JAX_COMPILATION_CACHE_MAX_SIZE": "1",
        "JAX_DISABLE_JIT": "1",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "9",
    }
    inherited = {**cache, "XLA_FLAGS": "--xla_cpu_x", "PATH": "/bin"}

    variables = make_process_environment(CPU, inherited, allowed_cores=1)

    assert list_unused_variables(inherited) == tuple(cache)
    assert not cache.keys() & variables.keys()
    assert (variables["XLA_FLAGS"], variables["PATH"]) == ("--xla_cpu_x", "/bin")
    assert "JAX_COMPILATION_CACHE_DIR" in inherited, "what was passed in is not changed"


def test_a_data_folder_is_the_one_that_the_record_names_and_never_an_inherited_one():
    inherited = {"JAXMETER_DATA": "/elsewhere"}

    assert "JAXMETER_DATA" not in make_process_environment(CPU, inherited, allowed_cores=1)
    assert make_process_environment(CPU, inherited, allowed_cores=1, data="/data")["JAXMETER_DATA"] == "/data"


@pytest.mark.parametrize("name", BACKENDS)
def test_the_products_of_a_backend_have_a_tolerance(name):
    assert BACKENDS[name].product_dtype in TOLERANCE
