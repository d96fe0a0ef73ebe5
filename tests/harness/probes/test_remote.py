"""Turns with a process of another environment: here another process of this one."""

from __future__ import annotations

import os
import platform as host_platform
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from jaxmeter.harness.child.inputs import find_inputs
from jaxmeter.harness.declare.catalogue import find_suites
from jaxmeter.harness.machine.environment import recorded_variables
from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.parent.arms import ArmServer, check_environment, restore_variables
from jaxmeter.harness.parent.fork_client import ServerError
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.cases import plan_case
from jaxmeter.harness.plan.messages import Begin, Ready
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.probes import timing
from jaxmeter.harness.probes.context import Context
from jaxmeter.harness.probes.remote import Address, Arm, ArmError, meet
from jaxmeter.harness.probes.timing import probe_variants
from jaxmeter.harness.programs.arguments import hash_arguments, pack_numbers
from jaxmeter.harness.record import OtherEnvironment, Replay, Status

SUITE = """
'''One program, and some that fail.'''

import os
import time

import jax.numpy as jnp

from jaxmeter import workload


@workload(inputs=lambda key: jnp.arange(1000.0), reference=lambda x: x * 2, modes=("eager", "jit"), queued=3)
def double(x):
    return x * 2


def raising(x):
    raise ValueError("no such thing")


def dying(x):
    os._exit(3)


def hanging(x):
    time.sleep(1000)


double.implementation(raising, modes=("eager",))
double.implementation(dying, modes=("eager",))
double.implementation(hanging, modes=("eager",))
"""

HERE = OtherEnvironment(python=sys.executable, version=host_platform.python_version(), packages={}, variables={})
VARIABLES = {**os.environ, "JAX_PLATFORMS": "cpu"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suite") / "doubles.py"
    path.write_text(SUITE)
    return path


@pytest.fixture(scope="module")
def server():
    with ArmServer(HERE, VARIABLES) as started:
        yield started


@pytest.fixture(scope="module")
def todays_server():
    with ArmServer(HERE, VARIABLES) as started:
        yield started


@pytest.fixture
def address(server, suite: Path, tmp_path: Path):
    platform = PLATFORMS["cpu"]
    ((workload,),) = (one.workloads for one in find_suites((str(suite),)))
    settings = make_settings("quick", suites=(str(suite),), run_id="it", lock_step=HERE)
    case = plan_case("doubles", workload, {}, platform)
    begin = Begin(
        case=case,
        platform=platform,
        settings=settings,
        sources={one.name: one.source for one in case.variants},
        cache=str(tmp_path / "cache"),
        inputs=str(tmp_path / "inputs"),
        cores=None,
        core=0,
    )
    return Address(server.reach(0), begin)


@pytest.fixture
def make_context(address: Address, todays_server: ArmServer, suite: Path, tmp_path: Path):
    """Makes a context in which variants stand beside the same ones of an earlier run, elsewhere."""

    def make(*beside: str, **changes: object) -> Context:
        ((workload,),) = (one.workloads for one in find_suites((str(suite),)))
        case = address.begin.case
        variants = [
            msgspec.structs.replace(
                one, name=f"{name} before", same_as=name, replays=Replay(run="before", variant=name)
            )
            for one in case.variants
            for name in beside
            if one.name == name
        ]
        case = msgspec.structs.replace(case, variants=(*case.variants, *variants))
        begin = msgspec.structs.replace(address.begin, case=case)
        return Context(
            workload=workload,
            params={},
            platform=begin.platform,
            arguments=find_inputs(workload, {}, tmp_path / "own inputs").arguments,
            clock=time.perf_counter,
            folder=None,
            case=case,
            settings=begin.settings,
            arms={
                Arm.NOW: Address(todays_server.reach(0), begin),
                Arm.BEFORE: Address(address.path, msgspec.structs.replace(begin, **changes)),
            },
        )

    return make


def test_both_take_their_blocks_in_turns_and_their_samples_stand_side_by_side(address, make_context):
    context = make_context("double:jit", "double:eager")
    names = ("double:jit", "double:jit before", "double:eager", "double:eager before")

    found = probe_variants(names, context)

    assert found.outcomes == {}
    assert tuple(one.variant for one in found.process.variants) == names
    settings = address.begin.settings
    for one in found.process.variants:
        assert len(one.blocks) == settings.blocks
        assert [block.pass_number for block in one.blocks] == list(range(settings.blocks))
        assert all(block.wall_s >= settings.block_s for block in one.blocks)
        assert all(sample > 0 for block in one.blocks for sample in block.samples_s)
        assert all(block.calibration_s > 0 for block in one.blocks)
        assert one.return_s
        assert one.isolated_s
        assert one.queued_calls == 3
        assert 0 < len(one.queued_s) == len(one.waited_s) <= settings.blocks


def test_the_load_of_a_process_counts_both_processes(make_context):
    found = probe_variants(("double:jit", "double:jit before"), make_context("double:jit"))

    arms_s = [sum(block.cpu_s for block in one.blocks) for one in found.process.variants]
    assert found.process.load.cpu_s > sum(arms_s)
    assert min(arms_s) > 0


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("raising:eager", "in the environment of the earlier run: ValueError under jax"),
        ("dying:eager", "its process has ended without an answer"),
    ],
)
def test_a_variant_that_cannot_be_run_there_costs_itself_alone(variant, words, make_context):
    context = make_context("double:jit", variant)

    found = probe_variants(("double:jit", "double:jit before", f"{variant} before"), context)

    assert found.process is None
    assert list(found.outcomes) == [f"{variant} before"]
    (outcome,) = found.outcomes.values()
    assert outcome.status is Status.FAILED
    assert words in outcome.reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda array: array + 1, None),
        (lambda array: array[1:], "bytes, and today's"),
        (lambda array: array[None], "its inputs are others than today's"),
    ],
    ids=["other numbers", "fewer bytes", "as many bytes"],
)
def test_inputs_that_are_others_there_are_todays_instead_and_of_other_shapes_refused(make_context, change, words):
    context = make_context("double:jit", "double:eager")
    context.arguments = (change(context.arguments[0]),)

    found = probe_variants(("double:jit", "double:jit before", "double:eager before"), context)

    assert set(found.outcomes) == ({"double:jit before", "double:eager before"} if words else set())
    assert not words or words in found.outcomes["double:jit before"].reason


