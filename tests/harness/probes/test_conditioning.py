import itertools
import time
import tracemalloc

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

from jaxmeter import State, no_reference, workload
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.metrics.plausibility import find_objection
from jaxmeter.harness.metrics.write import describe_details
from jaxmeter.harness.plan.cases import plan_case
from jaxmeter.harness.probes import Context, run_probes
from jaxmeter.harness.probes.conditioning import Judge, relative_error
from jaxmeter.harness.probes.numerics import check
from jaxmeter.harness.record import Correctness, Replay, Status
from jaxmeter.harness.record.outcomes import list_own_faults

NUMBERS = jnp.asarray(np.random.default_rng(0).normal(size=(16, 16)), "float32")
SMALL = NUMBERS * 1e-3


def cancel(x):
    """Of which most digits cancel: a relative error of 1e-7 in the cosine is 0.1 of a result of 1e-6."""
    return 1 - jnp.cos(x)


def cancel_in_float64(x):
    return 1 - np.cos(x)


def amplify(x):
    """Of which a unit in the last place of the argument is many of the result."""
    return jnp.sin(1e6 * x)


def amplify_in_float64(x):
    return np.sin(1e6 * x)


def look(*functions, inputs=(SMALL,), reference=cancel_in_float64, modes=("jit",), beat=None, clock=None, **declared):
    """The numerics of all variants of a workload, its first function the baseline, by the function's name."""
    first, *others = functions
    made = workload(inputs=lambda key: inputs, reference=reference, modes=modes, **declared)(first)
    for function in others:
        made.implementation(function)
    context = Context(made, {}, BACKENDS["cpu"], inputs, clock or time.perf_counter, None)
    if beat is not None:
        context.beat = beat
    found, _ = run_probes({"numerics": tuple(made.variants)}, context)
    return {name: outcomes["numerics"] for name, outcomes in found.items()}


def look_at(function, *others, **options):
    """The numerics of the last variant."""
    return list(look(function, *others, **options).values())[-1]


# Right within the problem's conditioning


def test_an_error_that_rounding_explains_is_right_within_the_problems_conditioning():
    outcome = look_at(cancel)

    assert (outcome.status, outcome.details.verdict) == (Status.OK, Correctness.RIGHT_WITHIN_CONDITIONING)
    assert outcome.details.conditioning.beyond == 1
    assert 2e-5 < outcome.details.conditioning.error <= outcome.details.conditioning.allowed < 1
    (sentence,) = describe_details(outcome.details)
    assert sentence.startswith("right within the problem's conditioning: 1 of 1 output is beyond the tolerance")


def doubled(x):
    return 2 * cancel(x)


def by_sine(x):
    return 2 * jnp.sin(x / 2) ** 2


def iterate(x):
    return jax.lax.scan(lambda x, _: (3.9 * x * (1 - x), None), x, None, length=200)[0]


def iterate_in_float64(x):
    for _ in range(200):
        x = 3.9 * x * (1 - x)
    return x


def logistic(x):
    return 3.9 * x * (1 - x)


def start_from_integers(i):
    return 0.1 + i / 100.0


def logistic_in_scan(i):
    return jax.lax.scan(lambda x, _: (logistic(x), None), start_from_integers(i), None, length=60)[0]


def logistic_in_counted_loop(i):
    return jax.lax.fori_loop(0, 60, lambda _, x: logistic(x), start_from_integers(i))


def logistic_in_nested_scan(i):
    def ten(x, _):
        return jax.lax.scan(lambda x, _: (logistic(x), x), x, None, length=10)[0], None

    return jax.lax.scan(ten, start_from_integers(i), None, length=6)[0]


def logistic_backwards_with_rows(i):
    rates = jnp.full((60,), 3.9)
    return jax.lax.scan(lambda x, rate: (rate * x * (1 - x), x), start_from_integers(i), rates, reverse=True)[0]


def logistic_in_python(i):
    x = start_from_integers(i)
    for _ in range(60):
        x = logistic(x)
    return x


def logistic_while_it_lasts(i):
    def step(state):
        return state[0] + 1, logistic(state[1])

    return jax.lax.while_loop(lambda state: state[0] < 60, step, (0, start_from_integers(i)))[1]


