import pytest

from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.reporting.compare.verdicts import PROGRAM, WHOLE, Change, Verdict
from jaxmeter.reporting.load import load
from jaxmeter.reporting.releases import (
    BisectionAnswer,
    BisectionTarget,
    find_target,
    has_value,
    judge_by_code,
    judge_by_target,
)
from tests import samples

EXACT = BisectionTarget("selu", "selu:jit", "planned_peak_bytes")


def change(verdict="slower", **changes):
    told = {"suite": "selu", "case": "selu", "platform": "cpu", "variant": "selu:jit", "metric": "execution_s"}
    return Change(verdict=Verdict(verdict), **{**told, "before": 1e-3, "after": 2e-3, **changes})


def memory_change(**changes):
    return change(**{"verdict": "more", "metric": "planned_peak_bytes", **changes})


def interval(low, estimate, high):
    return Interval(low, estimate, high, 8)


OF_PROGRAM = BisectionTarget("selu", "selu:jit", PROGRAM)
LARGER = memory_change(effect=interval(1.2, 1.2, 1.2))
HALVED = memory_change(verdict="less", variant="selu:eager", effect=interval(0.5, 0.5, 0.5))
TREBLED = change(metric="compiles", verdict="more", effect=interval(3.0, 3.0, 3.0))
FEWER = change(metric="compiles", verdict="less", variant="b:jit", effect=interval(0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("changes", "metric", "variant", "target"),
    [
        ([LARGER, HALVED], "peak_memory", "", BisectionTarget("selu", "selu:eager", "planned_peak_bytes")),
        ([LARGER, HALVED], "peak_memory", "selu:jit", EXACT),
        ([memory_change(verdict="less", effect=interval(1.2, 1.2, 1.2))], "peak_memory", "", EXACT),
        ([memory_change(verdict="inconclusive")], "peak_memory", "", None),
        ([change(metric=PROGRAM, verdict="changed")], "program", "", OF_PROGRAM),
        ([FEWER, TREBLED], "compiles", "", BisectionTarget("selu", "b:jit", "compiles")),
    ],
    ids=["the most", "of a variant", "less", "inconclusive", "a program", "nothing before"],
)
def test_the_target_is_what_differs_the_most(changes, metric, variant, target):
    assert find_target(changes, metric, variant) == target


@pytest.mark.parametrize(
    ("found", "target", "answer", "why"),
    [
        (
            [memory_change(case="mlp"), memory_change(variant="selu:eager")],
            EXACT,
            BisectionAnswer.GOOD,
            "as in the good release",
        ),
        *(
            (
                [change(metric=WHOLE, verdict=verdict, reason="no such function")],
                EXACT,
                BisectionAnswer.UNUSABLE,
                f"selu selu:jit is {verdict}: no such function",
            )
            for verdict in ("failed", "gone", "not comparable")
        ),
        ([change(metric="compiles", verdict="more")], EXACT, BisectionAnswer.GOOD, ""),
        ([memory_change(before=100.0, after=200.0)], EXACT, BisectionAnswer.BAD, "100 in the good release, 200 here"),
        (
            [memory_change(verdict="inconclusive", reason="not the same")],
            EXACT,
            BisectionAnswer.UNDECIDED,
            "not the same",
        ),
        (
            [change(metric=PROGRAM, verdict="changed", before=None, after=None)],
            OF_PROGRAM,
            BisectionAnswer.BAD,
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
        (0, BisectionAnswer.GOOD),
        *((code, BisectionAnswer.BAD) for code in (1, 2, 124, 126, 127)),
        *((code, BisectionAnswer.UNUSABLE) for code in (125, 128, -9)),
    ],
)
def test_a_command_decides_by_its_exit_code_as_for_git(code, answer):
    judged = judge_by_code(code)

    assert judged.answer is answer
    assert str(code) in judged.why


def test_a_run_has_a_number_of_a_variant_or_it_has_not(tmp_path):
    (run,) = load([samples.write_run(tmp_path / "run", samples.run())]).runs
    case = "selu[dtype=float32,n=10000]"

    assert has_value(run, BisectionTarget(case, "selu:jit", "planned_peak_bytes"))
    assert not has_value(run, BisectionTarget(case, "selu:eager", "planned_peak_bytes"))
    assert not has_value(run, BisectionTarget("mlp", "selu:jit", "planned_peak_bytes"))
