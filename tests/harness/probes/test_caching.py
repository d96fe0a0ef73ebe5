from contextlib import nullcontext
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from jaxmeter import workload
from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context, caching
from jaxmeter.harness.probes.caching import CACHE_STATES, CallArguments
from jaxmeter.harness.programs.arguments import make_inputs
from jaxmeter.harness.programs.jax_events import COMPILE, LOWER, TRACE, JaxEvents
from jaxmeter.harness.record import CacheStateCall, CachingDetails, Outcome, Status
from jaxmeter.harness.record.outcomes import list_own_faults
from tests import samples

THREE, FOUR = jnp.ones(3), jnp.ones(4)
USUAL = CallArguments((THREE,), {"by": 2})


class Calls:
    """A function that notes its calls and takes as many seconds as its argument is long."""

    def __init__(self, clock):
        self.clock = clock
        self.made = []

    def __call__(self, x, **static):
        self.made.append((x.shape, static))
        self.clock.advance(x.size)


@pytest.fixture
def calls(monkeypatch, clock) -> Calls:
    """In place of a jitted function."""
    monkeypatch.setattr(jax, "jit", lambda function, **_: function)
    monkeypatch.setattr(caching, "find_silent_events", lambda: ())
    return Calls(clock)


@pytest.fixture
def timed(clock):
    """(cache state, function, measured call) -> (what is told of the call, stages that it told)."""

    def run(cache_state, function, measured, usual=USUAL, *, stream=False):
        stages = []
        call = caching.time_call(
            cache_state, function, usual=usual, measured=measured, stream=stream, clock=clock, stage=stages.append
        )
        return call, stages

    return run


@pytest.fixture
def believed(monkeypatch):
    """Has a cache state need no proof."""

    def believe(name):
        monkeypatch.setitem(CACHE_STATES, name, replace(CACHE_STATES[name], proof=lambda seen: True))
        return name

    return believe


# What is called


@pytest.mark.parametrize(
    ("name", "measured", "is_before"),
    [
        ("warm", USUAL, True),
        ("new_shape", CallArguments((FOUR,), {"by": 2}), True),
        ("new_static", CallArguments((THREE,), {"by": 3}), True),
        *((name, USUAL, False) for name in ("cold", "cached", "default_threshold")),
    ],
)
def test_a_call_that_comes_before_is_the_usual_one_made_once_and_not_timed(
    timed, calls, believed, name, measured, is_before
):
    found, stages = timed(believed(name), calls, measured)

    before = [((3,), {"by": 2})] * is_before
    assert calls.made == [*before, (measured.arguments[0].shape, measured.static)]
    assert (found.cache_state, found.proven, found.elapsed_s) == (name, True, measured.arguments[0].size)
    assert stages == [*["call before"] * is_before, f"{name} call"]


def test_of_a_stream_one_pass_is_timed_after_one_pass(timed, calls, believed):
    stream = CallArguments(((THREE,), (FOUR,)), {"by": 2})

    found, _ = timed(believed("warm"), calls, stream, usual=stream, stream=True)

    assert [shape for shape, _ in calls.made] == [(3,), (4,), (3,), (4,)]
    assert found.elapsed_s == 3 + 4


# What does not differ as its cache state says


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("new_shape", USUAL),
        ("new_shape", CallArguments((jnp.ones(3, jnp.bfloat16),), {"by": 2})),
        ("new_shape", CallArguments((jnp.zeros(3),), {"by": 3})),
        ("new_static", USUAL),
        ("new_static", CallArguments((jnp.ones(3, jnp.bfloat16),), {"by": 3})),
        ("new_static", CallArguments((FOUR,), {"by": 3})),
        ("new_static", CallArguments((jnp.zeros(3),), {"by": 2})),
    ],
    ids=[
        "shape: the same call",
        "shape: another dtype only",
        "shape: another static argument only",
        "static: the same call",
        "static: another dtype too",
        "static: another shape too",
        "static: other values only",
    ],
)
def test_a_call_that_does_not_differ_as_its_cache_state_says_is_not_made(timed, calls, believed, name, measured):
    found, stages = timed(believed(name), calls, measured)

    assert calls.made == []
    assert stages == []
    assert found == CacheStateCall(cache_state=name, proven=False, elapsed_s=None)


@pytest.mark.parametrize(
    ("usual", "measured"),
    [
        (((THREE,), (FOUR,)), ((THREE,), (jnp.ones(5),))),
        (((THREE,), (FOUR,)), ((THREE,), (FOUR,), (FOUR,))),
        (({"a": THREE},), ({"a": FOUR},)),
    ],
    ids=["of one call of a stream", "a longer stream", "inside a tree"],
)
def test_a_shape_is_new_wherever_it_stands(usual, measured):
    assert CACHE_STATES["new_shape"].change(CallArguments(usual, {}), CallArguments(measured, {}))


# What proves a cache state

COMPILED = {TRACE: [0.1], LOWER: [0.1], COMPILE: [0.1]}