def logistic_by_branches(i):
    def step(x, number):
        return jax.lax.cond(number % 2 == 0, logistic, lambda x: 3.9 * (x - x * x), x), None

    return jax.lax.scan(step, start_from_integers(i), jnp.arange(60))[0]


def logistic_recomputed(i):
    return jax.checkpoint(logistic_in_scan)(i)


@jax.custom_jvp
def iterate_sixty_times(x):
    return jax.lax.scan(lambda x, _: (logistic(x), None), x, None, length=60)[0]


iterate_sixty_times.defjvp(lambda primals, tangents: (iterate_sixty_times(*primals), *tangents))


def logistic_with_own_derivative(i):
    return iterate_sixty_times(start_from_integers(i))


def add_and_subtract(large, x):
    return (large + x) - large


def masked(x, mask):
    return jnp.where(mask == 1.0, x, -x)


def masked_wrongly(x, mask):
    return jnp.where(mask == 1.0, -x, x)


def product(x):
    return jnp.matmul(x, x, preferred_element_type=jnp.float32)


def product_in_bfloat16(x):
    return jax.lax.reduce_precision(product(x), 8, 7)


def by_value(x):
    return amplify(x) if float(x[0, 0]) < 1e3 else x


def in_float32(x):
    return x * 1.1


def through_bfloat16(x):
    return (x.astype("bfloat16") * jnp.bfloat16(1.1)).astype("float32")


def narrow(x):
    return (x * 1.1).astype("bfloat16")


def square(x):
    return x @ x


def square_in_float32(x):
    narrow = x.astype("float32")
    return (narrow @ narrow).astype("float64")


def count_calls(x):
    counted = jax.experimental.io_callback(lambda: np.float32(next(CALLS)), jax.ShapeDtypeStruct((), "float32"))
    return x + counted


def halve(x):
    return x / 2


def multiply(x):
    return x * 0.5


def give_back(x):
    return x


def shorten(x):
    return (x / 2)[1:]


CALLS = itertools.count()
MASK = (NUMBERS > 0).astype("float32")
TIES = jnp.asarray([1.0, 0.0, 1.0, 0.0])
UNKNOWN = no_reference("none is known")
RIGHT, UNSURE, WRONG = Correctness.RIGHT_WITHIN_CONDITIONING, Correctness.CANNOT_BE_CHECKED, Correctness.WRONG
VERDICTS = {
    "a fault beyond what rounding explains": ((cancel, doubled), {}, (RIGHT, WRONG)),
    "draws that reach the size of the result": (
        (iterate,),
        {"inputs": (jnp.linspace(0.1, 0.9, 32),), "reference": iterate_in_float64},
        (UNSURE,),
    ),
    "a program that loses digits inside": (
        (add_and_subtract,),
        {"inputs": (jnp.float32(1e8), SMALL), "reference": lambda large, x: x},
        (UNSURE,),
    ),
    "loops of which only what their operations give can move": (
        (logistic_in_scan, logistic_in_counted_loop, logistic_in_nested_scan, logistic_backwards_with_rows),
        {"inputs": (jnp.arange(64),), "reference": logistic_in_python},
        (UNSURE, UNSURE, UNSURE, UNSURE),
    ),
    **{
        f"chaos in {function.__name__}": (
            (function,),
            {"inputs": (jnp.arange(64),), "reference": logistic_in_python},
            (UNSURE,),
        )
        for function in (
            logistic_while_it_lasts,
            logistic_by_branches,
            logistic_recomputed,
            logistic_with_own_derivative,
        )
    },
    "a mask of zeros and ones, which does not move": (
        (masked, masked_wrongly),
        {"inputs": (NUMBERS, MASK), "reference": lambda x, mask: np.where(mask == 1.0, x, -x)},
        (None, WRONG),
    ),
    "inputs of 16 bits, which do not move": (
        (product, product_in_bfloat16),
        {"inputs": (NUMBERS.astype("bfloat16"),), "reference": lambda x: x @ x},
        (None, WRONG),
    ),
    "code that cannot be traced": ((by_value,), {"modes": ("eager",), "reference": amplify_in_float64}, (RIGHT,)),
    "a lower format on the way of the judging variant": (
        (through_bfloat16,),
        {"inputs": (NUMBERS,), "reference": in_float32},
        (None,),
    ),
    "a lower format that only others use": (
        (in_float32, through_bfloat16, narrow),
        {"inputs": (NUMBERS,), "reference": in_float32},
        (None, WRONG, WRONG),
    ),
    "a program that counts its calls": (
        (count_calls,),
        {"reference": lambda x: x - 1},
        (Correctness.NOT_DETERMINISTIC,),
    ),
    "no reference": (
        (halve, multiply, give_back, shorten),
        {"inputs": (NUMBERS,), "reference": UNKNOWN},
        (None, None, Correctness.DIFFERS, Correctness.DIFFERS),
    ),
    "rounding of the baseline variant without a reference": ((cancel, by_sine), {"reference": UNKNOWN}, (None, RIGHT)),
}
BAD = (WRONG, Correctness.NOT_DETERMINISTIC)


