"""Whatever is decided goes by the interval for verdicts, whatever level is shown."""

import pytest

from jaxmeter.harness.metrics.statistics import Interval, differs
from jaxmeter.harness.record import Outcome, Status, TimingDetails
from jaxmeter.reporting.compare.claims import ClaimVerdict, Reason, judge_ratio
from jaxmeter.reporting.view.figures.points import list_jit_speedups
from jaxmeter.reporting.view.growth import TIME, compare, describe_crossovers
from jaxmeter.reporting.view.runs import gather_cases, label_runs
from tests import samples
from tests.reporting.views import kept

STRICT = {"confidence": 0.99, "shown_confidence": 0.90}
LENIENT = {"confidence": 0.90, "shown_confidence": 0.99}
levels = pytest.mark.parametrize(("settings", "decided"), [(STRICT, False), (LENIENT, True)])

LOG_RATIOS = (0.05, 0.10, 0.15)
"""Of three processes: told apart from 0 at 90 %, and not at 99 %."""


def timed(execution_s, log_ratios=None, *, contended=0, **more):
    values = {"execution_s": execution_s, **more}
    values |= {"log_ratio": log_ratios} if log_ratios is not None else {}
    details = TimingDetails(processes=len(execution_s), contended=contended)
    return {"timing": Outcome(status=Status.OK, values=values, details=details)}


def variants_of(outcomes, **settings):
    (case,) = gather_cases(label_runs(kept(samples.one_case(outcomes, settings=samples.settings(**settings)))))
    return case.variants


@levels
def test_whether_one_line_is_ahead_of_another(settings, decided):
    slow, fast = variants_of({"f:jit": timed((1.0,) * 3), "g:jit": timed((0.9,) * 3, LOG_RATIOS)}, **settings)

    assert compare(fast, slow, TIME) == (-1 if decided else 0)
    assert compare(slow, fast, TIME) == (1 if decided else 0)


def test_no_line_is_ahead_where_one_is_contended_and_they_keep_processors_busy_unlike():
    sides = {
        "f:jit": timed((1.0,) * 3, contended=1, parallelism=(1.9,) * 3),
        "g:jit": timed((0.5,) * 3, (0.69, 0.7, 0.71), parallelism=(1.0,) * 3),
    }

    assert compare(*variants_of(sides), TIME) == 0


@levels
def test_whether_work_outweighs_dispatch(settings, decided):
    work = timed((2.9e-6, 3.0e-6, 3.1e-6), return_s=(1.25e-6,) * 3)
    little = timed((1e-6,) * 3, return_s=(1e-6,) * 3)
    line = [(size, *variants_of({"f:jit": outcomes}, **settings)) for size, outcomes in ((1.0, little), (2.0, work))]

    assert bool(describe_crossovers("n", {"f:jit": line})) is decided


@levels
def test_whether_jit_beats_eager(settings, decided):
    variants = variants_of({"f:eager": timed((1.0,) * 3), "f:jit": timed((0.9,) * 3, LOG_RATIOS)}, **settings)

    ((speedup, *_),) = list_jit_speedups([variants[0].case])
    assert differs(speedup) is decided


@pytest.mark.parametrize(
    ("decisive", "verdict", "reason"),
    [
        (Interval(1.5, 2.0, 2.6, 5), ClaimVerdict.SMALLER, Reason.NONE),
        (Interval(0.9, 2.0, 4.0, 5), ClaimVerdict.UNDECIDED, Reason.INCLUDES_1),
        (Interval(None, 2.0, None, 5), ClaimVerdict.UNDECIDED, Reason.NO_INTERVAL),
    ],
)
@pytest.mark.parametrize("shown", [(1.8, 2.2), (0.5, 8.0), (None, None)])
def test_whether_a_claim_holds(shown, decisive, verdict, reason):
    low, high = shown

    judged = judge_ratio(6, Interval(low, 2.0, high, 5, verdict=decisive), exact=False)

    assert (judged.verdict, judged.reason) == (verdict, reason)
