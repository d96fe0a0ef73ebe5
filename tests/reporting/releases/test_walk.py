from itertools import pairwise

import pytest

from jaxmeter.document import terminal
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.reporting.compare.verdicts import PROGRAM, TIME, WHOLE, Change, Verdict
from jaxmeter.reporting.releases.walk import UnusableError, WalkStep, describe, describe_trial, walk

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
    return terminal.write(describe(result)).replace("\u202f", " ").splitlines()


def ignore(line):
    """Nobody listens."""


def test_each_release_is_compared_with_the_one_before_it_and_the_last_with_the_first():
    machine = Machine()

    result = walk(RELEASES, machine, ignore)

    assert machine.asked == [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 4, 0), (0, 4, 0)]
    assert [(step.before, step.after) for step in result.steps] == list(pairwise(RELEASES))
    assert (result.total.before, result.total.after) == (RELEASES[0], RELEASES[-1])
    assert not result.has_change_point


def test_releases_may_be_in_descending_order():
    machine = Machine()

    walk(RELEASES[:3][::-1], machine, ignore)

    assert machine.asked == [(2, 1, 0), (1, 0, 0), (2, 0, 0)]


def test_of_two_releases_the_step_is_the_total():
    machine = Machine()

    result = walk(RELEASES[:2], machine, ignore)

    assert machine.asked == [(0, 1, 0)]
    assert result.total is result.steps[0]


@pytest.mark.parametrize(
    ("verdict", "counted"),
    [("suspected slower", 1), ("suspected faster", 1), ("same", 0)],
    ids=["slower", "faster", "same"],
)
def test_suspected_compile_times_are_listed_with_their_release(verdict, counted):
    result = walk(RELEASES, Machine({(1, 2): [time("same"), stage(verdict)]}), ignore)

    named = [line for line in lines_of(result) if "trace + lower + compile" in line]
    assert len(named) == counted
    assert all(RELEASES[2] in line and "2.000" in line for line in named)


def test_several_change_points_are_all_found_in_order():
    pairs = {
        (0, 1): [time("slower", 2.0)],
        (2, 3): [time("faster", 0.5)],
        (3, 4): [time("slower", 3.0)],
        (0, 4): [time("slower", 3.0)],
    }

    result = walk(RELEASES, Machine(pairs), ignore)
    lines = lines_of(result)

    assert lines[0] == "3 change points, in lock-step on one core:"
    found, total = (part.tables[0] for part in describe(result).parts)
    assert [(group.title, *(cell.text for cell in group.rows[0].cells)) for group in found.groups] == [
        ("jax==0.1 compared with jax==0.0", "scan scan:jit", "2.000", "slower"),
        ("jax==0.3 compared with jax==0.2", "scan scan:jit", "0.500", "faster"),
        ("jax==0.4 compared with jax==0.3", "scan scan:jit", "3.000", "slower"),
    ]
    assert "in total, jax==0.4 compared with jax==0.0, in lock-step on one core:" in lines
    assert [(cell.text, cell.detail) for cell in total.rows[0].cells][1:] == [
        ("3.000", "2.990 to 3.010"),
        ("slower", ""),
    ]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("there is no jax==0.2", "there is no jax==0.2"),
        ([write(WHOLE, "failed", reason="error: no attribute x")], "scan scan:jit: failed: error: no attribute x"),
        ([time("failed", effect=None, reason="not timed")], "scan scan:jit: failed: not timed"),
        ([memory(1, 2)], "no time was compared"),
        ([], "no time was compared"),
    ],
)
def test_a_release_that_cannot_be_measured_is_passed_over_and_the_next_one_is_compared_with_the_last_usable_one(
    told, reason
):
    machine, said = Machine({(1, 2): told, (1, 3): [time("slower", 1.5)]}), []

    result = walk(RELEASES, machine, said.append)

    assert machine.asked == [(0, 1, 0), (1, 2, 0), (1, 3, 0), (3, 4, 0), (0, 4, 0)]
    assert result.passed_over == [("jax==0.2", reason)]
    assert f"jax==0.2 is passed over: {reason}" in said
    assert f"  jax==0.2: passed over: {reason}" in lines_of(result)