@pytest.mark.parametrize(("functions", "options", "verdicts"), VERDICTS.values(), ids=VERDICTS)
def test_each_variant_has_its_verdict_and_its_status_follows_from_it(functions, options, verdicts):
    outcomes = list(look(*functions, **options).values())

    assert [outcome.details.verdict for outcome in outcomes] == list(verdicts)
    assert [outcome.status for outcome in outcomes] == [Status.WRONG if one in BAD else Status.OK for one in verdicts]
    if functions[0] is iterate:
        conditioning = outcomes[0].details.conditioning
        assert (conditioning.unresolved, conditioning.digits < 0.6) == (1, True)
    if options.get("reference") is UNKNOWN and halve in functions:
        assert [len(outcome.values) for outcome in outcomes] == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("functions", "options", "reason"),
    [
        ((cancel, doubled), {}, "allowed 2e-05 for float32"),
        ((cancel,), {"tolerance": 1e-4}, "a larger tolerance= allows it"),
        (
            (jnp.argsort,),
            {"inputs": (TIES,), "reference": lambda x: np.argsort(x, kind="stable")[[1, 0, 2, 3]]},
            "another order of equal values is as good",
        ),
    ],
    ids=["a fault", "a given tolerance is final", "places of equal values"],
)
def test_what_is_wrong_says_what_was_allowed_or_what_may_help(functions, options, reason):
    outcome = look_at(*functions, **options)

    assert outcome.status is Status.WRONG
    assert reason in outcome.reason


def test_products_in_float32_of_the_judging_variant_decide_and_those_of_another_do_not_widen_what_float64_allows():
    with jax.enable_x64(True):
        wide = jnp.asarray(np.random.default_rng(0).normal(size=(16, 16)))
        found = look(square, square_in_float32, inputs=(wide,), reference=square)
        alone = look_at(square_in_float32, inputs=(wide,), reference=square)

    assert [outcome.status for outcome in found.values()] == [Status.OK, Status.WRONG]
    assert "allowed 1e-12 for float64" in found["square_in_float32:jit"].reason
    assert alone.status is Status.OK


def test_each_output_is_decided_by_itself():
    def both(x):
        return {"noise": cancel(x), "sure": x + 1}

    def spoiled(x):
        return {"noise": cancel(x), "sure": (x + 1) * 1.001}

    def reference(x):
        return {"noise": cancel_in_float64(x), "sure": x + 1}

    outcomes = look(both, spoiled, reference=reference)

    assert outcomes["both:jit"].details.verdict is Correctness.RIGHT_WITHIN_CONDITIONING
    assert outcomes["both:jit"].details.conditioning.worst == "['noise']"
    assert outcomes["spoiled:jit"].status is Status.WRONG
    assert outcomes["spoiled:jit"].reason.startswith("at output ['sure'], index")


# What moves


WEIGHTS = jnp.asarray(np.random.default_rng(1).normal(size=(50, 4)) * 1e-3, "float32")


def by_captured_weights(tokens):
    return amplify(WEIGHTS[tokens])


@pytest.mark.parametrize(
    "function", [by_captured_weights, jax.jit(by_captured_weights)], ids=["plain", "in a jitted function"]
)
def test_captured_constants_move(function):
    judge = Judge(function, (jnp.arange(50),))

    (spread,) = judge.find_spreads(by_captured_weights(jnp.arange(50)), lambda result, _: result, time.perf_counter)

    assert spread > 1e-5


