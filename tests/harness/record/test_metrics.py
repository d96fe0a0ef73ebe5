import time
from dataclasses import replace

import jax.numpy as jnp
import pytest
from msgspec import structs

from harness import workload
from harness.child.prepare import outcomes_of, prepare
from harness.child.worker import timed
from harness.machine.places import BACKENDS
from harness.plan.cases import PROBE_NAMES, settings_for
from harness.plan.messages import COMPILATION
from harness.probes import PROBES, Context, caching
from harness.programs.modes import fresh
from harness.record import Outcome, Status
from harness.record.metrics import METRICS, Direction, Unit, metrics_of
from harness.record.outcomes import joined
from harness.record.timing_summary import summarise

ENDINGS = {"_s": Unit.SECONDS, "_bytes": Unit.BYTES}


@workload(
    inputs=lambda key: jnp.ones(2**20),
    reference=lambda x: x + 1,
    params={"by": (1, 2)},
    modes=("eager", "jit", "aot"),
)
def increment(x, *, by):
    """Adds something."""
    return x + by


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> dict[str, Outcome]:
    """Every probe's outcome of one jitted function; of compilation also what only an ahead-of-time program has."""
    folder = tmp_path_factory.mktemp("case")
    arguments = (jnp.ones(2**20),)
    context = Context(increment, {"by": 1}, BACKENDS["cpu"], arguments, time.perf_counter, folder)
    outcomes: dict[str, Outcome] = {}
    for kind, probe in PROBES:
        outcome = outcomes_of("increment:jit", kind, (probe,), context)[probe]
        outcomes[probe] = joined(outcomes.get(probe), outcome)
    (aot,) = outcomes_of("increment:aot", COMPILATION, ("compilation",), context).values()
    own = outcomes["compilation"]
    outcomes["compilation"] = structs.replace(own, values={**aot.values, **own.values})
    both = {name: prepare(name, context) for name in ("increment:eager", "increment:jit")}
    launch = timed(both, context, settings_for("quick", suites=(), run_id="a"), case="a", index=0, seed=0)
    timing = summarise([[launch]], "increment:jit", "increment:eager")
    return {**outcomes, "caching": regimes(arguments), "timing": timing}


def regimes(arguments: tuple[jnp.ndarray, ...]) -> Outcome:
    """Every caching regime, each with its real proof but for the persistent cache, which no test here has filled."""
    usual = caching.Call(arguments, {"by": 1})
    new = {
        caching.NEW_SHAPE: caching.Call((jnp.ones(2**20 + 1),), {"by": 1}),
        caching.NEW_STATIC: caching.Call(arguments, {"by": 2}),
    }
    outcome = None
    for name, regime in caching.REGIMES.items():
        one = caching.run(
            replace(regime, proof=lambda seen: True) if name == caching.CACHED else regime,
            fresh(increment.function),
            usual=usual,
            measured=new.get(name, usual),
            stream=False,
            clock=time.perf_counter,
            stage=lambda stage: None,
        )
        outcome = joined(outcome, one)
    return outcome


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_has_a_unit_a_direction_and_a_definition(metric):
    assert METRICS[metric.name] is metric
    assert isinstance(metric.unit, Unit)
    assert isinstance(metric.direction, Direction)
    assert metric.definition.endswith(".")
    assert metric.probe is None or metric.probe in PROBE_NAMES


@pytest.mark.parametrize("name", METRICS)
def test_a_metrics_name_carries_its_unit(name):
    for ending, unit in ENDINGS.items():
        assert name.endswith(ending) is (METRICS[name].unit is unit)


def test_every_probe_is_measured_here(measured):
    assert set(measured) == set(PROBE_NAMES)
    assert {outcome.status for outcome in measured.values()} == {Status.OK}


@pytest.mark.parametrize("probe", PROBE_NAMES)
def test_a_probe_records_the_metrics_that_are_declared_for_it_and_no_others(measured, probe):
    assert set(measured[probe].values) == set(metrics_of(probe))


@pytest.mark.parametrize("probe", PROBE_NAMES)
def test_a_probe_records_one_number_per_process(measured, probe):
    for values in measured[probe].values.values():
        (value,) = values
        assert isinstance(value, int | float)