def test_the_total_is_that_of_the_last_usable_release():
    machine = Machine({(3, 4): "no"})

    assert walk(RELEASES, machine, ignore).total.after == "jax==0.3"
    assert machine.asked[-1] == (0, 3, 0)


def test_where_no_later_release_is_usable_nothing_is_compared():
    result = walk(RELEASES[:3], Machine({(0, 1): "no", (0, 2): "no"}), ignore)

    assert (list(result.steps), result.total) == ([], None)
    assert lines_of(result)[0] == "no change point is confirmed, and no step could be judged"


def test_a_total_that_cannot_be_measured_leaves_the_steps():
    said = []

    result = walk(RELEASES[:3], Machine({(0, 1): [time("slower", 2.0)], (0, 2): "no"}), said.append)

    assert (result.total, result.has_change_point) == (None, True)
    assert said[-1] == "jax==0.2 cannot be compared with jax==0.0: no"


@pytest.mark.parametrize(
    ("factor", "width", "attempts"), [(1.02, 0.17, 1), (1.02, 0.19, 2), (0.99, 0.15, 1), (0.99, 0.17, 2)]
)
def test_an_inconclusive_step_is_measured_again_only_if_a_factor_of_1_2_is_not_excluded(factor, width, attempts):
    machine = Machine({(0, 1): [time("inconclusive", factor, width)]})

    walk(RELEASES[:2], machine, ignore)

    assert len(machine.asked) == attempts


@pytest.mark.parametrize("verdict", ["inconclusive", "suspected slower", "suspected faster"])
def test_a_time_that_is_not_decided_is_measured_once_more_and_the_second_measurement_counts(verdict):
    machine = Machine({(0, 1, 0): [time(verdict, 1.1, 0.2)], (0, 1, 1): [time("slower", 1.08)]})

    result = walk(RELEASES[:2], machine, ignore)

    assert machine.asked == [(0, 1, 0), (0, 1, 1)]
    assert [change.verdict for change in result.steps[0].times] == ["slower"]


def test_a_time_that_stays_undecided_is_named():
    machine = Machine({(0, 1): [time("inconclusive", 1.1, 0.2, smallest=0.182, reason="contended")]})

    lines = lines_of(walk(RELEASES[:2], machine, ignore))

    assert machine.asked == [(0, 1, 0), (0, 1, 1)]
    assert lines[0].startswith("no change point is confirmed; the steps could detect a difference of 18.2 %")
    assert " ".join(" ".join(lines).split()).endswith(
        "jax==0.1 compared with jax==0.0: scan scan:jit: inconclusive, 1.100 times as long "
        "(99 % interval 0.900 to 1.300); contended"
    )


def test_more_processes_are_not_asked_of_what_did_not_run_in_lock_step():
    machine = Machine({(0, 1): [time("inconclusive", effect=None, replayed=False), time("same", variant="b:jit")]})

    walk(RELEASES[:2], machine, ignore)

    assert machine.asked == [(0, 1, 0)]


@pytest.mark.parametrize("again", ["no", []])
def test_where_the_second_measurement_fails_the_first_one_counts(again):
    machine = Machine({(0, 1, 0): [time("inconclusive", 1.1, 0.2)], (0, 1, 1): again})

    result = walk(RELEASES[:2], machine, ignore)

    assert [change.verdict for change in result.steps[0].times] == ["inconclusive"]


def test_without_a_change_point_the_largest_of_the_detectable_differences_is_given():
    machine = Machine({(0, 1): [time("same", smallest=0.03)], (1, 2): [time("same", smallest=0.052)]})

    told = lines_of(walk(RELEASES[:3], machine, ignore))[0]

    assert told == (
        "no change point is confirmed; the steps could detect a difference of 5.2 %, in lock-step on one core"
    )


