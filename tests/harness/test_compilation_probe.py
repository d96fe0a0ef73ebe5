import dataclasses
import getpass
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from harness import no_reference, program, workload
from harness.backends import BACKENDS
from harness.modes import How, Prepared, prepared_as
from harness.probes import Context, compilation
from harness.record import Outcome, Status

STAGES = {"trace_s", "lower_s", "compile_s"}
COUNTS = {
    "jaxpr_equations",
    "jaxpr_equations_nested",
    "stablehlo_operations",
    "hlo_instructions",
    "hlo_fusions",
    "hlo_custom_calls",
    "hlo_collectives",
    "executable_bytes",
    "counted_flops",
    "counted_bytes",
}
ARGUMENT = jnp.ones(3)
VARIANT = "double:jit"


def double(x):
    return x * 2


def context(folder=None, *, index=0, compiles=None) -> Context:
    declared = workload(inputs=lambda key: ARGUMENT, reference=no_reference("none"), modes=("jit",), compiles=compiles)
    return Context(declared(double), {}, BACKENDS["cpu"], (ARGUMENT,), time.perf_counter, folder, index=index)


def prepared(function=double) -> Prepared:
    return prepared_as("jit", function, (ARGUMENT,), How(), lambda: 0.0, lambda stage: None)


def counting(calls: list) -> Prepared:
    """The real thing; every call is noted."""
    real = prepared()

    def call(x):
        calls.append(x)
        return real.call(x)

    return dataclasses.replace(real, call=call)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_the_first_process_counts_keeps_the_texts_and_calls_again(tmp_path):
    calls = []

    found = compilation.run(VARIANT, counting(calls), context(tmp_path))

    assert len(calls) == 2
    assert set(found.values) == {"first_call_s", "compiles", "recompiles"} | STAGES | COUNTS
    assert files(program.folder(tmp_path, VARIANT)) == set(program.TEXTS.values())
    assert len(found.fingerprints) == 1
    assert found.notes == ()


def test_later_processes_take_times_only_and_call_once(tmp_path):
    calls = []

    found = compilation.run(VARIANT, counting(calls), context(tmp_path, index=1))

    assert len(calls) == 1
    assert set(found.values) == {"first_call_s", "compiles"} | STAGES
    assert files(tmp_path) == set()


def test_every_process_tells_which_program_it_was(tmp_path):
    first = compilation.run(VARIANT, prepared(), context(tmp_path))
    later = compilation.run(VARIANT, prepared(), context(tmp_path, index=1))

    assert first.fingerprints == later.fingerprints
    assert first.fingerprints


def test_the_first_call_is_timed_until_its_result_is_ready(clock):
    call = Prepared(lambda: clock.advance(0.25), (), lambda result: clock.advance(0.5))

    found = compilation.run(VARIANT, call, dataclasses.replace(context(index=1), clock=clock))

    assert found.values["first_call_s"] == (0.75,)


def without_text(error: Exception) -> Prepared:
    """The real thing on a backend that tells nothing of its programs."""

    def refuse():
        raise error

    real = prepared()
    silent = SimpleNamespace(as_text=refuse, cost_analysis=lambda: None, runtime_executable=lambda: None)
    return dataclasses.replace(real, stages=dataclasses.replace(real.stages, compiled=silent))


@pytest.mark.parametrize(
    "error", [NotImplementedError("no text"), jax.errors.JaxRuntimeError("no text"), TypeError("no text")]
)
def test_a_program_that_its_backend_does_not_tell_has_its_times_all_the_same(error):
    found = compilation.run(VARIANT, without_text(error), context())

    assert found.status is Status.OK
    assert STAGES | {"first_call_s", "jaxpr_equations", "stablehlo_operations"} <= set(found.values)
    assert "hlo_instructions" not in found.values
    assert found.fingerprints == ()
    assert found.notes == (
        "which program this is cannot be read: no text",
        "the optimised program cannot be read: no text",
        "XLA gives no count for this program",
    )


def test_a_program_that_its_backend_does_not_tell_keeps_its_other_texts(tmp_path):
    compilation.run(VARIANT, without_text(NotImplementedError("no text")), context(tmp_path))

    assert files(tmp_path) == {program.TEXTS["jaxpr"], program.TEXTS["stablehlo"]}


@pytest.mark.parametrize(("budget", "status"), [(None, Status.OK), (1, Status.OK), (0, Status.FAILED)])
def test_as_many_programs_may_be_compiled_as_are_declared(budget, status):
    assert compilation.run(VARIANT, prepared(), context(index=1, compiles=budget)).status is status


def over_budget() -> Outcome:
    return compilation.run(VARIANT, prepared(), context(index=1, compiles=0))


def test_a_compile_too_many_is_found_even_where_jax_cannot_explain_it(monkeypatch):
    def explanation(call):
        raise RuntimeError("the log is closed")

    monkeypatch.setattr(compilation, "explanation", explanation)

    found = over_budget()

    assert found.status is Status.FAILED
    assert (
        found.reason
        == "compiled 1 programs, 0 declared; JAX's own explanation is on the page, and in case.json as stderr"
    )
    assert found.stderr == "no explanation: the log is closed"
    assert found.values["compiles"] == (1,)


def test_an_explanation_is_private_and_keeps_its_end(monkeypatch):
    longest = compilation.LONGEST_EXPLANATION
    monkeypatch.setattr(Path, "home", lambda: Path("/home/anna"))
    monkeypatch.setattr(compilation, "explanation", lambda call: "x" * longest + "\n  * at x, see /home/anna/suite.py")

    found = over_budget()

    assert len(found.stderr) == longest
    assert found.stderr.endswith("  * at x, see ~/suite.py")
    assert "; the last because at x, see ~/suite.py; JAX's own explanation" in found.reason


@pytest.mark.parametrize("name", ["anna", "änna"])
def test_the_texts_of_a_program_tell_nothing_of_the_home_that_it_was_written_in(monkeypatch, tmp_path, name):
    home = Path("/home") / name
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setattr(getpass, "getuser", lambda: name)
    names = {}
    exec(compile("def double(x):\n    return x * 2", str(home / "suite.py"), "exec"), names)
    written = prepared(names["double"])
    # As XLA writes what is not ASCII.
    octal = "".join(chr(byte) if byte < 128 else f"\\{byte:03o}" for byte in str(home).encode())
    assert octal in program.text_of(written.stages.compiled)

    compilation.run(VARIANT, written, context(tmp_path))

    folder = program.folder(tmp_path, VARIANT)
    assert '"~/suite.py"' in (folder / program.TEXTS["hlo"]).read_text()
    for text in files(folder):
        assert str(home) not in (folder / text).read_text()
        assert octal not in (folder / text).read_text()
