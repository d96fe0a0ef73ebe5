import pytest

from jaxmeter.reporting.view.runs import label_runs
from jaxmeter.reporting.view.sections import method
from jaxmeter.reporting.view.sections.method import MODERATED, describe_calibration, describe_foundations
from jaxmeter.reporting.view.sections.speed import OF_FIRST_RUN
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.views import kept, page_of, section


def labelled(run):
    (one,) = label_runs(kept(run))
    return one


def run_of(*timings, settings):
    return labelled(samples.one_case({f"f{n}:jit": one for n, one in enumerate(timings)}, settings=settings))


def run_of_cases(*timings, settings):
    """A case of two variants for each timing."""
    pairs = (samples.pair({"f:jit": one, "g:jit": one}, params={"n": n}) for n, one in enumerate(timings))
    return labelled(samples.run(*pairs, settings=settings))


def scattered(count, **timing):
    return [samples.timing(1e-3, spread=1 + number, **timing) for number in range(count)]


IN_ROUNDS = samples.settings(most_rounds=12)


def plain(text):
    return text.replace("\u202f", " ")


def run_of_speedups():
    speedups = [samples.timing(1e-3, baseline_s=2e-3, spread=1 + n) for n in range(10)]
    times = [{"f:eager": samples.timing(2e-3), "f:jit": one} for one in speedups]
    return labelled(
        samples.run(*(samples.pair(one, params={"n": n}) for n, one in enumerate(times)), settings=IN_ROUNDS)
    )


def run_with_gap(gap_s):
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3)}}, process_gap_s=gap_s)
    return labelled(samples.run((planned, record), settings=IN_ROUNDS))


@pytest.mark.parametrize(("gap_s", "told"), [(None, False), (9.0, True), (59.9, True), (60.0, False)])
def test_processes_that_follow_each_other_closely_are_said_to_tell_of_these_minutes(gap_s, told):
    assert any("apart" in line for line in describe_foundations(run_with_gap(gap_s))) is told


CONSTANT_S, VARIED_S = (1.02e-4, 1e-4, 1e-4, 1e-4, 0.995e-4), (2e-4, 1e-4, 1e-4, 1e-4, 0.512e-4)


def run_beside(calibration_s, **timing):
    return run_of(samples.timing(1e-3, calibration_s=calibration_s, **timing), settings=IN_ROUNDS)


def contended_run(replaced):
    timings = samples.timing(1e-3, processes=3, contended=1), *[samples.timing(1e-3, replaced=replaced)] * 2
    return run_of(*timings, settings=IN_ROUNDS)


def test_what_intervals_rest_on_reads_as_its_golden_text():
    shown = samples.run(settings=samples.settings(shown_confidence=0.95))
    untimed = samples.one_case({"f:jit": {"numerics": samples.numerics()}})
    scenes = {
        "of one level": [method.describe_levels(labelled(samples.run()))],
        "of two levels": [method.describe_levels(labelled(shown))],
        "ten cases": method.describe_spreads(run_of_cases(*scattered(10), settings=IN_ROUNDS)),
        "ten cases that scatter alike": method.describe_spreads(
            run_of_cases(*[samples.timing(1e-3)] * 10, settings=IN_ROUNDS)
        ),
        "ten speedups": method.describe_usual_ratios(run_of_speedups()),
        "nine cases": method.describe_spreads(run_of_cases(*scattered(9), settings=IN_ROUNDS)),
        "processes close to each other": describe_foundations(run_with_gap(9.0)),
        "a constant calibration": [describe_calibration(run_beside(CONSTANT_S))],
        "a calibration that varied": [describe_calibration(run_beside(VARIED_S))],
        "a core that was slow": [describe_calibration(run_beside((1e-4,) * 5, slow_share=0.25))],
        "no calibration": [describe_calibration(labelled(samples.run()))],
        **{f"{replaced} replaced": [method.describe_contention(contended_run(replaced))] for replaced in (0, 1, 2)},
        "nothing timed": [method.describe_contention(labelled(untimed))],
    }

    check_golden_scenes("foundations", scenes)


