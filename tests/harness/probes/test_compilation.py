import dataclasses
import getpass
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter import no_reference, workload
from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.probes import Context, compilation
from jaxmeter.harness.programs import program
from jaxmeter.harness.programs.modes import How, Prepared, prepare_as
from jaxmeter.harness.programs.program import NO_COUNT
from jaxmeter.harness.record import CaseFolder, CompilationDetails, Outcome, Status
from jaxmeter.harness.record.files import PROGRAM_TEXTS
from jaxmeter.harness.record.outcomes import list_own_faults
from tests import samples

STAGES = {"trace_s", "lower_s", "compile_s"}
COUNTS = {metric.name for metric in METRICS.values() if metric.probe == "compilation" and metric.exact} - {
    "compiles",
    "recompiles",
    "exported_bytes",
}
LOADED = {"executable_load_s", "executable_first_call_s", "export_s", "exported_load_s", "exported_first_call_s"}
ARGUMENT = jnp.ones(3)
VARIANT = "double:jit"
AHEAD = "double:aot"


def double(x):
    return x * 2


TARGET = samples.target("tpu:v5e", memory_bytes=16 * 2**30, product_dtype="bfloat16")


def context(folder=None, *, index=0, compiles=None, platform=BACKENDS["cpu"]) -> Context:
    declared = workload(
        inputs=lambda key: ARGUMENT, reference=no_reference("none"), modes=("jit", "aot"), compiles=compiles
    )
    kept = None if folder is None else CaseFolder(folder)
    return Context(declared(double), {}, platform, (ARGUMENT,), time.perf_counter, kept, index=index)


def prepared(function=double, mode="jit", argument=ARGUMENT) -> Prepared:
    return prepare_as(mode, function, (argument,), How(), lambda: 0.0, lambda stage: None)


def counting(calls: list, mode="jit") -> Prepared:
    """The real thing; every call is noted."""
    real = prepared(mode=mode)

    def call(x):
        calls.append(x)
        return real.call(x)

    return dataclasses.replace(real, call=call)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_without_jaxs_event_of_a_compilation_their_number_is_unknown_and_never_0(monkeypatch):
    monkeypatch.setattr(compilation, "find_silent_events", lambda: (internals.COMPILED,))

    found = compilation.compile_and_call(VARIANT, prepared(), context(compiles=1))

    assert found.status is Status.OK
    assert not {"compiles", "recompiles"} & set(found.values)
    assert [note for note in found.notes if "how many programs were compiled" in note] == list(list_own_faults([found]))


def test_the_first_process_counts_keeps_the_texts_and_calls_again(tmp_path):
    calls = []

    found = compilation.compile_and_call(VARIANT, counting(calls), context(tmp_path))

    assert len(calls) == 2
    assert set(found.values) == {"first_call_s", "compiles", "recompiles"} | STAGES | COUNTS
    assert files(CaseFolder(tmp_path).programs(VARIANT)) == set(PROGRAM_TEXTS.values())
    assert len(found.details.fingerprints) == 1
    assert found.details.explanation is None
    assert found.notes == ()


def test_later_processes_take_times_only_call_once_and_tell_which_program_it_was(tmp_path):
    calls = []
    first = compilation.compile_and_call(VARIANT, prepared(), context())

    found = compilation.compile_and_call(VARIANT, counting(calls), context(tmp_path, index=1))

    assert len(calls) == 1
    assert set(found.values) == {"first_call_s", "compiles"} | STAGES
    assert files(tmp_path) == set()
    assert found.details == first.details


def test_the_first_call_is_timed_until_its_result_is_ready(clock):
    call = Prepared(lambda: clock.advance(0.25), (), lambda result: clock.advance(0.5))

    found = compilation.compile_and_call(VARIANT, call, dataclasses.replace(context(index=1), clock=clock))

    assert found.values["first_call_s"] == (0.75,)


def without_text(error: Exception) -> Prepared:
    """The real thing on a backend that tells nothing of its programs."""

    def refuse():
        raise error

    real = prepared()
    silent = SimpleNamespace(as_text=refuse, cost_analysis=lambda: None, runtime_executable=lambda: None)
    return dataclasses.replace(real, stages=dataclasses.replace(real.stages, compiled=silent))