def test_a_moved_program_gives_what_the_program_gives_where_nothing_moves():
    def program(x, n):
        hidden = jax.jit(lambda x: x @ WEIGHTS.T)(x)
        return jax.lax.fori_loop(0, 3, lambda _, h: jnp.tanh(h) + n, hidden), jax.nn.relu(hidden)

    args = NUMBERS[:, :4], 2
    run = Judge(program, args)._make_run()

    for got, want in zip(run((), args), jax.jit(program)(*args), strict=True):
        assert relative_error(np.asarray(got), np.asarray(want))[0] < 1e-6


def test_leaves_that_are_no_arrays_are_left_alone():
    def choose(x, name):
        return amplify(x) if name == "amplify" else x

    judge = Judge(choose, (SMALL, "amplify"))

    (spread,) = judge.find_spreads(amplify(SMALL), lambda result, _: result, time.perf_counter)

    assert spread > 1e-5


def test_a_stream_with_state_is_drawn_as_a_pass():
    items = [(jnp.float32(0.3), SMALL[row] + 1) for row in range(4)]

    def step(state, x):
        return state + cancel(x * 1e-3).sum(), cancel(x * 1e-3)

    def in_float64(state, x):
        return state + cancel_in_float64(x * 1e-3).sum(), cancel_in_float64(x * 1e-3)

    made = workload(
        inputs=lambda key: items, reference=in_float64, stream=True, modes=("jit",), state=State(carry={"state": 0})
    )(step)
    context = Context(made, {}, BACKENDS["cpu"], tuple(items), time.perf_counter, None)

    found, _ = run_probes({"numerics": tuple(made.variants)}, context)

    details = found["step:jit"]["numerics"].details
    assert (details.verdict, details.conditioning.beyond) == (Correctness.RIGHT_WITHIN_CONDITIONING, 4)


# When draws are made


def test_draws_are_made_only_where_an_output_is_beyond_its_tolerance_and_once_for_all_variants():
    def again(x):
        return amplify(x)

    def stages_of(*functions, **options):
        stages = []
        look(*functions, beat=lambda variant, stage: stages.append(stage), **options)
        return stages

    assert stages_of(amplify, again, reference=amplify_in_float64).count("draws") == 1
    assert "draws" not in stages_of(lambda x: x + 1, reference=lambda x: x + 1)


def test_draws_that_take_too_long_leave_an_output_unchecked_and_never_wrong():
    ticks = itertools.count(step=100.0)

    outcome = look_at(cancel, doubled, clock=lambda: next(ticks))

    assert (outcome.status, outcome.details.verdict) == (Status.OK, Correctness.CANNOT_BE_CHECKED)
    assert outcome.details.conditioning.is_too_slow
    assert "takes too long" in describe_details(outcome.details)[0]


# Jaxmeter's own faults


def test_a_failure_of_our_own_analysis_is_no_verdict_about_the_program_and_leaves_no_speedup(monkeypatch):
    def fail(params, inputs):
        return params["num_consts_of_tomorrow"]

    monkeypatch.setattr("jaxmeter.harness.machine.jax_internals.count_scan", fail)

    outcome = look_at(logistic_in_scan, inputs=(jnp.arange(64),), reference=logistic_in_python)

    assert (outcome.status, outcome.details.verdict) == (Status.OK, Correctness.CANNOT_BE_CHECKED)
    assert list_own_faults([outcome]) == outcome.notes
    assert "num_consts_of_tomorrow" in outcome.notes[0]
    assert "own fault" in find_objection({"numerics": outcome})


def test_a_comparison_that_fails_by_our_own_fault_is_no_verdict_either(monkeypatch):
    monkeypatch.setattr("jaxmeter.harness.probes.comparison.find_formats", lambda jaxpr: {}["of tomorrow"])

    outcome = look_at(cancel)

    assert (outcome.status, outcome.details.verdict) == (Status.OK, Correctness.CANNOT_BE_CHECKED)
    assert "'of tomorrow'" in list_own_faults([outcome])[0]


