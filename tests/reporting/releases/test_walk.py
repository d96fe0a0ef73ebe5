from itertools import pairwise

import pytest

from jaxmeter.document import terminal
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.reporting.compare.verdicts import PROGRAM, TIME, WHOLE, Change, Verdict
from jaxmeter.reporting.releases import UnusableError, WalkStep, describe_trial, describe_walk, walk
from tests.golden_texts import check_golden_scenes

RELEASES = tuple(f"jax==0.{number}" for number in range(5))


def write(metric, verdict, **told):
    told = {"suite": "mine", "case": "scan", "platform": "cpu", "variant": "scan:jit", **told}
    return Change(metric=metric, verdict=Verdict(verdict), **told)


def time(verdict, factor=1.0, width=0.01, **told):
    effect = Interval(
        factor - width / 2, factor, factor + width / 2, 6, Interval(factor - width, factor, factor + width, 6)
    )
    told = {"effect": effect, "smallest": 0.03, "replayed": True, "cores": 1, **told}
    return write(TIME, verdict, **told)


def memory(before, after, **told):
    return write("planned_peak_bytes", "more" if after > before else "less", before=before, after=after, **told)


def stage(verdict, **told):
    effect = Interval(1.5, 2.0, 2.5, 6, Interval(1.4, 2.0, 2.6, 6))
    return write("compile_total_s", verdict, effect=effect, smallest=0.1, **told)


class Machine:
    """Compares releases by what it was told of a pair; other pairs are equal. Notes what it was asked."""

    def __init__(self, pairs=()):
        self.pairs, self.asked = dict(pairs), []

    def __call__(self, before, after, attempt):
        self.asked.append((RELEASES.index(before), RELEASES.index(after), attempt))
        told = self.pairs.get(self.asked[-1], self.pairs.get(self.asked[-1][:2], [time("same")]))
        if isinstance(told, str):
            raise UnusableError(told)
        return told


def lines_of(result):
    """A walk's result as a terminal has it, with plain spaces."""
    return terminal.write(describe_walk(result)).replace("\u202f", " ").splitlines()


def ignore(line):
    """Nobody listens."""


def test_each_release_is_compared_with_the_one_before_it_and_the_last_with_the_first():
    machine = Machine()

    result = walk(RELEASES, machine, ignore)

    assert machine.asked == [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 4, 0), (0, 4, 0)]
    assert [(step.before, step.after) for step in result.steps] == list(pairwise(RELEASES))
    assert (result.total.before, result.total.after) == (RELEASES[0], RELEASES[-1])
    assert not result.has_change_point


def test_releases_may_be_in_descending_order_and_of_two_the_step_is_the_total():
    descending, two = Machine(), Machine()
    walk(RELEASES[:3][::-1], descending, ignore)
    result = walk(RELEASES[:2], two, ignore)

    assert descending.asked == [(2, 1, 0), (1, 0, 0), (2, 0, 0)]
    assert two.asked == [(0, 1, 0)]
    assert result.total is result.steps[0]


UNUSABLE = {
    "no such release": "there is no jax==0.2",
    "a failure of the whole": [write(WHOLE, "failed", reason="error: no attribute x")],
    "a failure of the time": [time("failed", effect=None, reason="not timed")],
    "memory alone": [memory(1, 2)],
    "nothing": [],
}


@pytest.mark.parametrize("told", UNUSABLE.values(), ids=UNUSABLE)
def test_a_release_that_cannot_be_measured_is_passed_over_and_the_next_is_compared_with_the_last_usable(told):
    machine = Machine({(1, 2): told, (1, 3): [time("slower", 1.5)]})

    result = walk(RELEASES, machine, ignore)

    assert machine.asked == [(0, 1, 0), (1, 2, 0), (1, 3, 0), (3, 4, 0), (0, 4, 0)]
    assert [release for release, _ in result.passed_over] == ["jax==0.2"]
    assert walk(RELEASES, Machine({(3, 4): "no"}), ignore).total.after == "jax==0.3"


def test_a_total_that_cannot_be_measured_leaves_the_steps():
    result = walk(RELEASES[:3], Machine({(0, 1): [time("slower", 2.0)], (0, 2): "no"}), ignore)

    assert (result.total, result.has_change_point) == (None, True)


