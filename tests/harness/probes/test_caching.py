from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from harness.probes import caching
from harness.probes.caching import CACHED, COLD, NEW_SHAPE, NEW_STATIC, REGIMES, WARM, Call
from harness.programs.jax_events import COMPILE, LOWER, TRACE, Compilations

THREE, FOUR = jnp.ones(3), jnp.ones(4)
USUAL = Call((THREE,), {"by": 2})


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
    monkeypatch.setattr(jax, "jit", lambda function, static_argnames: function)
    return Calls(clock)


@pytest.fixture
def timed(clock):
    """(regime, function, measured call) -> (outcome, stages that it told)."""

    def run(regime, function, measured, usual=USUAL, *, stream=False):
        stages = []
        outcome = caching.run(
            regime, function, usual=usual, measured=measured, stream=stream, clock=clock, stage=stages.append
        )
        return outcome, stages

    return run


def believed(name):
    """A regime that needs no proof."""
    return replace(REGIMES[name], proof=lambda seen: True)


# What is called


@pytest.mark.parametrize(
    ("name", "measured"),
    [(WARM, USUAL), (NEW_SHAPE, Call((FOUR,), {"by": 2})), (NEW_STATIC, Call((THREE,), {"by": 3}))],
)
def test_where_a_call_comes_before_it_is_the_usual_one_made_once_and_not_timed(timed, calls, name, measured):
    found, stages = timed(believed(name), calls, measured)

    assert calls.made == [((3,), {"by": 2}), (measured.arguments[0].shape, measured.static)]
    assert found.values == {REGIMES[name].metric: (measured.arguments[0].size,)}
    assert stages == ["call before", REGIMES[name].words]


@pytest.mark.parametrize("name", [COLD, CACHED])
def test_where_nothing_comes_before_only_the_timed_call_is_made(timed, calls, name):
    found, stages = timed(believed(name), calls, USUAL)

    assert calls.made == [((3,), {"by": 2})]
    assert found.values == {REGIMES[name].metric: (3,)}
    assert stages == [REGIMES[name].words]


def test_of_a_stream_one_pass_is_timed_after_one_pass(timed, calls):
    stream = Call(((THREE,), (FOUR,)), {"by": 2})

    found, _ = timed(believed(WARM), calls, stream, usual=stream, stream=True)

    assert [shape for shape, _ in calls.made] == [(3,), (4,), (3,), (4,)]
    assert found.values == {"warm_s": (3 + 4,)}


# What does not differ as its regime says


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        (NEW_SHAPE, USUAL),
        (NEW_SHAPE, Call((jnp.ones(3, jnp.bfloat16),), {"by": 2})),
        (NEW_SHAPE, Call((jnp.zeros(3),), {"by": 3})),
        (NEW_STATIC, USUAL),
        (NEW_STATIC, Call((jnp.ones(3, jnp.bfloat16),), {"by": 3})),
        (NEW_STATIC, Call((FOUR,), {"by": 3})),
        (NEW_STATIC, Call((jnp.zeros(3),), {"by": 2})),
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
def test_a_call_that_does_not_differ_as_its_regime_says_is_not_made(timed, calls, name, measured):
    found, stages = timed(believed(name), calls, measured)

    assert calls.made == []
    assert stages == []
    assert found.values == {}
    assert found.notes == (
        f"{REGIMES[name].words}: not proven, so it was not timed: the two calls do not differ in that",
    )


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
    assert REGIMES[NEW_SHAPE].change(Call(usual, {}), Call(measured, {}))


# What proves a regime

COMPILED = {TRACE: [0.1], LOWER: [0.1], COMPILE: [0.1]}
PROVEN = {
    "compiled": {COLD, NEW_SHAPE, NEW_STATIC},
    "from the cache": {CACHED},
    "one from the cache, one compiled": set(),
    "traced only": set(),
    "compiled without a trace": set(),
    "nothing": {WARM},
}
SEEN = {
    "compiled": Compilations(COMPILED, misses=1),
    "from the cache": Compilations(COMPILED, hits=1),
    "one from the cache, one compiled": Compilations({TRACE: [0.1] * 2, COMPILE: [0.1] * 2}, hits=1, misses=1),
    "traced only": Compilations({TRACE: [0.1]}),
    "compiled without a trace": Compilations({COMPILE: [0.1]}),
    "nothing": Compilations(),
}


@pytest.mark.parametrize("what", SEEN)
def test_what_jax_reports_proves_a_state_of_the_caches_or_none(what):
    assert {name for name, regime in REGIMES.items() if regime.proof(SEEN[what])} == PROVEN[what]


def test_a_time_whose_state_of_the_caches_is_not_proven_has_no_name(timed, clock):
    def function(x, *, by):
        clock.advance(1.0)  # while it is traced
        return x * by

    found, _ = timed(REGIMES[CACHED], function, USUAL)

    assert found.values == {}
    (note,) = found.notes
    assert note.startswith("filled persistent cache: not proven, so its 1 s have no name: JAX reported 1 traced")


def test_a_function_that_was_called_before_is_neither_traced_nor_compiled_again(timed):
    found, _ = timed(REGIMES[WARM], lambda x, *, by: x * by, USUAL)

    assert found.values == {"warm_s": (0.0,)}
    assert found.notes == ("warm: 0 traced, 0 compiled, 0 from the persistent cache, 0 missing in it",)
