import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from jaxmeter.document import terminal
from jaxmeter.harness.record import Answer
from jaxmeter.reporting.view.overview import summarise
from tests import samples
from tests.odd_run import odd_run
from tests.reporting.views import page_of

MANY = tuple(samples.run(run_id=f"run-{index}") for index in range(30))
QUESTION = Answer("What is it worth?", "f:jit", against="f:eager", metric="first_result_s")


def busy_run():
    """Nine suites with long answers and long failures, and a self-test of a machine with a long name."""
    cases = []
    for index in range(9):
        name = f"suite_with_a_long_name_{index}"
        planned = samples.planned_case(name, variants=("f:eager", "f:jit", "g:jit"), answer=QUESTION)
        failed = {"numerics": samples.Outcome(status=samples.Status.FAILED, reason="no luck " * 20)}
        times = {"selu:eager": "f:eager", "selu:jit": "f:jit"}
        good = {times[one.name]: one.outcomes for one in samples.fast_case(samples.planned_case()).variants}
        cases.append((planned, samples.record(planned, {**good, "g:jit": failed})))
    return samples.run(*cases, self_test=samples.self_test(machine="a machine with a name " * 3))


RUNS = {
    "busy": (busy_run(),),
    "ok": (samples.run(),),
    "odd": (odd_run(),),
    "troubled": (samples.troubled_run(),),
    "hostile": (samples.hostile_run(),),
    "many": MANY,
}


def shown(*runs, width=100, encoding="utf-8", **options):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    terminal.show(summarise(page_of(*runs)), Console(file=file, width=width, **options))
    file.seek(0)
    return file.read()


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_it_fits_a_hundred_columns_and_forty_lines(name, width):
    lines = shown(*RUNS[name], width=width).splitlines()

    assert max(map(cell_len, lines)) <= min(width, 100)
    assert len(list(filter(None, lines))) < 40 or width < 100


@pytest.mark.parametrize("name", RUNS)
def test_an_output_that_takes_ascii_only_gets_likenesses(name):
    text = shown(*RUNS[name], encoding="ascii")

    assert text.isascii()
    assert "cpu" in text


def test_markup_in_a_name_is_only_text():
    name = "{{ 7 * 7 }} {% raw %} [red]markup[/red] :rocket:"
    planned = samples.planned_case(name)

    assert name in shown(samples.run((planned, samples.fast_case(planned))))