def test_the_method_section_tells_of_every_run_that_leads():
    runs = samples.run(run_id="first", machine="a"), samples.run(run_id="second", machine="b", settings=IN_ROUNDS)

    parts = [part for part in section(page_of(*runs), "method").parts if part.title.startswith("What the intervals")]

    assert [part.title for part in parts] == [
        "What the intervals rest on · ● cpu · first",
        "What the intervals rest on · ● cpu · second",
    ]
    assert parts[0].notes == describe_foundations(labelled(runs[0]))
    assert len(parts[0].notes) == 6


def rules_of(*runs):
    return section(page_of(*runs), "method").parts[0].notes


def test_the_rules_say_that_times_are_moderated_only_where_they_are():
    pairs = [samples.pair({"f:jit": timing}, params={"n": n}) for n, timing in enumerate(scattered(10))]

    assert MODERATED not in rules_of(samples.run(*pairs[:9]))
    assert MODERATED in rules_of(samples.run(*pairs))


def test_the_caption_says_that_times_are_brought_to_the_first_run_only_where_they_are():
    first, later = calibration_run("first", 1e-4), calibration_run("later", 2e-4)

    def caption_of(*runs):
        return section(page_of(*runs), "speed").parts[0].tables[0].caption

    assert OF_FIRST_RUN not in caption_of(first)
    assert OF_FIRST_RUN in caption_of(first, later)


def test_replaced_processes_of_two_cases_are_added_up():
    pairs = (samples.pair({"f:jit": samples.timing(1e-3, replaced=n)}, params={"n": n}) for n in (1, 2))

    assert method.describe_contention(labelled(samples.run(*pairs))).endswith(" 3 processes.")


def calibration_run(name: str, calibration_s: float, **changes):
    timing = samples.timing(1e-3, calibration_s=(calibration_s,) * 5, **changes.pop("details", {}))
    return samples.one_case({"f:jit": timing}, settings=IN_ROUNDS, run_id=name, **{"machine": "one", **changes})


def test_times_of_later_runs_of_a_machine_are_brought_to_the_speed_of_the_first():
    first, later = label_runs(kept(calibration_run("first", 1e-4), calibration_run("later", 2e-4)))

    assert (first.baseline, later.baseline) == (None, first)
    assert later.pool.reference.calibration_s == first.pool.reference.median_s == pytest.approx(1e-4)
    assert "its times are brought to the speed of run first, 100 µs" in plain(describe_calibration(later))
    assert "brought to" not in describe_calibration(first)


@pytest.mark.parametrize("machine", ["another", None])
def test_runs_of_other_machines_keep_their_own_speed(machine):
    _, later = label_runs(kept(calibration_run("first", 1e-4), calibration_run("later", 2e-4, machine=machine)))

    assert later.baseline is None
    assert later.pool.reference.calibration_s == pytest.approx(2e-4)


def test_a_first_run_without_a_calibration_is_nobodys_baseline():
    without = samples.run(machine="one")

    _, first, later = label_runs(kept(without, calibration_run("first", 1e-4), calibration_run("later", 2e-4)))

    assert (first.baseline, later.baseline) == (None, first)


def test_a_run_with_another_calibration_than_the_first_of_its_machine_says_so():
    upgraded = [
        calibration_run(name, calibration_s, details={"calibration": "alu 2"})
        for name, calibration_s in (("b", 1e-4), ("c", 2e-4))
    ]
    old, first, later = label_runs(kept(calibration_run("a", 1e-4), *upgraded))

    assert (old.baseline, old.other_calibration) == (None, None)
    assert (first.baseline, first.other_calibration) == (None, old)
    assert (later.baseline, later.other_calibration) == (first, old)
    assert later.pool.reference.calibration_s == pytest.approx(1e-4)
    for run in (first, later):
        assert describe_calibration(run).endswith(
            f"; run a has another, {samples.CALIBRATION}: do not compare times with it."
        )
