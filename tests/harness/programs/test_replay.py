"""Programs that a run keeps, and a later one compiles and runs again."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from jaxmeter.harness.programs import replay as replays
from jaxmeter.harness.programs.modes import How, prepare_as
from jaxmeter.harness.programs.program import find_fingerprint, read_hlo
from jaxmeter.harness.programs.replay import ReplayError, list_targets, make_replay, read_program, write_program


class Pair:
    """A tree of somebody's own, which nobody has registered for writing."""

    def __init__(self, left, right):
        self.left, self.right = left, right


jax.tree_util.register_pytree_node(Pair, lambda one: ((one.left, one.right), None), lambda _, inner: Pair(*inner))


def step(state, x):
    """A training step's form: a state in a tree of one's own, which the result begins with."""
    slope = jnp.tanh(x @ state.left).mean()
    return Pair(state.left - slope, state.right + 1), {"loss": slope}


ARGUMENTS = (Pair(jnp.ones((4, 3)), jnp.zeros(())), jnp.arange(8.0).reshape(2, 4))


def keep(function, args, how=None, mode="jit"):
    """A function's program as a file, and the function as a program again."""
    prepared = prepare_as(mode, function, args, how or How(), lambda: 0.0, lambda stage: None)
    return read_program(write_program(prepared.jitted, prepared.args)), prepared


def run_again(function, args, how=None):
    program, prepared = keep(function, args, how)
    again = prepare_as("jit", make_replay(program, function, args), args, how or How(), lambda: 0.0, lambda stage: None)
    return prepared, again


def test_a_replay_takes_and_gives_the_trees_of_todays_function():
    prepared, again = run_again(step, ARGUMENTS)

    results = [one.wait(one.call(*one.args)) for one in (prepared, again)]

    assert [type(one[0]) for one in results] == [Pair, Pair]
    for one, other in zip(*map(jax.tree.leaves, results), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (step, ARGUMENTS),
        (lambda x: jax.lax.scan(lambda total, one: (total + one, total), 0.0, x)[1], (jnp.arange(50.0),)),
        (lambda x, y: x @ y @ x.T, (jnp.ones((64, 64)), jnp.ones((64, 64)))),
        (lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (jnp.ones(9),)),
        (lambda x: jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(4)), (jnp.ones((4, 4)),)),
        (lambda key: jax.random.normal(jax.random.wrap_key_data(key), (5,)), (jnp.zeros(2, "uint32"),)),
    ],
    ids=["step", "scan", "products", "cond", "lapack", "random"],
)
def test_a_replay_compiles_to_the_very_program_that_was_kept(function, args):
    prepared, again = run_again(function, args)

    assert find_fingerprint(again.stages) == find_fingerprint(prepared.stages)


@pytest.mark.parametrize("donate", [(), (0,)])
def test_a_replay_carries_state_and_donates_as_todays_function_does(donate):
    prepared, again = run_again(step, ARGUMENTS, How(carry={0: 0}, donate=donate))

    for one in (prepared, again):
        assert ("input_output_alias" in read_hlo(one.stages.compiled)) is bool(donate)
        one.reset()
        for _ in range(3):
            state, _ = one.wait(one.call(*one.args))
        assert state.right == 3.0


TWO_DEVICES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxmeter.harness.programs.program import find_fingerprint
from tests.harness.programs.test_replay import run_again

mesh = Mesh(np.array(jax.devices()), ("rows",))
x = jax.device_put(jnp.arange(8.0).reshape(4, 2), NamedSharding(mesh, PartitionSpec("rows")))
parts = jax.shard_map(
    lambda x: jax.lax.psum(x, "rows"), mesh=mesh, in_specs=PartitionSpec("rows"), out_specs=PartitionSpec()
)
for function in (lambda x: x * x.sum(), parts):
    prepared, again = run_again(function, (x,))
    results = [one.wait(one.call(*one.args)) for one in (prepared, again)]
    assert np.array_equal(*results)
    assert results[1].sharding.is_equivalent_to(results[0].sharding, 2), results[1].sharding
    assert find_fingerprint(again.stages) == find_fingerprint(prepared.stages)
