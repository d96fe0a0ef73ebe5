"""What of recorded variables and settings may be set again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.record.settings import is_plain_setting, leave_out_dumps

PLAIN = {
    "XLA_FLAGS": (
        "--xla_gpu_enable_cublaslt=true --xla_cpu_enable_fast_math --xla_backend_optimization_level=3",
        "",
    ),
    "LIBTPU_INIT_ARGS": ("--xla_tpu_spmd_rng_bit_generator_unsafe=1",),
    "JAX_DEFAULT_MATMUL_PRECISION": ("BF16_BF16_F32",),
    "XLA_PYTHON_CLIENT_MEM_FRACTION": (".75",),
    "jax_enable_x64": (True,),
    "jax_num_cpu_devices": (8,),
}
MAY_NAME_A_FILE = {
    "XLA_FLAGS": (
        *("--xla_gpu_cuda_data_dir=/run", "--xla_gpu_cuda_data_dir=run", "--xla_gpu_llvm_ir_file=evil"),
        *("--xla_gpu_override_gemm_autotuner=evil.txt", "flags", "--a=~", "--a=$HOME", "--xla_dump_to=x"),
    ),
    "JAX_COMPILATION_CACHE_DIR": ("cache",),
    "JAX_COORDINATOR_ADDRESS": ("10.0.0.1:1",),
    "jax_compilation_cache_dir": ("cache",),
    "jax_dump_ir_to": ("x",),
    "JAX_A": ("a/b", "a\\b", "evil.so", "a\0", None, ["a"]),
}


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [(name, value, of is PLAIN) for of in (PLAIN, MAY_NAME_A_FILE) for name, values in of.items() for value in values],
)
def test_switches_numbers_and_words_may_be_set_again_and_what_may_name_a_file_may_not(name, value, plain):
    assert is_plain_setting(name, value) is plain


@given(st.sampled_from(["XLA_FLAGS", "LIBTPU_INIT_ARGS", "JAX_A"]), st.text())
def test_nothing_with_a_separator_of_paths_passes(name, value):
    assert not (is_plain_setting(name, value) and set("/\\~$") & set(value))


def test_what_is_written_down_while_compiling_is_left_out():
    assert leave_out_dumps("XLA_FLAGS", "--xla_dump_to=/a --b=1 --xla_gpu_dump_llvmir") == "--b=1"
    assert leave_out_dumps("XLA_FLAGS", "--xla_dump_to=/a") is None
    assert leave_out_dumps("XLA_FLAGS", "") == ""
    assert leave_out_dumps("JAX_DUMP_IR_TO", "/a") is None
    assert leave_out_dumps("JAX_A", "--xla_dump_to=/a") == "--xla_dump_to=/a"
