"""Which cases a roofline shows."""

import pytest

from jaxmeter.harness.record import Cost
from jaxmeter.reporting.load import load
from jaxmeter.reporting.view.figures import points
from jaxmeter.reporting.view.page_model import Roofline
from jaxmeter.reporting.view.runs import gather_cases, label_runs
from tests import samples
from tests.reporting.browser import EXAMPLES
from tests.reporting.views import kept


@pytest.fixture(scope="module")
def cases():
    return gather_cases(label_runs(load([EXAMPLES[-1]]).runs))


def draw(cases) -> Roofline:
    figure = points.draw_roofline(cases)
    assert figure is not None
    return figure


def list_rates(figure: Roofline) -> list[float]:
    return [dot.mark.estimate.value for dot in figure.dots]


def test_all_cases_with_a_cost_are_shown_the_fastest_first(cases) -> None:
    figure = draw(cases)

    assert len(figure.dots) > 20
    assert list_rates(figure) == sorted(list_rates(figure), reverse=True)
    assert figure.y.title == "rate, log"


def test_of_many_cases_some_are_shown_from_the_whole_range_of_rates(cases, monkeypatch) -> None:
    whole = list_rates(draw(cases))
    monkeypatch.setattr(points, "MOST_DOTS", 10)

    figure = draw(cases)

    rates = list_rates(figure)
    assert 5 <= len(rates) <= 10
    assert rates[0] == whole[0]
    assert rates[-1] <= sorted(whole)[len(whole) // 5]
    assert figure.y.title == f"rate, log; {len(rates)} of {len(whole)} cases, evenly chosen by rate"
    assert figure.alt.startswith(f"Rates of {len(rates)} of {len(whole)} cases")


def test_without_a_case_there_is_no_figure() -> None:
    assert points.draw_roofline([]) is None


def test_a_case_that_computes_in_a_format_without_a_peak_is_left_out() -> None:
    def draw_formats(*formats: str) -> Roofline | None:
        cost, times = Cost(flops=2e6, bytes=1e6), {"f:jit": samples.timing(1e-3)}
        pairs = (samples.pair(times, workload=one, params={"dtype": one}, cost=cost) for one in formats)
        environment = samples.environment(peak_flops={"float32": 4e9}, peak_bytes_per_s=8e9)
        return points.draw_roofline(gather_cases(label_runs(kept(samples.run(*pairs, environment=environment)))))

    figure = draw_formats("float32", "int32")

    assert figure is not None
    assert [dot.name for dot in figure.dots] == ["float32"]
    assert draw_formats("int32") is None
