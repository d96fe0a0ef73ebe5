from reporting.view.places import group_places
from reporting.view.runs import label_runs
from tests import samples
from tests.reporting.views import page_of


def grouped(*runs):
    return [[run.run_id for run in place.runs] for place in group_places(label_runs(runs))]


def test_runs_of_one_place_are_its_history_and_the_place_of_the_newest_comes_first():
    old, new = samples.run(run_id="old", started="2026-01-01T00:00:00Z"), samples.run(run_id="new")

    assert grouped(new, samples.gpu_run(run_id="gpu"), old) == [["gpu"], ["old", "new"]]


def test_places_are_told_apart_by_backend_and_machine():
    runs = [
        samples.run(run_id="a", machine="lab 1"),
        samples.run(run_id="b", machine="lab 2"),
        samples.run(run_id="c", machine="lab 1"),
        samples.gpu_run(run_id="d", machine="lab 1"),
    ]

    assert sorted(grouped(*runs)) == [["a", "c"], ["b"], ["d"]]


def test_the_newest_run_of_a_place_leads_and_the_page_says_that_nothing_was_compared():
    slow, fast = (
        samples.run((planned, samples.fast_case(planned, jit_s=jit_s)), run_id=name, started=started)
        for planned, jit_s, name, started in (
            (samples.planned_case(), 1e-4, "slow", "2026-01-01T00:00:00Z"),
            (samples.planned_case(), 5e-5, "fast", "2026-01-02T00:00:00Z"),
        )
    )

    page = page_of(fast, slow)

    assert page.finding == ("1 of 1 case measured on cpu: Sample Processor 1, not compared with 1 earlier run")
    assert page.answers[0].text == "selu:jit is 10× [9.9, 10.1] as fast as selu:eager."
    assert [column.title for column in page.matrix.columns[1:]] == ["● cpu · fast"]
    assert next(item.text for item in page.warnings if item.label == "not compared") == (
        "2 runs of cpu: Sample Processor 1: do not compare their times by eye, as the machine may have changed in "
        "between. The answers are of the newest, fast"
    )