@pytest.mark.parametrize("error", [NotImplementedError("no text"), jax.errors.JaxRuntimeError("no text")])
def test_a_program_that_its_backend_does_not_tell_has_its_times_and_its_other_texts_all_the_same(error, tmp_path):
    found = compilation.compile_and_call(VARIANT, without_text(error), context(tmp_path))

    assert found.status is Status.OK
    assert STAGES | {"first_call_s", "jaxpr_equations", "stablehlo_operations"} <= set(found.values)
    assert "hlo_instructions" not in found.values
    assert found.details == CompilationDetails(fingerprints=())
    assert found.notes == (
        "which program this is cannot be read: no text",
        "the optimised program cannot be read: no text",
        NO_COUNT,
    )
    assert files(tmp_path) == {PROGRAM_TEXTS["jaxpr"], PROGRAM_TEXTS["stablehlo"]}


def test_a_program_that_we_cannot_read_has_its_times_all_the_same_and_our_fault_is_named():
    found = compilation.compile_and_call(VARIANT, without_text(TypeError("another signature")), context())

    assert found.status is Status.OK
    assert STAGES | {"first_call_s"} <= set(found.values)
    assert ["another signature" in fault for fault in list_own_faults([found])] == [True, True]


@pytest.mark.parametrize(("budget", "status"), [(None, Status.OK), (1, Status.OK), (0, Status.FAILED)])
def test_as_many_programs_may_be_compiled_as_are_declared(budget, status):
    assert compilation.compile_and_call(VARIANT, prepared(), context(index=1, compiles=budget)).status is status


def test_a_second_call_that_compiles_counts_against_what_is_declared(monkeypatch):
    monkeypatch.setattr(compilation, "explain_misses", lambda call: [])
    real = prepared()

    def forgetful(x):
        return jax.jit(lambda y: y + 1)(x)

    restless = dataclasses.replace(real, call=forgetful)

    found = compilation.compile_and_call(VARIANT, restless, context(compiles=2))

    assert (found.values["compiles"], found.values["recompiles"]) == ((2,), (1,))
    assert found.reason.startswith("compiled 3 programs, 2 declared; ")


def over_budget() -> Outcome:
    return compilation.compile_and_call(VARIANT, prepared(), context(index=1, compiles=0))


def test_a_compile_too_many_is_found_even_where_jax_cannot_explain_it(monkeypatch):
    def refuse(call):
        raise RuntimeError("the log is closed")

    monkeypatch.setattr(compilation, "explain_misses", refuse)

    found = over_budget()

    assert found.status is Status.FAILED
    assert found.reason.startswith("compiled 1 programs, 0 declared; JAX's own explanation is on the page")
    assert found.details.explanation == "no explanation: the log is closed"
    assert found.details.fingerprints
    assert found.values["compiles"] == (1,)


def test_an_explanation_is_private_and_keeps_its_end(monkeypatch):
    longest = compilation.LONGEST_EXPLANATION
    monkeypatch.setattr(Path, "home", lambda: Path("/home/anna"))
    told = "x" * longest + "\n  * at x, see /home/anna/suite.py"
    monkeypatch.setattr(compilation, "explain_misses", lambda call: [told])

    found = over_budget()

    assert len(found.details.explanation) == longest
    assert found.details.explanation.endswith("  * at x, see ~/suite.py")
    assert "; the last because at x, see ~/suite.py; JAX's own explanation" in found.reason


def weakly_typed_at_first(mode="jit") -> Prepared:
    """A step whose state is weakly typed before the first call, and strongly typed after it."""

    @jax.jit
    def halve(average):
        return average / 2

    def step(state, x):
        return {"average": halve(state["average"]) + x.sum()}, x.mean()

    state = {"average": jax.jit(lambda: 0.0)()}
    assert state["average"].weak_type
    ready = prepare_as(mode, step, (state, ARGUMENT), How(carry={0: 0}), lambda: 0.0, lambda stage: None)
    ready.reset()
    return ready


