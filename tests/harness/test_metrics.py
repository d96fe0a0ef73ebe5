import time

import jax.numpy as jnp
import pytest

from harness import workload
from harness.backends import BACKENDS
from harness.metrics import METRICS, Direction, Unit, metrics_of
from harness.plan import PROBE_NAMES, settings_for
from harness.probes import PROBES, Context
from harness.record import Outcome, Status
from harness.summary import summarise
from harness.worker import outcomes_of, prepare, timed

ENDINGS = {"_s": Unit.SECONDS, "_bytes": Unit.BYTES}


@workload(inputs=lambda key: jnp.ones(4), reference=lambda x: x + 1, modes=("eager", "jit"))
def increment(x):
    """Adds one."""
    return x + 1


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> dict[str, Outcome]:
    """Every probe's outcome of one jitted function."""
    folder = tmp_path_factory.mktemp("case")
    context = Context(increment, {}, BACKENDS["cpu"], (jnp.ones(4),), time.perf_counter, folder)
    outcomes = outcomes_of("increment:jit", tuple(PROBES), context)
    both = {name: prepare(name, context) for name in increment.variants()}
    launch = timed(both, context, settings_for("quick", suites=(), run_id="a"), case="a", index=0, seed=0)
    return {**outcomes, "timing": summarise([[launch]], "increment:jit", "increment:eager")}


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
