import pytest

from jaxmeter.harness.metrics.metric import Family, Summary, Unit
from jaxmeter.harness.metrics.table import METRICS, metrics_in

ENDINGS = {"_per_s": Unit.ITEMS_PER_SECOND, "_s": Unit.SECONDS, "_bytes": Unit.BYTES}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_has_a_title_and_a_definition_and_is_measured_or_derived_or_the_scaling_of_one_that_is(metric):
    sources = [metric.probe, metric.derive, metric.exponent_of]

    assert METRICS[metric.name] is metric
    assert metric.title
    assert metric.definition.endswith(".")
    assert sum(source is not None for source in sources) == 1
    if metric.exponent_of is not None:
        grown = METRICS[metric.exponent_of]
        assert grown.probe is not None or grown.derive is not None


@pytest.mark.parametrize("name", METRICS)
def test_a_metrics_name_carries_its_unit(name):
    told = next((unit for ending, unit in ENDINGS.items() if name.endswith(ending)), None)

    assert told is METRICS[name].unit or (told is None and METRICS[name].unit not in ENDINGS.values())


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_what_is_exact_follows_from_the_program_and_is_no_mean(metric):
    assert not (metric.exact and metric.unit in (Unit.SECONDS, Unit.LOG_RATIO))
    assert not (metric.exact and metric.summary in (Summary.TIMING, Summary.PROCESSES))


def test_a_family_has_its_metrics_in_the_order_of_the_registry():
    family = [metric.name for metric in metrics_in(Family.PROGRAM)]

    assert family == [name for name, metric in METRICS.items() if metric.family is Family.PROGRAM]
    assert {"hlo_fusions", "counted_flops"} <= set(family)


def test_what_budgets_name_follows_from_the_program_and_has_a_name_of_its_own():
    budgeted = [metric for metric in METRICS.values() if metric.budget]

    assert all(metric.exact for metric in budgeted)
    assert len({"time", "program", *(metric.budget for metric in budgeted)}) == len(budgeted) + 2
    assert {metric.name for metric in METRICS.values() if metric.fails_gate} <= {metric.name for metric in budgeted}


def test_a_heading_is_the_title_unless_the_table_says_more():
    assert (METRICS["hlo_fusions"].heading, METRICS["trace_s"].heading) == ("Fusions", "trace")
