import time

import jax
import jax.numpy as jnp
import pytest

from jaxmeter import State, no_reference, workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.probes import PROBES
from jaxmeter.harness.probes import Context, find_probe, run_probes
from jaxmeter.harness.probes.context import LONGEST_REASON, LONGEST_TRACEBACK, Findings, describe_failure, probe_each
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.harness.record.outcomes import list_own_faults
from jaxmeter.harness.traces import hlo

SIDE = 64
SQUARE_BYTES = SIDE * SIDE * 4
SQUARE = jnp.ones((SIDE, SIDE))
FINE = Outcome(status=Status.OK)


def context_of(function, *, modes=("jit",), **of_context) -> Context:
    made = workload(inputs=lambda key: (SQUARE,), reference=no_reference("none"), modes=modes)(function)
    return Context(made, {}, BACKENDS["cpu"], (SQUARE,), time.perf_counter, None, **of_context)


def look(context: Context, *probes: str) -> dict[str, Outcome]:
    """Outcomes of the only variant, by probe."""
    (name,) = context.workload.variants
    found, _ = run_probes(dict.fromkeys(probes, (name,)), context)
    return found[name]


def one_more(x):
    return x + 1


def test_an_option_that_the_backend_does_not_know_fails_its_variant_by_name():
    made = workload(inputs=lambda key: (SQUARE,), reference=no_reference("none"), modes=("jit",))(one_more)
    made.implementation(lambda x: x + 1, name="unknown", compiler_options={"xla_no_such_option": 1})
    context = Context(made, {}, BACKENDS["cpu"], (SQUARE,), time.perf_counter, None)

    found, _ = run_probes({"numerics": made.variants, "memory": made.variants}, context)

    assert {outcome.status for outcome in found["one_more:jit"].values()} == {Status.OK}
    for outcome in found["unknown:jit"].values():
        assert outcome.status is Status.FAILED
        assert outcome.reason.startswith("no compiler option 'xla_no_such_option' on backend 'cpu'")


def test_a_mistake_in_our_own_code_fails_no_variant_and_is_named():
    def look_at(variant, prepared, context):
        return hlo.parse(None)

    outcome = probe_each("memory", look_at, ("one_more:jit",), context_of(one_more)).outcomes["one_more:jit"]

    assert outcome.status is Status.UNKNOWN
    assert list_own_faults([outcome]) == (outcome.reason,)
    assert "what stage 'memory' finds" in outcome.reason
    assert "harness/traces/hlo.py" in outcome.stderr


@pytest.mark.parametrize(("probe", "status"), [("memory", Status.UNKNOWN), ("numerics", Status.FAILED)])
def test_whatever_a_probe_that_calls_nothing_raises_is_our_own_fault(probe, status):
    def look_at(variant, prepared, context):
        raise TypeError("incompatible function arguments")

    found = probe_each(probe, look_at, ("one_more:jit",), context_of(one_more))

    assert found.outcomes["one_more:jit"].status is status


# What does not fit


def test_a_program_that_does_not_fit_is_planned_and_not_called():
    needed = 2 * SQUARE_BYTES

    fits = look(context_of(one_more, capacity_bytes=needed), "numerics", "memory")
    does_not = look(context_of(one_more, capacity_bytes=needed - 1), "numerics", "memory")

    assert (fits["numerics"].status, fits["memory"].status) == (Status.OK, Status.OK)
    assert (does_not["numerics"].status, does_not["memory"].status) == (Status.TOO_LARGE, Status.OK)
    assert does_not["numerics"].reason == "needs 3.05e-05 GiB of 3.05e-05 GiB"


@pytest.mark.parametrize("probe", [name for name, probe in PROBES.items() if name not in ("timing", "caching")])
def test_only_a_probe_that_can_tell_nothing_without_a_call_leaves_out_what_does_not_fit(probe):
    def look_at(variant, prepared, context):
        return FINE

    found = probe_each(probe, look_at, ("one_more:jit",), context_of(one_more, capacity_bytes=1))

    status = Status.TOO_LARGE if PROBES[probe].calls else Status.OK
    assert found.outcomes["one_more:jit"].status is status


def exhausted(*arguments):
    raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 40 GiB\nof 16 GiB")


def fails_in(stage_name, raising):
    """In place of preparing: it raises in a stage."""

    def prepare(mode, function, arguments, how, clock, stage):
        stage(stage_name)
        raising()

    return prepare


def test_a_compiler_that_finds_a_program_too_large_says_that_it_does_not_fit(monkeypatch):
    monkeypatch.setattr("jaxmeter.harness.probes.context.prepare_as", fails_in("compile", exhausted))

    found = look(context_of(jnp.sin), "numerics", "memory")

    expected = Outcome(status=Status.TOO_LARGE, reason="RESOURCE_EXHAUSTED: 40 GiB of 16 GiB")
    assert found == {"numerics": expected, "memory": expected}


def test_a_call_that_runs_out_of_memory_has_failed():
    found = look(context_of(exhausted, modes=("eager",)), "numerics")["numerics"]

    assert found.status is Status.FAILED
    assert found.reason == "in stage 'numerics': JaxRuntimeError: RESOURCE_EXHAUSTED: 40 GiB of 16 GiB"
    assert found.stderr.startswith("Traceback (most recent call last):")
    assert "in exhausted" in found.stderr


# What fails


