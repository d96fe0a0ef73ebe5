import pytest
from msgspec import structs

from jaxmeter.reporting.compare.verdicts import PROGRAM, TIME, Verdict
from jaxmeter.reporting.history import THE_MACHINE, KnownChangePoint, find_change_points, gather_series
from tests import samples
from tests.reporting.history.runs import environment_of, night, nights, snapshots

AT = 10
CASE = "selu[dtype=float32,n=10000]"


def slower_from(at, factor=1.2):
    return lambda number: 1e-3 * (factor if number >= at else 1)


def change_points_of(runs, *known, metric=None, effect=0.03):
    found = find_change_points(gather_series(snapshots(runs)), known, effect)
    return [one for one in found if metric in (None, one.metric)]


def test_a_step_names_both_levels_the_runs_and_the_commits():
    runs = nights(20, slower_from(AT), environment=lambda number: environment_of(number, AT))

    (found,) = change_points_of(runs)

    assert (found.suite, found.case, found.platform, found.variant) == ("selu", CASE, "cpu", "selu:jit")
    assert (found.metric, found.verdict) == (TIME, Verdict.SUSPECTED_SLOWER)
    assert (found.before, found.after, found.effect) == pytest.approx((1e-3, 1.2e-3, 1.2), rel=0.01)
    assert (found.last, found.first, found.index) == ("run-009", "run-010", AT)
    assert (found.began, found.runs) == ("2026-01-11T02:00:00Z", (10, 10))
    assert (found.commits, found.versions) == ("commit aaaaaaa → bbbbbbb", "")
    assert (found.cause, found.known) == ("nothing known", "")


@pytest.mark.parametrize("revisions", [(None, "b" * 40), ("a" * 40, None), (None, None), ("a" * 40, "a" * 40)])
def test_commits_are_told_where_both_are_known_and_differ(revisions):
    def make(number):
        return samples.environment(git_revision=revisions[number >= AT])

    (change_point,) = change_points_of(nights(20, slower_from(AT), environment=make))

    assert change_point.commits == ""


@pytest.mark.parametrize(
    ("runs", "findings"),
    [
        (nights(20, lambda number: 1e-3), []),
        (nights(13, slower_from(7, 2.0)), []),
        (nights(14, slower_from(7, 2.0)), [Verdict.SUSPECTED_SLOWER]),
        (nights(20, slower_from(AT, 0.8)), [Verdict.SUSPECTED_FASTER]),
    ],
    ids=["alike", "too few", "as few as can be", "faster"],
)
def test_enough_nights_that_are_not_alike_have_a_step(runs, findings):
    assert [one.verdict for one in change_points_of(runs)] == findings


def test_a_step_below_the_minimum_effect_is_none():
    runs = nights(20, slower_from(AT, 1.05))

    assert [len(change_points_of(runs, effect=effect)) for effect in (0.03, 0.1)] == [1, 0]


def test_other_versions_are_told_and_may_be_the_cause():
    packages = {"jax": "0.10.0", "jaxlib": "0.10.1", "numpy": "2.0.0"}
    runs = nights(20, slower_from(AT), environment=lambda number: environment_of(number, AT, packages=packages))

    (change_point,) = change_points_of(runs)

    assert (change_point.versions, change_point.cause) == ("jaxlib 0.10.0 → 0.10.1", "jaxlib 0.10.0 → 0.10.1")


def test_another_program_is_a_step_by_itself_and_the_likely_cause():
    runs = nights(20, slower_from(AT), program=lambda number: "q" if number >= AT else "p")

    program, time = sorted(change_points_of(runs), key=lambda one: one.metric == TIME)

    assert (program.metric, program.verdict) == (PROGRAM, Verdict.CHANGED)
    assert (program.first, program.effect) == ("run-010", None)
    assert (program.cause, time.cause) == ("nothing known", "nothing known; another program")


@pytest.mark.parametrize(
    ("before", "after", "verdict"), [(1000, 1200, Verdict.MORE), (1000, 800, Verdict.LESS), (0, 1200, Verdict.MORE)]
)
def test_an_exact_number_changes_at_the_very_run_and_needs_no_others(before, after, verdict):
    (found,) = change_points_of(nights(3, lambda number: 1e-3, peak=lambda number: after if number >= 2 else before))

    assert (found.metric, found.verdict) == ("planned_peak_bytes", verdict)
    assert (found.before, found.after, found.effect) == (before, after, after / before if before else None)
    assert (found.last, found.first, found.runs) == ("run-001", "run-002", (2, 1))