@pytest.mark.parametrize(("made", "given"), [(("same", "same"), 0), (("same", "other"), 2), (("other", "other"), 2)])
def test_all_environments_get_their_inputs_in_the_same_way(monkeypatch, made, given):
    """Memory that one alone received could be other memory, which takes other times."""
    monkeypatch.setattr(timing, "hash_arguments", lambda arguments: "same")
    monkeypatch.setattr(timing, "pack_numbers", lambda arguments: b"numbers")
    received = []

    class Meeting(SimpleNamespace):
        def give_inputs(self, numbers):
            received.append(numbers)
            self.inputs = "same"

    timing._share_inputs([Meeting(inputs=one) for one in made], SimpleNamespace(arguments=()))

    assert received == [b"numbers"] * given


def test_a_process_says_which_inputs_it_has(address, make_context):
    given = (make_context().arguments[0] + 1,)

    with meet(address) as meeting:
        assert meeting.inputs != hash_arguments(given)
        meeting.give_inputs(pack_numbers(given))
        assert meeting.inputs == hash_arguments(given)
        assert meeting.prepare("double:jit").calls == 1


def test_code_that_is_not_the_earlier_runs_is_refused(make_context):
    found = probe_variants(
        ("double:jit", "double:jit before"), make_context("double:jit", sources={"double:jit": "another"})
    )

    assert list(found.outcomes) == ["double:jit before"]
    assert "its code there is not what the run has measured" in found.outcomes["double:jit before"].reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"definition": "another"}, "inputs, reference or cost of double are others there"),
        ({"workload": "triple"}, "the workload 'triple' is gone"),
    ],
)
def test_another_definition_or_a_case_that_is_gone_is_refused(address, changes, words):
    case = msgspec.structs.replace(address.begin.case, **changes)
    other = Address(address.path, msgspec.structs.replace(address.begin, case=case))

    with pytest.raises(ArmError, match=words), meet(other):
        pass