def test_the_compile_that_is_explained_is_the_one_that_was_counted():
    found = compilation.compile_and_call(VARIANT, weakly_typed_at_first(), context(compiles=1))

    assert (found.values["compiles"], found.values["recompiles"]) == ((1,), (1,))
    assert found.reason.startswith(
        "compiled 2 programs, 1 declared; the last because at state['average'], "
        "now f32[]{weak_type=False} and before f32[]{weak_type=True}; "
    )
    last = found.details.explanation.split("TRACING CACHE MISS")[-1]
    assert "at state['average']" in last
    assert "never seen function" not in last


def test_where_one_call_is_counted_one_is_explained():
    found = compilation.compile_and_call(VARIANT, weakly_typed_at_first(), context(index=1, compiles=0))

    assert found.reason.startswith("compiled 1 programs, 0 declared; JAX's own explanation")
    assert found.details.explanation.count("TRACING CACHE MISS") == 1


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
    assert octal in program.read_hlo(written.stages.compiled)

    compilation.compile_and_call(VARIANT, written, context(tmp_path))

    folder = CaseFolder(tmp_path).programs(VARIANT)
    assert '"~/suite.py"' in (folder / PROGRAM_TEXTS["hlo"]).read_text()
    for text in files(folder):
        assert str(home) not in (folder / text).read_text()
        assert octal not in (folder / text).read_text()


def test_an_ahead_of_time_program_is_written_and_loaded_again_in_every_process(tmp_path):
    ready = prepared(mode="aot")

    found = compilation.compile_and_call(AHEAD, ready, context(tmp_path, index=1))

    assert set(found.values) == {"first_call_s", "compiles", "exported_bytes"} | STAGES | LOADED
    assert all(value > 0 for name in LOADED for value in found.values[name])
    assert found.values["exported_bytes"] == (len(jax.export.export(ready.jitted)(ARGUMENT).serialize()),)
    assert (found.status, found.notes) == (Status.OK, ())


@pytest.mark.parametrize(("mode", "folder"), [("jit", True), ("aot", False)])
def test_a_program_is_loaded_again_only_ahead_of_time_and_where_files_may_be_kept(tmp_path, mode, folder):
    found = compilation.compile_and_call(
        f"double:{mode}", prepared(mode=mode), context(tmp_path if folder else None, index=1)
    )

    assert set(found.values) == {"first_call_s", "compiles"} | STAGES


def test_a_program_is_loaded_again_after_everything_else(tmp_path, monkeypatch):
    calls = []
    ready = counting(calls, mode="aot")

    def load(prepared, clock):
        calls.append("loaded")
        return {}

    monkeypatch.setattr(program, "load_executable", load)

    compilation.compile_and_call(AHEAD, ready, context(tmp_path))

    assert [isinstance(call, str) for call in calls] == [False, False, True]


def test_what_cannot_be_written_is_a_note_with_the_reason_and_the_rest_stands(tmp_path):
    class State(NamedTuple):
        x: jax.Array

    def of_state(state):
        return state.x * 2

    found = compilation.compile_and_call(AHEAD, prepared(of_state, "aot", State(ARGUMENT)), context(tmp_path, index=1))

    (note,) = found.notes
    assert found.status is Status.OK
    assert note.startswith("the exported program cannot be serialised and loaded: Cannot serialize PyTreeDef")
    assert {"executable_load_s", "executable_first_call_s"} <= set(found.values)
    assert "exported_bytes" not in found.values


def test_a_step_that_takes_its_arguments_memory_leaves_them_for_the_next(tmp_path):
    ready = prepare_as(
        "aot", lambda x: (x + 1,), (jnp.ones(3),), How(carry={0: 0}, donate=(0,)), time.perf_counter, lambda stage: None
    )

    found = compilation.compile_and_call(AHEAD, ready, context(tmp_path))

    assert found.notes == ()
    assert set(found.values) >= LOADED
    assert ready.args[0].tolist() == [1, 1, 1]


