"""Programs that are compiled with XLA options of their own."""

import re
import sys
import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.probes.caching import CACHE_STATES, CallArguments, time_call
from jaxmeter.harness.programs import program
from jaxmeter.harness.programs.modes import How, compile_in_stages, describe_refused_option, prepare_as
from jaxmeter.harness.programs.program import find_code_fingerprint, find_fingerprint, load_exported, read_hlo
from jaxmeter.harness.traces import hlo

WIDE = {"xla_cpu_prefer_vector_width": 512}
UNFUSED = {"xla_disable_hlo_passes": "fusion"}
UNKNOWN = {"xla_no_such_option": True}
X = jnp.arange(64.0)


def f(x):
    return jnp.tanh(x * 2 + 1) * x


def prepare(mode, options, **more):
    args = ((X,), (X,)) if more.get("stream") else (X,)
    how = How(compiler_options=options, **more)
    return prepare_as(mode, f, args, how, time.perf_counter, lambda stage: None)


@pytest.mark.parametrize("mode", ["jit", "aot"])
def test_two_settings_are_two_programs_in_one_process_that_compute_the_same(mode):
    plain, unfused = (prepare(mode, options) for options in ({}, UNFUSED))

    assert len({read_hlo(one.stages.compiled) for one in (plain, unfused)}) == 2
    assert np.allclose(plain.call_and_wait(), unfused.call_and_wait())


def test_programs_of_one_text_and_other_options_are_told_apart():
    plain, wide, again = (prepare("jit", options) for options in ({}, WIDE, WIDE))

    assert hlo.find_fingerprint(read_hlo(plain.stages.compiled)) == hlo.find_fingerprint(read_hlo(wide.stages.compiled))
    assert find_fingerprint(plain.stages) != find_fingerprint(wide.stages) == find_fingerprint(again.stages)


OPTIONS = {
    "none": ({}, True),
    "without an effect": ({"xla_cpu_multi_thread_eigen": False}, True),
    "other machine code of the same HLO": ({"xla_backend_optimization_level": 0}, False),
    "other HLO": (UNFUSED, False),
}


@pytest.mark.skipif(sys.platform != "linux", reason="machine code is read from ELF files")
@pytest.mark.parametrize(("options", "is_same"), OPTIONS.values(), ids=OPTIONS)
def test_options_without_an_effect_leave_the_machine_code_as_it_is(options, is_same):
    plain, other = (find_code_fingerprint(prepare("jit", chosen).stages) for chosen in ({}, options))

    assert plain is not None
    assert (plain == other) is is_same


@pytest.mark.skipif(sys.platform != "linux", reason="machine code is read from ELF files")
def test_a_product_has_no_machine_code_of_its_own():
    plain, other = (
        prepare_as("jit", lambda x: x @ x, (X.reshape(8, 8),), How(compiler_options=options), time.perf_counter, print)
        for options in ({}, {"xla_cpu_multi_thread_eigen": False})
    )

    assert find_code_fingerprint(plain.stages) == find_code_fingerprint(other.stages) is not None


@pytest.mark.parametrize("executable", [program._ELF, program._ELF + b"\xff" * 100])
def test_machine_code_of_another_form_is_unknown(executable):
    assert program._list_objects(b"code" + executable) is None


def compile_again_with_donation(options):
    jitted = jax.jit(f)
    compile_in_stages(jitted, f, (X,), {}, time.perf_counter, lambda stage: None, options).donated()


def load_with(options):
    prepared = prepare("aot", {})
    stages = replace(prepared.stages, compiler_options=options)
    load_exported(replace(prepared, stages=stages), time.perf_counter)


def call_in_a_cache_state(options):
    call, name = CallArguments((X,), {}), next(iter(CACHE_STATES))
    usual = {"usual": call, "measured": call, "stream": False, "clock": time.perf_counter}
    time_call(name, f, **usual, stage=lambda stage: None, compiler_options=options)


@pytest.mark.parametrize(
    "compile_it",
    [
        lambda options: prepare("jit", options),
        lambda options: prepare("aot", options),
        lambda options: prepare("jit", options, stream=True).call_and_wait(),
        load_with,
        compile_again_with_donation,
        call_in_a_cache_state,
    ],
    ids=["jit", "aot", "stream", "exported and loaded", "donated", "a cache state"],
)
def test_whatever_compiles_a_variant_compiles_it_with_its_options(compile_it):
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_no_such_option"):
        compile_it(UNKNOWN)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (UNKNOWN, "no compiler option 'xla_no_such_option' on backend 'cpu' with jax .*; correct its name, or"),
        (
            {"xla_cpu_enable_fast_math": "maybe"},
            "compiler option 'xla_cpu_enable_fast_math': 'maybe' is not a valid bool value. Correct its value",
        ),
    ],
    ids=["unknown", "a wrong value"],
)
def test_an_option_that_the_backend_refuses_is_named_with_what_to_do(options, said):
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        prepare("jit", options)

    assert re.match(said, describe_refused_option(caught.value))


@pytest.mark.parametrize("error", [ValueError("No such compile option: 'a'"), jax.errors.JaxRuntimeError("INTERNAL")])
def test_another_error_is_not_about_an_option(error):
    assert describe_refused_option(error) is None