@pytest.mark.parametrize(
    ("seen", "proven"),
    [
        (JaxEvents(COMPILED, misses=1), {"cold", "default_threshold", "new_shape", "new_static"}),
        (JaxEvents(COMPILED, hits=1), {"cached", "default_threshold"}),
        (JaxEvents({TRACE: [0.1] * 2, COMPILE: [0.1] * 2}, hits=1, misses=1), {"default_threshold"}),
        (JaxEvents({TRACE: [0.1]}), set()),
        (JaxEvents({COMPILE: [0.1]}), set()),
        (JaxEvents(), {"warm"}),
    ],
    ids=["compiled", "from the cache", "one of each", "traced only", "compiled without a trace", "nothing"],
)
def test_what_jax_reports_proves_a_state_of_the_caches_or_none(seen, proven):
    assert {name for name, cache_state in CACHE_STATES.items() if cache_state.proof(seen)} == proven


def test_a_function_that_was_called_before_is_neither_traced_nor_compiled_again(timed):
    found, _ = timed("warm", lambda x, *, by: x * by, USUAL)

    assert found == CacheStateCall(
        cache_state="warm", proven=True, elapsed_s=0.0, traces=0, compiled=0, hits=0, misses=0
    )


def test_each_of_jaxs_reports_is_told_by_its_own_name(timed, calls, monkeypatch):
    seen = JaxEvents({TRACE: [0.1] * 7, COMPILE: [0.1] * 5}, hits=2, misses=4)
    monkeypatch.setattr(caching, "watch_jax", lambda: nullcontext(seen))

    found, _ = timed("cold", calls, USUAL)

    assert found == CacheStateCall(
        cache_state="cold", proven=False, elapsed_s=3, traces=7, compiled=5 - 2, hits=2, misses=4
    )


# A process of one cache state


@pytest.fixture
def forgotten(monkeypatch) -> list[bool]:
    """Whether the persistent cache was forgotten too, each time that anything was; nothing is."""
    times = []
    monkeypatch.setattr(caching, "forget_compiled", lambda *, persistent: times.append(persistent))
    return times


PARAMS = {"n": 3, "by": 2}


@pytest.fixture
def look(calls, clock, forgotten):
    """(cache state, what of the case changes) -> outcome of each of two variants of a product with `by`."""

    def run(cache_state, *, second=None, **planned):
        def first(x, *, by):
            return calls(x, by=by)

        made = workload(
            inputs=lambda key, *, n: jnp.ones(n), params={name: [value] for name, value in PARAMS.items()}, reference=id
        )(first)
        made.implementation(second or first, name="second", modes=("jit",))
        case = samples.planned_case(params=PARAMS, **planned)
        arguments = make_inputs(made, PARAMS)
        context = Context(made, PARAMS, BACKENDS["cpu"], arguments, clock, None, case=case, cache_state=cache_state)
        return caching.probe_variants(("first:jit", "second:jit"), context).outcomes

    return run


@pytest.mark.parametrize("cache_state", CACHE_STATES)
def test_the_timed_call_is_of_the_cases_params_but_for_those_that_its_cache_state_changes(look, calls, cache_state):
    look(cache_state, new_shape={"n": 4}, new_static={"by": 5})

    shape, by = {"new_shape": (4, 2), "new_static": (3, 5)}.get(cache_state, (3, 2))
    before = [((3,), {"by": 2})] if CACHE_STATES[cache_state].before else []
    assert calls.made == 2 * [*before, ((shape,), {"by": by})]


@pytest.mark.parametrize(
    ("cache_state", "elapsed_s", "values"),
    [("warm", 3, {"warm_s": (3,)}), ("cold", 3, {}), ("new_shape", None, {})],
    ids=["proven", "not seen", "not changed"],
)
def test_a_time_has_the_name_of_its_cache_state_where_that_is_proven_and_is_told_all_the_same(
    look, cache_state, elapsed_s, values
):
    found = look(cache_state)

    call = CacheStateCall(cache_state=cache_state, proven=bool(values), elapsed_s=elapsed_s)
    expected = Outcome(status=Status.OK, values=values, details=CachingDetails(calls=(call,)))
    assert found == {"first:jit": expected, "second:jit": expected}


@pytest.mark.parametrize("cache_state", CACHE_STATES)
def test_the_persistent_cache_stays_only_where_it_is_what_the_call_finds(look, forgotten, cache_state):
    look(cache_state, new_shape={"n": 4}, new_static={"by": 5})

    assert forgotten == [cache_state not in ("cached", "default_threshold")]


@pytest.mark.parametrize(("cache_state", "stage"), [("cold", "cold call"), ("warm", "call before")])
def test_a_call_that_fails_says_in_which_stage_and_costs_no_other_variant(look, cache_state, stage):
    def broken(x, *, by):
        raise ValueError("no luck")

    found = look(cache_state, second=broken)

    assert found["second:jit"].status is Status.FAILED
    assert found["second:jit"].reason == f"in stage '{stage}': ValueError: no luck"
    assert found["first:jit"].status is Status.OK


def test_inputs_of_another_shape_that_cannot_be_made_are_a_failure_of_all(look, calls):
    found = look("new_shape", new_shape={"n": -1})

    assert [one.status for one in found.values()] == [Status.FAILED] * 2
    assert all(one.reason.startswith("in stage 'inputs': ") for one in found.values())
    assert calls.made == []


def test_without_jaxs_events_no_cache_state_is_proven_and_that_is_noted(look, believed, monkeypatch):
    monkeypatch.setattr(caching, "find_silent_events", lambda: (internals.TRACED,))

    found = look(believed("warm"))["first:jit"]

    assert found.values == {}
    assert not found.details.calls[0].proven
    assert list_own_faults([found]) == found.notes