def test_entries_of_the_cache_may_be_more_than_programs():
    def stream(*items):
        how = How(stream=True)
        return prepare_as("jit", double, tuple((item,) for item in items), how, lambda: 0.0, lambda stage: None)

    of_the_device_and_of_the_host = stream(jnp.ones(3), jnp.ones(4), np.ones(3, np.float32))

    found = compilation.compile_and_call(VARIANT, of_the_device_and_of_the_host, context())

    assert (found.values["compiles"], found.values["cache_entries"]) == ((2,), (3,))


def test_another_jax_may_not_tell_the_entries_of_its_cache():
    silent = dataclasses.replace(prepared(), jitted=object())

    assert "cache_entries" not in compilation.compile_and_call(VARIANT, silent, context()).values


# A target, whose programs are compiled and never called


@pytest.mark.parametrize("mode", ["jit", "aot"])
def test_of_a_target_nothing_is_called_and_the_program_is_told_all_the_same(tmp_path, mode):
    def called(*arguments):
        raise AssertionError("it was called")

    compiled = dataclasses.replace(prepared(mode=mode), call=called)

    found = compilation.compile_and_call(f"double:{mode}", compiled, context(tmp_path, platform=TARGET))

    assert set(found.values) == STAGES | COUNTS - {"cache_entries"}
    assert files(CaseFolder(tmp_path).programs(f"double:{mode}")) == set(PROGRAM_TEXTS.values())
    assert (found.status, found.notes, len(found.details.fingerprints)) == (Status.OK, (), 1)


# All variants of a process


def test_before_anything_is_compiled_all_that_was_is_forgotten_and_the_cache_too(monkeypatch):
    done = []
    monkeypatch.setattr(compilation, "forget_compiled", lambda *, persistent: done.append(("forget", persistent)))
    told = dataclasses.replace(context(), beat=lambda variant, stage: done.append((variant, stage)))

    found = compilation.probe_variants((VARIANT, AHEAD), told)

    assert done[:2] == [("forget", True), (VARIANT, "prepare")]
    assert done.count(("forget", True)) == 1
    assert {name: outcome.status for name, outcome in found.outcomes.items()} == {VARIANT: Status.OK, AHEAD: Status.OK}


def without_work(x):
    return jnp.zeros_like(x) + 3


@pytest.mark.parametrize(("declared", "marked"), [((), False), (("no_input",), True)])
@pytest.mark.parametrize("of", ["workload", "implementation"])
def test_traps_are_found_and_marked_where_the_suite_declares_them(declared, marked, of):
    options = {"traps": declared} if of == "workload" else {}
    made = workload(inputs=lambda key: ARGUMENT, reference=no_reference("none"), modes=("jit",), **options)(double)
    made.implementation(without_work, **({} if options else {"traps": declared}))
    context = Context(made, {}, BACKENDS["cpu"], (ARGUMENT,), time.perf_counter, None)

    found = compilation.probe_variants(("double:jit", "without_work:jit"), context).outcomes

    assert found["double:jit"].details.traps == ()
    assert [(trap.kind, trap.declared) for trap in found["without_work:jit"].details.traps] == [("no_input", marked)]


def test_traps_are_looked_for_in_the_first_process_only():
    assert context().index == 0

    later = compilation.compile_and_call(VARIANT, prepared(without_work), context(index=1))

    assert later.details.traps == ()


def test_wide_inputs_of_a_suite_are_a_trap():
    made = workload(inputs=lambda key: np.ones(3), reference=no_reference("none"), modes=("eager", "jit"))(double)
    context = Context(made, {}, BACKENDS["cpu"], (ARGUMENT,), time.perf_counter, None)

    found = compilation.probe_variants(("double:eager", "double:jit"), context).outcomes

    for outcome in found.values():
        assert [trap.kind for trap in outcome.details.traps] == ["truncated"]


def test_inputs_that_cannot_be_made_again_are_a_note():
    calls = iter([0, 0])

    def once(key):
        raise RuntimeError("a file is gone", next(calls))

    made = workload(inputs=once, reference=no_reference("none"), modes=("jit",))(double)
    context = Context(made, {}, BACKENDS["cpu"], (ARGUMENT,), time.perf_counter, None)

    outcome = compilation.probe_variants((VARIANT,), context).outcomes[VARIANT]

    assert outcome.status is Status.OK
    assert any("a file is gone" in note for note in outcome.notes)