def refuse_others(x):
    if not np.array_equal(x, SMALL):
        raise KeyError("another input")
    return amplify(x)


def select(x):
    return amplify(x)[np.asarray(x) == np.asarray(SMALL)]


def read_only(result):
    if not np.allclose(result, amplify_in_float64(np.asarray(SMALL, "float64")), atol=1e-2):
        raise ValueError("another result")
    return result


@pytest.mark.parametrize(
    ("function", "reference", "compare", "words"),
    [
        (refuse_others, amplify_in_float64, None, "the draws failed: 'another input'"),
        (select, lambda x: amplify_in_float64(x).ravel(), None, "the draws failed"),
        (amplify, amplify_in_float64, read_only, None),
    ],
    ids=["the user's code", "another form", "what is compared"],
)
def test_what_refuses_moved_inputs_is_no_fault_of_ours(function, reference, compare, words):
    outcome = look_at(function, modes=("eager",), reference=reference, compare=compare)

    assert list_own_faults([outcome]) == ()
    assert words is None or (outcome.status is Status.WRONG and words in outcome.reason)


# Which format decides


def test_a_variant_may_have_a_tolerance_of_its_own():
    made = workload(inputs=lambda key: (NUMBERS,), reference=lambda x: x * 1.1, modes=("jit",))(in_float32)
    made.implementation(tolerance=3e-2)(through_bfloat16)
    context = Context(made, {}, BACKENDS["cpu"], (NUMBERS,), time.perf_counter, None)

    found, _ = run_probes({"numerics": tuple(made.variants)}, context)

    assert [each["numerics"].status for each in found.values()] == [Status.OK, Status.OK]


# Without a reference


def test_variants_that_may_differ_are_not_compared():
    outcome = look_at(halve, give_back, inputs=(NUMBERS,), reference=no_reference("draws", comparable=False))

    assert (outcome.status, outcome.details.verdict, outcome.values) == (Status.OK, None, {})
    assert outcome.notes == ("not checked: draws",)


def test_a_baseline_variant_that_fails_leaves_the_others_unchecked():
    def fail(x):
        raise ValueError("no luck")

    outcomes = look(fail, halve, inputs=(NUMBERS,), reference=no_reference("none"))

    assert outcomes["fail:jit"].status is Status.FAILED
    assert (outcomes["halve:jit"].status, outcomes["halve:jit"].details.verdict) == (Status.OK, None)
    assert "no luck" in outcomes["halve:jit"].notes[0]


def test_an_earlier_runs_program_may_differ_from_todays():
    made = workload(inputs=lambda key: (NUMBERS,), reference=no_reference("none"), modes=("jit",))(halve)
    made.implementation(give_back)
    case = plan_case("suite", made, {}, BACKENDS["cpu"])
    earlier = msgspec.structs.replace(
        case.variants[0], name="earlier", same_as="halve:jit", replays=Replay(run="before", variant="halve:jit")
    )
    case = msgspec.structs.replace(case, variants=(*case.variants, earlier))
    context = Context(made, {}, BACKENDS["cpu"], (NUMBERS,), time.perf_counter, None, case=case)
    prepared = context.prepare("give_back:jit")

    today, before = (check(name, prepared, context) for name in ("give_back:jit", "earlier"))

    assert (today.details.verdict, before.details.verdict) == (Correctness.DIFFERS, None)


# Memory


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_comparison_takes_memory_for_blocks_alone(order):
    got = np.ones((4000, 4000), "float32", order=order)
    want = got.copy(order="C")
    tracemalloc.start()

    error, _ = relative_error(got, want)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error == 0
    assert peak < got.nbytes


def test_no_more_than_two_results_are_held_while_draws_are_made():
    held = []

    def count(result):
        held.append(sum(array.shape == (123, 7) for array in jax.live_arrays()))
        return result

    def widen(x):
        return cancel(jnp.broadcast_to(x[:7], (123, 7)))

    def reference(x):
        return np.broadcast_to(cancel_in_float64(x[:7]), (123, 7))

    outcome = look_at(widen, inputs=(SMALL.ravel(),), reference=reference, compare=count)

    assert outcome.details.verdict is Correctness.RIGHT_WITHIN_CONDITIONING
    assert len(held) > 5
    assert max(held) == 2
