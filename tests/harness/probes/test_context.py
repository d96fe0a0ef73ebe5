"""What a probe is given of a variant."""

import hashlib
import time

import jax.numpy as jnp
import msgspec
import numpy
import pytest

from jaxmeter import no_reference, workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.cases import add_aa_control, plan_case
from jaxmeter.harness.probes import Context, run_probes
from jaxmeter.harness.programs.modes import How, prepare_as
from jaxmeter.harness.programs.program import find_fingerprint
from jaxmeter.harness.programs.replay import ReplayError, write_program
from jaxmeter.harness.record import CaseFolder, Replay, Status, write_bytes


def add_one(x):
    return x + 1


@pytest.fixture
def context():
    """Of a case whose jitted variant has an A/A control."""
    declared = workload(inputs=lambda key: jnp.ones(3), reference=lambda x: x + 1, compiles=1)(add_one)
    case = add_aa_control(plan_case("some", declared, {}, BACKENDS["cpu"]))
    return Context(declared, {}, BACKENDS["cpu"], (jnp.ones(3),), time.perf_counter, None, case=case)


def test_a_aa_control_is_a_second_program_of_the_same_implementation_and_mode(context):
    first, aa_control = (context.prepare(item.name) for item in context.case.variants)

    assert first.stages.compiled is not aa_control.stages.compiled
    assert first.jitted is not aa_control.jitted
    for prepared in (first, aa_control):
        assert numpy.array_equal(prepared.wait(prepared.call(*prepared.args)), [2, 2, 2])


def test_a_aa_control_may_compile_what_the_variant_may_whose_aa_control_it_is(context):
    assert context.find_variant("add_one:jit again") == context.find_variant("add_one:jit")
    assert context.compiles("add_one:jit again") == 1


def test_a_aa_control_is_checked_like_any_variant(context):
    found, _ = run_probes({"numerics": ("add_one:jit", "add_one:jit again")}, context)

    assert {name: outcomes["numerics"].status for name, outcomes in found.items()} == {
        "add_one:jit": Status.OK,
        "add_one:jit again": Status.OK,
    }


def test_without_a_plan_every_variant_is_itself():
    declared = workload(inputs=lambda key: jnp.ones(3), reference=no_reference("none"))(add_one)

    found = Context(declared, {}, BACKENDS["cpu"], (), time.perf_counter, None)

    assert found.find_variant("add_one:jit") == declared.find_variant("add_one:jit")


UNFUSED = {"xla_disable_hlo_passes": "fusion"}


def several_operations(x):
    return jnp.tanh(x + 1) * x


def prepare_alone(options):
    how = How(compiler_options=options)
    return prepare_as("jit", several_operations, (jnp.ones(3),), how, time.perf_counter, lambda stage: None)


@pytest.fixture
def prepare_replay(tmp_path):
    """Prepares the kept program of a variant without compiler options, as an earlier run compiled it with some."""

    def prepare(options):
        declared = workload(inputs=lambda key: jnp.ones(3), reference=no_reference("none"))(several_operations)
        case = plan_case("some", declared, {}, BACKENDS["cpu"])
        (today,) = (item for item in case.variants if item.mode == "jit")
        folder, name, alone = CaseFolder(tmp_path), f"{today.name} before", prepare_alone({})
        kept = write_program(alone.jitted, alone.args)
        write_bytes(folder.exported(name), kept, lasting=False)
        replay = Replay(run="1", variant=today.name, sha256=hashlib.sha256(kept).hexdigest())
        before = msgspec.structs.replace(
            today, name=name, mode="replay", same_as=today.name, replays=replay, compiler_options=options
        )
        case = msgspec.structs.replace(case, variants=(*case.variants, before))
        arguments = (jnp.ones(3),)
        context = Context(declared, {}, BACKENDS["cpu"], arguments, time.perf_counter, folder, case=case)
        return context.prepare(name)

    return prepare


def test_a_kept_program_is_compiled_with_the_options_that_the_earlier_run_had(prepare_replay):
    replay = prepare_replay(UNFUSED)

    prints = [find_fingerprint(one.stages) for one in (replay, prepare_alone(UNFUSED), prepare_alone({}))]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize("options", [{"xla_dump_to": "/tmp/theirs"}, {"xla_a": "***"}, {"xla_gpu_cuda_data_dir": "a"}])
def test_no_file_is_followed_that_a_recorded_compiler_option_names(prepare_replay, options):
    with pytest.raises(ReplayError, match=f"compiled with '{next(iter(options))}', which may name a file"):
        prepare_replay(options)