print(len(jax.devices()), "devices")
"""


def test_a_program_of_several_devices_is_run_on_as_many():
    variables = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}

    ended = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], env=variables, capture_output=True, text=True, timeout=120, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "2 devices\n"


def test_a_callback_is_not_kept():
    def noisy(x):
        return jax.pure_callback(lambda one: np.asarray(one) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(NotImplementedError, match="callback"):
        keep(noisy, (jnp.ones(3),))


def test_a_custom_call_that_is_not_on_the_list_is_refused_before_anything_is_compiled(monkeypatch):
    def noisy(x):
        return jax.pure_callback(lambda one: np.asarray(one) + 1, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    x = jnp.ones(3)
    targets = set(list_targets(jax.jit(noisy).lower(x).compiler_ir("stablehlo").operation))
    assert targets  # whatever this jax calls them
    assert not targets & replays.ALLOWED_TARGETS
    program, _ = keep(jnp.linalg.cholesky, (jnp.eye(3),))
    monkeypatch.setattr(replays, "ALLOWED_TARGETS", frozenset())

    def compiled(*args, **options):
        raise AssertionError("it was compiled")

    monkeypatch.setattr(jax.stages.Lowered, "compile", compiled)
    with pytest.raises(ReplayError, match="custom call 'lapack_spotrf_ffi'"):
        make_replay(program, jnp.linalg.cholesky, (jnp.eye(3),))


def test_every_target_that_jax_may_write_for_a_processor_is_on_the_list():
    real, complex_ = jnp.eye(3), jnp.eye(3, dtype="complex64")
    names = ("qr", "eigh", "svd", "inv", "eig")
    others = (lambda x: jax.scipy.linalg.solve_triangular(x, x), jax.scipy.linalg.schur, jax.lax.linalg.tridiagonal)
    functions = [(getattr(jnp.linalg, name), real) for name in names] + [(function, real) for function in others]
    for function, x in (*functions, (jnp.linalg.qr, complex_), (jnp.linalg.eigh, complex_)):
        targets = set(list_targets(jax.jit(function).lower(x).compiler_ir("stablehlo").operation))
        assert targets
        assert targets <= replays.ALLOWED_TARGETS


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((jnp.ones((3, 3)),), r"arguments of the kept program are of other types: number 0 was float32\[2, 2\]"),
        ((jnp.ones((2, 2), "int32"),), "today it is int32"),
        ((jnp.ones((2, 2)), jnp.ones(())), "has 1 arguments, today's 2"),
        ((jnp.ones((2, 2)),), "results of the kept program are of other types"),
    ],
)
def test_other_arguments_and_another_result_are_refused(args, words):
    program, _ = keep(lambda x: x + 1, (jnp.ones((2, 2)),))

    with pytest.raises(ReplayError, match=words):
        make_replay(program, lambda *given: given[0].sum() if "results" in words else given[0] + 1, args)


@pytest.mark.parametrize("data", [b"", b"no program", bytes(1000)])
def test_a_damaged_file_is_refused(data):
    with pytest.raises(ReplayError, match="cannot be read"):
        make_replay(read_program(data), lambda x: x, (jnp.ones(3),))


def test_a_program_that_was_cut_is_refused():
    prepared = prepare_as("jit", lambda x: x + 1, (jnp.ones(3),), How(), lambda: 0.0, lambda stage: None)
    written = write_program(prepared.jitted, prepared.args)

    for length in (len(written) // 2, len(written) - 200):
        with pytest.raises(ReplayError):
            make_replay(read_program(written[:length]), lambda x: x + 1, (jnp.ones(3),))


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (export.minimum_supported_calling_convention_version - 1, "has expired"),
        (export.maximum_supported_calling_convention_version + 1, "was written by a newer jax"),
    ],
)
def test_a_program_of_another_age_is_refused(monkeypatch, version, words):
    program, _ = keep(lambda x: x + 1, (jnp.ones(3),))
    object.__setattr__(program, "calling_convention_version", version)
    monkeypatch.setattr(export, "deserialize", lambda data: program)

    with pytest.raises(ReplayError, match=words):
        read_program(b"")


def test_a_program_of_another_kind_of_device_is_refused():
    written = export.export(jax.jit(lambda x: x + 1), platforms=["tpu"])(jnp.ones(3)).serialize()

    with pytest.raises(ReplayError, match="for tpu, and this is cpu"):
        make_replay(read_program(bytes(written)), lambda x: x + 1, (jnp.ones(3),))


def test_a_kept_program_names_no_file_of_this_machine():
    prepared = prepare_as("jit", step, ARGUMENTS, How(), lambda: 0.0, lambda stage: None)

    written = write_program(prepared.jitted, prepared.args)

    assert all(word not in written for word in (b"test_replay", b".py", b"harness"))