def test_between_two_steps_a_level_is_that_of_its_own_runs():
    runs = nights(36, lambda number: 1e-3 * (1, 1.2, 1.5)[number // 12])

    later, earlier = change_points_of(runs)

    assert (earlier.first, later.first) == ("run-012", "run-024")
    assert (earlier.after, later.before) == pytest.approx((1.2e-3, 1.2e-3), rel=0.01)
    assert (earlier.runs, later.runs) == ((12, 12), (12, 12))


def test_a_gap_is_between_the_last_run_that_has_it_and_the_first_again():
    runs = nights(21, slower_from(AT))
    runs[AT] = night(AT, 1e-3, case=samples.planned_case("mlp", variants=("selu:jit",)))

    (change_point,) = change_points_of(runs)

    assert (change_point.last, change_point.first) == ("run-009", "run-011")


SLOWER = nights(20, slower_from(AT))
LARGER = nights(3, lambda number: 1e-3, peak=lambda number: 1200 if number >= 2 else 1000)


@pytest.mark.parametrize(
    ("runs", "known", "is_known"),
    [
        *((SLOWER, KnownChangePoint(f"run-{number:03}", "why"), True) for number in (7, 10, 13)),
        *((SLOWER, KnownChangePoint(f"run-{number:03}", "why"), False) for number in (6, 14)),
        (SLOWER, KnownChangePoint("run-010", "why", case="mlp"), False),
        (SLOWER, KnownChangePoint("run-010", "why", variant="selu:eager"), False),
        (LARGER, KnownChangePoint("run-002", "why"), True),
        (LARGER, KnownChangePoint("run-001", "why"), False),
    ],
    ids=[
        *("before", "the same", "after", "too early", "too late", "another case", "another variant"),
        *("the very run of an exact number", "another run of an exact number"),
    ],
)
def test_a_known_step_of_times_may_be_some_runs_away_and_one_of_an_exact_number_not(runs, known, is_known):
    (change_point,) = change_points_of(runs, known)

    assert change_point.known == ("why" if is_known else "")


def of_cases(count, is_slower, *, nights=20, variants=("selu:jit",)):
    """Nightly runs of some cases; `is_slower(number, index)` of a night and of a case."""
    cases = [samples.planned_case(params={"n": n}, variants=variants) for n in range(count)]

    def make(number):
        pairs = []
        for index, case in enumerate(cases):
            time_s = 1e-3 * samples.WOBBLE[number % 5] * (1.2 if is_slower(number, index) else 1)
            outcomes = {"numerics": samples.numerics(), "timing": samples.timing(time_s, calibration_s=(1e-4,) * 5)}
            pairs.append((case, samples.record(case, dict.fromkeys(variants, outcomes))))
        began = f"2026-01-{number + 1:02}T02:00:00Z"
        return samples.run(*pairs, run_id=f"run-{number:03}", started=began, machine="m")

    return list(map(make, range(nights)))


def together(count, slower):
    """The first of some cases are slower from one night on."""
    return of_cases(count, lambda number, index: number >= AT and index < slower)


@pytest.mark.parametrize(("count", "slower", "blamed"), [(4, 4, True), (6, 3, True), (7, 3, False), (3, 2, False)])
def test_where_most_cases_change_together_it_may_be_the_machine(count, slower, blamed):
    found = change_points_of(together(count, slower))

    assert len(found) == slower
    assert {one.cause for one in found} == {THE_MACHINE if blamed else "nothing known"}


def test_steps_some_runs_apart_are_together_too():
    """Where noise has moved them."""
    found = change_points_of(of_cases(3, lambda number, index: number >= AT + 3 * (index == 2), nights=24))

    assert [(one.index, one.cause) for one in found] == [(13, THE_MACHINE), (10, THE_MACHINE), (10, THE_MACHINE)]


def test_the_newest_steps_come_first():
    runs = nights(30, lambda number: 1e-3, peak=lambda number: 1000 + 100 * (number >= 5) + 100 * (number >= 20))

    assert [one.first for one in change_points_of(runs)] == ["run-020", "run-005"]


def test_a_number_that_goes_to_and_fro_is_told_once_and_one_that_changed_some_times_each_time():
    (found,) = change_points_of(nights(9, lambda number: 1e-3, peak=lambda number: 1000 + number % 2))

    assert (found.first, found.cause) == ("run-008", "a value that alternates: 8 changes in 9 runs")
    assert len(change_points_of(nights(5, lambda number: 1e-3, peak=lambda number: 1000 + number))) == 4


@pytest.mark.parametrize("at", [AT - 3, AT + 3])
def test_a_commit_near_a_step_of_times_is_told_and_the_machine_not_blamed(at):
    runs = [
        structs.replace(
            run, manifest=structs.replace(run.manifest, environments={run.manifest.backend: environment_of(number, at)})
        )
        for number, run in enumerate(together(4, 4))
    ]

    found = [one for one in change_points_of(runs) if one.metric == TIME]

    assert {(one.commits, one.cause) for one in found} == {("commit aaaaaaa → bbbbbbb", "nothing known")}


def test_variants_of_one_case_are_one_case():
    variants = ("selu:jit", "other:jit", "third:jit")

    found = change_points_of(of_cases(5, lambda number, index: number >= AT and index == 0, variants=variants))

    assert [one.cause for one in found] == ["nothing known"] * 3