@pytest.mark.parametrize("error", [ValueError("no\nluck"), jax.errors.JaxRuntimeError("no\nluck")])
@pytest.mark.parametrize("stage", ["prepare", "trace", "lower", "compile"])
def test_what_cannot_be_prepared_names_its_stage_for_every_probe(monkeypatch, stage, error):
    def unlucky():
        raise error

    monkeypatch.setattr("jaxmeter.harness.probes.context.prepare_as", fails_in(stage, unlucky))

    found = look(context_of(one_more), "numerics", "memory", "compilation")

    reason = f"in stage '{stage}': {type(error).__name__}: no luck"
    assert {(one.status, one.reason) for one in found.values()} == {(Status.FAILED, reason)}
    assert all("in unlucky" in one.stderr for one in found.values())


def test_a_failure_keeps_the_beginning_of_its_words_and_the_end_of_its_traceback():
    def raised(words):
        try:
            raise ValueError(words)
        except ValueError as error:
            return error

    found = describe_failure(raised("first " + "x" * 5000 + " last"), "trace")

    assert found.reason.startswith("in stage 'trace': ValueError: first x")
    assert len(found.reason) == LONGEST_REASON
    assert found.stderr.endswith("x last\n")
    assert len(found.stderr) == LONGEST_TRACEBACK
    too_large = describe_failure(ValueError("RESOURCE_EXHAUSTED " + "x" * 5000), "compile")
    assert (len(too_large.reason), too_large.stderr) == (LONGEST_REASON, None)


# One variant after the other


def test_variants_are_prepared_and_looked_at_one_by_one_and_one_that_fails_costs_no_other():
    told = []

    def look_at(variant, prepared, context):
        told.append(("looked", variant))
        if variant == "one_more:eager":
            raise ValueError("no luck")
        return FINE

    context = context_of(one_more, modes=("eager", "jit"), beat=lambda variant, stage: told.append((variant, stage)))

    found = probe_each("memory", look_at, ("one_more:eager", "one_more:jit"), context)

    assert "what stage 'memory' finds: ValueError: no luck" in found.outcomes["one_more:eager"].reason
    assert found.outcomes["one_more:jit"] == FINE
    assert told == [
        *[("one_more:eager", stage) for stage in ("prepare", "memory")],
        ("looked", "one_more:eager"),
        *[("one_more:jit", stage) for stage in ("prepare", "trace", "lower", "compile", "memory")],
        ("looked", "one_more:jit"),
    ]


def test_each_probe_begins_with_the_inputs_whatever_the_one_before_has_called():
    options = {"reference": no_reference("none"), "modes": ("jit",), "state": State(carry={"total": 0})}
    made = workload(inputs=lambda key: (jnp.float32(1),), **options)(lambda total: total + 1)
    context = Context(made, {}, BACKENDS["cpu"], (jnp.float32(1),), time.perf_counter, None)
    results = []

    def look_at(variant, prepared, context):
        results.append(float(prepared.wait(prepared.call(*prepared.args))))
        return FINE

    for _ in range(2):
        probe_each("numerics", look_at, tuple(made.variants), context)

    assert results == [2, 2]


# What a context prepares


def test_a_variant_is_prepared_once_for_the_probes_that_follow_each_other():
    context = context_of(one_more, modes=("eager", "jit"))

    first, again = (context.prepare("one_more:jit") for _ in range(2))
    context.prepare("one_more:eager")

    assert again is first
    assert context.prepare("one_more:jit") is not first


def test_a_variant_that_cannot_be_prepared_is_tried_once_and_raises_the_same_again(monkeypatch):
    tried = []

    def unlucky():
        tried.append(1)
        raise ValueError("no luck")

    monkeypatch.setattr("jaxmeter.harness.probes.context.prepare_as", fails_in("trace", unlucky))
    context = context_of(one_more)

    for _ in range(2):
        with pytest.raises(ValueError, match="no luck"):
            context.prepare("one_more:jit")

    assert len(tried) == 1


# Several probes in one process


@pytest.fixture
def looked(monkeypatch):
    """(probe, variants) in the order of the looks; no probe does more."""
    order = []

    def find(probe):
        def look(variants, context):
            order.append((probe, variants))
            return Findings({variant: Outcome(status=Status.OK, notes=(probe,)) for variant in variants})

        return look

    monkeypatch.setattr("jaxmeter.harness.probes.find_probe", find)
    return order


BOTH = ("one_more:eager", "one_more:jit")


@pytest.mark.parametrize(
    ("probes", "order"),
    [
        (
            {"numerics": BOTH, "memory": BOTH},
            [(probe, (variant,)) for variant in BOTH for probe in ("numerics", "memory")],
        ),
        ({"timing": BOTH}, [("timing", BOTH)]),
        (
            {"numerics": BOTH, "memory": BOTH[1:]},
            [("numerics", BOTH[:1]), ("numerics", BOTH[1:]), ("memory", BOTH[1:])],
        ),
    ],
    ids=["a variant after the other", "side by side", "each its own variants"],
)
def test_probes_of_one_process_look_at_a_variant_together_before_the_next(looked, probes, order):
    found, process = run_probes(probes, context_of(one_more, modes=("eager", "jit")))

    assert looked == order
    assert {variant: {probe: one.notes for probe, one in of.items()} for variant, of in found.items()} == {
        variant: {probe: (probe,) for probe, names in probes.items() if variant in names} for variant in BOTH
    }
    assert process is None


@pytest.mark.parametrize("probe", PROBES)
def test_what_a_probe_does_is_in_the_file_that_has_its_name(probe):
    assert find_probe(probe).__module__ == f"jaxmeter.harness.probes.{probe}"