def test_the_process_ends_with_the_one_that_asked_for_it_even_where_it_hangs(server, make_context):
    process = server.start(0).server.process
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    begin = make_context("hanging:eager").arms[Arm.BEFORE].begin
    asked = subprocess.Popen(
        [sys.executable, "-c", ASK, server.reach(0)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    asked.stdin.write(msgspec.json.encode(begin).decode())
    asked.stdin.close()
    assert asked.stdout.readline() == "prepared\n"
    assert children.read_text().split()

    asked.kill()

    assert asked.wait() != 0
    asked.stdout.close()
    deadline = time.monotonic() + 20
    while children.read_text().split() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not children.read_text().split()


ASK = """
import socket, sys, time
connected = socket.socket(socket.AF_UNIX)
connected.connect(sys.argv[1])
stream = connected.makefile("rwb")
stream.write(sys.stdin.buffer.read() + b"\\n")
stream.flush()
assert b"cpu_s" in stream.readline()
stream.write(b'{"variant": "hanging:eager", "step": "prepare"}\\n')
stream.flush()
print("prepared", flush=True)
time.sleep(1000)
"""


@pytest.mark.slow
def test_a_server_that_was_ended_is_started_again(address, suite):
    with ArmServer(HERE, VARIABLES) as started:
        first = started.reach(0)
        process = started.start(0).server.process
        process.kill()
        process.wait()

        with meet(Address(started.reach(0), address.begin)) as meeting:
            assert meeting.inputs
        assert started.reach(0) != first
        assert started.reach(1) != started.reach(0)


def test_a_server_that_is_gone_is_said(tmp_path, address):
    with (
        pytest.raises(ArmError, match="it cannot be reached: No such file or directory"),
        meet(Address(str(tmp_path / "none"), address.begin)),
    ):
        pass


def test_a_program_that_is_no_python_of_jax_says_what_it_said(tmp_path):
    path = tmp_path / "python"
    path.write_text("#!/bin/sh\necho 'no module named jax' >&2\nexit 1\n")
    path.chmod(0o755)

    with (
        ArmServer(msgspec.structs.replace(HERE, python=str(path)), dict(os.environ)) as server,
        pytest.raises(ServerError, match="no module named jax"),
    ):
        server.reach(0)
    with pytest.raises(UsageError, match="no such program"):
        ArmServer(msgspec.structs.replace(HERE, python="/none/python"), {})


def environment(python: str = "3.11.7", **packages: str) -> OtherEnvironment:
    return OtherEnvironment(python="python", version=python, packages=packages, variables={})


@pytest.mark.parametrize(
    ("found", "others"),
    [
        (Ready(python="3.11.2", packages={"jax": "1"}), "jaxlib missing, not 1"),
        (Ready(python="3.11.2", packages={"jax": "2", "jaxlib": "1"}), "jax 2, not 1"),
        (Ready(python="3.11.2", packages={"jax": "1", "jaxlib": "1", "flax": "2"}), "flax 2, not 1"),
        (Ready(python="3.11.2", packages={"jax": "1", "jaxlib": "1", "flax": "1"}), "jax-cuda13-plugin missing, not 1"),
        (Ready(python="3.12.7", packages={"jax": "1", "jaxlib": "1"}), r"Python 3\.12\.7, not 3\.11\.7"),
    ],
)
def test_an_environment_of_other_versions_or_without_a_plugin_is_refused(found, others):
    recorded = environment(**{"jax": "1", "jaxlib": "1", "flax": "1", "jax-cuda13-plugin": "1"})

    with pytest.raises(UsageError, match=f"it has .*{others}.*; create"):
        check_environment(found, recorded)


def test_what_steers_no_program_need_not_be_there():
    found = Ready(python="3.11.9", packages={"jax": "1", "jaxlib": "1"})

    check_environment(found, environment(jax="1", jaxlib="1", torch="2"))


NOW = {"XLA_FLAGS": "--today", "JAX_ENABLE_X64": "1", "PATH": "/bin", "JAX_PLATFORMS": "cpu", "JAXMETER_DATA": "d"}
LITTLE = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


DUMPS = {"JAX_COMPILATION_CACHE_DIR": "results/run/cache", "JAX_DUMP_IR_TO": "***"}
FOREIGN = {"LD_PRELOAD": "mine.so", "PATH": "/mine", "PYTHONSTARTUP": "mine.py", "JAX_TOKEN": "d"}


@pytest.mark.parametrize(
    ("now", "then", "restored"),
    [
        (
            NOW,
            {"XLA_FLAGS": "--then", "JAX_PLATFORMS": "tpu", "JAXMETER_DATA": "e"},
            {"PATH": "/bin", "XLA_FLAGS": "--then", "JAX_PLATFORMS": "cpu", "JAXMETER_DATA": "d"},
        ),
        (LITTLE, {}, LITTLE),
        (LITTLE, {"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, LITTLE),
        ({"PATH": "/bin"}, FOREIGN, {"PATH": "/bin"}),
        ({}, {**DUMPS, "XLA_FLAGS": "--xla_dump_to=*** --xla_a=true"}, {"XLA_FLAGS": "--xla_a=true"}),
    ],
    ids=[
        *("what steers jax", "memory of a device that both use", "whatever the earlier run did"),
        *("what is not recorded by us", "caches and dumps"),
    ],
)
def test_variables_that_steer_jax_are_those_of_the_earlier_run_and_no_others(now, then, restored):
    assert restore_variables(now, then) == restored


def test_a_path_at_home_is_that_of_today(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    now = {"XLA_FLAGS": "--xla_gpu_cuda_data_dir=/home/somebody/a"}

    assert restore_variables(now, {"XLA_FLAGS": "--xla_gpu_cuda_data_dir=~/a"}) == now


@pytest.mark.parametrize(
    "then",
    [
        {"XLA_FLAGS": "--xla_gpu_cuda_data_dir=results/run"},
        {"XLA_FLAGS": "results/run/flags"},
        {"JAX_A": "b\0c"},
        {"XLA_FLAGS_FILE": "flags"},
    ],
    ids=str,
)
def test_a_variable_that_may_name_a_file_is_not_taken_from_a_record(then):
    (name,) = then
    with pytest.raises(UsageError, match=f"set {name} to that here"):
        restore_variables({}, then)


def test_todays_own_environment_keeps_its_variables_as_they_are():
    now = {"XLA_FLAGS": "--xla_dump_to=/tmp/a --xla_gpu_cuda_data_dir=/cuda", "JAX_DUMP_IR_TO": "/tmp/b"}

    assert restore_variables(now, recorded_variables(now)) == now