def test_a_step_is_written_when_it_ends_with_factor_interval_cause_and_counts_of_each_variant():
    changes = [
        write(PROGRAM, "changed", cause="its program has changed"),
        write("hlo_instructions", "more", before=40.0, after=52.0),
        memory(1024.0, 2048.0),
        time("slower", 1.053, cause="its program has changed"),
        time("same", 1.002, variant="scan:eager"),
        write(WHOLE, "failed", variant="scan:aot", reason="error: no memory"),
    ]
    said = []

    walk(RELEASES[:2], Machine({(0, 1): changes}), said.append)

    assert said == [
        "jax==0.1 compared with jax==0.0, in lock-step on one core:",
        (
            "  scan scan:jit: slower, 1.053 times as long (99 % interval 1.043 to 1.063); likely cause: its program "
            "has changed; counts: HLO instructions 40 → 52, planned peak memory 1\u202f024\u202fB → 2\u202f048\u202fB"
        ),
        "  scan scan:eager: same, 1.002 times as long (99 % interval 0.992 to 1.012)",
        "  scan scan:aot: failed: error: no memory",
    ]


@pytest.mark.parametrize(
    ("told", "words"),
    [({"cores": None}, ", in lock-step:"), ({"cores": 2}, ", in lock-step on 2 cores:"), ({"replayed": False}, ":")],
)
def test_the_conditions_are_those_under_which_both_releases_ran(told, words):
    said = []

    walk(RELEASES[:2], Machine({(0, 1): [time("same", **told)]}), said.append)

    assert said[0] == f"jax==0.1 compared with jax==0.0{words}"


def test_memory_and_compilations_that_changed_are_listed_and_are_no_change_points():
    more = [
        time("same"),
        memory(1024.0, 2048.0),
        write("compiles", "less", before=2.0, after=1.0),
        write("hlo_instructions", "more", before=40.0, after=52.0),
        write("compiles", "inconclusive", before=2.0, after=3.0, variant="b:jit"),
    ]

    result = walk(RELEASES[:3], Machine({(1, 2): more}), ignore)
    lines = lines_of(result)

    assert not result.has_change_point
    start = lines.index("planned memory and compilations that changed:")
    assert lines[start + 1 :] == [
        "  jax==0.2: scan scan:jit: planned peak memory 1 024 B → 2 048 B",
        "  jax==0.2: scan scan:jit: compiled programs 2 → 1",
    ]


def test_a_variant_that_the_earlier_release_could_not_run_is_not_judged():
    new = write(WHOLE, "new", variant="b:jit", reason="before, it ended as failed: no attribute x")

    lines = lines_of(walk(RELEASES[:2], Machine({(0, 1): [time("same"), new]}), ignore))

    assert lines[-2:] == [
        "not judged:",
        "  jax==0.1 compared with jax==0.0: scan b:jit: new: before, it ended as failed: no attribute x",
    ]


# Environment variables that may undo a change


@pytest.mark.parametrize(
    ("tried", "words"),
    [
        ([time("same", 1.001)], "undone: same, 1.001"),
        ([time("faster", 0.9)], "undone: faster, 0.900"),
        ([time("slower", 1.5)], "undone in part: slower, 1.500"),
        ([time("slower", 1.985)], "not undone: slower, 1.985"),
        ([time("inconclusive", 1.2, 0.4)], "not decided: inconclusive, 1.200"),
        ([time("same", variant="b:jit")], "not measured; without it slower, 2.000"),
    ],
)
def test_variables_undo_a_change_or_not(tried, words):
    result = walk(RELEASES[:3], Machine({(1, 2): [time("slower", 2.0), time("faster", 0.5, variant="b:jit")]}), ignore)
    step = result.first_slower

    lines = list(describe_trial(step, WalkStep(step.before, step.after, tried), "XLA_FLAGS=--xla_a=1"))

    assert (step.before, step.after) == ("jax==0.1", "jax==0.2")
    assert lines[0].startswith("jax==0.2 with XLA_FLAGS=--xla_a=1 compared with jax==0.1")
    assert len(lines) == 2
    assert lines[1].startswith(f"  scan scan:jit: {words}")


def test_nothing_is_tried_where_no_step_is_slower():
    assert walk(RELEASES[:2], Machine({(0, 1): [time("faster", 0.5)]}), ignore).first_slower is None
