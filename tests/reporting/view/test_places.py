from jaxmeter.reporting.render import html
from jaxmeter.reporting.view.runs import group_by_machine, label_runs
from tests import samples
from tests.reporting.views import answers_of_suites, kept, page_of


def grouped(*runs):
    return [[run.name for run in machine.runs] for machine in group_by_machine(label_runs(kept(*runs)))]


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


def test_runs_that_only_their_names_tell_apart_are_labelled_with_the_variables_by_which_they_differ():
    flags = {"XLA_FLAGS": "--xla_a=1", "OMP_NUM_THREADS": "2"}
    old, new = (
        samples.run(run_id=run_id, environment=samples.environment(variables=variables))
        for run_id, variables in (("old", {"OMP_NUM_THREADS": "2"}), ("new", flags))
    )

    assert [run.label for run in label_runs(kept(old, new))] == [
        "● cpu · old · XLA_FLAGS unset",
        "● cpu · new · XLA_FLAGS=--xla_a=1",
    ]
    assert [run.label for run in label_runs(kept(new))] == ["● cpu"]


def test_a_device_has_the_sign_of_its_kind_also_where_no_other_device_is_on_the_page():
    page = page_of(samples.gpu_run())

    assert [run.label for run in page.runs] == ["■ gpu"]
    assert [column.title for column in page.matrix.columns[1:]] == ["■ Sample GPU"]
    assert "●" not in html.render(page)


def test_the_newest_run_of_a_place_leads_and_is_compared_with_the_one_before():
    slow, fast = (
        samples.run((planned, samples.fast_case(planned, jit_s=jit_s)), run_id=name, started=started)
        for planned, jit_s, name, started in (
            (samples.planned_case(), 1e-4, "slow", "2026-01-01T00:00:00Z"),
            (samples.planned_case(), 5e-5, "fast", "2026-01-02T00:00:00Z"),
        )
    )

    page = page_of(fast, slow)

    assert page.finding.endswith(", since run slow; 1 of 1 case measured on cpu: Sample Processor 1")
    assert answers_of_suites(page)[0].text.startswith("selu:jit is 10×")
    assert [column.title for column in page.matrix.columns[1:]] == ["● Sample Processor 1"]
    assert [item.label for item in page.warnings] == ["several runs"]


def test_a_smaller_newer_run_hides_no_case_of_an_older_one():
    big, small = samples.planned_case("big"), samples.planned_case("small")
    older = samples.run(
        *((one, samples.fast_case(one)) for one in (big, small)), run_id="older", started="2026-01-01T00:00:00Z"
    )
    newer = samples.run((small, samples.fast_case(small)), run_id="newer", started="2026-01-02T00:00:00Z")

    page = page_of(older, newer)

    assert "; 2 of 2 cases measured" in page.finding
    assert "gone" not in page.finding
    assert [(line.suite, line.of.partition(";")[0].rpartition(" · ")[2]) for line in answers_of_suites(page)] == [
        ("big", "older"),
        ("small", "newer"),
    ]
    assert [row.cells[1].text.split("\u202f")[0] for row in page.matrix.rows] == ["50.0", "50.0"]


def test_what_failed_in_an_older_run_needs_no_attention_where_the_newest_measured_it():
    planned = samples.planned_case()
    failed = {"numerics": samples.Outcome(status=samples.Status.FAILED, reason="no luck")}
    older = samples.one_case({"selu:jit": failed}, planned, run_id="older", started="2026-01-01T00:00:00Z")
    newer = samples.run((planned, samples.fast_case(planned)), run_id="newer", started="2026-01-02T00:00:00Z")

    assert page_of(older, newer).attention == ()
    assert page_of(older).attention != ()