def make_walks():
    """What is found of pairs of releases, by the rule."""
    slower, same = [time("slower", 2.0)], [time("same")]
    undecided = [time("inconclusive", 1.1, 0.2, smallest=0.182, reason="contended")]
    several = {
        (0, 1): slower,
        (2, 3): [time("faster", 0.5)],
        (3, 4): [time("slower", 3.0)],
        (0, 4): [time("slower", 3.0)],
    }
    counts = [
        write(PROGRAM, "changed", cause="its program has changed"),
        write("hlo_instructions", "more", before=40.0, after=52.0),
        write("compiles", "less", before=2.0, after=1.0),
        write("compiles", "inconclusive", before=2.0, after=3.0, variant="b:jit"),
        memory(1024.0, 2048.0),
    ]
    variants = [
        time("slower", 1.053, cause="its program has changed"),
        time("same", 1.002, variant="scan:eager"),
        write(WHOLE, "failed", variant="scan:aot", reason="error: no memory"),
        write(WHOLE, "new", variant="b:jit", reason="before, it ended as failed: no attribute x"),
    ]
    return {
        "several change points": several,
        "a time that stays undecided": {(0, 1): undecided},
        "the largest detectable difference": {
            (0, 1): [time("same", smallest=0.03)],
            (1, 2): [time("same", smallest=0.052)],
        },
        "no release is usable": {(0, after): "no" for after in range(1, 5)},
        "a total that cannot be measured": {(0, 1): slower, (0, 4): "no"},
        **{f"a release that cannot be measured: {rule}": {(1, 2): told} for rule, told in UNUSABLE.items()},
        "counts that changed and are no change points": {(1, 2): [*same, *counts]},
        "cause and counts of each variant": {(0, 1): [*counts, *variants]},
        **{
            f"compile times that are {verdict}": {(1, 2): [*same, stage(verdict)]}
            for verdict in ("suspected slower", "suspected faster", "same")
        },
        **{
            f"conditions: {told}": {(0, 1): [time("same", **told)]}
            for told in ({"cores": None}, {"cores": 2}, {"replayed": False})
        },
    }


TRIALS = {
    "undone": time("same", 1.001),
    "undone, and faster": time("faster", 0.9),
    "undone in part": time("slower", 1.5),
    "not undone": time("slower", 1.985),
    "not decided": time("inconclusive", 1.2, 0.4),
    "not measured": time("same", variant="b:jit"),
}
"""What is found of a slower step with environment variables that may undo its change."""


def test_walks_and_trials_of_variables_read_as_their_golden_text():
    scenes, slower = {}, [time("slower", 2.0), time("faster", 0.5, variant="b:jit")]
    for rule, pairs in make_walks().items():
        said = []
        result = walk(RELEASES, Machine(pairs), said.append)
        scenes[rule] = [*said, "", *lines_of(result)]
    step = walk(RELEASES, Machine({(1, 2): slower}), ignore).first_slower
    for trial, tried in TRIALS.items():
        scenes[f"variables: {trial}"] = describe_trial(
            step, WalkStep(step.before, step.after, [tried]), "XLA_FLAGS=--a"
        )

    check_golden_scenes("walks", scenes)
    assert walk(RELEASES[:2], Machine({(0, 1): [time("faster", 0.5)]}), ignore).first_slower is None


@pytest.mark.parametrize(
    ("factor", "width", "attempts"), [(1.02, 0.17, 1), (1.02, 0.19, 2), (0.99, 0.15, 1), (0.99, 0.17, 2)]
)
def test_an_inconclusive_step_is_measured_again_only_if_a_factor_of_1_2_is_not_excluded(factor, width, attempts):
    machine = Machine({(0, 1): [time("inconclusive", factor, width)]})

    walk(RELEASES[:2], machine, ignore)

    assert len(machine.asked) == attempts


@pytest.mark.parametrize(
    ("verdict", "again", "counts"),
    [
        *((verdict, [time("slower", 1.08)], "slower") for verdict in ("inconclusive", "suspected slower")),
        ("suspected faster", [time("slower", 1.08)], "slower"),
        *(("inconclusive", again, "inconclusive") for again in ("no", [])),
    ],
)
def test_a_time_that_is_not_decided_is_measured_once_more_and_counts_unless_that_fails(verdict, again, counts):
    machine = Machine({(0, 1, 0): [time(verdict, 1.1, 0.2)], (0, 1, 1): again})

    result = walk(RELEASES[:2], machine, ignore)

    assert machine.asked == [(0, 1, 0), (0, 1, 1)]
    assert [change.verdict for change in result.steps[0].times] == [counts]


def test_more_processes_are_not_asked_of_what_did_not_run_in_lock_step():
    machine = Machine({(0, 1): [time("inconclusive", effect=None, replayed=False), time("same", variant="b:jit")]})

    walk(RELEASES[:2], machine, ignore)

    assert machine.asked == [(0, 1, 0)]


# Environment variables that may undo a change
