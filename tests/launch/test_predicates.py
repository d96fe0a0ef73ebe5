import json

import pytest

from jaxmeter.launch.bisection import Answer
from jaxmeter.launch.predicates import Target, find_target, judge_by_code, judge_by_target, read_changes, tells
from tests import samples

EXACT = Target("selu", "selu:jit", "planned_peak_bytes")


def change(**changes):
    return {
        "case": "selu",
        "variant": "selu:jit",
        "metric": "execution_s",
        "budget": "time",
        "finding": "slower",
        "before": 1e-3,
        "after": 2e-3,
        "effect": None,
        "reason": "",
        **changes,
    }


def memory_change(**changes):
    return change(metric="planned_peak_bytes", budget="peak_memory", **changes)


def interval(low, estimate, high, verdict=None):
    return {"low": low, "estimate": estimate, "high": high, "count": 8, "verdict": verdict}


def test_findings_are_read_from_a_verdict(tmp_path):
    (tmp_path / "verdict.json").write_text(json.dumps({"changes": [change()], "exit_code": 0}))

    assert read_changes(tmp_path / "verdict.json") == [change()]


def test_the_target_is_what_differs_the_most():
    changes = [
        memory_change(finding="more", effect=interval(1.2, 1.2, 1.2)),
        memory_change(finding="less", variant="selu:eager", effect=interval(0.5, 0.5, 0.5)),
    ]

    assert find_target(changes, "peak_memory", "") == Target("selu", "selu:eager", "planned_peak_bytes")
    assert find_target(changes, "peak_memory", "selu:jit") == EXACT


def test_a_program_that_changed_is_a_target():
    assert find_target([change(metric="program", budget="program", finding="changed")], "program", "") == Target(
        "selu", "selu:jit", "program"
    )


def test_memory_is_a_target_where_it_grew_or_shrank():
    for finding in ("more", "less"):
        changes = [memory_change(finding=finding, effect=interval(1.2, 1.2, 1.2))]
        assert find_target(changes, "peak_memory", "") == EXACT
    assert find_target([memory_change(finding="inconclusive")], "peak_memory", "") is None


def test_what_was_nothing_before_differs_the_most():
    changes = [
        change(metric="compiles", budget="compiles", finding="more", effect=interval(3.0, 3.0, 3.0)),
        change(metric="compiles", budget="compiles", finding="less", variant="b:jit", effect=interval(0.0, 0.0, 0.0)),
    ]

    assert find_target(changes, "compiles", "").variant == "b:jit"


PROGRAM = Target("selu", "selu:jit", "program")


@pytest.mark.parametrize(
    ("found", "target", "answer", "why"),
    [
        (
            [memory_change(case="mlp"), memory_change(variant="selu:eager")],
            EXACT,
            Answer.GOOD,
            "as in the good release",
        ),
        *(
            (
                [change(metric="", finding=finding, reason="no such function")],
                EXACT,
                Answer.UNUSABLE,
                f"selu selu:jit is {finding}: no such function",
            )
            for finding in ("failed", "gone", "not comparable")
        ),
        ([change(metric="compiles", budget="compiles", finding="more")], EXACT, Answer.GOOD, ""),
        (
            [memory_change(finding="more", before=100.0, after=200.0)],
            EXACT,
            Answer.BAD,
            "100 in the good release, 200 here",
        ),
        ([memory_change(finding="inconclusive", reason="not the same")], EXACT, Answer.UNDECIDED, "not the same"),
        (
            [change(metric="program", budget="program", finding="changed", before=None, after=None)],
            PROGRAM,
            Answer.BAD,
            "another program than the good release's",
        ),
    ],
)
def test_a_release_is_judged_by_what_is_found_of_the_target_and_it_is_said_why(found, target, answer, why):
    judged = judge_by_target(found, target)

    assert judged.answer is answer
    assert judged.why.endswith(why)


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (0, Answer.GOOD),
        *((code, Answer.BAD) for code in (1, 2, 124, 126, 127)),
        *((code, Answer.UNUSABLE) for code in (125, 128, -9)),
    ],
)
def test_a_command_decides_by_its_exit_code_as_for_git(code, answer):
    judged = judge_by_code(code)

    assert judged.answer is answer
    assert str(code) in judged.why


def write_run(tmp_path, outcomes):
    run = {"cases": [{"name": "selu", "variants": [{"name": "selu:jit", "outcomes": outcomes}]}]}
    (tmp_path / "run.json").write_text(json.dumps(run))
    return tmp_path


@pytest.mark.parametrize(
    ("outcomes", "metric", "expected"),
    [
        ({"memory": {"values": {"planned_peak_bytes": [100]}}}, "planned_peak_bytes", True),
        ({"memory": {"values": {"planned_peak_bytes": [None]}}}, "planned_peak_bytes", False),
        ({"memory": {"values": {"planned_peak_bytes": []}}}, "planned_peak_bytes", False),
        ({"memory": {"values": {}}}, "planned_peak_bytes", False),
        ({}, "planned_peak_bytes", False),
        ({"numerics": {"values": {}, "details": {"probe": "numerics", "fingerprint": "aa"}}}, "program", True),
        ({"numerics": {"values": {}, "details": {"probe": "numerics", "fingerprint": None}}}, "program", False),
        ({"numerics": {"values": {}, "details": None}}, "program", False),
    ],
)
def test_a_run_tells_a_number_or_it_does_not(tmp_path, outcomes, metric, expected):
    assert tells(write_run(tmp_path, outcomes), Target("selu", "selu:jit", metric)) is expected


def test_of_another_case_or_variant_and_without_a_run_it_tells_nothing(tmp_path):
    run = write_run(tmp_path, {"memory": {"values": {"planned_peak_bytes": [100]}}})

    assert not tells(run, Target("mlp", "selu:jit", "planned_peak_bytes"))
    assert not tells(run, Target("selu", "selu:eager", "planned_peak_bytes"))
    assert not tells(tmp_path / "none", EXACT)


def test_a_real_run_is_read_here_too(tmp_path):
    folder = samples.write_run(tmp_path / "run", samples.run())

    assert tells(folder, Target("selu[dtype=float32,n=10000]", "selu:jit", "planned_peak_bytes"))
    assert not tells(folder, Target("selu[dtype=float32,n=10000]", "selu:eager", "planned_peak_bytes"))
